//! Look-ups by id or name. One pass over the store looks up any number of documents.

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
    /// Stored fingerprint.
    pub fingerprint: F,
    /// Id of the document.
    pub id: u64,
    /// Name of the document: the last name inserted with the id. `None` if the document never had a name, or if a pair
    /// of a fingerprint and the id was deleted later.
    pub name: Option<String>,
}

/// Number of blocks that one parallel task reads.
const BLOCKS_PER_TASK: usize = 256;

impl<F: Fingerprint> Snapshot<F> {
    /// Returns all stored pairs with one of these ids, ascending by id, then fingerprint. If the store has no ids, the list is
    /// empty.
    ///
    /// There is no index by id: a call reads all ids of the store once, on all threads of the current rayon pool. So looking
    /// up one id takes about as long as looking up a million ids. A call uses 2 to 4 bytes of memory for each wanted id,
    /// and the memory of the result.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a chunk of ids is damaged, or a block that has one of the
    /// fingerprints to return.
    pub fn pairs_of_ids(&self, ids: &HashSet<u64>) -> Result<Vec<StoredPair<F>>> {
        if ids.is_empty() || !self.keeps_ids() {
            return Ok(Vec::new());
        }
        threads::ensure_pool()?;
        let wanted = IdFilter::new(ids);
        let mut found: Vec<(u64, F)> = Vec::new();
        for (i, segment) in self.segments().iter().enumerate() {
            let entries = entries_with_ids(segment, |id| wanted.contains(id))?;
            let is_visible = |entry: &Entry<F>| !self.hides(i + 1, 0, entry.fingerprint, entry.id);
            let pairs = entries.into_iter().filter(is_visible);
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
        // Several segments or memtables may have the same pair.
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

    /// Like [`Snapshot::pairs_of_ids`], for documents with one of these names. Several documents may have the same name. If a
    /// document was stored with several names, only the newest name counts.
    ///
    /// Reads all names of the store once and, if a name is found, all ids once.
    ///
    /// # Errors
    /// Errors of [`Snapshot::pairs_of_ids`]; [`Error::Corrupt`](crate::Error::Corrupt) if a chunk of names is damaged.
    pub fn pairs_of_names(&self, names: &HashSet<String>) -> Result<Vec<StoredPair<F>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        threads::ensure_pool()?;
        let mut ids = HashSet::new();
        for segment in self.segments() {
            let chunks = 0..segment.name_chunks();
            let ids_in_chunk = |chunk| segment.ids_with_names(chunk, names);
            ids.par_extend(
                chunks
                    .into_par_iter()
                    .map(ids_in_chunk)
                    .collect::<Result<Vec<_>>>()?
                    .into_par_iter()
                    .flatten(),
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

    /// Returns the name of a document: the last name inserted with the document's id. `None` if the document was never
    /// named, or if a pair of a fingerprint and the id was deleted later.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the chunk of names that would contain the id is damaged.
    pub fn name(&self, id: u64) -> Result<Option<String>> {
        self.newest_value(id, Memtable::name, Segment::name)
    }

    /// Returns the note of a document, see [`Transaction::set_note`](crate::Transaction::set_note). `None` if the document
    /// never had a note, or if a pair with the id was deleted later.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the chunk of notes that would contain the id is damaged.
    pub fn note(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.newest_value(id, Memtable::note, Segment::note)
    }

    /// Returns the newest name or note of an id. `None` if the id has no name or note, or if a newer segment or memtable
    /// deletes a pair with the id. `in_memtable` and `in_segment` look up a name or note in one memtable or segment.
    fn newest_value<V>(
        &self,
        id: u64,
        in_memtable: fn(&Memtable<F>, u64, u64) -> Option<V>,
        in_segment: fn(&Segment<F>, u64) -> Result<Option<V>>,
    ) -> Result<Option<V>> {
        for (memtable, version) in self.memtables().rev() {
            let found = in_memtable(memtable, version, id);
            if found.is_some() || memtable.has_forgotten(version, id) {
                return Ok(found);
            }
        }
        for segment in self.segments().iter().rev() {
            let found = in_segment(segment, id)?;
            if found.is_some() || segment.has_forgotten(id) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the names of documents, in the order of `ids`, which must be ascending. Like [`Snapshot::name`] for each id, but
    /// reads each chunk of names at most once.
    ///
    /// # Errors
    /// Errors of [`Snapshot::name`].
    pub fn names_of(&self, ids: &[u64]) -> Result<Vec<Option<String>>> {
        let mut names = vec![None; ids.len()];
        for segment in self.segments() {
            clear_forgotten(segment, ids, &mut names);
            segment.names_for(ids, |i, name| names[i] = Some(name))?;
        }
        self.overlay_memtables(ids, &mut names, Memtable::name);
        Ok(names)
    }

    /// Returns the notes of documents, in the order of `ids`, which must be ascending. Like [`Snapshot::note`] for each id, but
    /// reads each chunk of notes at most once.
    ///
    /// # Errors
    /// Errors of [`Snapshot::note`].
    pub fn notes_of(&self, ids: &[u64]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut notes = vec![None; ids.len()];
        for segment in self.segments() {
            clear_forgotten(segment, ids, &mut notes);
            segment.notes_for(ids, |i, note| notes[i] = Some(note))?;
        }
        self.overlay_memtables(ids, &mut notes, Memtable::note);
        Ok(notes)
    }

    /// Applies the memtables to names or notes that were read from segments. `values` has the name or note of each id
    /// in `ids`. If a memtable has a newer name or note of an id, the value becomes this name or note. If a memtable deletes
    /// a pair with the id, the value becomes `None`. `in_memtable` reads the name or note of an id (its third argument)
    /// in a memtable up to a version (the second).
    fn overlay_memtables<V>(
        &self,
        ids: &[u64],
        values: &mut [Option<V>],
        in_memtable: fn(&Memtable<F>, u64, u64) -> Option<V>,
    ) {
        for (memtable, version) in self.memtables() {
            for (&id, value) in ids.iter().zip(&mut *values) {
                let newer = in_memtable(memtable, version, id);
                if newer.is_some() || memtable.has_forgotten(version, id) {
                    *value = newer;
                }
            }
        }
    }
}

/// Sets the names or notes of ids that have a tombstone in this segment to `None`. `values` has the name or note of
/// each id in `ids`, read from older segments.
fn clear_forgotten<F: Fingerprint, V>(segment: &Segment<F>, ids: &[u64], values: &mut [Option<V>]) {
    for (&id, value) in ids.iter().zip(values) {
        if value.is_some() && segment.has_forgotten(id) {
            *value = None;
        }
    }
}

/// Returns those entries (fingerprints with their ids) of a segment that have a wanted id. Entries that newer tombstones
/// delete are included.
fn entries_with_ids<F: Fingerprint>(
    segment: &Segment<F>,
    is_wanted: impl Fn(u64) -> bool + Sync,
) -> Result<Vec<Entry<F>>> {
    let blocks = segment.tables()[0].blocks();
    let read_blocks = |part: usize| {
        let mut entries = Vec::new();
        for block in part * BLOCKS_PER_TASK..((part + 1) * BLOCKS_PER_TASK).min(blocks) {
            segment.entries_with_ids(block, &is_wanted, &mut entries)?;
        }
        Ok(entries)
    };
    let parts =
        (0..blocks.div_ceil(BLOCKS_PER_TASK)).into_par_iter().map(read_blocks).collect::<Result<Vec<_>>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// A set of wanted ids, with a Bloom filter of one hash function. The filter quickly rejects most other ids.
struct IdFilter<'a> {
    ids: &'a HashSet<u64>,
    /// Bits of the Bloom filter, 64 in each word.
    filter: Vec<u64>,
    /// Right shift, in bits, that turns the hash of an id into a bit index.
    shift: u32,
}

impl<'a> IdFilter<'a> {
    /// Creates a filter with 16 to 32 bits for each id.
    fn new(ids: &'a HashSet<u64>) -> Self {
        let bits = (ids.len() * 16).next_power_of_two().max(64);
        let mut wanted = IdFilter { ids, filter: vec![0; bits / 64], shift: 64 - bits.ilog2() };
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
