//! How alike the texts of documents with near fingerprints really are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use simstore::Result;
use simstore_text::jaccard;

use super::feature_sets::FeatureSets;

/// The texts of all documents that are near others.
#[derive(Debug)]
pub(super) struct Texts {
    /// The least similarity of texts that are alike.
    least: f64,
    sets: FeatureSets,
    /// The document that was compared last, and its features: it is compared with several.
    last: Mutex<(usize, Vec<u64>)>,
    compared: AtomicU64,
    unlike: AtomicU64,
}

impl Texts {
    pub(super) fn new(least: f64, sets: FeatureSets) -> Texts {
        let last = Mutex::new((usize::MAX, Vec::new()));
        Texts { least, sets, last, compared: AtomicU64::new(0), unlike: AtomicU64::new(0) }
    }

    /// Pairs that were compared, and those of them that were not similar.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.compared.load(Ordering::Relaxed), self.unlike.load(Ordering::Relaxed))
    }

    /// Forgets how many pairs were compared.
    pub(super) fn count_anew(&self) {
        self.compared.store(0, Ordering::Relaxed);
        self.unlike.store(0, Ordering::Relaxed);
    }

    /// The Jaccard similarity of the features of two texts.
    pub(super) fn similarity(&self, a: usize, b: usize) -> Result<f64> {
        // A thread that has panicked while it held the lock ends the run anyway.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != a {
            *last = (a, self.sets.get(a)?);
        }
        Ok(jaccard(&last.1, &self.sets.get(b)?))
    }

    /// The similarity of two texts that is not counted as one more comparison, if it is as great as asked for.
    pub(super) fn similar(&self, a: usize, b: usize) -> Result<Option<f64>> {
        Ok(Some(self.similarity(a, b)?).filter(|&similarity| similarity >= self.least))
    }

    /// The similarity of two texts, if it is as great as asked for.
    pub(super) fn alike(&self, a: usize, b: usize) -> Result<Option<f64>> {
        let similarity = self.similarity(a, b)?;
        self.compared.fetch_add(1, Ordering::Relaxed);
        self.unlike.fetch_add(u64::from(similarity < self.least), Ordering::Relaxed);
        Ok(Some(similarity).filter(|&similarity| similarity >= self.least))
    }
}
