//! Warnings about the documents that were read.

use simstore_corpus::{Counts, InputKind, Notice};

pub(crate) use crate::numbers::count_of;
use crate::progress::Progress;

/// Prints warnings about the texts and their fingerprints.
pub(crate) fn warn(counts: &Counts, kind: InputKind, progress: &Progress) {
    warn_of_texts(counts, kind, progress);
    counts.short_notice().iter().for_each(|notice| progress.tell(notice));
}

/// Prints warnings about the texts.
pub(crate) fn warn_of_texts(counts: &Counts, kind: InputKind, progress: &Progress) {
    counts.notices(kind, progress.take_notes()).iter().for_each(|notice| progress.tell(notice));
}

/// Reports the skipped files of a run that ends early.
pub(crate) fn warn_of_skipped(progress: &Progress) {
    progress.take_notes().into_iter().for_each(|(note, count)| progress.tell(&Notice::Read(note, count)));
}
