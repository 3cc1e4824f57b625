//! What the stages come to.

use simstore::Result;

use crate::pipeline::boilerplate::Boilerplate;
use crate::pipeline::clusters::Clusters;
use crate::pipeline::exact::Sets;
use crate::pipeline::nearest::Nearest;
use crate::pipeline::stored::matches::FoundStored;
use crate::rows::{Near, Nearness};
use crate::workspace::Workspace;
use simstore_corpus::spill::Rows;

/// What was found.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) clusters: Clusters,
    pub(crate) stored: FoundStored,
    pub(crate) near: NearDocuments,
    /// What documents are duplicates of, where that is not what stands for their cluster; by document.
    pub(crate) nearest: Rows<Nearest>,
    /// Number of different fingerprints, or of different sets of features.
    pub(crate) distinct: usize,
    /// How many pairs of texts were compared, and how many of them were not alike, where texts are compared.
    pub(crate) compared: Option<(u64, u64)>,
    pub(crate) boilerplate: Option<Boilerplate>,
}

/// Which documents are near which.
#[derive(Debug)]
pub(crate) struct NearDocuments {
    pub(crate) sets: Sets,
    /// Near sets, if they were asked for.
    pub(crate) pairs: Rows<Near>,
    /// The numbers of the documents in the corpus, if these are not all.
    pub(crate) documents: Option<Rows<u64>>,
    /// How near equal documents are.
    pub(crate) equal: Nearness,
}

impl NearDocuments {
    /// The number in the corpus.
    pub(crate) fn document(&self, number: u32) -> Result<u64> {
        self.documents.as_ref().map_or(Ok(number.into()), |documents| documents.get(number as usize))
    }

    /// All pairs of near documents `a` < `b` with their nearness, in order of `a`, then of `b`. There are only those of equal ones if
    /// pairs were not asked for.
    pub(crate) fn pairs(&self, workspace: &Workspace) -> Result<impl Iterator<Item = Result<Near>> + use<>> {
        let mut all = workspace.sorter::<Near>();
        for pair in self.pairs.iter()? {
            let (a, b, nearness) = pair?;
            let others = self.sets.documents(b)?;
            for one in self.sets.documents(a)? {
                others.iter().try_for_each(|&other| all.push((one.min(other), one.max(other), nearness)))?;
            }
        }
        for set in (0..self.sets.len() as u32).filter(|&set| self.sets.is_several(set)) {
            let documents = self.sets.documents(set)?;
            for (at, &one) in documents.iter().enumerate() {
                let others = &documents[at + 1..];
                others
                    .iter()
                    .try_for_each(|&other| all.push((one.min(other), one.max(other), self.equal)))?;
            }
        }
        all.finish()
    }
}
