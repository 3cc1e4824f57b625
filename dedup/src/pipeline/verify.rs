//! Comparing sets by their features.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{jaccard, jaccard_from};

use crate::pipeline::exact::Sets;
use crate::pipeline::features::Features;
use crate::rows::{Candidate, Near, Nearness, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::Rows;

/// Pairs that are compared together: their features are in memory meanwhile, as long as these are not more than so many bytes.
pub(crate) const TOGETHER: usize = 256;
const MOST_BYTES: u64 = 32 << 20;

/// The features of sets that are compared.
pub(crate) struct Compared<'a> {
    pub(crate) sets: &'a Sets,
    /// Of the best document of each set that is compared.
    pub(crate) features: &'a Features,
    /// The similarity that is asked for.
    pub(crate) least: f64,
    pub(crate) compared: AtomicU64,
    pub(crate) unlike: AtomicU64,
}

impl<'a> Compared<'a> {
    pub(crate) fn new(sets: &'a Sets, features: &'a Features, least: f64) -> Self {
        Compared { sets, features, least, compared: AtomicU64::new(0), unlike: AtomicU64::new(0) }
    }

    /// How many pairs were compared, and how many of them were not similar enough.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.compared.load(Ordering::Relaxed), self.unlike.load(Ordering::Relaxed))
    }

    pub(crate) fn features(&self, set: u32) -> Result<Vec<u64>> {
        self.features.get(self.sets.best(set)?)
    }

    /// The similarity of features, counted as one more comparison.
    pub(crate) fn similarity_of(&self, a: &[u64], b: &[u64]) -> Option<Nearness> {
        let similarity = jaccard_from(a, b, self.least);
        self.compared.fetch_add(1, Ordering::Relaxed);
        self.unlike.fetch_add(u64::from(similarity.is_none()), Ordering::Relaxed);
        similarity.map(of_similarity)
    }

    /// The similarity of two sets, however small.
    pub(crate) fn similarity(&self, a: u32, b: u32) -> Result<Nearness> {
        Ok(of_similarity(jaccard(&self.features(a)?, &self.features(b)?)))
    }

    /// The similarity of two sets, if it is as great as asked for.
    pub(crate) fn alike(&self, a: u32, b: u32) -> Result<Option<Nearness>> {
        Ok(self.similarity_of(&self.features(a)?, &self.features(b)?))
    }

    /// The same for some pairs, on all cores.
    pub(crate) fn alike_each(&self, pairs: &[Candidate]) -> Result<Vec<Option<Nearness>>> {
        let mut all = Vec::with_capacity(pairs.len());
        let mut left = pairs;
        while !left.is_empty() {
            let (now, later) = left.split_at(self.count_in_memory(left)?);
            // Sets are read in order, which is mostly the order of the file.
            let mut sets: Vec<u32> = now.iter().flat_map(|&(a, b)| [a, b]).collect();
            sets.sort_unstable();
            sets.dedup();
            let features: Vec<Vec<u64>> =
                sets.par_iter().map(|&set| self.features(set)).collect::<Result<_>>()?;
            let of = |set: u32| &features[sets.partition_point(|&other| other < set)];
            all.par_extend(now.par_iter().map(|&(a, b)| self.similarity_of(of(a), of(b))));
            left = later;
        }
        Ok(all)
    }

    /// The number of pairs, at least one, whose features may be in memory at the same time.
    fn count_in_memory(&self, pairs: &[Candidate]) -> Result<usize> {
        let (mut sets, mut bytes) = (HashSet::new(), 0);
        for (at, &(a, b)) in pairs.iter().enumerate() {
            for set in [a, b] {
                if sets.insert(set) {
                    bytes += self.features.bytes(self.sets.best(set)?)?;
                }
            }
            if bytes > MOST_BYTES && at > 0 {
                return Ok(at);
            }
        }
        Ok(pairs.len())
    }

    /// Visits the candidates that are similar.
    pub(crate) fn visit_similar(
        &self,
        candidates: &Rows<Candidate>,
        step: &Step<'_>,
        mut visitor: impl FnMut(Near) -> Result<()>,
    ) -> Result<()> {
        let mut rows = candidates.iter()?;
        loop {
            let some: Vec<Candidate> = rows.by_ref().take(TOGETHER).collect::<Result<_>>()?;
            if some.is_empty() {
                return Ok(());
            }
            for (&(a, b), nearness) in some.iter().zip(self.alike_each(&some)?) {
                nearness.map_or(Ok(()), |nearness| visitor((a, b, nearness)))?;
            }
            step.add(some.len() as u64)?;
        }
    }

    /// The candidates that are similar, with their similarities.
    pub(crate) fn similar_pairs(
        &self,
        candidates: &Rows<Candidate>,
        workspace: &Workspace,
        step: &Step<'_>,
    ) -> Result<Rows<Near>> {
        let mut pairs = workspace.rows();
        self.visit_similar(candidates, step, |pair| pairs.push(pair))?;
        pairs.finish()
    }
}
