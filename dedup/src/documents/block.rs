//! Blocks of documents in memory: a table with one row per document.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use simstore::any::{AnyFingerprints, AnyWidth, Width};
use simstore::{Fingerprint, each_width};

use crate::documents::id_table::{IdTable, StringColumn};
use simstore_corpus::Item;
use simstore_io::{DocumentId, DocumentOptions, IdRef, Record};

/// Block of documents: a table with one row per document. The columns are fingerprint, id, sort key for the
/// keep rule, and checksum. A block holds the whole corpus, consecutive documents, or a selection of documents.
#[derive(Clone, Debug)]
pub(crate) struct DocumentBlock {
    /// One fingerprint per document; zero for a document without text.
    pub(crate) fingerprints: AnyFingerprints,
    /// Rows of the documents without text, ascending.
    pub(crate) empty: Vec<usize>,
    pub(crate) ids: IdTable,
    /// Sort key of each document for the keep rule; `None` for a rule that needs no sort keys, such as
    /// [`KeepRule::First`](crate::KeepRule::First).
    pub(crate) keys: Option<StringColumn<Vec<u8>>>,
    /// Low 32 bits of the checksum of each document; `None` if checksums are not needed.
    pub(crate) checksums: Option<Vec<u32>>,
}

impl DocumentBlock {
    pub(crate) fn new(width: Width, with_keys: bool, with_checksums: bool) -> Self {
        DocumentBlock {
            fingerprints: width.map(|()| Vec::new(), |()| Vec::new()),
            empty: Vec::new(),
            ids: IdTable::default(),
            keys: with_keys.then(StringColumn::default),
            checksums: with_checksums.then(Vec::new),
        }
    }

    /// Creates an empty block with the same columns as this one.
    pub(crate) fn empty_like(&self) -> Self {
        DocumentBlock::new(self.fingerprints.width(), self.keys.is_some(), self.checksums.is_some())
    }

    /// Appends a document with its sort key.
    pub(crate) fn push<F: Fingerprint>(&mut self, item: &Item<F>, key: Option<&[u8]>) {
        self.ids.push(item.position..item.position + 1, &item.id, &item.path, item.line);
        self.keys.iter_mut().zip(key).for_each(|(all, key)| all.push(key));
        self.checksums.iter_mut().for_each(|all| all.push(item.checksum as u32));
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        let fingerprint = item.fingerprint.unwrap_or_default().to_u128();
        each_width!(&mut self.fingerprints, all => all.push(Fingerprint::from_u128(fingerprint)));
    }

    /// Appends consecutive fingerprints of a file. The first one has the input position `position`, which is also
    /// its id, and is in line `line` of the file. Each further fingerprint has the next position and the next line.
    pub(crate) fn push_block<F: Fingerprint>(
        &mut self,
        fingerprints: &[F],
        position: u64,
        path: &Arc<Path>,
        line: u64,
    ) {
        let positions = position..position + fingerprints.len() as u64;
        self.ids.push(positions, &DocumentId::Number(position), path, line);
        let fingerprints = fingerprints.iter().map(|one| one.to_u128());
        match &mut self.fingerprints {
            AnyWidth::Bits64(all) => all.extend(fingerprints.map(u64::from_u128)),
            AnyWidth::Bits128(all) => all.extend(fingerprints),
        }
    }

    /// Appends row `at` of another block. Both blocks must have the same columns.
    pub(crate) fn push_from(&mut self, other: &DocumentBlock, at: usize) {
        self.ids.push_from(&other.ids, at);
        self.keys.iter_mut().zip(&other.keys).for_each(|(all, others)| all.push(others.get(at)));
        if let (Some(all), Some(others)) = (&mut self.checksums, &other.checksums) {
            all.push(others[at]);
        }
        if !other.has_text(at) {
            self.empty.push(self.fingerprints.len());
        }
        let fingerprint = other.fingerprint(at);
        each_width!(&mut self.fingerprints, all => all.push(Fingerprint::from_u128(fingerprint)));
    }

    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Memory of all columns except the fingerprints, in bytes.
    pub(crate) fn memory_besides_fingerprints(&self) -> u64 {
        let checksums = self.checksums.as_ref().map_or(0, |all| all.len() * size_of::<u32>()) as u64;
        let empty = (self.empty.len() * size_of::<usize>()) as u64;
        empty + checksums + self.ids.memory() + self.keys.as_ref().map_or(0, StringColumn::memory)
    }

    /// Memory of all columns, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory_besides_fingerprints() + self.len() as u64 * self.fingerprint_bytes()
    }

    /// Width of a fingerprint, in bytes.
    pub(crate) fn fingerprint_bytes(&self) -> u64 {
        u64::from(self.fingerprints.bits() / 8)
    }

    /// Returns the fingerprint of a row; zero for a document without text.
    pub(crate) fn fingerprint(&self, at: usize) -> u128 {
        each_width!(&self.fingerprints, all => all[at].to_u128())
    }

    /// Whether the document of a row has text, and therefore a fingerprint.
    pub(crate) fn has_text(&self, at: usize) -> bool {
        self.empty.binary_search(&at).is_err()
    }
}

/// Reference to a document of a block.
pub(crate) struct DocumentRef<'a> {
    /// Index of the document in the corpus.
    pub(crate) number: usize,
    pub(crate) block: &'a DocumentBlock,
    /// Row of the document in the block.
    pub(crate) index: usize,
}

impl<'a> DocumentRef<'a> {
    pub(crate) fn id(&self) -> IdRef<'a> {
        self.block.ids.id(self.index)
    }

    /// Returns the id as bytes. The id of a text file is its path, which may be invalid UTF-8.
    pub(crate) fn id_bytes(&self) -> Cow<'a, [u8]> {
        self.block.ids.id_bytes(self.index)
    }

    /// Returns the location of the document as `FILE:LINE`.
    pub(crate) fn location(&self) -> String {
        self.block.ids.location(self.index)
    }

    /// Position of the document in the input, from 0. Malformed records are counted, too.
    pub(crate) fn position(&self) -> u64 {
        self.block.ids.position(self.index)
    }

    /// Returns the fingerprint; `None` for a document without text.
    pub(crate) fn fingerprint(&self) -> Option<u128> {
        self.block.has_text(self.index).then(|| self.block.fingerprint(self.index))
    }

    /// Returns the fingerprint in hexadecimal; `None` for a document without text.
    pub(crate) fn hex(&self) -> Option<String> {
        let hex = || each_width!(&self.block.fingerprints, all => all[self.index].to_hex());
        self.block.has_text(self.index).then(hex)
    }

    /// Path of the input file that contains the document.
    pub(crate) fn file(&self) -> &'a Path {
        self.block.ids.file(self.index)
    }

    /// Whether `record`, the second reading of this document, has the same checksum as the first reading.
    pub(crate) fn is_unchanged(&self, record: &Record, options: &DocumentOptions) -> bool {
        self.block.checksums.as_ref().is_none_or(|all| all[self.index] == record.checksum(options) as u32)
    }
}
