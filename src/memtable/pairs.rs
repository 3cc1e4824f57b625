//! Pairs of a fingerprint and an id, in insertion order, with the operations that inserted and deleted them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::append_vec::{AppendVec, ChainHeads, mix};
use crate::fingerprint::Fingerprint;
use crate::simd::prefetch;

/// Value of `deleted_by` for a pair that no operation has deleted.
const NOT_DELETED: u64 = u64::MAX;

/// A pair, with the numbers of the operations that inserted and deleted it. The pair is live in the versions from
/// `inserted_by` up to, but not including, `deleted_by`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionedPair<F> {
    pub(super) fingerprint: F,
    pub(super) id: u64,
    inserted_by: u64,
    deleted_by: u64,
}

impl<F> VersionedPair<F> {
    #[inline]
    pub(super) fn is_live(&self, version: u64) -> bool {
        self.inserted_by <= version && version < self.deleted_by
    }
}

/// A record for each pair, in insertion order. A hash table indexes the records by pair; each of its chains links records,
/// newest first.
pub(super) struct VersionedPairs<F> {
    records: AppendVec<AtomicU64>,
    heads: ChainHeads,
    /// Numbers of the operations that deleted pairs, ascending.
    deletions: AppendVec<AtomicU64>,
    _fingerprints: std::marker::PhantomData<F>,
}

impl<F: Fingerprint> VersionedPairs<F> {
    /// Number of cells at the start of a record that hold the fingerprint, its least significant 64 bits first.
    const FINGERPRINT_CELLS: usize = F::BYTES / 8;
    const ID_CELL: usize = Self::FINGERPRINT_CELLS;
    const INSERTED_BY_CELL: usize = Self::FINGERPRINT_CELLS + 1;
    const DELETED_BY_CELL: usize = Self::FINGERPRINT_CELLS + 2;
    /// In each record, the index of the cell that leads to the next record of the chain. The cell has the index of the
    /// next record plus one, or 0 at the end of the chain.
    const NEXT_CELL: usize = Self::FINGERPRINT_CELLS + 3;
    const RECORD_CELLS: usize = Self::FINGERPRINT_CELLS + 4;
    /// Memory of a pair in bytes, without its share of the hash table.
    pub(super) const RECORD_BYTES: usize = Self::RECORD_CELLS * 8;

    /// Creates an empty hash table with 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        VersionedPairs {
            records: AppendVec::new(Self::RECORD_CELLS),
            heads: ChainHeads::new(bits),
            deletions: AppendVec::new(1),
            _fingerprints: std::marker::PhantomData,
        }
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> VersionedPair<F> {
        Self::read(self.records.get(number))
    }

    #[inline(always)]
    fn read(cells: &[AtomicU64]) -> VersionedPair<F> {
        VersionedPair {
            fingerprint: load(cells),
            id: cells[Self::ID_CELL].load(Ordering::Relaxed),
            inserted_by: cells[Self::INSERTED_BY_CELL].load(Ordering::Relaxed),
            // A version's deletes were stored before the version was published.
            deleted_by: cells[Self::DELETED_BY_CELL].load(Ordering::Acquire),
        }
    }

    /// Appends a pair and returns the index of its record. Only one thread at a time may call this function, `find_live`
    /// or `delete`.
    pub(super) fn push(&self, fingerprint: F, id: u64, operation: u64) -> u32 {
        let hash = hash(fingerprint, id);
        let next = self.heads.get(hash);
        let number = self.records.push(|cells| {
            store(fingerprint, cells);
            cells[Self::ID_CELL].store(id, Ordering::Relaxed);
            cells[Self::INSERTED_BY_CELL].store(operation, Ordering::Relaxed);
            cells[Self::DELETED_BY_CELL].store(NOT_DELETED, Ordering::Relaxed);
            cells[Self::NEXT_CELL].store(u64::from(next), Ordering::Relaxed);
        });
        self.heads.set(hash, number + 1);
        number
    }

    /// Index of the newest record of a pair, or `None` if the pair is deleted or was never inserted.
    pub(super) fn find_live(&self, fingerprint: F, id: u64) -> Option<u32> {
        // Only the newest record can be live: older records of the same pair are deleted.
        self.chain(fingerprint, id).next().filter(|&number| self.get(number).deleted_by == NOT_DELETED)
    }

    /// Marks a pair as deleted; `number` is the index of its record, and `operation` the number of the delete
    /// operation.
    pub(super) fn delete(&self, number: u32, operation: u64) {
        self.deletions.push(|cells| cells[0].store(operation, Ordering::Relaxed));
        self.records.get(number)[Self::DELETED_BY_CELL].store(operation, Ordering::Release);
    }

    /// Prefetches the memory that lookups of these pairs will read, so that their cache misses overlap.
    pub(super) fn prefetch(&self, pairs: &(impl Iterator<Item = (F, u64)> + Clone)) {
        let hashes = || pairs.clone().map(|(fingerprint, id)| hash(fingerprint, id));
        let prefetch_record = |record: u32| {
            if record > 0 {
                let cells = self.records.get(record - 1);
                prefetch(cells, 0);
                prefetch(cells, Self::NEXT_CELL);
            }
        };
        hashes().for_each(|hash| self.heads.prefetch(hash));
        hashes().for_each(|hash| prefetch_record(self.heads.get(hash)));
        for head in hashes().map(|hash| self.heads.get(hash)).filter(|&head| head > 0) {
            prefetch_record(self.records.get(head - 1)[Self::NEXT_CELL].load(Ordering::Relaxed) as u32);
        }
    }

    /// Number of pairs, including deleted and unpublished ones.
    pub(super) fn len(&self) -> u32 {
        self.records.len()
    }

    /// Indexes of the records of a pair, newest first. A pair has one record for each time that it was inserted.
    fn chain(&self, fingerprint: F, id: u64) -> impl Iterator<Item = u32> {
        let mut next = self.heads.get(hash(fingerprint, id));
        std::iter::from_fn(move || {
            while next > 0 {
                let number = next - 1;
                let cells = self.records.get(number);
                next = cells[Self::NEXT_CELL].load(Ordering::Relaxed) as u32;
                if cells[Self::ID_CELL].load(Ordering::Relaxed) == id && load::<F>(cells) == fingerprint {
                    return Some(number);
                }
            }
            None
        })
    }

    /// Whether a pair is live (inserted and not deleted) after the first `version` operations.
    pub(super) fn is_live(&self, version: u64, fingerprint: F, id: u64) -> bool {
        // Only the newest record that the version includes can be live: older ones were deleted before it.
        let mut records = self.chain(fingerprint, id).map(|number| self.get(number));
        records.find(|pair| pair.inserted_by <= version).is_some_and(|pair| version < pair.deleted_by)
    }

    /// Pairs that are live (not deleted) at a version, in insertion order.
    pub(super) fn iter(&self, version: u64) -> impl Iterator<Item = VersionedPair<F>> {
        (0..self.inserted_until(version))
            .map(|number| self.get(number))
            .filter(move |pair| pair.is_live(version))
    }

    /// Visits the pairs within `distance` bits of the query that were inserted after the version `after` and are
    /// live (not deleted) at `version`. Inlined, so that it uses the CPU features that its caller is compiled for.
    #[inline(always)]
    pub(super) fn scan(
        &self,
        after: u64,
        version: u64,
        query: F,
        distance: u32,
        mut visitor: impl FnMut(VersionedPair<F>),
    ) {
        for run in self.records.runs(self.inserted_until(after), self.inserted_until(version)) {
            for cells in run.chunks_exact(Self::RECORD_CELLS) {
                if load::<F>(cells).distance(query) <= distance {
                    let pair = Self::read(cells);
                    if pair.is_live(version) {
                        visitor(pair);
                    }
                }
            }
        }
    }

    /// Number of pairs inserted up to a version, including deleted ones.
    fn inserted_until(&self, version: u64) -> u32 {
        self.records.partition_point(|cells| cells[Self::INSERTED_BY_CELL].load(Ordering::Relaxed) <= version)
    }

    /// Largest id inserted up to a version, including ids of deleted pairs.
    pub(super) fn highest_id(&self, version: u64) -> Option<u64> {
        (0..self.inserted_until(version)).map(|number| self.get(number).id).max()
    }

    /// Number of pairs that are live (not deleted) at a version.
    pub(super) fn count(&self, version: u64) -> u64 {
        let deleted = self.deletions.partition_point(|cells| cells[0].load(Ordering::Relaxed) <= version);
        u64::from(self.inserted_until(version) - deleted)
    }

    /// Pairs that are live (not deleted) at a version, ascending.
    pub(super) fn sorted(&self, version: u64) -> Vec<(F, u64)> {
        let mut pairs: Vec<_> = self.iter(version).map(|pair| (pair.fingerprint, pair.id)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Whether no pair was ever inserted.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes() + self.deletions.bytes()
    }
}

fn hash<F: Fingerprint>(fingerprint: F, id: u64) -> u64 {
    // The two halves of a 64-bit fingerprint are equal: one is rotated, so that they do not cancel out.
    let folded = mix(fingerprint.high_u64()) ^ fingerprint.low_u64().rotate_left(17);
    mix(folded.wrapping_add(mix(!id)))
}

/// Reads a fingerprint from the first one or two cells, least significant 64 bits first.
#[inline]
pub(super) fn load<F: Fingerprint>(cells: &[AtomicU64]) -> F {
    let low = F::from_u64(cells[0].load(Ordering::Relaxed));
    // Two shifts, since a shift by 64 would overflow a 64-bit type. That branch never runs for 64 bits, but is compiled.
    if F::BYTES == 8 {
        low
    } else {
        F::from_u64(cells[1].load(Ordering::Relaxed)) << 32 << (F::BITS - 96) | low
    }
}

/// Writes a fingerprint to the first one or two cells, least significant 64 bits first.
#[inline]
pub(super) fn store<F: Fingerprint>(fingerprint: F, cells: &[AtomicU64]) {
    cells[0].store(fingerprint.low_u64(), Ordering::Relaxed);
    if F::BYTES > 8 {
        cells[1].store(fingerprint.high_u64(), Ordering::Relaxed);
    }
}
