//! Search for similar documents in the reference stores.
//!
//! If an input document has few candidates, they are written to a list. But a document may have very many
//! candidates, for example if the store has thousands of pages of the same template. Such a *dense* document is
//! looked up again when it is compared, so its candidates are never written to a list.

use simstore::Result;

use crate::pipeline::features::FeatureFile;
use crate::pipeline::stored::candidate_lookup::{CandidateLookup, SimilarStoreRef, StoredCandidate};
use crate::pipeline::stored::dense_groups::DenseComparison;
use crate::pipeline::stored::pairs::{QueryDocuments, StoredMatch, compare};
use crate::pipeline::stored::stored_matches::{StoredMatches, StoredRepresentativeRow};
use crate::rows::{PairScore, SignatureRow, StoredMatchRow, StoredRow, score_from_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter, Sorter};

/// Maximum number of candidates of a document that are written to a list. A document with more candidates is looked
/// up again when it is compared.
pub(crate) const MAX_LISTED_CANDIDATES: usize = 64;
/// Least number of candidates that are compared together in a batch. Only the last batch may have fewer.
const MIN_PAIR_BATCH: usize = 1 << 12;

/// Input documents that have candidates, which are stored documents that may be similar.
pub(crate) struct StoredCandidates {
    /// Candidates of the documents with at most [`MAX_LISTED_CANDIDATES`] candidates, sorted.
    listed: Rows<StoredCandidate>,
    /// Documents with more than [`MAX_LISTED_CANDIDATES`] candidates, sorted.
    dense: Rows<u32>,
    /// Total number of candidates, listed or not.
    pub(crate) count: u64,
}

impl StoredCandidates {
    /// Visits all documents with candidates, in ascending order. Each item has the index of the document twice,
    /// because [`FeatureReader::features`] expects an index in the corpus and an index in the feature file.
    ///
    /// [`FeatureReader::features`]: crate::pipeline::features::FeatureReader::features
    pub(crate) fn documents(&self) -> Result<impl Iterator<Item = Result<(u64, u32)>> + '_> {
        let (mut listed, mut dense): (
            RowCursor<RowsIter<'_, StoredCandidate>, StoredCandidate>,
            RowCursor<_, u32>,
        ) = (self.listed.cursor()?, self.dense.cursor()?);
        let mut next = move || -> Result<Option<(u64, u32)>> {
            let listed_document = listed.peek()?.map(|(document, _)| document);
            let Some(document) = listed_document.into_iter().chain(dense.peek()?).min() else {
                return Ok(None);
            };
            while listed.next_if(|&(other, _)| other == document)?.is_some() {}
            dense.next_if(|&other| other == document)?;
            Ok(Some((document.into(), document)))
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }

    /// Number of documents with more than [`MAX_LISTED_CANDIDATES`] candidates.
    pub(crate) fn dense_documents(&self) -> usize {
        self.dense.len()
    }
}

/// Finds the candidates of all input documents: the documents in `stores` that may be similar.
pub(crate) fn look_up(
    signatures: &Rows<SignatureRow>,
    stores: &[SimilarStoreRef<'_>],
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<StoredCandidates> {
    let (mut listed, mut dense, mut count) = (workspace.rows(), workspace.rows(), 0);
    CandidateLookup::new(stores, workspace.share(), stage).visit(signatures.iter()?, |_, candidates| {
        count += candidates.len() as u64;
        for document_candidates in candidates.chunk_by(|a, b| a.0 == b.0) {
            match document_candidates.len() <= MAX_LISTED_CANDIDATES {
                true => document_candidates.iter().try_for_each(|&row| listed.push(row))?,
                false => dense.push(document_candidates[0].0)?,
            }
        }
        Ok(())
    })?;
    Ok(StoredCandidates { listed: listed.finish()?, dense: dense.finish()?, count })
}

/// Comparison of input documents with their candidates in the reference stores.
pub(crate) struct StoreComparison<'a> {
    pub(crate) stores: &'a [SimilarStoreRef<'a>],
    /// For each store in `stores`: its index among all reference stores of the run.
    pub(crate) numbers: &'a [u32],
    pub(crate) min_similarity: f64,
    /// Whether to return all stored documents that are similar to an input document. If not, only the most similar
    /// stored document is returned.
    pub(crate) with_all: bool,
    pub(crate) workspace: &'a Workspace,
}

/// Match as a row to sort: ((document, inverted score), ((store, id), standard error)). The bits of the score are
/// inverted, so that the most similar match of a document comes first.
type StoredMatchKey = ((u32, PairScore), ((u32, u64), PairScore));

fn row(found: StoredMatch) -> StoredMatchKey {
    let StoredMatch { document, store, id, estimate } = found;
    (
        (document, !score_from_similarity(estimate.similarity)),
        ((store, id), score_from_similarity(estimate.standard_error)),
    )
}

impl StoreComparison<'_> {
    /// Compares input documents with their candidates, and returns the similar pairs. If a store has texts,
    /// `features` must have the features of all input documents with candidates.
    pub(crate) fn compare(
        &self,
        candidates: &StoredCandidates,
        signatures: &Rows<SignatureRow>,
        features: &FeatureFile,
        stage: &Stage<'_>,
    ) -> Result<StoredMatches> {
        let &StoreComparison { stores, workspace, .. } = self;
        let mut found: Sorter<StoredMatchKey> = workspace.sorter();
        let signature = |document: u32| Ok(signatures.get(document as usize)?.signature());
        let queries = QueryDocuments { signature: &signature, features: &|document| features.get(document) };
        let mut listed = candidates.listed.cursor()?;
        let mut batch: Vec<StoredCandidate> = Vec::new();
        while let Some((document, _)) = listed.peek()? {
            while let Some(row) = listed.next_if(|&(next, _)| next == document)? {
                batch.push(row);
            }
            if batch.len() >= MIN_PAIR_BATCH || listed.peek()?.is_none() {
                let matches =
                    compare(stores, &batch, &queries, self.min_similarity, workspace.share(), stage)?;
                for document_matches in matches.chunk_by(|a, b| a.document == b.document) {
                    let count = if self.with_all { document_matches.len() } else { 1 };
                    document_matches[..count].iter().try_for_each(|&one| found.push(row(one)))?;
                }
                batch.clear();
            }
        }
        let dense = candidates.dense.iter()?.map(|document| signatures.get(document? as usize));
        let mut comparison = DenseComparison::new(stores, self.min_similarity, self.with_all);
        CandidateLookup::new(stores, workspace.share(), stage).visit(dense, |rows, candidates| {
            comparison.add(rows, candidates, |document| features.get(document))?;
            if comparison.bytes() >= workspace.share() {
                comparison.compare(stage, |one| found.push(row(one)))?;
            }
            Ok(())
        })?;
        comparison.compare(stage, |one| found.push(row(one)))?;
        self.collect(found)
    }

    fn collect(&self, found: Sorter<StoredMatchKey>) -> Result<StoredMatches> {
        let &StoreComparison { stores, numbers, workspace, .. } = self;
        let (mut near, mut represented) =
            (workspace.rows::<StoredMatchRow>(), workspace.sorter::<StoredRepresentativeRow>());
        let (mut last, mut rank) = (None, 0);
        for row in found.finish()? {
            let ((document, order), ((store, id), error)) = row?;
            rank = if last.replace(document) == Some(document) { rank + 1 } else { 0 };
            let stored = StoredRow { store: numbers[store as usize], id: Some(id), fingerprint: 0 };
            let measure = (!order, error);
            near.push(((document, rank), stored, measure))?;
            if rank == 0 {
                represented.push((stored, (document, measure)))?;
            }
        }
        let is_estimated = !stores.iter().all(|(_, texts)| texts.settings().has_texts());
        StoredMatches::new(near.finish()?, represented, is_estimated, workspace)
    }
}
