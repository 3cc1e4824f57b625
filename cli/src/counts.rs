//! How many documents of which kind were read, and what a person should know about the reading.

use simstore_corpus::{InputKind, ReadNote};
use simstore_text::SHORT_TEXT_FEATURES;

use crate::failure::complain;
use crate::inputs::Item;
use crate::numbers::grouped;
use crate::progress::Progress;

/// How many items of which kind were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// All that were not malformed.
    pub(crate) read: u64,
    pub(crate) empty: u64,
    pub(crate) short: u64,
    pub(crate) bad: u64,
    pub(crate) replaced: u64,
    pub(crate) text_bytes: u64,
}

impl Counts {
    /// Counts an item that is not malformed.
    pub(crate) fn count<F>(&mut self, item: &Item<F>) {
        self.read += 1;
        self.empty += u64::from(item.fingerprint.is_none());
        self.short += u64::from(item.features.is_some_and(|features| features < SHORT_TEXT_FEATURES));
        self.replaced += item.replaced;
        self.text_bytes += item.text_bytes;
    }

    /// Adds the counts of other items.
    pub(crate) fn add(&mut self, other: Counts) {
        self.read += other.read;
        self.empty += other.empty;
        self.short += other.short;
        self.bad += other.bad;
        self.replaced += other.replaced;
        self.text_bytes += other.text_bytes;
    }

    /// Says what a person should know about the texts.
    pub(crate) fn warn(&self, kind: InputKind, progress: &Progress) {
        if self.bad > 0 {
            let what = match kind {
                InputKind::Documents => "document",
                InputKind::Fingerprints => "line",
            };
            let files = if self.bad == 1 { "file" } else { "files" };
            complain(&format!("warning: {} or {files} malformed, skipped", count_of(self.bad, what)));
        }
        let notes = progress.take_notes();
        for (note, &count) in &notes {
            match note {
                ReadNote::Encoding(_) => complain(&format!("warning: {}", said(note, count))),
                _ => progress.say(&said(note, count)),
            }
        }
        if self.read + self.bad == 0 {
            complain("warning: there is nothing in the inputs that could be read");
        }
        if kind == InputKind::Documents && self.empty > 0 {
            progress.say(&format!(
                "{} without text: they get no fingerprint and match nothing",
                count_of(self.empty, "document")
            ));
        }
        if self.replaced > 0 {
            complain(&format!(
                "warning: {} not in the encoding of the input, replaced by U+FFFD; `--encoding` names another",
                count_of(self.replaced, "character")
            ));
        }
        if self.short > 0 {
            complain(&format!(
                "warning: {} so short that the fingerprints are unreliable",
                count_of(self.short, "document")
            ));
        }
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

/// A count and what is counted: `1 line`, `2 lines`.
pub(crate) fn count_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}
