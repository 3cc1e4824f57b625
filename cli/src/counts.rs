//! What a person should know about a reading.

use simstore_corpus::{Counts, InputKind, ReadNote};

use crate::failure::complain;
pub(crate) use crate::numbers::count_of;
use crate::progress::Progress;

/// Says what a person should know about the texts, and about their fingerprints.
pub(crate) fn warn(counts: &Counts, kind: InputKind, progress: &Progress) {
    warn_of_texts(counts, kind, progress);
    if counts.short > 0 {
        complain(&format!(
            "warning: {} so short that the fingerprints are unreliable",
            count_of(counts.short, "document")
        ));
    }
}

/// Says what a person should know about the texts.
pub(crate) fn warn_of_texts(counts: &Counts, kind: InputKind, progress: &Progress) {
    if counts.bad > 0 {
        let what = match kind {
            InputKind::Documents => "document",
            InputKind::Fingerprints => "line",
        };
        let files = if counts.bad == 1 { "file" } else { "files" };
        complain(&format!("warning: {} or {files} malformed, skipped", count_of(counts.bad, what)));
    }
    let notes = progress.take_notes();
    for (note, &count) in &notes {
        match note {
            ReadNote::Encoding(_) => complain(&format!("warning: {}", said(note, count))),
            _ => progress.say(&said(note, count)),
        }
    }
    if counts.read + counts.bad == 0 {
        complain("warning: there is nothing in the inputs that could be read");
    }
    if kind == InputKind::Documents && counts.empty > 0 {
        progress.say(&format!("{} without text, which match nothing", count_of(counts.empty, "document")));
    }
    if counts.replaced > 0 {
        complain(&format!(
            "warning: {} not in the encoding of the input, replaced by U+FFFD; `--encoding` names another",
            count_of(counts.replaced, "character")
        ));
    }
}

/// What there is to say of the reading.
fn said(note: &ReadNote, count: u64) -> String {
    match note {
        ReadNote::UnknownFile => {
            format!(
                "{} passed over, by their names no documents; --format reads them",
                count_of(count, "file")
            )
        }
        ReadNote::FingerprintFile => {
            format!("{} of fingerprints passed over; name them to read them", count_of(count, "file"))
        }
        ReadNote::Link => {
            format!("{} in archives passed over; unpack the archive to follow them", count_of(count, "link"))
        }
        ReadNote::WarcRecord(kind) => {
            format!("{} of type {kind} without text passed over", count_of(count, "WARC record"))
        }
        ReadNote::Delimiter(delimiter) => {
            format!("{} with {delimiter:?} between the fields, as the columns show", count_of(count, "table"))
        }
        ReadNote::Encoding(name) => {
            format!("{} not in UTF-8, read as {name} by what they look like", count_of(count, "text"))
        }
    }
}
