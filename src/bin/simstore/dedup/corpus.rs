//! All documents of a corpus in memory: their fingerprints, and what they are called.

use std::path::Path;
use std::sync::Arc;

use simstore::Fingerprint;
use simstore::corpus::DocumentId;

use super::names::Names;
use super::preference::{Rule, Values};
use crate::inputs::Item;

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
}

impl<F: Fingerprint> Corpus<F> {
    pub(super) fn new(rule: &Rule) -> Self {
        Corpus {
            fingerprints: Vec::new(),
            empty: Vec::new(),
            names: Names::default(),
            values: Values::new(rule),
        }
    }

    /// Adds a document.
    pub(super) fn push(&mut self, item: &Item<F>) {
        self.names.push(item.position..item.position + 1, &item.id, &item.path, item.line);
        self.values.push(item.text_bytes, item.extra.as_deref());
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        self.fingerprints.push(item.fingerprint.unwrap_or_default());
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
        let fingerprints = self.fingerprints.len() as u64 * F::BYTES as u64 * 7 / 2;
        fingerprints + self.names.memory() + self.values.memory()
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The fingerprint, if the document has one.
    pub(super) fn fingerprint(&self, document: usize) -> Option<F> {
        self.empty.binary_search(&document).is_err().then(|| self.fingerprints[document])
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
