//! Matches of input documents in the reference stores.

use simstore::Result;

use crate::pipeline::clusters::StoredAssignmentRow;
use crate::rows::{ScoreWithError, StoredMatchRow, StoredRow};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Rows, Sorter};

/// All matches in the reference stores.
#[derive(Debug)]
pub(crate) struct StoredMatches {
    /// Near stored documents, sorted by input document, the nearest first. If the run does not list pairs,
    /// only the nearest one.
    pub(crate) near: Rows<StoredMatchRow>,
    /// Stored documents that represent clusters. Other rows refer to their indexes.
    pub(crate) representatives: Rows<StoredRow>,
    /// Stored representative of each document whose cluster has one, in document order.
    pub(crate) assignments: Rows<StoredAssignmentRow>,
    /// Whether similarities may be estimates, because a store has no texts.
    pub(crate) is_estimated: bool,
}

/// Stored document that represents a cluster, a document of the cluster, and their score.
pub(crate) type StoredRepresentativeRow = (StoredRow, (u32, ScoreWithError));

impl StoredMatches {
    /// Result without matches.
    pub(crate) fn empty() -> Self {
        let (near, representatives) = (Rows::Memory(Vec::new()), Rows::Memory(Vec::new()));
        StoredMatches { near, representatives, assignments: Rows::Memory(Vec::new()), is_estimated: false }
    }

    /// Creates the result, and numbers the stored representatives.
    pub(crate) fn new(
        near: Rows<StoredMatchRow>,
        represented: Sorter<StoredRepresentativeRow>,
        is_estimated: bool,
        workspace: &Workspace,
    ) -> Result<Self> {
        let (mut representatives, mut assignments) =
            (workspace.rows(), workspace.sorter::<StoredAssignmentRow>());
        let (mut number, mut last) = (0_u64, None);
        for row in represented.finish()? {
            let (stored, (document, measure)) = row?;
            if last.replace(stored) != Some(stored) {
                representatives.push(stored)?;
                number += 1;
            }
            assignments.push((document, (number - 1, measure)))?;
        }
        let (representatives, assignments) = (representatives.finish()?, Rows::from_sorter(assignments)?);
        Ok(StoredMatches { near, representatives, assignments, is_estimated })
    }
}
