//! Comparison of documents with very many candidates in stores, for example if the store has thousands of
//! pages of the same template.
//!
//! Such documents have too many candidates to list all pairs. Instead, a batch of input documents is compared with
//! the union of their candidates. Each stored document in this union is read and decompressed once. Its signature
//! tells for which input documents of the batch it is a candidate. Bitmaps of features then reject most pairs that
//! are not similar, so that few feature lists are compared.

use rayon::prelude::*;
use simstore::Result;
use simstore::simd::{Kernel, dispatch};
use simstore_text::{
    BANDS, BandSearch, EstimateLimit, Signature, SimilarityEstimate, StoredDocument, jaccard_at_least,
};

use crate::pipeline::candidate_rule::CandidateRule;
use crate::pipeline::feature_bitmaps::FeatureBitmap;
use crate::pipeline::stored::candidate_lookup::{SimilarStoreRef, StoredCandidate};
use crate::pipeline::stored::pairs::{READ_BATCH, StoredMatch};
use crate::rows::SignatureRow;
use simstore_corpus::Stage;

/// Memory for an input document in a [`DenseComparison`] in bytes, besides its features and their bitmap.
const DOCUMENT_BYTES: u64 = 256;
/// Memory for a candidate (a stored document) in a [`DenseComparison`], in bytes.
const CANDIDATE_BYTES: u64 = 16;

/// Batch of input documents with very many candidates in stores, and the comparison with these candidates.
pub(crate) struct DenseComparison<'a> {
    stores: &'a [SimilarStoreRef<'a>],
    min_similarity: f64,
    /// Whether to find all stored documents that are similar to an input document. If not, only the most similar
    /// stored document is found.
    with_all: bool,
    queries: Vec<DenseQuery>,
    bands: Vec<[u64; BANDS]>,
    /// Stored documents that are a candidate of at least one input document in `queries`, as (store, id). Sorted,
    /// each once.
    candidates: Vec<(u32, u64)>,
    bytes: u64,
}

/// Input document in a [`DenseComparison`].
struct DenseQuery {
    document: u32,
    signature: Signature,
    features: Vec<u64>,
    bitmap: FeatureBitmap,
    /// Number of candidates whose estimated similarity is near the threshold. Similarities are estimated only for
    /// stores without texts.
    near_threshold: u64,
    /// Limit that decides whether an estimated similarity counts as similar. It depends on
    /// [`near_threshold`](Self::near_threshold).
    estimate_limit: EstimateLimit,
    most_similar: Option<StoredMatch>,
}

impl<'a> DenseComparison<'a> {
    pub(crate) fn new(stores: &'a [SimilarStoreRef<'a>], min_similarity: f64, with_all: bool) -> Self {
        let (queries, bands, candidates) = (Vec::new(), Vec::new(), Vec::new());
        DenseComparison { stores, min_similarity, with_all, queries, bands, candidates, bytes: 0 }
    }

    /// Adds input documents (`rows`) and all stored documents that are their candidates. `features` returns the
    /// features of an input document in ascending order.
    pub(crate) fn add(
        &mut self,
        rows: &[SignatureRow],
        candidates: &[StoredCandidate],
        features: impl Fn(u32) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let need_features = self.stores.iter().any(|(_, comparer)| comparer.settings().has_texts());
        for row in rows {
            let features = if need_features { features(row.document)? } else { Vec::new() };
            self.bytes += DOCUMENT_BYTES + FeatureBitmap::BYTES + 8 * features.len() as u64;
            self.bands.push(row.bands);
            self.queries.push(DenseQuery {
                document: row.document,
                signature: row.signature(),
                bitmap: FeatureBitmap::new(&features),
                features,
                near_threshold: 0,
                estimate_limit: EstimateLimit::new(self.min_similarity, 0),
                most_similar: None,
            });
        }
        let before = self.candidates.len();
        self.candidates.extend(candidates.iter().map(|&(_, stored)| stored));
        // A stable sort merges the candidates that were sorted before.
        self.candidates.sort();
        self.candidates.dedup();
        self.bytes += CANDIDATE_BYTES * (self.candidates.len() - before) as u64;
        Ok(())
    }

    /// Estimated memory of the added input documents and of their candidates, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Compares the added input documents with their candidates, and visits the matches: all similar pairs if the
    /// field `with_all` is set, else only the most similar stored document of each input document. Then removes all
    /// input documents and candidates.
    ///
    /// For stores without texts, a pair is similar if the [limit](EstimateLimit) of the input document accepts the
    /// estimated similarity. The limit depends on all candidates of the input document.
    pub(crate) fn compare(
        &mut self,
        stage: &Stage<'_>,
        mut visitor: impl FnMut(StoredMatch) -> Result<()>,
    ) -> Result<()> {
        stage.add(self.queries.len() as u64)?;
        let candidates = std::mem::take(&mut self.candidates);
        let by_store = || candidates.chunk_by(|(a, _), (b, _)| a == b);
        let stores = self.stores;
        let lacks_texts = |batch: &&[(u32, u64)]| !stores[batch[0].0 as usize].1.settings().has_texts();
        for batch in by_store().filter(lacks_texts).flat_map(|batch| batch.chunks(READ_BATCH)) {
            stage.add(0)?;
            let near = |stored: &StoredDocument| self.near(batch[0].0, stored);
            for near in self.read(batch)?.par_iter().map(near).collect::<Vec<_>>() {
                near.into_iter().for_each(|at| self.queries[at].near_threshold += 1);
            }
        }
        for query in &mut self.queries {
            query.estimate_limit = EstimateLimit::new(self.min_similarity, query.near_threshold);
        }
        for batch in by_store().flat_map(|batch| batch.chunks(READ_BATCH)) {
            stage.add(0)?;
            let similar = |stored: &StoredDocument| self.similar(batch[0].0, stored);
            let similar: Vec<Vec<(usize, StoredMatch)>> =
                self.read(batch)?.par_iter().map(similar).collect::<Result<_>>()?;
            for (at, found) in similar.into_iter().flatten() {
                if self.with_all {
                    visitor(found)?;
                    continue;
                }
                // Ties go to the first stored document.
                let most_similar = &mut self.queries[at].most_similar;
                if most_similar.is_none_or(|most| found.estimate.similarity > most.estimate.similarity) {
                    *most_similar = Some(found);
                }
            }
        }
        self.queries.drain(..).filter_map(|query| query.most_similar).try_for_each(visitor)?;
        self.bands.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Reads the stored documents in `batch`, which must be in the same store. Skips deleted documents.
    fn read(&self, batch: &[(u32, u64)]) -> Result<Vec<StoredDocument>> {
        let ids: Vec<u64> = batch.iter().map(|&(_, id)| id).collect();
        let (snapshot, comparer) = self.stores[batch[0].0 as usize];
        comparer.documents(snapshot, &ids)
    }

    /// Returns the input documents that have `stored` as a candidate, as indexes into the field `queries`. One band of
    /// such a document is near a band of `stored`. For stores with texts, the distance of the whole signatures is
    /// limited as well.
    fn candidate_queries(&self, store: u32, stored: &StoredDocument) -> impl Iterator<Item = usize> {
        let settings = self.stores[store as usize].1.settings();
        let total = if settings.has_texts() { settings.signature_distance() } else { u32::MAX };
        let search = BandSearch {
            bands: settings.bands(),
            band_distance: settings.band_distance(),
            signature_distance: total,
        };
        let rule = CandidateRule { search, min_similarity: self.min_similarity };
        let one = stored.signature.bands;
        self.bands.chunks(64).zip((0..).step_by(64)).flat_map(move |(others, first)| {
            let mut bits = dispatch(RuleFilter { rule, one: &one, others });
            std::iter::from_fn(move || {
                let at = (bits != 0).then(|| first + bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
                at
            })
        })
    }

    /// Returns the input documents whose estimated similarity to a stored document is near the threshold, as indexes
    /// into the field `queries`.
    fn near(&self, store: u32, stored: &StoredDocument) -> Vec<usize> {
        let is_near =
            |&at: &usize| stored.signature.is_near(&self.queries[at].signature, self.min_similarity);
        self.candidate_queries(store, stored).filter(is_near).collect()
    }

    /// Returns the input documents that are similar to a stored document: the index of each one in the field
    /// `queries`, and the match.
    fn similar(&self, store: u32, stored: &StoredDocument) -> Result<Vec<(usize, StoredMatch)>> {
        let (snapshot, comparer) = self.stores[store as usize];
        let (mut similar, mut stored_features) = (Vec::new(), None);
        for at in self.candidate_queries(store, stored) {
            let DenseQuery { document, signature, features, bitmap, estimate_limit: limit, .. } =
                &self.queries[at];
            let estimate = match comparer.signature_estimate(stored, signature) {
                Some(estimate) => Some(estimate).filter(|&estimate| {
                    limit.accepts_estimate(estimate, stored.signature.distance(signature))
                }),
                None => {
                    let (stored_features, stored_bitmap) = match &mut stored_features {
                        Some(known) => known,
                        none => {
                            let features = comparer.features(snapshot, stored)?;
                            let bitmap = FeatureBitmap::new(&features);
                            none.insert((features, bitmap))
                        }
                    };
                    match stored_bitmap.may_be_similar(bitmap, self.min_similarity) {
                        true => jaccard_at_least(stored_features, features, self.min_similarity)
                            .map(SimilarityEstimate::exact),
                        false => None,
                    }
                }
            };
            let found = |estimate| (at, StoredMatch { document: *document, store, id: stored.id, estimate });
            similar.extend(estimate.map(found));
        }
        Ok(similar)
    }
}

/// Kernel that compares the signature `one` with up to 64 signatures in `others`. The result has one bit for each
/// signature in `others`: whether it forms a candidate pair with `one`.
struct RuleFilter<'a> {
    rule: CandidateRule,
    one: &'a [u64; BANDS],
    others: &'a [[u64; BANDS]],
}

impl Kernel for RuleFilter<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let RuleFilter { rule, one, others } = self;
        let bit = |(at, other)| u64::from(rule.accepts(one, other)) << at;
        (0..64_u64).zip(others).map(bit).fold(0, |bits, bit| bits | bit)
    }
}
