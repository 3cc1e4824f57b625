//! Stored documents that are near documents of the corpus.

use simstore::Result;

use crate::pipeline::clusters::OfStore;
use crate::rows::{Measure, NearStored, Stored};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Rows, Sorter};

/// All that was found in stores.
#[derive(Debug)]
pub(crate) struct FoundStored {
    /// By document, the nearest first; only that if not all pairs were asked for.
    pub(crate) near: Rows<NearStored>,
    /// Stored documents that represent clusters, by number.
    pub(crate) things: Rows<Stored>,
    /// For each document that is near a stored one, the representative of its cluster.
    pub(crate) of_documents: Rows<OfStore>,
    /// Whether similarities are estimated: some store keeps no texts.
    pub(crate) is_estimated: bool,
}

/// A stored document that represents a cluster, a document of the cluster, and their nearness.
pub(crate) type ThingOf = (Stored, (u32, Measure));

impl FoundStored {
    /// Nothing.
    pub(crate) fn none() -> Self {
        let (near, things) = (Rows::Memory(Vec::new()), Rows::Memory(Vec::new()));
        FoundStored { near, things, of_documents: Rows::Memory(Vec::new()), is_estimated: false }
    }

    /// Numbers the stored documents that represent clusters.
    pub(crate) fn new(
        near: Rows<NearStored>,
        standing: Sorter<ThingOf>,
        is_estimated: bool,
        workspace: &Workspace,
    ) -> Result<Self> {
        let (mut things, mut of_documents) = (workspace.rows(), workspace.sorter::<OfStore>());
        let (mut number, mut last) = (0_u64, None);
        for row in standing.finish()? {
            let (thing, (document, measure)) = row?;
            if last.replace(thing) != Some(thing) {
                things.push(thing)?;
                number += 1;
            }
            of_documents.push((document, (number - 1, measure)))?;
        }
        let (things, of_documents) = (things.finish()?, Rows::sorted(of_documents)?);
        Ok(FoundStored { near, things, of_documents, is_estimated })
    }
}
