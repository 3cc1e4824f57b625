//! What a person should know about a reading.

use simstore_corpus::{Counts, InputKind, Notice};

pub(crate) use crate::numbers::count_of;
use crate::progress::Progress;

/// Says what a person should know about the texts, and about their fingerprints.
pub(crate) fn warn(counts: &Counts, kind: InputKind, progress: &Progress) {
    warn_of_texts(counts, kind, progress);
    counts.short_notice().iter().for_each(|notice| progress.tell(notice));
}

/// Says what a person should know about the texts.
pub(crate) fn warn_of_texts(counts: &Counts, kind: InputKind, progress: &Progress) {
    counts.notices(kind, progress.take_notes()).iter().for_each(|notice| progress.tell(notice));
}

/// Reports the skipped files of a run that ends early.
pub(crate) fn warn_of_skipped(progress: &Progress) {
    progress.take_notes().into_iter().for_each(|(note, count)| progress.tell(&Notice::Read(note, count)));
}
