//! Matches of input documents in the reference stores.

use simstore::Result;

use crate::pipeline::clusters::StoredAssignmentRow;
use crate::rows::{ScoreWithError, StoredMatchRow, StoredRow};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Rows, Sorter};

/// All matches of input documents in the reference stores.
#[derive(Debug)]
pub(crate) struct StoredMatches {
    /// Pairs of an input document and a stored document near it. They are sorted by input document; the nearest
    /// stored document is first. If the run does not list pairs, each input document has only this nearest one.
    pub(crate) near: Rows<StoredMatchRow>,
    /// Stored documents that represent clusters. A [`StoredAssignmentRow`] refers to a stored document by its index
    /// in these rows.
    pub(crate) representatives: Rows<StoredRow>,
    /// Input documents in clusters that a stored document represents, each with this stored document. In document
    /// order.
    pub(crate) assignments: Rows<StoredAssignmentRow>,
    /// Whether similarities in `near` and `assignments` may be estimates, because a store has no texts.
    pub(crate) is_estimated: bool,
}

/// Stored document that represents a cluster, a document of the cluster, and their score.
pub(crate) type StoredRepresentativeRow = (StoredRow, (u32, ScoreWithError));

impl StoredMatches {
    /// Creates a result without matches.
    pub(crate) fn empty() -> Self {
        let (near, representatives) = (Rows::Memory(Vec::new()), Rows::Memory(Vec::new()));
        StoredMatches { near, representatives, assignments: Rows::Memory(Vec::new()), is_estimated: false }
    }

    /// Creates the value from `near`, the pairs of an input document and a stored document near it, and from
    /// `represented`, which assigns input documents to the stored documents that represent them.
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
