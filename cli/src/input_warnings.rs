//! Warnings about the inputs of a command, printed after reading.

use simstore_corpus::{Diagnostic, InputCounts, InputKind};

use crate::progress::ProgressDisplay;

/// Prints the warnings of [`warn_about_texts`], and a warning about documents that are too short for a reliable fingerprint.
pub(crate) fn warn_about_fingerprints(counts: &InputCounts, kind: InputKind, progress: &ProgressDisplay) {
    warn_about_texts(counts, kind, progress);
    counts.short_diagnostic().iter().for_each(|diagnostic| progress.print_diagnostic(diagnostic));
}

/// Prints warnings about skipped, malformed and empty documents and about replaced characters.
pub(crate) fn warn_about_texts(counts: &InputCounts, kind: InputKind, progress: &ProgressDisplay) {
    counts
        .diagnostics(kind, progress.take_read_diagnostics())
        .iter()
        .for_each(|diagnostic| progress.print_diagnostic(diagnostic));
}

/// Prints only the diagnostics of reading, such as skipped files, for a command that fails.
pub(crate) fn warn_about_skipped_files(progress: &ProgressDisplay) {
    progress
        .take_read_diagnostics()
        .into_iter()
        .for_each(|(read, count)| progress.print_diagnostic(&Diagnostic::Read(read, count)));
}
