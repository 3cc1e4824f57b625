//! Look-ups by ids or names: one pass over the store for any number of documents.

use std::collections::HashSet;

use rayon::prelude::*;

use super::snapshot::Snapshot;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::memtable::Memtable;
use crate::segment::{Entry, Segment};
use crate::threads;

/// A stored fingerprint with its id, and the name of its document if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPair<F> {
    /// The stored fingerprint.
    pub fingerprint: F,
    /// The id of the document.
    pub id: u64,
    /// The name of the document: the last one that an insert gave to the id since a pair of the id was deleted.
    pub name: Option<String>,
}

/// Blocks that one thread reads at a time.
const BLOCKS: usize = 256;

impl<F: Fingerprint> Snapshot<F> {
    /// All pairs with one of these ids, ascending by id, then fingerprint; those that were deleted are left out. A store
    /// without ids has none.
    ///
    /// Ids have no index: it reads all ids of the store once, on all threads of the current rayon pool, and so takes as
    /// long for one id as for a million. Besides the pairs found it takes 2 bytes of memory an id.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a part of the ids, or a block with one of them, is damaged.
    pub fn pairs_of_ids(&self, ids: &HashSet<u64>) -> Result<Vec<StoredPair<F>>> {
        if ids.is_empty() || !self.keeps_ids() {
            return Ok(Vec::new());
        }
        threads::ensure_pool()?;
        let wanted = Wanted::new(ids);
        let mut found: Vec<(u64, F)> = Vec::new();
        for (i, segment) in self.segments().iter().enumerate() {
            let entries = entries_of(segment, |id| wanted.contains(id))?;
            let is_there = |entry: &Entry<F>| !self.hides(i + 1, 0, entry.fingerprint, entry.id);
            let pairs = entries.into_iter().filter(is_there);
            found.extend(pairs.filter_map(|entry| entry.id.map(|id| (id, entry.fingerprint))));
        }
        for (i, (memtable, version)) in self.memtables().enumerate() {
            memtable.visit(version, |fingerprint, id| {
                let newer = self.segments().len();
                if wanted.contains(id) && !self.hides(newer, i + 1, fingerprint, Some(id)) {
                    found.push((id, fingerprint));
                }
            });
        }
        found.sort_unstable();
        // A pair may have been stored more than once.
        found.dedup();
        let mut ids: Vec<u64> = found.iter().map(|&(id, _)| id).collect();
        ids.dedup();
        let mut names = ids.iter().zip(self.names_of(&ids)?).peekable();
        let mut pairs = Vec::with_capacity(found.len());
        for (id, fingerprint) in found {
            while names.next_if(|&(&other, _)| other < id).is_some() {}
            let name = names.peek().and_then(|(_, name)| name.clone());
            pairs.push(StoredPair { fingerprint, id, name });
        }
        Ok(pairs)
    }

    /// All pairs of documents with one of these names, as [`Snapshot::pairs_of_ids`]. Several documents may have one name;
    /// of a document that was stored under several, the newest counts.
    ///
    /// Reads all names of the store once, and then all ids if a name was found.
    ///
    /// # Errors
    /// As [`Snapshot::pairs_of_ids`], and if a part of the names is damaged.
    pub fn pairs_of_names(&self, names: &HashSet<String>) -> Result<Vec<StoredPair<F>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        threads::ensure_pool()?;
        let mut ids = HashSet::new();
        for segment in self.segments() {
            let chunks = 0..segment.name_chunks();
            let of_chunk = |chunk| segment.ids_of_names(chunk, names);
            ids.par_extend(
                chunks.into_par_iter().map(of_chunk).collect::<Result<Vec<_>>>()?.into_par_iter().flatten(),
            );
        }
        for (memtable, version) in self.memtables() {
            memtable.visit_names(version, |id, name| {
                if names.contains(name) {
                    ids.insert(id);
                }
            });
        }
        let mut pairs = self.pairs_of_ids(&ids)?;
        pairs.retain(|pair| pair.name.as_ref().is_some_and(|name| names.contains(name)));
        Ok(pairs)
    }

    /// The name of a document: the last one that an insert gave to its id. A delete of a pair with the id forgets it.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the part of the names that would hold it is damaged.
    pub fn name(&self, id: u64) -> Result<Option<String>> {
        self.newest_of(id, Memtable::name, Segment::name)
    }

    /// The note of a document, see [`Transaction::note`](crate::Transaction::note). A delete of a pair with the id forgets it.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the part of the notes that would hold it is damaged.
    pub fn note(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.newest_of(id, Memtable::note, Segment::note)
    }

    /// The newest name or note of an id, up to the newest place where a pair of the id was deleted.
    fn newest_of<V>(
        &self,
        id: u64,
        of_memtable: fn(&Memtable<F>, u64, u64) -> Option<V>,
        of_segment: fn(&Segment<F>, u64) -> Result<Option<V>>,
    ) -> Result<Option<V>> {
        for (memtable, version) in self.memtables().rev() {
            let found = of_memtable(memtable, version, id);
            if found.is_some() || memtable.forgets(version, id) {
                return Ok(found);
            }
        }
        for segment in self.segments().iter().rev() {
            let found = of_segment(segment, id)?;
            if found.is_some() || segment.forgets(id) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The names of documents, in the order of their ids, which ascend. As [`Snapshot::name`] for each, but no part of the
    /// names is read twice.
    ///
    /// # Errors
    /// As [`Snapshot::name`].
    pub fn names_of(&self, ids: &[u64]) -> Result<Vec<Option<String>>> {
        let mut names = vec![None; ids.len()];
        for segment in self.segments() {
            forget(segment, ids, &mut names);
            segment.names_of(ids, |i, name| names[i] = Some(name))?;
        }
        self.add_recent(ids, &mut names, Memtable::name);
        Ok(names)
    }

    /// The notes of documents, in the order of their ids, which ascend. As [`Snapshot::note`] for each, but no part of the
    /// notes is read twice.
    ///
    /// # Errors
    /// As [`Snapshot::note`].
    pub fn notes_of(&self, ids: &[u64]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut notes = vec![None; ids.len()];
        for segment in self.segments() {
            forget(segment, ids, &mut notes);
            segment.notes_of(ids, |i, note| notes[i] = Some(note))?;
        }
        self.add_recent(ids, &mut notes, Memtable::note);
        Ok(notes)
    }

    /// Replaces the names or notes of ids by the newer ones of the memtables.
    fn add_recent<V>(
        &self,
        ids: &[u64],
        values: &mut [Option<V>],
        of_memtable: fn(&Memtable<F>, u64, u64) -> Option<V>,
    ) {
        for (memtable, version) in self.memtables() {
            for (&id, value) in ids.iter().zip(&mut *values) {
                let newer = of_memtable(memtable, version, id);
                if newer.is_some() || memtable.forgets(version, id) {
                    *value = newer;
                }
            }
        }
    }
}

/// Removes the names or notes of ids that have a tombstone in a segment.
fn forget<F: Fingerprint, V>(segment: &Segment<F>, ids: &[u64], values: &mut [Option<V>]) {
    for (&id, value) in ids.iter().zip(values) {
        if value.is_some() && segment.forgets(id) {
            *value = None;
        }
    }
}

/// The entries of a segment whose ids are wanted, hidden or not.
fn entries_of<F: Fingerprint>(
    segment: &Segment<F>,
    is_wanted: impl Fn(u64) -> bool + Sync,
) -> Result<Vec<Entry<F>>> {
    let blocks = segment.tables()[0].blocks();
    let of_blocks = |part: usize| {
        let mut entries = Vec::new();
        for block in part * BLOCKS..((part + 1) * BLOCKS).min(blocks) {
            segment.entries_of(block, &is_wanted, &mut entries)?;
        }
        Ok(entries)
    };
    let parts = (0..blocks.div_ceil(BLOCKS)).into_par_iter().map(of_blocks).collect::<Result<Vec<_>>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Ids that are looked for, behind a filter that most others do not pass.
struct Wanted<'a> {
    ids: &'a HashSet<u64>,
    filter: Vec<u64>,
    shift: u32,
}

impl<'a> Wanted<'a> {
    /// With some 16 bits an id.
    fn new(ids: &'a HashSet<u64>) -> Self {
        let bits = (ids.len() * 16).next_power_of_two().max(64);
        let mut wanted = Wanted { ids, filter: vec![0; bits / 64], shift: 64 - bits.ilog2() };
        for &id in ids {
            let bit = wanted.bit(id);
            wanted.filter[bit / 64] |= 1 << (bit % 64);
        }
        wanted
    }

    fn bit(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    fn contains(&self, id: u64) -> bool {
        let bit = self.bit(id);
        self.filter[bit / 64] >> (bit % 64) & 1 == 1 && self.ids.contains(&id)
    }
}
