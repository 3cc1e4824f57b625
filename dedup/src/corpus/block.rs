//! Documents in memory: all of a corpus, some that follow one another, or those that are told of.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use simstore::any::{AnyFingerprints, AnyWidth, Width};
use simstore::{Fingerprint, each_width};

use crate::corpus::ids::{Names, Strings};
use simstore_corpus::Item;
use simstore_io::{DocumentId, DocumentOptions, IdRef, Record};

/// Documents, numbered from 0 by their places here: their fingerprints, ids, and the keys of the values that `--keep` compares.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// Zero for a document without text.
    pub(crate) fingerprints: AnyFingerprints,
    /// The documents without text, ascending.
    pub(crate) empty: Vec<usize>,
    pub(crate) names: Names,
    /// Keys of the values that decide which document of a cluster is kept, if the rule compares values.
    pub(crate) keys: Option<Strings<Vec<u8>>>,
    /// The low half of the checksum of each document, if checksums are needed.
    pub(crate) checksums: Option<Vec<u32>>,
}

impl Stretch {
    pub(crate) fn new(width: Width, with_keys: bool, with_checksums: bool) -> Self {
        Stretch {
            fingerprints: width.map(|()| Vec::new(), |()| Vec::new()),
            empty: Vec::new(),
            names: Names::default(),
            keys: with_keys.then(Strings::default),
            checksums: with_checksums.then(Vec::new),
        }
    }

    /// An empty stretch that keeps the same columns.
    pub(crate) fn like(&self) -> Self {
        Stretch::new(self.fingerprints.width(), self.keys.is_some(), self.checksums.is_some())
    }

    /// Adds a document with its key.
    pub(crate) fn push<F: Fingerprint>(&mut self, item: &Item<F>, key: Option<&[u8]>) {
        self.names.push(item.position..item.position + 1, &item.id, &item.path, item.line);
        self.keys.iter_mut().zip(key).for_each(|(all, key)| all.push(key));
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
        self.keys.iter_mut().zip(&other.keys).for_each(|(all, others)| all.push(others.get(at)));
        if let (Some(all), Some(others)) = (&mut self.checksums, &other.checksums) {
            all.push(others[at]);
        }
        if !other.has_text(at) {
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
        empty + checksums + self.names.memory() + self.keys.as_ref().map_or(0, Strings::memory)
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

    /// Whether a document has text, and so a fingerprint.
    pub(crate) fn has_text(&self, at: usize) -> bool {
        self.empty.binary_search(&at).is_err()
    }
}

/// A document, where all are visited.
pub(crate) struct Document<'a> {
    /// Which one, from 0.
    pub(crate) number: usize,
    pub(crate) stretch: &'a Stretch,
    /// Its place there.
    pub(crate) at: usize,
}

impl<'a> Document<'a> {
    /// The id.
    pub(crate) fn id(&self) -> IdRef<'a> {
        self.stretch.names.id(self.at)
    }

    /// The id as bytes; for a text file, the bytes of its path.
    pub(crate) fn id_bytes(&self) -> Cow<'a, [u8]> {
        self.stretch.names.id_bytes(self.at)
    }

    /// Where it stands: `FILE:LINE`.
    pub(crate) fn place(&self) -> String {
        self.stretch.names.place(self.at)
    }

    /// Its position in the input.
    pub(crate) fn position(&self) -> u64 {
        self.stretch.names.position(self.at)
    }

    /// Its fingerprint, if it has one.
    pub(crate) fn fingerprint(&self) -> Option<u128> {
        self.stretch.has_text(self.at).then(|| self.stretch.value(self.at))
    }

    /// Its fingerprint in hexadecimal, if it has one.
    pub(crate) fn hex(&self) -> Option<String> {
        let hex = || each_width!(&self.stretch.fingerprints, all => all[self.at].to_hex());
        self.stretch.has_text(self.at).then(hex)
    }

    /// The file of the document.
    pub(crate) fn file(&self) -> &'a Path {
        self.stretch.names.file(self.at)
    }

    /// Whether a record that was read again has the checksum of the first reading.
    pub(crate) fn is_unchanged(&self, record: &Record, options: &DocumentOptions) -> bool {
        self.stretch.checksums.as_ref().is_none_or(|all| all[self.at] == record.checksum(options) as u32)
    }
}
