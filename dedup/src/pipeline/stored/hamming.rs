//! Stored fingerprints near fingerprints of documents, and the clusters that they represent.

use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::by_distance::SetsOf;
use crate::pipeline::components;
use crate::pipeline::exact::Sets;
use crate::pipeline::hamming::NearPlaces;
use crate::pipeline::stages::Stages;
use crate::pipeline::stored::matches::{FoundStored, ThingOf};
use crate::rows::{Measure, NearStored, Stored};
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows};

/// A set, the distance of a stored fingerprint, and that fingerprint.
type NearSet = (u32, (u32, Stored));

impl Stages<'_> {
    /// Returns the near fingerprints of stores, and the sets that are removed for them.
    pub(crate) fn near_stored(
        &self,
        near: &NearPlaces,
        sets: &Sets,
        sets_of: &SetsOf,
        edges: &Rows<(u32, u32)>,
        step: &Step<'_>,
    ) -> Result<(FoundStored, Marks)> {
        let workspace = self.workspace;
        let out = Marks::new(sets.len());
        if near.stored.is_empty() {
            return Ok((FoundStored::none(), out));
        }
        // Of each set what is near it, each thing once, the nearest first.
        let of_sets =
            near.stored.iter()?.map(|row| row.and_then(|(place, how)| Ok((sets_of.only(place)?, how))));
        let of_sets: Rows<NearSet> = workspace.sorted(of_sets)?;
        // The first set of each component; a set that is alone is its own component.
        let firsts = components::components(edges.iter()?, sets.len(), workspace, step)?;
        let mut of_firsts = workspace.sorter::<NearSet>();
        let mut first = firsts.cursor()?;
        for row in of_sets.iter()? {
            let (set, how) = row?;
            let of_set = first.at(set, |row| row.0)?;
            of_firsts.push((of_set.map_or(set, |(_, first)| first), how))?;
        }
        let mut standing = Vec::new();
        let mut nearest = workspace.rows();
        for row in of_firsts.finish()? {
            let (set, how) = row?;
            if standing.last() != Some(&set) {
                standing.clear();
                standing.push(set);
                out.set(set);
                nearest.push((set, how))?;
            }
        }
        self.with_documents(&of_sets, &nearest.finish()?, sets, &firsts, out)
    }

    fn with_documents(
        &self,
        of_sets: &Rows<NearSet>,
        nearest: &Rows<NearSet>,
        sets: &Sets,
        firsts: &Rows<(u32, u32)>,
        out: Marks,
    ) -> Result<(FoundStored, Marks)> {
        let workspace = self.workspace;
        // The stored fingerprint that represents each set of such components.
        let mut things = workspace.sorter::<NearSet>();
        nearest.iter()?.try_for_each(|row| things.push(row?))?;
        let mut by_first = workspace.sorter::<(u32, u32)>();
        for row in firsts.iter()? {
            let (set, first) = row?;
            if out.has(first) {
                by_first.push((first, set))?;
            }
        }
        let mut rows = nearest.cursor()?;
        for row in by_first.finish()? {
            let (first, set) = row?;
            if let Some((_, how)) = rows.at(first, |row| row.0)? {
                out.set(set);
                things.push((set, how))?;
            }
        }
        let mut things = Cursor::new(things.finish()?);
        let mut standing = workspace.sorter::<ThingOf>();
        for row in sets.iter()? {
            let (set, document) = row?;
            if let Some((_, (distance, stored))) = things.at(set, |row| row.0)? {
                standing.push((stored, (document, (distance.into(), 0))))?;
            }
        }
        let mut near = workspace.sorter::<NearStored>();
        let mut rows = of_sets.cursor()?;
        while let Some((set, _)) = rows.peek()? {
            let (mut place, mut last) = (0, None);
            let documents = sets.documents(set)?;
            while let Some((_, (distance, stored))) = rows.take_if(|&(next, _)| next == set)? {
                // A fingerprint in several segments is found several times.
                if last.replace(stored) == Some(stored) || place > 0 && !self.pairs {
                    continue;
                }
                let measure: Measure = (distance.into(), 0);
                documents.iter().try_for_each(|&document| near.push(((document, place), stored, measure)))?;
                place += 1;
            }
        }
        Ok((FoundStored::new(Rows::sorted(near)?, standing, false, workspace)?, out))
    }
}
