//! What is near documents in stores.

use simstore::{Fingerprint, Result};

use super::super::model::{Measure, NearStored, Stored};
use super::super::room::Room;
use super::clusters::OfStore;
use crate::spill::{Rows, Sorter};

/// All that was found in stores.
#[derive(Debug)]
pub(in super::super) struct FoundStored<F> {
    /// By document, the nearest first; only that if not all pairs were asked for.
    pub(in super::super) near: Rows<NearStored<F>>,
    /// What stands for clusters, by number.
    pub(in super::super) things: Rows<Stored<F>>,
    /// For each document that is near something, what stands for its cluster.
    pub(in super::super) of_documents: Rows<OfStore>,
    /// Whether similarities are estimated: some store keeps no texts.
    pub(in super::super) is_estimated: bool,
}

/// What stands for clusters, as it is found: what it is, the document, and how near they are.
pub(in super::super) type ThingOf<F> = (Stored<F>, (u32, Measure));

impl<F: Fingerprint> FoundStored<F> {
    /// Nothing.
    pub(in super::super) fn none(room: &Room) -> Result<Self> {
        let (near, things, of_documents) = (room.rows(), room.rows(), room.rows());
        let (near, things) = (near.finish()?, things.finish()?);
        Ok(FoundStored { near, things, of_documents: of_documents.finish()?, is_estimated: false })
    }

    /// Numbers what stands for clusters.
    pub(in super::super) fn new(
        near: Rows<NearStored<F>>,
        standing: Sorter<ThingOf<F>>,
        is_estimated: bool,
        room: &Room,
    ) -> Result<Self> {
        let (mut things, mut of_documents) = (room.rows(), room.sorter::<OfStore>());
        let (mut number, mut last) = (0_u64, None);
        for row in standing.finish()? {
            let (thing, (document, measure)) = row?;
            if last.replace(thing) != Some(thing) {
                things.push(thing)?;
                number += 1;
            }
            of_documents.push((document, (number - 1, measure)))?;
        }
        let (things, of_documents) = (things.finish()?, of_documents.rows()?);
        Ok(FoundStored { near, things, of_documents, is_estimated })
    }
}
