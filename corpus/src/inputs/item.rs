//! Documents and fingerprints read from inputs, and counts of them.

use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::Observer;
use crate::diagnostic::{Diagnostic, ReadDiagnosticCounts};
use simstore::{Error, Fingerprint, Result};
use simstore_io::DocumentId;
use simstore_io::ReadProgress;
use simstore_text::{SHORT_TEXT_FEATURES, Signature};

/// Kind of the records that inputs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Documents, with texts.
    Documents,
    /// Fingerprints, without texts.
    Fingerprints,
}

/// A document or a fingerprint read from an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<F> {
    /// Id from the input. If the record has no id, a document gets an id made from file and line, and a fingerprint gets its
    /// position.
    pub id: DocumentId,
    /// Fingerprint; `None` for a document whose text is empty, or that the
    /// [filter](crate::FingerprintedDocuments::with_filter) excludes.
    pub fingerprint: Option<F>,
    /// Number of distinct features of the text. `None` if the fingerprint is `None`, or if the input holds fingerprints,
    /// not texts.
    pub feature_count: Option<u32>,
    /// MinHash signature of the text, if [requested](crate::Inputs::visit_with_signatures).
    pub signature: Option<Signature>,
    /// Text, if [requested](crate::Inputs::visit_filtered).
    pub text: Option<String>,
    /// Size of the text in UTF-8, in bytes.
    pub text_bytes: u64,
    /// Number of invalid byte sequences in the text that were replaced by U+FFFD.
    pub replacements: u64,
    /// Value of the [extra field](simstore_io::DocumentOptions::extra_field); `None` if the document does not have the field.
    pub extra: Option<String>,
    /// Position among the records of all inputs, from 0. Malformed records count too.
    pub position: u64,
    /// Input file; `-` for standard input.
    pub path: Arc<Path>,
    /// Line of the file on which the record starts or, in formats without lines, number of the record. See
    /// [`Record::line`](simstore_io::Record::line).
    pub line: u64,
    /// Checksum of the record. See [`Record::checksum`](simstore_io::Record::checksum). 0 for an item returned by
    /// [`FingerprintIter`](crate::FingerprintIter).
    pub checksum: u64,
    /// Whether the id is from the input, or is made from file and line; `false` if the id is the position.
    pub has_id: bool,
    /// Whether the id is made from file and line, because the document has no id in its record.
    pub has_position_id: bool,
}

impl<F: Fingerprint> Item<F> {
    /// Makes an item from a fingerprint. Without `id`, the item's id is `position`. Does not compute the checksum.
    pub(crate) fn from_fingerprint(
        position: u64,
        fingerprint: F,
        id: Option<DocumentId>,
        path: Arc<Path>,
        line: u64,
    ) -> Self {
        Item {
            has_id: id.is_some(),
            id: id.unwrap_or(DocumentId::Number(position)),
            fingerprint: Some(fingerprint),
            feature_count: None,
            signature: None,
            text: None,
            text_bytes: 0,
            replacements: 0,
            extra: None,
            position,
            path,
            line,
            checksum: 0,
            has_position_id: false,
        }
    }

    /// Sets the position among the records of all inputs, and computes the checksum.
    pub(crate) fn with_position(self, position: u64) -> Self {
        Item { position, checksum: self.checksum_of_fingerprint(), ..self }
    }

    /// Computes the checksum of an item returned by [`FingerprintIter`](crate::FingerprintIter): xxh3 of the fingerprint
    /// and of the id, if the input has an id.
    pub fn checksum_of_fingerprint(&self) -> u64 {
        let mut bytes = vec![0; F::BYTES];
        self.fingerprint.iter().for_each(|fingerprint| fingerprint.write_le(&mut bytes));
        if self.has_id {
            bytes.extend_from_slice(self.id.to_string().as_bytes());
        }
        xxh3_64(&bytes)
    }

    /// Makes the error that a visitor returns to reject this item as malformed.
    pub fn malformed(&self, reason: String) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: self.line, reason }
    }
}

/// Counts of the records that were read, and of skipped records and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// Number of records read, without malformed ones.
    pub read: u64,
    /// Number of documents without text.
    pub empty: u64,
    /// Number of documents with so few features that their fingerprints are unreliable.
    pub short: u64,
    /// Number of skipped malformed records, and of skipped files that could not be read to their end.
    pub malformed: u64,
    /// Number of invalid byte sequences in texts that were replaced by U+FFFD.
    pub replacements: u64,
    /// Total size of all texts in UTF-8, in bytes.
    pub text_bytes: u64,
    /// Number of skipped paths whose file or folder is read under another path: links, hard links, and repeated paths.
    pub duplicate_paths: u64,
    /// Number of files, links, pipes and devices that were skipped, without those that [`malformed`](Self::malformed) and
    /// [`duplicate_paths`](Self::duplicate_paths) count.
    pub skipped_files: u64,
}

impl InputCounts {
    /// Counts an item that is not malformed, with the properties of its text.
    pub fn count<F>(&mut self, item: &Item<F>) {
        self.read += 1;
        self.empty += u64::from(item.fingerprint.is_none());
        self.short += u64::from(item.feature_count.is_some_and(|features| features < SHORT_TEXT_FEATURES));
        // A damaged checkpoint file may hold any number, so these additions must not overflow.
        self.replacements = self.replacements.saturating_add(item.replacements);
        self.text_bytes = self.text_bytes.saturating_add(item.text_bytes);
    }

    /// Adds the numbers of duplicate paths and skipped files that the reader has counted.
    pub fn count_files(&mut self, read: &ReadProgress) {
        self.duplicate_paths += read.duplicate_paths();
        self.skipped_files += read.skipped_files();
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: InputCounts) {
        self.read += other.read;
        self.empty += other.empty;
        self.short += other.short;
        self.malformed += other.malformed;
        self.replacements = self.replacements.saturating_add(other.replacements);
        self.text_bytes = self.text_bytes.saturating_add(other.text_bytes);
        self.duplicate_paths += other.duplicate_paths;
        self.skipped_files += other.skipped_files;
    }
}

impl InputCounts {
    /// Returns the messages for these counts and for `read_diagnostics`, in display order. Does not include
    /// [`InputCounts::short_diagnostic`], because only jobs that compare fingerprints of documents show it.
    pub fn diagnostics(
        &self,
        kind: InputKind,
        read_diagnostics: ReadDiagnosticCounts,
    ) -> Vec<Diagnostic<'static>> {
        let record_noun = match kind {
            InputKind::Documents => "document",
            InputKind::Fingerprints => "line",
        };
        let mut diagnostics = Vec::new();
        diagnostics.extend(
            (self.malformed > 0).then_some(Diagnostic::SkippedMalformed(self.malformed, record_noun)),
        );
        diagnostics.extend(read_diagnostics.into_iter().map(|(read, count)| Diagnostic::Read(read, count)));
        diagnostics.extend((self.read + self.malformed == 0).then_some(Diagnostic::NoInput));
        let has_empty = kind == InputKind::Documents && self.empty > 0;
        diagnostics.extend(has_empty.then_some(Diagnostic::EmptyDocuments(self.empty)));
        diagnostics
            .extend((self.replacements > 0).then_some(Diagnostic::ReplacedCharacters(self.replacements)));
        diagnostics
    }

    /// Returns the message for documents that are too short for reliable fingerprints; `None` if no document is too short.
    pub fn short_diagnostic(&self) -> Option<Diagnostic<'static>> {
        (self.short > 0).then_some(Diagnostic::ShortDocuments(self.short))
    }
}

/// Handler of malformed records. Either the first malformed record ends the job, or all of them are skipped, reported to the
/// observer, and counted.
pub(crate) struct MalformedHandler<'a> {
    observer: &'a dyn Observer,
    skip: bool,
    count: u64,
}

impl<'a> MalformedHandler<'a> {
    pub(crate) fn new(skip: bool, observer: &'a dyn Observer) -> Self {
        MalformedHandler { observer, skip, count: 0 }
    }

    /// Number of skipped malformed records.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Reports and counts the error of a malformed record, if such records are skipped. Otherwise returns the error.
    /// Returns all other errors too.
    pub(crate) fn handle(&mut self, error: Error) -> Result<()> {
        match error {
            Error::BadInput { .. } if self.skip => {
                self.count += 1;
                self.observer.diagnostic(&Diagnostic::Malformed(&error));
                Ok(())
            }
            other => Err(other),
        }
    }
}
