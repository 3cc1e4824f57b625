//! The memtable: recent inserts and deletes in memory, with an index for queries.
//!
//! One thread writes and any number of threads read, without waiting for one another. All data is append-only, in
//! arrays that grow by chunks (`append_vec`). The writer stores a record before it publishes the record's index.
//!
//! Operations are numbered from 1. Each (fingerprint, id) pair is stored with the numbers of the operations that
//! inserted and deleted it. A *version* is a count of operations: readers of version v see the effects of exactly the
//! first v operations.

mod append_vec;
mod bulk_writer;
mod forgotten_ids;
mod id_values;
mod metadata;
mod multi_index;
mod pairs;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::forgotten_ids::ForgottenIds;
use self::id_values::VersionedValues;
use self::metadata::VersionedMetadata;
use self::multi_index::MultiIndex;
use self::pairs::{VersionedPair, VersionedPairs};
use crate::fingerprint::Fingerprint;
use crate::segment::Match;
use crate::simd::{Kernel, dispatch};
use crate::wal::Operation;

/// Base-2 logarithm of the maximum number of chains in a hash table.
const MAX_CHAIN_BITS: u32 = 24;

/// Recent inserts and deletes.
///
/// A delete marks the pair as deleted in this memtable and adds a tombstone, which hides the pair in all older memtables
/// and segments. If the pair is inserted again, it becomes a new entry, and the tombstone stays. Names and notes belong
/// to ids: deleting any pair of an id removes the id's name and note, here and in all older memtables and segments. A
/// memtable holds at most 2^32 - 256 pairs.
pub(crate) struct Memtable<F> {
    pairs: VersionedPairs<F>,
    index: MultiIndex<F>,
    tombstones: VersionedPairs<F>,
    names: VersionedValues<str>,
    notes: VersionedValues<[u8]>,
    forgotten: ForgottenIds,
    metadata: VersionedMetadata,
    distance: u32,
    /// Number of operations applied so far. The lock admits one writer at a time.
    operations: Mutex<u64>,
    /// Newest version that readers see: the number of operations at the last [`Memtable::publish`].
    published: AtomicU64,
}

impl<F: Fingerprint> Memtable<F> {
    /// Creates a memtable for queries that find fingerprints within up to `distance` bits. `bytes` is the memory that
    /// the memtable is expected to take.
    pub(crate) fn new(distance: u32, bytes: u64) -> Self {
        Memtable::with_expected_pairs(distance, Self::pairs_in_bytes(distance, bytes))
    }

    /// Approximate number of pairs that fit in `bytes` bytes of memory, in a memtable for queries that find
    /// fingerprints within up to `distance` bits.
    pub(crate) fn pairs_in_bytes(distance: u32, bytes: u64) -> u64 {
        bytes / (VersionedPairs::<F>::RECORD_BYTES + MultiIndex::<F>::bytes_per_fingerprint(distance)) as u64
    }

    /// Like [`Memtable::new`], but takes the expected number of pairs.
    pub(crate) fn with_expected_pairs(distance: u32, expected: u64) -> Self {
        let chain_bits = expected.max(1).ilog2().min(MAX_CHAIN_BITS);
        Memtable {
            pairs: VersionedPairs::new(chain_bits),
            index: MultiIndex::new(distance, expected),
            tombstones: VersionedPairs::new(chain_bits),
            names: VersionedValues::new(chain_bits),
            notes: VersionedValues::new(chain_bits),
            forgotten: ForgottenIds::new(chain_bits),
            metadata: VersionedMetadata::default(),
            distance,
            operations: Mutex::new(0),
            published: AtomicU64::new(0),
        }
    }

    /// Locks the operation counter. A poisoned lock is still valid, since the counter is never half-written.
    fn operations(&self) -> MutexGuard<'_, u64> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies one operation. Readers see it after the next [`Memtable::publish`].
    pub(crate) fn apply(&self, operation: &Operation<'_, F>) {
        let mut number = self.operations();
        *number += 1;
        self.apply_numbered(operation, *number);
    }

    /// Applies an operation; `number` is its operation number. If the operation inserts a pair that the memtable
    /// already has, and that is not deleted, only the name of the pair's id is set. Called by one thread at a time.
    fn apply_numbered(&self, operation: &Operation<'_, F>, number: u64) {
        match *operation {
            Operation::Insert { fingerprint, id, name } => {
                if let Some(pair) = self.push_pair(fingerprint, id, number) {
                    self.index.insert(fingerprint, pair);
                }
                if let Some(name) = name {
                    self.set_name(id, name, number);
                }
            }
            Operation::Delete { fingerprint, id } => self.delete_pair(fingerprint, id, number),
            Operation::Metadata { key, value } => self.metadata.set(key, value, number),
            Operation::Note { id, note } => {
                self.notes.set(id, note, number, self.forgotten.last_deletion(id, number));
            }
        }
    }

    /// Sets the name of an id. Called by one thread at a time.
    fn set_name(&self, id: u64, name: &str, operation: u64) {
        self.names.set(id, name, operation, self.forgotten.last_deletion(id, operation));
    }

    /// Adds a pair, but not to the search index. Returns the pair's position in insertion order. Returns `None` if
    /// the memtable already has the pair, and it is not deleted. Called by one thread at a time.
    #[inline]
    fn push_pair(&self, fingerprint: F, id: u64, operation: u64) -> Option<u32> {
        let is_live = self.pairs.find_live(fingerprint, id).is_some();
        (!is_live).then(|| self.pairs.push(fingerprint, id, operation))
    }

    /// Deletes a pair in this memtable, adds a tombstone that hides the pair in older memtables and segments, and removes
    /// the name and the note of the pair's id. Called by one thread at a time.
    fn delete_pair(&self, fingerprint: F, id: u64, operation: u64) {
        if let Some(number) = self.pairs.find_live(fingerprint, id) {
            self.pairs.delete(number, operation);
        }
        // Tombstones are permanent: one is enough.
        if self.tombstones.find_live(fingerprint, id).is_none() {
            self.tombstones.push(fingerprint, id, operation);
        }
        let last = self.forgotten.last_deletion(id, operation);
        let last_set = self.names.last_set(id).max(self.notes.last_set(id));
        // The first delete of an id covers older memtables and segments; later ones matter only for values set since.
        if last == 0 || last_set > last {
            self.forgotten.add(id, operation);
        }
    }

    /// Makes all operations so far visible at once. Returns the version that includes them.
    pub(crate) fn publish(&self) -> u64 {
        let operations = self.operations();
        self.published.store(*operations, Ordering::Release);
        *operations
    }

    /// The newest version that readers see: the number of operations at the last [`Memtable::publish`].
    pub(crate) fn version(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Appends to `matches` each live (not deleted) pair within `distance` of `query`, unsorted and without
    /// repeats.
    pub(crate) fn query(&self, version: u64, query: F, distance: u32, matches: &mut Vec<Match<F>>) {
        if self.index.is_faster_than_scan(distance, self.pairs.len()) {
            dispatch(MultiIndexSearch { memtable: self, version, query, distance, matches });
        } else {
            self.query_since(0, version, query, distance, matches);
        }
    }

    /// Like [`Memtable::query`], but only for pairs inserted after the version `since`. Scans these pairs linearly.
    pub(crate) fn query_since(
        &self,
        since: u64,
        version: u64,
        query: F,
        distance: u32,
        matches: &mut Vec<Match<F>>,
    ) {
        dispatch(PairScan { memtable: self, since, version, query, distance, matches });
    }

    /// Whether a pair is live (`Some(true)`) or deleted (`Some(false)`) according to this memtable; `None` if the
    /// memtable has neither the pair nor a tombstone for it.
    pub(crate) fn state(&self, version: u64, fingerprint: F, id: u64) -> Option<bool> {
        if self.pairs.is_live(version, fingerprint, id) {
            return Some(true);
        }
        self.has_tombstone(version, fingerprint, id).then_some(false)
    }

    /// Whether a tombstone hides the pair in older memtables and segments.
    pub(crate) fn has_tombstone(&self, version: u64, fingerprint: F, id: u64) -> bool {
        self.tombstones.is_live(version, fingerprint, id)
    }

    /// Whether an operation of this memtable deleted a pair with this id. If so, the id's names and notes in older
    /// memtables and segments no longer apply.
    pub(crate) fn has_forgotten(&self, version: u64, id: u64) -> bool {
        self.forgotten.last_deletion(id, version) > 0
    }

    /// Newest name of an id. `None` if the id has no name in this memtable, or if a pair of the id was deleted
    /// after the name was set.
    pub(crate) fn name(&self, version: u64, id: u64) -> Option<String> {
        self.names.find(id, version, self.forgotten.last_deletion(id, version)).map(str::to_string)
    }

    /// Newest note of an id. `None` if the id has no note in this memtable, or if a pair of the id was deleted
    /// after the note was set.
    pub(crate) fn note(&self, version: u64, id: u64) -> Option<Vec<u8>> {
        self.notes.find(id, version, self.forgotten.last_deletion(id, version)).map(<[u8]>::to_vec)
    }

    /// Metadata value of a key, or `None` if this memtable does not have the key.
    pub(crate) fn metadata(&self, version: u64, key: &str) -> Option<Vec<u8>> {
        self.metadata.get(key, version)
    }

    /// All metadata as (key, value), ascending by key.
    pub(crate) fn all_metadata(&self, version: u64) -> Vec<(String, Vec<u8>)> {
        self.metadata.all(version)
    }

    /// Largest inserted id, including ids of deleted pairs. Takes time linear in the number of pairs.
    pub(crate) fn highest_id(&self, version: u64) -> Option<u64> {
        self.pairs.highest_id(version)
    }

    /// Largest distance of queries that the search index was built for, in bits.
    pub(crate) fn distance(&self) -> u32 {
        self.distance
    }

    /// Live (not deleted) pairs as (fingerprint, id), ascending.
    pub(crate) fn entries(&self, version: u64) -> Vec<(F, u64)> {
        self.pairs.sorted(version)
    }

    /// Calls `visitor` with each live (not deleted) pair, in insertion order.
    pub(crate) fn visit(&self, version: u64, mut visitor: impl FnMut(F, u64)) {
        self.pairs.iter(version).for_each(|pair| visitor(pair.fingerprint, pair.id));
    }

    /// Tombstones as (fingerprint, id), ascending. A tombstone hides its pair in older memtables and segments.
    pub(crate) fn tombstones(&self, version: u64) -> Vec<(F, u64)> {
        self.tombstones.sorted(version)
    }

    /// Name of each id at a version, as (id, name), ascending by id.
    pub(crate) fn names(&self, version: u64) -> Vec<(u64, &str)> {
        self.names.sorted(version, |id| self.forgotten.last_deletion(id, version))
    }

    /// Calls `visitor` with each name that was set, and its id, in the order in which they were set. An id may
    /// repeat.
    pub(crate) fn visit_names(&self, version: u64, visitor: impl FnMut(u64, &str)) {
        self.names.visit(version, visitor);
    }

    /// Note of each id at a version, as (id, note), ascending by id.
    pub(crate) fn notes(&self, version: u64) -> Vec<(u64, &[u8])> {
        self.notes.sorted(version, |id| self.forgotten.last_deletion(id, version))
    }

    /// Number of notes set, including replaced ones.
    pub(crate) fn notes_len(&self) -> u64 {
        self.notes.len()
    }

    /// Number of names set, including replaced ones.
    pub(crate) fn names_len(&self) -> u64 {
        self.names.len()
    }

    /// Number of inserted pairs, including deleted and unpublished ones.
    pub(crate) fn inserted_len(&self) -> u64 {
        u64::from(self.pairs.len())
    }

    /// Number of live (not deleted) pairs at a version.
    pub(crate) fn len(&self, version: u64) -> u64 {
        self.pairs.count(version)
    }

    /// Whether there are tombstones, including unpublished ones.
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// Memory of the memtable in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pairs.bytes()
            + self.index.bytes()
            + self.tombstones.bytes()
            + self.names.bytes()
            + self.notes.bytes()
            + self.forgotten.bytes()
            + self.metadata.bytes()
    }
}

/// Arguments of a query that uses the search index. As a [`Kernel`], the query is compiled for several instruction
/// sets.
struct MultiIndexSearch<'a, F> {
    memtable: &'a Memtable<F>,
    version: u64,
    query: F,
    distance: u32,
    matches: &'a mut Vec<Match<F>>,
}

impl<F: Fingerprint> Kernel for MultiIndexSearch<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let MultiIndexSearch { memtable, version, query, distance, matches } = self;
        memtable.index.search(query, distance, |fingerprint, number| {
            let pair = memtable.pairs.get(number);
            if pair.is_live(version) {
                matches.push(Match { fingerprint, distance: query.distance(fingerprint), id: Some(pair.id) });
            }
        });
    }
}

/// Arguments of a linear scan of the pairs, such as [`Memtable::query_since`]. As a [`Kernel`], the scan is compiled
/// for several instruction sets.
struct PairScan<'a, F> {
    memtable: &'a Memtable<F>,
    since: u64,
    version: u64,
    query: F,
    distance: u32,
    matches: &'a mut Vec<Match<F>>,
}

impl<F: Fingerprint> Kernel for PairScan<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PairScan { memtable, since, version, query, distance, matches } = self;
        memtable.pairs.scan(since, version, query, distance, |VersionedPair { fingerprint, id, .. }| {
            matches.push(Match { fingerprint, distance: query.distance(fingerprint), id: Some(id) });
        });
    }
}

impl<F> std::fmt::Debug for Memtable<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable").field("published", &self.published).finish_non_exhaustive()
    }
}
