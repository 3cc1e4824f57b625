//! Forms clusters. A cluster is a representative with its near-duplicates, a group of exact duplicates, or a stored
//! document with the input documents near it.

use bitvec::vec::BitVec;
use simstore::Result;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::representatives::Assignments;
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{MemberRow, PairScore, RepresentativeId, ScoreWithError, ScoredPair};
use crate::workspace::Workspace;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter};

/// Members of all clusters, sorted in two ways.
#[derive(Debug)]
pub(crate) struct Clusters {
    /// One row per member, sorted by cluster, then by document.
    pub(crate) by_cluster: Rows<MemberRow>,
    /// The rows of [`by_cluster`](Self::by_cluster), sorted by document.
    pub(crate) by_document: Rows<MemberRow>,
    /// Number of clusters.
    pub(crate) count: usize,
    /// Number of clusters whose representative is a stored document.
    pub(crate) stored: usize,
    /// Number of input documents in clusters whose representative is a stored document.
    pub(crate) in_stored: usize,
}

impl Clusters {
    /// Returns the number of removed documents. If `keeps_none` is set, the representatives are removed, too.
    pub(crate) fn removed(&self, keeps_none: bool) -> usize {
        let kept = if keeps_none { 0 } else { self.count - self.stored };
        self.by_cluster.len() - kept
    }
}

/// Cursor that looks up the cluster of one document after the other, in ascending order of documents.
pub(crate) struct ClusterCursor<'a> {
    members: RowCursor<RowsIter<'a, MemberRow>, MemberRow>,
    keeps_none: bool,
}

/// Cluster of a document, and whether the document is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterStatus {
    /// Number of the cluster, starting at 1; 0 if the document is in no cluster.
    pub(crate) cluster: u32,
    /// Whether the document is kept when duplicates are removed.
    pub(crate) is_kept: bool,
}

impl<'a> ClusterCursor<'a> {
    pub(crate) fn new(clusters: &'a Clusters, keeps_none: bool) -> Result<Self> {
        Ok(ClusterCursor { members: clusters.by_document.cursor()?, keeps_none })
    }

    /// Returns the cluster of a document, and whether the document is kept. Calls must be in ascending order of
    /// documents.
    pub(crate) fn status(&mut self, document: usize) -> Result<ClusterStatus> {
        let member = self.members.seek(document as u64, |member| member.document)?;
        Ok(member.map_or(ClusterStatus { cluster: 0, is_kept: true }, |member| ClusterStatus {
            cluster: member.cluster,
            is_kept: member.is_representative() && !self.keeps_none,
        }))
    }
}

/// Input document and the stored document that represents it: (document, (index of the stored document,
/// score of the two)). The index refers to [`StoredMatches::representatives`].
///
/// [`StoredMatches::representatives`]: crate::pipeline::stored::stored_matches::StoredMatches::representatives
pub(crate) type StoredAssignmentRow = (u32, (u64, ScoreWithError));

/// Sort key of the first stored representative. It is greater than the number of any unique document, so that
/// clusters with a stored representative sort after all others.
const STORED: u64 = 1 << 40;

/// Unique documents and their near pairs. A run by distance considers only documents whose fingerprint is
/// repeated or near another one; it numbers these documents from 0. A run by similarity considers all documents
/// of the corpus.
#[derive(Debug)]
pub(crate) struct NearDocuments {
    pub(crate) uniques: UniqueDocuments,
    /// Near pairs of unique documents. All pairs if the run lists pairs; otherwise the list may be empty.
    pub(crate) pairs: Rows<ScoredPair>,
    /// Index in the corpus of each considered document. `None` if all documents of the corpus are considered, so
    /// that the index in the corpus is the index among the considered documents.
    pub(crate) documents: Option<Rows<u64>>,
    /// Score of a pair of exact duplicates: the score of similarity 1, or distance 0.
    pub(crate) equal: PairScore,
}

impl NearDocuments {
    /// Converts the index of a document among the considered documents to its index in the corpus.
    pub(crate) fn document(&self, local: u32) -> Result<u64> {
        self.documents.as_ref().map_or(Ok(local.into()), |documents| documents.get(local as usize))
    }

    /// Visits all near pairs of documents, including pairs of exact duplicates, as (`a`, `b`, score) with
    /// `a` < `b`. They are sorted by `a`, then by `b`.
    pub(crate) fn pairs(
        &self,
        workspace: &Workspace,
    ) -> Result<impl Iterator<Item = Result<ScoredPair>> + use<>> {
        let mut all = workspace.sorter::<ScoredPair>();
        for pair in self.pairs.iter()? {
            let (a, b, score) = pair?;
            let others = self.uniques.documents(b)?;
            for one in self.uniques.documents(a)? {
                others.iter().try_for_each(|&other| all.push((one.min(other), one.max(other), score)))?;
            }
        }
        for unique in (0..self.uniques.len() as u32).filter(|&unique| self.uniques.has_duplicates(unique)) {
            let documents = self.uniques.documents(unique)?;
            for (at, &one) in documents.iter().enumerate() {
                let others = &documents[at + 1..];
                others
                    .iter()
                    .try_for_each(|&other| all.push((one.min(other), one.max(other), self.equal)))?;
            }
        }
        all.finish()
    }

    /// Forms clusters of at least two documents, and clusters that a stored document represents. Clusters are
    /// numbered in order of their first documents. `excluded` has the unique documents in clusters that a stored
    /// document represents. `stored` has the documents of these clusters.
    pub(crate) fn clusters(
        &self,
        assignments: &Assignments,
        excluded: &AtomicBitSet,
        stored: &Rows<StoredAssignmentRow>,
        workspace: &Workspace,
    ) -> Result<Clusters> {
        let mut by_representative = workspace.sorter::<(u64, (u32, ScoreWithError))>();
        let mut represents: BitVec = BitVec::repeat(false, self.uniques.len());
        for row in assignments.rows.iter()? {
            represents.set(row?.1 as usize, true);
        }
        let mut assigned = assignments.rows.cursor()?;
        for row in self.uniques.iter()? {
            let (unique, document) = row?;
            match assigned.seek(unique, |row| row.0)? {
                Some((_, representative, score)) => {
                    by_representative.push((representative.into(), (document, (score, 0))))?;
                }
                None if excluded.contains(unique) => {}
                None if represents[unique as usize] || self.uniques.has_duplicates(unique) => {
                    by_representative.push((unique.into(), (document, (self.equal, 0))))?;
                }
                None => {}
            }
        }
        for row in stored.iter()? {
            let (document, (stored_number, measure)) = row?;
            by_representative.push((STORED + stored_number, (document, measure)))?;
        }
        drop(represents);
        // Rows are sorted by representative, then by document: the first row has the cluster's first document.
        let mut by_first = workspace.sorter::<((u32, u32), (u64, ScoreWithError))>();
        let mut rows = RowCursor::new(by_representative.finish()?);
        while let Some((representative, (first, measure))) = rows.next_row()? {
            by_first.push(((first, first), (representative, measure)))?;
            while let Some((_, (document, measure))) = rows.next_if(|&(next, _)| next == representative)? {
                by_first.push(((first, document), (representative, measure)))?;
            }
        }
        drop(rows);
        let (mut by_cluster, mut by_document) = (workspace.rows(), workspace.sorter::<MemberRow>());
        let (mut cluster, mut last, mut id) = (0, None, RepresentativeId::document(0));
        let (mut stored, mut in_stored) = (0, 0);
        for row in by_first.finish()? {
            let ((first, document), (representative, measure)) = row?;
            if last.replace(first) != Some(first) {
                cluster += 1;
                stored += usize::from(representative >= STORED);
                id = match representative.checked_sub(STORED) {
                    Some(stored_number) => RepresentativeId::stored(stored_number),
                    None => RepresentativeId::document(
                        self.document(self.uniques.best_document(representative as u32)?)?,
                    ),
                };
            }
            let member =
                MemberRow { cluster, document: self.document(document)?, representative: id, measure };
            in_stored += usize::from(representative >= STORED);
            by_cluster.push(member)?;
            by_document.push(member)?;
        }
        let (by_cluster, by_document) = (by_cluster.finish()?, Rows::from_sorter(by_document)?);
        Ok(Clusters { by_cluster, by_document, count: cluster as usize, stored, in_stored })
    }
}
