//! Finds the *reason* for the removal of each document: the most similar kept document, if the two are similar
//! enough.
//!
//! A removed document may be similar to no kept document, because only a chain of similar pairs connects it to the
//! kept document of its cluster. Then the reason is this kept document. If the run keeps no document of a cluster,
//! the reason is the most similar other document.

use simstore::Result;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::components;
use crate::pipeline::representatives::{Assignments, assign_from_pairs};
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::pipeline::verify::{PAIR_BATCH, Verifier};
use crate::rows::{Candidate, PairScore, ScoredPair};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, Sorter};

/// Document and the document nearest to it: (document, nearest document, score of the two).
pub(crate) type NearestRow = (u32, u32, PairScore);

/// Order of the neighbors of a unique document, nearest first. The neighbors are groups of exact duplicates. Equally
/// near groups are ordered by the position in the input of their most preferred documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NearestOrder {
    /// Greatest similarity first.
    MostSimilarFirst,
    /// Smallest Hamming distance first.
    SmallestDistanceFirst,
}

impl NearestOrder {
    /// Converts a score to a sort key, which is smaller for nearer neighbors. Also converts a sort key back to its
    /// score.
    fn sort_key(self, score: PairScore) -> PairScore {
        if self == NearestOrder::SmallestDistanceFirst { score } else { !score }
    }
}

/// Search for the nearest neighbor of each unique document, among the neighbors that were added to the search.
pub(crate) struct NearestSearch<'a> {
    uniques: &'a UniqueDocuments,
    order: NearestOrder,
    /// A row per added neighbor: ((unique document, sort key of the score), (best document, neighbor)). The neighbor is
    /// another unique document (a group of exact duplicates). The best document is the most preferred one of this group.
    rows: Sorter<((u32, PairScore), (u32, u32))>,
    workspace: &'a Workspace,
}

impl<'a> NearestSearch<'a> {
    pub(crate) fn new(uniques: &'a UniqueDocuments, order: NearestOrder, workspace: &'a Workspace) -> Self {
        NearestSearch { uniques, order, rows: workspace.sorter(), workspace }
    }

    /// Adds the second document of a pair as a neighbor of the first one.
    pub(crate) fn push(&mut self, (unique, other, score): ScoredPair) -> Result<()> {
        let key = (unique, self.order.sort_key(score));
        self.rows.push((key, (self.uniques.best_document(other)?, other)))
    }

    /// Adds each document of a pair as a neighbor of the other.
    pub(crate) fn push_both(&mut self, (a, b, score): ScoredPair) -> Result<()> {
        self.push((a, b, score))?;
        self.push((b, a, score))
    }

    /// Adds neighbors from `pairs`. In a pair of a represented document and a representative, the representative is
    /// a neighbor of the represented document. Skips pairs of two represented documents and pairs of two
    /// representatives. A document that is not represented counts as a representative.
    pub(crate) fn push_assigned_pairs(
        &mut self,
        assignments: &Assignments,
        pairs: impl Iterator<Item = Result<ScoredPair>>,
    ) -> Result<()> {
        for pair in pairs {
            let (a, b, score) = pair?;
            if let Some((unique, other)) = represented_first(assignments, (a, b)) {
                self.push((unique, other, score))?;
            }
        }
        Ok(())
    }

    /// Assigns representatives from all near pairs. If `edges` is set, each connected component has one
    /// representative; otherwise each document is near its representative. `excluded` documents are neither represented
    /// nor representatives. Also returns the nearest neighbors: the rows of [`into_nearest`](Self::into_nearest) if
    /// `keeps_none` is set, else of [`into_nearer_than_representatives`](Self::into_nearer_than_representatives).
    pub(crate) fn into_assignments_and_nearest(
        mut self,
        pairs: &Rows<ScoredPair>,
        edges: Option<impl Iterator<Item = Result<(u32, u32)>>>,
        excluded: &AtomicBitSet,
        verifier: Option<&Verifier<'_>>,
        keeps_none: bool,
        stage: &Stage<'_>,
    ) -> Result<(Assignments, Rows<ScoredPair>)> {
        let (uniques, workspace) = (self.uniques.len(), self.workspace);
        let is_included = |a, b| !excluded.contains(a) && !excluded.contains(b);
        let assignments = match edges {
            None => {
                let is_included =
                    |pair: &Result<ScoredPair>| pair.as_ref().map_or(true, |&(a, b, _)| is_included(a, b));
                let assignments =
                    assign_from_pairs(pairs.iter()?.filter(is_included), uniques, workspace, stage)?;
                self.push_assigned_pairs(&assignments, pairs.iter()?.filter(is_included))?;
                assignments
            }
            Some(edges) => {
                let edges = edges.filter(|edge| edge.as_ref().map_or(true, |&(a, b)| is_included(a, b)));
                let firsts = components::components(edges, uniques, workspace, stage)?;
                let score = |a, b| verifier.map_or(Ok(0), |verifier| verifier.exact_score(a, b));
                components::assignments(&firsts, pairs, uniques, workspace, score)?
            }
        };
        let nearest = if keeps_none {
            pairs.iter()?.try_for_each(|pair| self.push_both(pair?))?;
            self.into_nearest()?
        } else {
            self.into_nearer_than_representatives(&assignments)?
        };
        Ok((assignments, nearest))
    }

    /// Returns rows (represented document, nearest neighbor, score) in order, for the represented documents whose
    /// nearest neighbor is nearer than their representative.
    pub(crate) fn into_nearer_than_representatives(
        self,
        assignments: &Assignments,
    ) -> Result<Rows<ScoredPair>> {
        let NearestSearch { uniques, order, rows, workspace } = self;
        let (mut nearest, mut rows) = (workspace.rows(), RowCursor::new(rows.finish()?));
        for row in assignments.rows.iter()? {
            let (unique, representative, score) = row?;
            if let Some(((_, key), (document, other))) = rows.seek(unique, |row| row.0.0)?
                && (key, document) < (order.sort_key(score), uniques.best_document(representative)?)
            {
                nearest.push((unique, other, order.sort_key(key)))?;
            }
        }
        nearest.finish()
    }

    /// Returns rows (unique document, nearest neighbor, score) in order, for the unique documents that have a
    /// neighbor.
    pub(crate) fn into_nearest(self) -> Result<Rows<ScoredPair>> {
        let NearestSearch { order, rows, workspace, .. } = self;
        let mut last = None;
        let rows = rows
            .finish()?
            .map(|row| row.map(|((unique, key), (_, other))| (unique, other, order.sort_key(key))));
        let mut is_first = |&(unique, ..): &ScoredPair| last.replace(unique) != Some(unique);
        workspace.collected(rows.filter(|row| row.as_ref().map_or(true, &mut is_first)))
    }
}

/// Orders a pair as (represented document, representative). Returns `None` if both are represented, or neither is.
fn represented_first(assignments: &Assignments, (a, b): Candidate) -> Option<Candidate> {
    match (assignments.is_represented[a as usize], assignments.is_represented[b as usize]) {
        (true, false) => Some((a, b)),
        (false, true) => Some((b, a)),
        _ => None,
    }
}

/// Verifies candidates that pair a represented document with a representative other than its own. Adds the similar
/// pairs to `nearest`.
pub(crate) fn verify_other_representatives(
    candidates: &Rows<Candidate>,
    assignments: &Assignments,
    verifier: &Verifier<'_>,
    nearest: &mut NearestSearch<'_>,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<()> {
    let mut pairs = workspace.sorter::<Candidate>();
    for pair in candidates.iter()? {
        represented_first(assignments, pair?).map_or(Ok(()), |pair| pairs.push(pair))?;
    }
    let (mut assigned, mut batch) = (assignments.rows.cursor()?, Vec::new());
    let mut rows = pairs.finish()?;
    loop {
        batch.clear();
        while batch.len() < PAIR_BATCH
            && let Some(pair) = rows.next()
        {
            let (unique, other) = pair?;
            let representative = assigned.seek(unique, |row| row.0)?;
            if representative.is_none_or(|(_, representative, _)| representative != other) {
                batch.push((unique, other));
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        stage.add(batch.len() as u64)?;
        for (&(unique, other), score) in batch.iter().zip(verifier.verify_batch(&batch)?) {
            score.map_or(Ok(()), |score| nearest.push((unique, other, score)))?;
        }
    }
}

/// Converts rows (unique document, nearest neighbor, score) to rows of documents, in document order. The unique
/// document and its neighbor are groups of exact duplicates. Each document of the first group gets a row, with the
/// most preferred document of the second.
///
/// `equal` is set if the run keeps no document of a cluster. Then the nearest document of a document with exact
/// duplicates is one of these duplicates, and `equal` is their score.
pub(crate) fn nearest_documents(
    nearest: &Rows<ScoredPair>,
    uniques: &UniqueDocuments,
    equal: Option<PairScore>,
    workspace: &Workspace,
) -> Result<Rows<NearestRow>> {
    let (mut rows, mut nearest) = (workspace.sorter(), nearest.cursor()?);
    // (Unique document, its first document), and whether the next of its documents is the second.
    let (mut last, mut is_second) = (None, false);
    for row in uniques.iter()? {
        let (unique, document) = row?;
        let Some(equal) = equal.filter(|_| uniques.has_duplicates(unique)) else {
            if let Some((_, other, score)) = nearest.seek(unique, |row| row.0)? {
                rows.push((document, uniques.best_document(other)?, score))?;
            }
            continue;
        };
        // If no document is kept, preference is input order, so the first document in the input comes first.
        let Some((_, first)) = last.filter(|&(of, _)| of == unique) else {
            (last, is_second) = (Some((unique, document)), true);
            continue;
        };
        if std::mem::take(&mut is_second) {
            rows.push((first, document, equal))?;
        }
        rows.push((document, first, equal))?;
    }
    Rows::from_sorter(rows)
}
