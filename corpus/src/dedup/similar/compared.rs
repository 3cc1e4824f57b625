//! Comparing sets by their features.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore_text::jaccard;

use super::super::feature_sets::FeatureSets;
use super::super::sketches::Sketches;
use super::candidates;
use super::marks::Marks;
use super::partners::Partner;
use super::sets::Sets;

/// Pairs that are compared together: their features are in memory meanwhile.
pub(super) const TOGETHER: usize = 256;

/// The features of sets that are compared.
pub(super) struct Compared<'a> {
    pub(super) sets: &'a Sets,
    pub(super) sketches: &'a Sketches,
    /// Of the best document of each set that is compared.
    pub(super) features: FeatureSets,
    /// The similarity that is asked for.
    pub(super) least: f64,
    pub(super) compared: AtomicU64,
    pub(super) unlike: AtomicU64,
}

impl Compared<'_> {
    /// The documents whose features have to be read to compare some sets with each other, ascending.
    pub(super) fn wanted(sets: &Sets, some: &Marks) -> Vec<usize> {
        let mut documents: Vec<usize> = some.marked().into_iter().map(|set| sets.best(set)).collect();
        documents.par_sort_unstable();
        documents
    }

    pub(super) fn features(&self, set: u32) -> Result<Vec<u64>> {
        self.features.get(self.sets.best(set as usize))
    }

    fn count(&self, similarity: f64) -> Option<f32> {
        self.compared.fetch_add(1, Ordering::Relaxed);
        self.unlike.fetch_add(u64::from(similarity < self.least), Ordering::Relaxed);
        (similarity >= self.least).then_some(similarity as f32)
    }

    /// Whether two sets can have a similarity, by their sizes.
    pub(super) fn may_be_similar(&self, a: u32, b: u32, similarity: f32) -> bool {
        let features = |set: u32| self.sketches.features(self.sets.best(set as usize));
        candidates::may_be_similar(features(a), features(b), similarity.into())
    }

    /// The similarity of two sets.
    pub(super) fn similarity(&self, a: u32, b: u32) -> Result<f64> {
        Ok(jaccard(&self.features(a)?, &self.features(b)?))
    }

    /// The similarity of two sets, if it is as great as asked for.
    pub(super) fn alike(&self, a: u32, b: u32) -> Result<Option<f32>> {
        Ok(self.count(self.similarity(a, b)?))
    }

    /// The same for some pairs, on all cores. The features of all of them are in memory meanwhile.
    pub(super) fn alike_each(&self, pairs: &[Partner]) -> Result<Vec<Option<f32>>> {
        let sets: BTreeSet<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        // In the order of the file.
        let mut sets: Vec<(usize, u32)> =
            sets.into_iter().map(|set| (self.sets.best(set as usize), set)).collect();
        sets.sort_unstable();
        let features = sets.into_iter().map(|(_, set)| Ok((set, self.features(set)?)));
        let features: HashMap<u32, Vec<u64>> = features.collect::<Result<_>>()?;
        Ok(pairs.par_iter().map(|(a, b)| self.count(jaccard(&features[a], &features[b]))).collect())
    }
}
