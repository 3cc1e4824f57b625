//! What a run may use of memory and of the disk.

use std::sync::Arc;

use crate::spill::{Budget, Fixed, RowsWriter, Sorter, Temporary};

/// Of the memory, one of so many shares is for the rows that are sorted or written at a time.
const SHARES: u64 = 8;

/// What a run may use of memory and of the disk.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) budget: Budget,
    pub(crate) temporary: Arc<Temporary>,
}

impl Room {
    /// Bytes of memory for one of several things that are in it at the same time.
    pub(crate) fn share(&self) -> u64 {
        self.budget.bytes / SHARES
    }

    /// Sorts rows.
    pub(crate) fn sorter<R: Fixed>(&self) -> Sorter<R> {
        Sorter::new(self.temporary.clone(), self.share())
    }

    /// Takes rows in their order.
    pub(crate) fn rows<R: Fixed>(&self) -> RowsWriter<R> {
        RowsWriter::new(self.temporary.clone(), self.share())
    }
}
