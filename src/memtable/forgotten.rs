//! Ids that lost their names and notes, in order of the operations that deleted a pair of them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::growing::{Growing, Heads, mix};

const ID: usize = 0;
/// The operation that deleted a pair of the id.
const AT: usize = 1;
/// One more than the number of the next record of the chain.
const NEXT: usize = 2;
const LEN: usize = 3;

/// Ids of deleted pairs, with a hash table of chains by id, the newest first.
pub(super) struct Forgotten {
    records: Growing<AtomicU64>,
    heads: Heads,
}

impl Forgotten {
    /// With 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        Forgotten { records: Growing::new(LEN), heads: Heads::new(bits) }
    }

    /// Adds an id when an operation deletes one of its pairs. The writer's only.
    pub(super) fn add(&self, id: u64, operation: u64) {
        let next = self.heads.get(mix(id));
        let number = self.records.push(|cells| {
            cells[ID].store(id, Ordering::Relaxed);
            cells[AT].store(operation, Ordering::Relaxed);
            cells[NEXT].store(u64::from(next), Ordering::Relaxed);
        });
        self.heads.set(mix(id), number + 1);
    }

    /// The last operation up to a version that deleted a pair of an id; 0 without one.
    pub(super) fn last(&self, id: u64, version: u64) -> u64 {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let cells = self.records.get(next - 1);
            let operation = cells[AT].load(Ordering::Relaxed);
            if cells[ID].load(Ordering::Relaxed) == id && operation <= version {
                return operation;
            }
            next = cells[NEXT].load(Ordering::Relaxed) as u32;
        }
        0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes()
    }
}
