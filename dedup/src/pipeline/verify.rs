//! Verification of candidates: computes the exact Jaccard similarity of their features. Pairs below the minimum
//! similarity are rejected.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{jaccard, jaccard_at_least};

use crate::pipeline::features::FeatureFile;
use crate::pipeline::similarity_histogram::SimilarityHistogram;
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{Candidate, PairScore, ScoredPair, score_from_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Maximum number of pairs in a batch of candidates that are verified together.
pub(crate) const PAIR_BATCH: usize = 256;
/// Maximum size of the features that are in memory at the same time, in bytes. A batch of candidates with more
/// features is verified in several steps.
const PAIR_BATCH_BYTES: u64 = 32 << 20;

/// Compares the documents of candidates by their features. Counts the compared pairs, and those that it rejects because
/// their similarity is below the minimum.
pub(crate) struct Verifier<'a> {
    pub(crate) uniques: &'a UniqueDocuments,
    /// Features of the unique documents (groups of exact duplicates) that occur in pairs to verify. The features of
    /// a group are those of its most preferred document.
    pub(crate) features: &'a FeatureFile,
    /// Least Jaccard similarity of similar documents.
    pub(crate) min_similarity: f64,
    verified: AtomicU64,
    rejected: AtomicU64,
    /// Similarities of all compared pairs; `None` to compare a pair only until it is known to be rejected.
    histogram: Option<SimilarityHistogram>,
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(
        uniques: &'a UniqueDocuments,
        features: &'a FeatureFile,
        min_similarity: f64,
        with_histogram: bool,
    ) -> Self {
        Verifier {
            uniques,
            features,
            min_similarity,
            verified: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            histogram: with_histogram.then(SimilarityHistogram::new),
        }
    }

    /// Returns the number of pairs that were compared, and how many of them were below the minimum similarity.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.verified.load(Ordering::Relaxed), self.rejected.load(Ordering::Relaxed))
    }

    /// Returns the number of compared pairs in each bin of similarity; `None` if they were not counted.
    pub(crate) fn histogram(&self) -> Option<Vec<u64>> {
        self.histogram.as_ref().map(SimilarityHistogram::counts)
    }

    pub(crate) fn features(&self, unique: u32) -> Result<Vec<u64>> {
        self.features.get(self.uniques.best_document(unique)?)
    }

    /// Verifies a pair by its two ascending feature lists, and counts the pair. Returns the score of the pair, or
    /// `None` if the pair is rejected.
    pub(crate) fn verify_features(&self, a: &[u64], b: &[u64]) -> Option<PairScore> {
        let similarity = match &self.histogram {
            None => jaccard_at_least(a, b, self.min_similarity),
            Some(histogram) => {
                let similarity = jaccard(a, b);
                histogram.add(similarity);
                (similarity >= self.min_similarity).then_some(similarity)
            }
        };
        self.verified.fetch_add(1, Ordering::Relaxed);
        self.rejected.fetch_add(u64::from(similarity.is_none()), Ordering::Relaxed);
        similarity.map(score_from_similarity)
    }

    /// Returns the score of two unique documents, even if it is below `min_similarity`. The pair is not counted.
    pub(crate) fn exact_score(&self, a: u32, b: u32) -> Result<PairScore> {
        Ok(score_from_similarity(jaccard(&self.features(a)?, &self.features(b)?)))
    }

    /// Verifies a pair of unique documents, and counts the pair. Returns its score, or `None` if the pair is
    /// rejected.
    pub(crate) fn verify(&self, a: u32, b: u32) -> Result<Option<PairScore>> {
        Ok(self.verify_features(&self.features(a)?, &self.features(b)?))
    }

    /// Verifies many pairs on all cores, each like [`verify`](Verifier::verify). Returns the results in the same
    /// order.
    pub(crate) fn verify_batch(&self, pairs: &[Candidate]) -> Result<Vec<Option<PairScore>>> {
        let mut all = Vec::with_capacity(pairs.len());
        let mut left = pairs;
        while !left.is_empty() {
            let (now, later) = left.split_at(self.pairs_in_memory(left)?);
            // Features are read in the order of the numbers, which is mostly the order in the file.
            let mut uniques: Vec<u32> = now.iter().flat_map(|&(a, b)| [a, b]).collect();
            uniques.sort_unstable();
            uniques.dedup();
            let features: Vec<Vec<u64>> =
                uniques.par_iter().map(|&unique| self.features(unique)).collect::<Result<_>>()?;
            let get = |unique: u32| &features[uniques.partition_point(|&other| other < unique)];
            all.par_extend(now.par_iter().map(|&(a, b)| self.verify_features(get(a), get(b))));
            left = later;
        }
        Ok(all)
    }

    /// Returns how many pairs at the start of `pairs` can be verified at the same time, so that their features take
    /// at most [`PAIR_BATCH_BYTES`] bytes; at least one.
    fn pairs_in_memory(&self, pairs: &[Candidate]) -> Result<usize> {
        let (mut uniques, mut bytes) = (HashSet::new(), 0);
        for (at, &(a, b)) in pairs.iter().enumerate() {
            for unique in [a, b] {
                if uniques.insert(unique) {
                    bytes += self.features.bytes(self.uniques.best_document(unique)?)?;
                }
            }
            if bytes > PAIR_BATCH_BYTES && at > 0 {
                return Ok(at);
            }
        }
        Ok(pairs.len())
    }

    /// Verifies candidates, and visits the pairs that are not rejected, with their scores.
    pub(crate) fn visit_similar(
        &self,
        candidates: &Rows<Candidate>,
        stage: &Stage<'_>,
        mut visitor: impl FnMut(ScoredPair) -> Result<()>,
    ) -> Result<()> {
        let mut rows = candidates.iter()?;
        loop {
            let batch: Vec<Candidate> = rows.by_ref().take(PAIR_BATCH).collect::<Result<_>>()?;
            if batch.is_empty() {
                return Ok(());
            }
            for (&(a, b), score) in batch.iter().zip(self.verify_batch(&batch)?) {
                score.map_or(Ok(()), |score| visitor((a, b, score)))?;
            }
            stage.add(batch.len() as u64)?;
        }
    }

    /// Verifies candidates, and returns the pairs that are not rejected, with their scores.
    pub(crate) fn similar_pairs(
        &self,
        candidates: &Rows<Candidate>,
        workspace: &Workspace,
        stage: &Stage<'_>,
    ) -> Result<Rows<ScoredPair>> {
        let mut pairs = workspace.rows();
        self.visit_similar(candidates, stage, |pair| pairs.push(pair))?;
        pairs.finish()
    }
}
