//! Compares a list of candidates. A candidate is a pair of an input document and a stored document. Each stored
//! document is read and decompressed once for all pairs of a batch.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{EstimateLimit, Signature, SimilarityEstimate, StoredDocument, jaccard_at_least};

use crate::pipeline::stored::candidate_lookup::{SimilarStoreRef, StoredCandidate};
use simstore_corpus::Stage;

/// Number of stored documents that are read together.
pub(crate) const READ_BATCH: usize = 64;

/// Access to the input documents that are compared, by their index in the corpus.
pub(crate) struct QueryDocuments<'a> {
    pub(crate) signature: &'a dyn Fn(u32) -> Result<Signature>,
    /// Returns the features of a document in ascending order. Called only for documents that have a candidate in a
    /// store with texts.
    pub(crate) features: &'a dyn Fn(u32) -> Result<Vec<u64>>,
}

/// Match: an input document, and a stored document that is similar to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StoredMatch {
    pub(crate) document: u32,
    /// Index of the store in the list of compared stores.
    pub(crate) store: u32,
    pub(crate) id: u64,
    pub(crate) estimate: SimilarityEstimate,
}

/// Match of two documents, and the Hamming distance of their signatures in bits.
type ScoredMatch = (StoredMatch, u32);

/// Returns the similar pairs among `candidates`, sorted by input document, then by descending similarity, store and
/// id. `candidates` must be sorted. The candidates of an input document must all be in one call.
///
/// For stores without texts, a pair is similar if the [limit](EstimateLimit) accepts its estimated similarity. The
/// limit depends on all candidates of the input document. Input documents are compared in batches whose features
/// take about `memory` bytes.
pub(crate) fn compare(
    stores: &[SimilarStoreRef<'_>],
    candidates: &[StoredCandidate],
    queries: &QueryDocuments<'_>,
    min_similarity: f64,
    memory: u64,
    stage: &Stage<'_>,
) -> Result<Vec<StoredMatch>> {
    let has_texts = |store: u32| stores[store as usize].1.settings().has_texts();
    let mut matches = Vec::new();
    let mut documents = candidates.chunk_by(|a, b| a.0 == b.0).peekable();
    while documents.peek().is_some() {
        let (mut texts, mut pairs, mut bytes) = (HashMap::new(), Vec::new(), 0);
        while bytes < memory
            && let Some(document_candidates) = documents.next()
        {
            let (document, _) = document_candidates[0];
            let features = match document_candidates.iter().any(|&(_, (store, _))| has_texts(store)) {
                true => (queries.features)(document)?,
                false => Vec::new(),
            };
            bytes += 8 * features.len() as u64;
            texts.insert(document, QueryText { signature: (queries.signature)(document)?, features });
            pairs.extend(document_candidates.iter().map(|&(document, stored)| (stored, document)));
        }
        stage.add(texts.len() as u64)?;
        pairs.sort_unstable();
        let mut comparison = PairComparison {
            stores,
            texts: &texts,
            min_similarity,
            similar: Vec::new(),
            near_threshold: HashMap::new(),
        };
        for store_pairs in pairs.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            comparison.compare(store_pairs, stage)?;
        }
        matches.extend(comparison.matches());
    }
    Ok(matches)
}

/// Input document that is compared with stored documents.
struct QueryText {
    signature: Signature,
    features: Vec<u64>,
}

/// Comparison of a batch of candidates: pairs of an input document and a stored document.
struct PairComparison<'a> {
    stores: &'a [SimilarStoreRef<'a>],
    texts: &'a HashMap<u32, QueryText>,
    min_similarity: f64,
    similar: Vec<ScoredMatch>,
    /// For each input document: number of its candidates whose estimated similarity is near the threshold.
    near_threshold: HashMap<u32, u64>,
}

impl PairComparison<'_> {
    /// Compares the candidates in `pairs`: rows ((store, id), input document). All rows must have the same store, and
    /// be sorted by id.
    fn compare(&mut self, pairs: &[((u32, u64), u32)], stage: &Stage<'_>) -> Result<()> {
        let by_document: Vec<&[((u32, u64), u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        for batch in by_document.chunks(READ_BATCH) {
            stage.add(0)?;
            let store = batch[0][0].0.0;
            let ids: Vec<u64> = batch.iter().map(|pairs| pairs[0].0.1).collect();
            let (snapshot, texts) = self.stores[store as usize];
            // Stored documents that were deleted are missing here.
            let stored = texts.documents(snapshot, &ids)?;
            let compared = stored.par_iter().map(|stored| {
                let at = batch.partition_point(|pairs| pairs[0].0.1 < stored.id);
                self.compare_one(store, stored, batch[at])
            });
            for (similar, near) in compared.collect::<Result<Vec<_>>>()? {
                self.similar.extend(similar);
                near.into_iter().for_each(|document| *self.near_threshold.entry(document).or_default() += 1);
            }
        }
        Ok(())
    }

    /// Compares one stored document with the input documents in `pairs`. Returns the similar pairs, and the input
    /// documents whose estimated similarity is near the threshold.
    fn compare_one(
        &self,
        store: u32,
        stored: &StoredDocument,
        pairs: &[((u32, u64), u32)],
    ) -> Result<(Vec<ScoredMatch>, Vec<u32>)> {
        let (snapshot, texts) = self.stores[store as usize];
        let (mut similar, mut near, mut stored_features) = (Vec::new(), Vec::new(), None::<Vec<u64>>);
        for &(_, document) in pairs {
            let QueryText { signature, features } = &self.texts[&document];
            let estimate = match texts.signature_estimate(stored, signature) {
                Some(estimate) => Some(estimate),
                None if !texts.is_candidate(stored, signature) => None,
                None => {
                    let stored_features = match &mut stored_features {
                        Some(stored_features) => stored_features,
                        none => none.insert(texts.features(snapshot, stored)?),
                    };
                    jaccard_at_least(stored_features, features, self.min_similarity)
                        .map(SimilarityEstimate::exact)
                }
            };
            if !texts.settings().has_texts() && stored.signature.is_near(signature, self.min_similarity) {
                near.push(document);
            }
            if let Some(estimate) = estimate.filter(|estimate| estimate.similarity >= self.min_similarity) {
                let found = StoredMatch { document, store, id: stored.id, estimate };
                similar.push((found, stored.signature.distance(signature)));
            }
        }
        Ok((similar, near))
    }

    /// Returns the matches, sorted. Leaves out matches whose estimated similarity the [`EstimateLimit`] rejects.
    fn matches(self) -> impl Iterator<Item = StoredMatch> {
        let PairComparison { min_similarity, mut similar, near_threshold: near, .. } = self;
        similar.sort_by(|(a, _), (b, _)| {
            let by_similarity = b.estimate.similarity.total_cmp(&a.estimate.similarity);
            a.document.cmp(&b.document).then(by_similarity).then((a.store, a.id).cmp(&(b.store, b.id)))
        });
        let mut limit: Option<(u32, EstimateLimit)> = None;
        similar.into_iter().filter_map(move |(found, bits)| {
            let (document, estimate) = (found.document, found.estimate);
            let (_, limit) = match &limit {
                Some(known) if known.0 == document => *known,
                _ => {
                    let candidates = near.get(&document).copied().unwrap_or_default();
                    *limit.insert((document, EstimateLimit::new(min_similarity, candidates)))
                }
            };
            limit.accepts_estimate(estimate, bits).then_some(found)
        })
    }
}
