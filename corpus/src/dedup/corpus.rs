//! All documents of a corpus in memory: their fingerprints, and what they are called.

use std::path::Path;
use std::sync::Arc;

use simstore::{Fingerprint, Result};
use xxhash_rust::xxh3::Xxh3;

use super::listing::changed;
use super::names::Names;
use super::preference::{Keep, Values};
use super::sketches::Sketches;
use crate::{DocumentId, DocumentOptions, Item, Record};

/// All that was read, in order of input. Takes the bytes of a fingerprint for each document, and what the ids
/// need: nothing where they are positions.
#[derive(Debug)]
pub(super) struct Corpus<F> {
    /// Zero for a document without text.
    pub(super) fingerprints: Vec<F>,
    /// The documents without text, ascending.
    empty: Vec<usize>,
    pub(super) names: Names,
    /// What decides which document of a cluster is kept.
    pub(super) values: Values,
    /// Half of the checksum of each document as it stood in its file, if that is to be known.
    checksums: Option<Vec<u32>>,
    /// Where texts are compared by similarity.
    pub(super) sketches: Option<Sketches>,
}

impl<F: Fingerprint> Corpus<F> {
    /// A corpus of nothing yet. Documents that are read again, or known again, need checksums.
    pub(super) fn new(keep: &Keep, with_checksums: bool, sketches: Option<Sketches>) -> Self {
        Corpus {
            fingerprints: Vec::new(),
            empty: Vec::new(),
            names: Names::default(),
            values: Values::new(keep),
            checksums: with_checksums.then(Vec::new),
            sketches,
        }
    }

    /// Adds a document.
    pub(super) fn push(&mut self, item: &Item<F>) {
        self.names.push(item.position..item.position + 1, &item.id, &item.path, item.line);
        self.values.push(item.text_bytes, item.extra.as_deref());
        self.checksums.iter_mut().for_each(|all| all.push(item.checksum as u32));
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        self.fingerprints.push(item.fingerprint.unwrap_or_default());
        self.sketches.iter_mut().for_each(|sketches| sketches.push(item.sketched.as_deref()));
    }

    /// Adds fingerprints of a file, whose ids count up from the position of the first.
    pub(super) fn push_block(&mut self, fingerprints: &[F], position: u64, path: &Arc<Path>, line: u64) {
        let positions = position..position + fingerprints.len() as u64;
        self.names.push(positions, &DocumentId::Number(position), path, line);
        self.fingerprints.extend_from_slice(fingerprints);
    }

    /// The memory that it takes to compare all that has been read, and to hold what it is called. A fingerprint stands
    /// in the corpus, among the sorted ones and in the space of the join; with its place among the clusters, that
    /// is three and a half times its size.
    pub(super) fn memory(&self) -> u64 {
        let fingerprints = self.fingerprints.len() as u64 * F::BYTES as u64;
        // With sketches, fingerprints are only kept.
        let fingerprints = if self.sketches.is_some() { fingerprints } else { fingerprints * 7 / 2 };
        let checksums = self.checksums.as_ref().map_or(0, |all| all.len() * size_of::<u32>()) as u64;
        let sketches = self.sketches.as_ref().map_or(0, Sketches::memory);
        fingerprints + checksums + sketches + self.names.memory() + self.values.memory()
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The fingerprint, if the document has one.
    pub(super) fn fingerprint(&self, document: usize) -> Option<F> {
        self.empty.binary_search(&document).is_err().then(|| self.fingerprints[document])
    }

    /// Fails unless a record that was read again is what a document was made of.
    pub(super) fn check_unchanged(
        &self,
        document: usize,
        record: &Record,
        options: &DocumentOptions,
    ) -> Result<()> {
        match &self.checksums {
            Some(all) if all[document] != record.checksum(options) as u32 => {
                Err(changed(&self.names.place(document)))
            }
            _ => Ok(()),
        }
    }

    /// Tells this corpus from any other.
    pub(super) fn checksum(&self) -> u64 {
        let mut hash = Xxh3::new();
        for (document, fingerprint) in self.fingerprints.iter().enumerate() {
            let id = self.names.text(document);
            let checksum = self.checksums.as_ref().map_or(0, |all| all[document]).into();
            let lengths = [self.names.position(document), id.len() as u64, checksum];
            for number in [fingerprint.low_u64(), fingerprint.high_u64()].into_iter().chain(lengths) {
                hash.update(&number.to_le_bytes());
            }
            hash.update(id.as_bytes());
        }
        hash.digest()
    }

    /// All fingerprints.
    pub(super) fn all(&self) -> Vec<F> {
        let (mut all, mut start) = (Vec::with_capacity(self.len() - self.empty.len()), 0);
        for &empty in &self.empty {
            all.extend_from_slice(&self.fingerprints[start..empty]);
            start = empty + 1;
        }
        all.extend_from_slice(&self.fingerprints[start..]);
        all
    }
}
