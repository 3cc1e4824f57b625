//! Documents in memory: all of a corpus, some that follow one another, or those that are told of.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use simstore::any::{AnyFingerprints, AnyWidth, Width};
use simstore::{Fingerprint, each_width};

use crate::corpus::ids::Names;
use crate::corpus::keep_rule::Values;
use simstore_corpus::Item;
use simstore_io::{DocumentId, DocumentOptions, IdRef, Record};

/// Documents, numbered from 0 by their places here: their fingerprints, ids, and the values that `--keep` compares.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// Zero for a document without text.
    pub(crate) fingerprints: AnyFingerprints,
    /// The documents without text, ascending.
    pub(crate) empty: Vec<usize>,
    pub(crate) names: Names,
    /// The values that decide which document of a cluster is kept.
    pub(crate) values: Values,
    /// The low half of the checksum of each document, if checksums are needed.
    pub(crate) checksums: Option<Vec<u32>>,
}

impl Stretch {
    pub(crate) fn new(width: Width, values: Values, with_checksums: bool) -> Self {
        Stretch {
            fingerprints: width.map(|()| Vec::new(), |()| Vec::new()),
            empty: Vec::new(),
            names: Names::default(),
            values,
            checksums: with_checksums.then(Vec::new),
        }
    }

    /// An empty stretch that keeps the same columns.
    pub(crate) fn like(&self) -> Self {
        Stretch::new(self.fingerprints.width(), self.values.like(), self.checksums.is_some())
    }

    /// Adds a document.
    pub(crate) fn push<F: Fingerprint>(&mut self, item: &Item<F>) {
        self.names.push(item.position..item.position + 1, &item.id, &item.path, item.line);
        self.values.push(item.text_bytes, item.extra.as_deref());
        self.checksums.iter_mut().for_each(|all| all.push(item.checksum as u32));
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        let fingerprint = item.fingerprint.unwrap_or_default().to_u128();
        each_width!(&mut self.fingerprints, all => all.push(Fingerprint::from_u128(fingerprint)));
    }

    /// Adds fingerprints of a file, whose ids count up from the position of the first.
    pub(crate) fn push_block<F: Fingerprint>(
        &mut self,
        fingerprints: &[F],
        position: u64,
        path: &Arc<Path>,
        line: u64,
    ) {
        let positions = position..position + fingerprints.len() as u64;
        self.names.push(positions, &DocumentId::Number(position), path, line);
        let fingerprints = fingerprints.iter().map(|one| one.to_u128());
        match &mut self.fingerprints {
            AnyWidth::Bits64(all) => all.extend(fingerprints.map(u64::from_u128)),
            AnyWidth::Bits128(all) => all.extend(fingerprints),
        }
    }

    /// Adds a document of another stretch with the same columns.
    pub(crate) fn push_of(&mut self, other: &Stretch, at: usize) {
        self.names.push_of(&other.names, at);
        self.values.push_of(&other.values, at);
        if let (Some(all), Some(others)) = (&mut self.checksums, &other.checksums) {
            all.push(others[at]);
        }
        if other.fingerprint(at).is_none() {
            self.empty.push(self.fingerprints.len());
        }
        let fingerprint = other.value(at);
        each_width!(&mut self.fingerprints, all => all.push(Fingerprint::from_u128(fingerprint)));
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Bytes that they take, besides their fingerprints.
    pub(crate) fn memory_of_names(&self) -> u64 {
        let checksums = self.checksums.as_ref().map_or(0, |all| all.len() * size_of::<u32>()) as u64;
        let empty = (self.empty.len() * size_of::<usize>()) as u64;
        empty + checksums + self.names.memory() + self.values.memory()
    }

    /// Bytes that they take.
    pub(crate) fn memory(&self) -> u64 {
        self.memory_of_names() + self.len() as u64 * self.bytes_of_a_fingerprint()
    }

    /// Width of a fingerprint, in bytes.
    pub(crate) fn bytes_of_a_fingerprint(&self) -> u64 {
        u64::from(self.fingerprints.bits() / 8)
    }

    /// The fingerprint; zero for a document without text.
    pub(crate) fn value(&self, at: usize) -> u128 {
        each_width!(&self.fingerprints, all => all[at].to_u128())
    }

    /// The fingerprint, if the document has one.
    pub(crate) fn fingerprint(&self, at: usize) -> Option<u128> {
        self.empty.binary_search(&at).is_err().then(|| self.value(at))
    }

    /// The fingerprint in hexadecimal, if the document has one.
    pub(crate) fn hex(&self, at: usize) -> Option<String> {
        let has_one = self.empty.binary_search(&at).is_err();
        has_one.then(|| each_width!(&self.fingerprints, all => all[at].to_hex()))
    }

    pub(crate) fn id(&self, at: usize) -> IdRef<'_> {
        self.names.id(at)
    }

    /// Where a document stands: `FILE:LINE`.
    pub(crate) fn place(&self, at: usize) -> String {
        self.names.place(at)
    }

    /// Whether a record that was read again has the checksum of a document.
    pub(crate) fn is_unchanged(&self, at: usize, record: &Record, options: &DocumentOptions) -> bool {
        self.checksums.as_ref().is_none_or(|all| all[at] == record.checksum(options) as u32)
    }
}

/// Documents in memory, borrowed or owned.
#[derive(Debug)]
pub(crate) enum Held<'a> {
    Lent(&'a Stretch),
    Read(Box<Stretch>),
}

impl Deref for Held<'_> {
    type Target = Stretch;

    fn deref(&self) -> &Stretch {
        match self {
            Held::Lent(stretch) => stretch,
            Held::Read(stretch) => stretch,
        }
    }
}
