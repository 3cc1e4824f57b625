//! Finds the clusters of input documents that have a near fingerprint in a reference store. The nearest stored
//! fingerprint becomes the representative of the cluster.

use simstore::Result;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::by_distance::UniquesByFingerprint;
use crate::pipeline::components;
use crate::pipeline::hamming::FingerprintNeighbors;
use crate::pipeline::stages::Pipeline;
use crate::pipeline::stored::stored_matches::{StoredMatches, StoredRepresentativeRow};
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{ScoreWithError, StoredMatchRow, StoredRow};
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows};

/// Unique document and a stored fingerprint near it: (unique document, (distance in bits, stored fingerprint)).
type UniqueNeighborRow = (u32, (u32, StoredRow));

impl Pipeline<'_> {
    /// Returns the stored fingerprints near unique documents, and the unique documents that stored fingerprints
    /// represent. A stored fingerprint near a unique document represents this document and all documents that
    /// `edges` connect with it.
    pub(crate) fn near_stored(
        &self,
        near: &FingerprintNeighbors,
        uniques: &UniqueDocuments,
        by_fingerprint: &UniquesByFingerprint,
        edges: &Rows<(u32, u32)>,
        stage: &Stage<'_>,
    ) -> Result<(StoredMatches, AtomicBitSet)> {
        let workspace = self.workspace;
        let excluded = AtomicBitSet::new(uniques.len());
        if near.stored.is_empty() {
            return Ok((StoredMatches::empty(), excluded));
        }
        // Sorted by unique document, the nearest stored fingerprint first.
        let neighbors = near.stored.iter()?.map(|row| {
            row.and_then(|(index, neighbor)| Ok((by_fingerprint.single_unique(index)?, neighbor)))
        });
        let neighbors: Rows<UniqueNeighborRow> = workspace.sorted(neighbors)?;
        // The best document of each component. A document without edges is its own component.
        let firsts = components::components(edges.iter()?, uniques.len(), workspace, stage)?;
        let mut component_neighbors = workspace.sorter::<UniqueNeighborRow>();
        let mut first = firsts.cursor()?;
        for row in neighbors.iter()? {
            let (unique, neighbor) = row?;
            let component = first.seek(unique, |row| row.0)?.map_or(unique, |(_, first)| first);
            component_neighbors.push((component, neighbor))?;
        }
        let mut last = None;
        let mut nearest = workspace.rows();
        for row in component_neighbors.finish()? {
            let (unique, neighbor) = row?;
            if last.replace(unique) != Some(unique) {
                excluded.set(unique);
                nearest.push((unique, neighbor))?;
            }
        }
        self.stored_matches(&neighbors, &nearest.finish()?, uniques, &firsts, excluded)
    }

    /// Creates the result of [`Pipeline::near_stored`]: converts rows of unique documents to rows of documents.
    /// `neighbors` has the stored fingerprints near each unique document. The *first* of a component is its most
    /// preferred unique document:
    /// - `firsts` has rows (unique document, first of its component).
    /// - `nearest` has a row (first of a component, stored fingerprint nearest to the component) for each component that
    ///   is near a stored fingerprint.
    /// - `excluded` has the firsts in `nearest`. The returned set has all unique documents of their components.
    fn stored_matches(
        &self,
        neighbors: &Rows<UniqueNeighborRow>,
        nearest: &Rows<UniqueNeighborRow>,
        uniques: &UniqueDocuments,
        firsts: &Rows<(u32, u32)>,
        excluded: AtomicBitSet,
    ) -> Result<(StoredMatches, AtomicBitSet)> {
        let workspace = self.workspace;
        // The stored fingerprint that represents each unique document of these components.
        let mut representatives = workspace.sorter::<UniqueNeighborRow>();
        nearest.iter()?.try_for_each(|row| representatives.push(row?))?;
        let mut by_first = workspace.sorter::<(u32, u32)>();
        for row in firsts.iter()? {
            let (unique, first) = row?;
            if excluded.contains(first) {
                by_first.push((first, unique))?;
            }
        }
        let mut rows = nearest.cursor()?;
        for row in by_first.finish()? {
            let (first, unique) = row?;
            if let Some((_, neighbor)) = rows.seek(first, |row| row.0)? {
                excluded.set(unique);
                representatives.push((unique, neighbor))?;
            }
        }
        let mut representatives = RowCursor::new(representatives.finish()?);
        let mut represented = workspace.sorter::<StoredRepresentativeRow>();
        for row in uniques.iter()? {
            let (unique, document) = row?;
            if let Some((_, (distance, stored))) = representatives.seek(unique, |row| row.0)? {
                represented.push((stored, (document, (distance.into(), 0))))?;
            }
        }
        let mut near = workspace.sorter::<StoredMatchRow>();
        let mut rows = neighbors.cursor()?;
        while let Some((unique, _)) = rows.peek()? {
            let (mut rank, mut last) = (0, None);
            let documents = uniques.documents(unique)?;
            while let Some((_, (distance, stored))) = rows.next_if(|&(next, _)| next == unique)? {
                // A fingerprint that is in several segments is found several times.
                if last.replace(stored) == Some(stored) || rank > 0 && !self.with_pairs {
                    continue;
                }
                let measure: ScoreWithError = (distance.into(), 0);
                documents.iter().try_for_each(|&document| near.push(((document, rank), stored, measure)))?;
                rank += 1;
            }
        }
        Ok((StoredMatches::new(Rows::from_sorter(near)?, represented, false, workspace)?, excluded))
    }
}
