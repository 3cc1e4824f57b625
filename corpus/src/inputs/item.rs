//! A document or a fingerprint of an input, and counts of them.

use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::Watch;
use crate::notice::{Notice, ReadNotes};
use simstore::{Error, Fingerprint, Result};
use simstore_io::DocumentId;
use simstore_io::ReadProgress;
use simstore_text::{SHORT_TEXT_FEATURES, Sketched};

/// Kind of the records of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Documents.
    Documents,
    /// Fingerprints.
    Fingerprints,
}

/// A document or a fingerprint of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<F> {
    /// Its id.
    pub id: DocumentId,
    /// Its fingerprint; `None` for a document whose text is empty, or that is [not wanted](crate::FingerprintedDocuments::only).
    pub fingerprint: Option<F>,
    /// Distinct features of the text.
    pub features: Option<u32>,
    /// Its sketches, if they were [asked for](crate::Inputs::visit_sketched).
    pub sketched: Option<Sketched>,
    /// Its text, if texts were [asked for](crate::Inputs::visit_wanted).
    pub text: Option<String>,
    /// Bytes of the text, in UTF-8.
    pub text_bytes: u64,
    /// How many malformed sequences of bytes became U+FFFD.
    pub replaced: u64,
    /// The value of the [extra field](simstore_io::DocumentOptions::extra_field), if that is there.
    pub extra: Option<String>,
    /// Its position among all of all inputs, malformed ones included, from 0.
    pub position: u64,
    /// The file that it came from; `-` for standard input.
    pub path: Arc<Path>,
    /// Where it starts there: see [`Record::line`](simstore_io::Record::line).
    pub line: u64,
    /// The checksum of its record: see [`Record::checksum`](simstore_io::Record::checksum); 0 in an item of
    /// [`Fingerprints`](crate::Fingerprints).
    pub checksum: u64,
    /// Whether the id is in the file, or is made from file and line; `false` if the id is the position.
    pub has_id: bool,
    /// Whether the id is known to be made from file and line.
    pub is_placed: bool,
}

impl<F: Fingerprint> Item<F> {
    /// A fingerprint with the id beside it, or without one. Its checksum is not computed.
    pub(crate) fn of_fingerprint(
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
            features: None,
            sketched: None,
            text: None,
            text_bytes: 0,
            replaced: 0,
            extra: None,
            position,
            path,
            line,
            checksum: 0,
            is_placed: false,
        }
    }

    /// The fingerprint at its position among all items, with its checksum.
    pub(crate) fn at(self, position: u64) -> Self {
        Item { position, checksum: self.checksum_of_fingerprint(), ..self }
    }

    /// The checksum of an item of [`Fingerprints`](crate::Fingerprints): xxh3 of the fingerprint and the id beside it.
    pub fn checksum_of_fingerprint(&self) -> u64 {
        let mut bytes = vec![0; F::BYTES];
        self.fingerprint.iter().for_each(|fingerprint| fingerprint.write_le(&mut bytes));
        if self.has_id {
            bytes.extend_from_slice(self.id.to_string().as_bytes());
        }
        xxh3_64(&bytes)
    }

    /// The error of a visitor that finds the item to be malformed.
    pub fn bad(&self, reason: String) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: self.line, reason }
    }
}

/// Counts of the items that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that were not malformed.
    pub read: u64,
    /// Those without a text.
    pub empty: u64,
    /// Those whose text has so few features that the fingerprint is unreliable.
    pub short: u64,
    /// Malformed ones, and files that could not be read on, which were skipped.
    pub bad: u64,
    /// Malformed sequences of bytes that became U+FFFD.
    pub replaced: u64,
    /// Bytes of all texts, in UTF-8.
    pub text_bytes: u64,
    /// Further names of files and folders that were read once: links, hard links, and repeated names.
    pub other_names: u64,
    /// Files, links, pipes and devices that were passed over besides.
    pub passed_over: u64,
}

impl Counts {
    /// Counts an item that is not malformed.
    pub fn count<F>(&mut self, item: &Item<F>) {
        self.read += 1;
        self.empty += u64::from(item.fingerprint.is_none());
        self.short += u64::from(item.features.is_some_and(|features| features < SHORT_TEXT_FEATURES));
        // These may come from a file.
        self.replaced = self.replaced.saturating_add(item.replaced);
        self.text_bytes = self.text_bytes.saturating_add(item.text_bytes);
    }

    /// Counts the files that a reading has passed over.
    pub fn count_files(&mut self, read: &ReadProgress) {
        self.other_names += read.other_names();
        self.passed_over += read.passed_over();
    }

    /// Adds the counts of other items.
    pub fn add(&mut self, other: Counts) {
        self.read += other.read;
        self.empty += other.empty;
        self.short += other.short;
        self.bad += other.bad;
        self.replaced = self.replaced.saturating_add(other.replaced);
        self.text_bytes = self.text_bytes.saturating_add(other.text_bytes);
        self.other_names += other.other_names;
        self.passed_over += other.passed_over;
    }
}

impl Counts {
    /// The notices of a reading with these counts and notes, in the order in which they are shown. If fingerprints of documents are
    /// compared, [`Counts::short_notice`] comes in addition.
    pub fn notices(&self, kind: InputKind, notes: ReadNotes) -> Vec<Notice<'static>> {
        let what = match kind {
            InputKind::Documents => "document",
            InputKind::Fingerprints => "line",
        };
        let mut notices = Vec::new();
        notices.extend((self.bad > 0).then_some(Notice::Bad(self.bad, what)));
        notices.extend(notes.into_iter().map(|(note, count)| Notice::Read(note, count)));
        notices.extend((self.read + self.bad == 0).then_some(Notice::Nothing));
        let tells_empty = kind == InputKind::Documents && self.empty > 0;
        notices.extend(tells_empty.then_some(Notice::Empty(self.empty)));
        notices.extend((self.replaced > 0).then_some(Notice::Replaced(self.replaced)));
        notices
    }

    /// That some are too short for reliable fingerprints, if any are.
    pub fn short_notice(&self) -> Option<Notice<'static>> {
        (self.short > 0).then_some(Notice::Short(self.short))
    }
}

/// Handling of malformed items: the first ends the work, or all are reported to the watch and counted.
pub(crate) struct Malformed<'a> {
    watch: &'a dyn Watch,
    skip: bool,
    count: u64,
}

impl<'a> Malformed<'a> {
    pub(crate) fn new(skip: bool, watch: &'a dyn Watch) -> Self {
        Malformed { watch, skip, count: 0 }
    }

    /// How many were skipped.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Counts what is malformed if that is skipped; else, and other errors, hands it back.
    pub(crate) fn take(&mut self, error: Error) -> Result<()> {
        match error {
            Error::BadInput { .. } if self.skip => {
                self.count += 1;
                self.watch.notice(&Notice::Malformed(&error));
                Ok(())
            }
            other => Err(other),
        }
    }
}
