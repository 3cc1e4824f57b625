//! Ids whose names and notes were removed because one of their pairs was deleted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::append_vec::{AppendVec, ChainHeads, mix};

const ID_CELL: usize = 0;
/// In each record, the index of the cell that has the number of the delete operation.
const OPERATION_CELL: usize = 1;
/// In each record, the index of the cell that leads to the next record of the chain. The cell has the index of the
/// next record plus one, or 0 at the end of the chain.
const NEXT_CELL: usize = 2;
const RECORD_CELLS: usize = 3;

/// A record for each deleted pair, with the pair's id, in the order of the deletes. A hash table indexes the records by
/// id; each of its chains links records, newest first.
pub(super) struct ForgottenIds {
    records: AppendVec<AtomicU64>,
    heads: ChainHeads,
}

impl ForgottenIds {
    /// Creates an empty hash table with 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        ForgottenIds { records: AppendVec::new(RECORD_CELLS), heads: ChainHeads::new(bits) }
    }

    /// Records that an operation deletes a pair of this id. `operation` is the number of the operation. Called
    /// by one thread at a time.
    pub(super) fn add(&self, id: u64, operation: u64) {
        let next = self.heads.get(mix(id));
        let number = self.records.push(|cells| {
            cells[ID_CELL].store(id, Ordering::Relaxed);
            cells[OPERATION_CELL].store(operation, Ordering::Relaxed);
            cells[NEXT_CELL].store(u64::from(next), Ordering::Relaxed);
        });
        self.heads.set(mix(id), number + 1);
    }

    /// Number of the last operation that deleted a pair of this id, among the first `version` operations; 0 if
    /// none did.
    pub(super) fn last_deletion(&self, id: u64, version: u64) -> u64 {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let cells = self.records.get(next - 1);
            let operation = cells[OPERATION_CELL].load(Ordering::Relaxed);
            if cells[ID_CELL].load(Ordering::Relaxed) == id && operation <= version {
                return operation;
            }
            next = cells[NEXT_CELL].load(Ordering::Relaxed) as u32;
        }
        0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes()
    }
}
