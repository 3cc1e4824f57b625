//! Documents that are equal are one set; sets are numbered by preference.

use bitvec::vec::BitVec;
use simstore::Result;

use crate::corpus::ranks::Ranks;
use crate::rows::SketchRow;
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Fixed, Rows};

/// Sets of equal documents, the most preferred first: a set is as preferred as the best of its documents.
#[derive(Debug)]
pub(crate) struct Sets {
    /// The most preferred document of each set.
    best: Rows<u32>,
    /// Of each set of several documents its number and each of these, the most preferred first.
    several: Rows<(u32, u32)>,
    is_several: BitVec,
}

impl Sets {
    /// Makes sets of documents with equal sketches. Documents without features are in none.
    pub(crate) fn of_sketches(
        sketches: &Rows<SketchRow>,
        ranks: &Ranks,
        workspace: &Workspace,
        step: &Step<'_>,
    ) -> Result<Sets> {
        let with_features = sketches.iter()?.filter(|row| row.as_ref().map_or(true, |row| row.features > 0));
        let keys = with_features.map(|row| row.map(|row| (row.digest(), row.number)));
        distinct(keys, ranks, workspace, step)
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.best.len()
    }

    /// The most preferred document of a set.
    #[inline]
    pub(crate) fn best(&self, set: u32) -> Result<u32> {
        self.best.get(set as usize)
    }

    /// The most preferred document of each set.
    pub(crate) fn all_best(&self) -> &Rows<u32> {
        &self.best
    }

    /// Whether a set has several documents.
    pub(crate) fn is_several(&self, set: u32) -> bool {
        self.is_several[set as usize]
    }

    /// The documents of a set, the most preferred first.
    pub(crate) fn documents(&self, set: u32) -> Result<Vec<u32>> {
        if !self.is_several(set) {
            return Ok(vec![self.best(set)?]);
        }
        let start = self.several_before(set)?;
        let of_set = (start..self.several.len()).map(|at| self.several.get(at));
        let of_set = of_set.take_while(|row| row.as_ref().map_or(true, |row| row.0 == set));
        of_set.map(|row| Ok(row?.1)).collect()
    }

    /// How many documents a set has.
    pub(crate) fn size(&self, set: u32) -> Result<u64> {
        if !self.is_several(set) {
            return Ok(1);
        }
        Ok((self.several_before(set + 1)? - self.several_before(set)?) as u64)
    }

    /// How many documents of sets of several there are before a set.
    fn several_before(&self, set: u32) -> Result<usize> {
        self.several.partition_point(|row| row.0 < set)
    }

    /// The number of the set and each document, by document.
    pub(crate) fn by_document(&self, workspace: &Workspace) -> Result<Rows<(u32, u32)>> {
        let mut rows = workspace.sorter();
        for row in self.iter()? {
            let (set, document) = row?;
            rows.push((document, set))?;
        }
        Rows::sorted(rows)
    }

    /// All sets in order, each with each of its documents, the most preferred first.
    pub(crate) fn iter(&self) -> Result<impl Iterator<Item = Result<(u32, u32)>>> {
        let (mut several, mut best) = (self.several.cursor()?, (0..).zip(self.best.iter()?));
        let mut last = None;
        let mut next = move || {
            if let Some(row) = several.take_if(|&(set, _)| Some(set) == last)? {
                return Ok(Some(row));
            }
            let Some((set, document)) = best.next() else { return Ok(None) };
            last = Some(set);
            // The documents of a set of several are listed from the best on.
            let listed = several.take_if(|&(next, _)| next == set)?;
            Ok(Some(listed.unwrap_or((set, document?))))
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }
}

/// Makes sets of documents by keys that equal ones have in common. Keys come in the order of the documents.
pub(crate) fn distinct<K: Fixed>(
    keys: impl Iterator<Item = Result<(K, u32)>>,
    ranks: &Ranks,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Sets> {
    let mut by_key = workspace.sorter::<(K, (u32, u32))>();
    let mut in_order = ranks.in_order()?;
    for (at, row) in keys.enumerate() {
        let (key, document) = row?;
        by_key.push((key, (in_order.of(document)?, document)))?;
        if at % 1024 == 0 {
            step.add(0)?;
        }
    }
    // The documents of a set have the rank of its best one in common.
    let mut by_best = workspace.sorter::<(u32, u32, u32)>();
    let mut last: Option<(K, u32)> = None;
    for row in by_key.finish()? {
        let (key, (rank, document)) = row?;
        let best = last.filter(|(other, _)| *other == key).map_or(rank, |(_, best)| best);
        last = Some((key, best));
        by_best.push((best, rank, document))?;
    }
    step.add(0)?;
    let (mut bests, mut several, mut is_several) = (workspace.rows(), workspace.rows(), BitVec::new());
    let mut rows = Cursor::new(by_best.finish()?);
    let mut set: u32 = 0;
    while let Some((best, _, document)) = rows.take()? {
        bests.push(document)?;
        let mut is_one = true;
        while let Some((_, _, other)) = rows.take_if(|&(next, ..)| next == best)? {
            if std::mem::take(&mut is_one) {
                several.push((set, document))?;
            }
            several.push((set, other))?;
        }
        is_several.push(!is_one);
        set += 1;
    }
    Ok(Sets { best: bests.finish()?, several: several.finish()?, is_several })
}
