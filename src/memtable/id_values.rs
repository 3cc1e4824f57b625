//! Names and notes of documents, in the order of the operations that set them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::append_vec::{AppendVec, ChainHeads, mix};

/// A name or a note, with the number of the operation that set it.
struct VersionedValue<V: ?Sized> {
    id: u64,
    operation: u64,
    value: Box<V>,
    /// Index of the next record in the chain, plus one; 0 at the end of the chain.
    next: u32,
}

/// Approximate overhead of the allocator for a value, in bytes.
const ALLOCATION_BYTES: u64 = 16;

/// The names (`str`) or notes (`[u8]`) of all ids, including replaced values. A hash table indexes the records by id;
/// each of its chains links records, newest first.
pub(super) struct VersionedValues<V: ?Sized> {
    records: AppendVec<OnceLock<VersionedValue<V>>>,
    heads: ChainHeads,
    /// Memory of the values in bytes, including [`ALLOCATION_BYTES`] for each.
    value_bytes: AtomicU64,
}

impl<V: ?Sized + PartialEq + ToOwned> VersionedValues<V>
where
    V::Owned: Into<Box<V>>,
{
    /// Creates an empty hash table with 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        VersionedValues {
            records: AppendVec::new(1),
            heads: ChainHeads::new(bits),
            value_bytes: AtomicU64::new(0),
        }
    }

    /// Sets the value of an id, unless the id already has this value. `operation` is the number of the operation
    /// that sets the value. `forgotten` is the number of the last operation that removed the values of the id, or 0.
    /// Called by one thread at a time.
    pub(super) fn set(&self, id: u64, value: &V, operation: u64, forgotten: u64) {
        let next = self.heads.get(mix(id));
        // Storing an equal value again would only take memory.
        if self.find(id, operation, forgotten).is_some_and(|newest| newest == value) {
            return;
        }
        self.value_bytes.fetch_add(size_of_val(value) as u64 + ALLOCATION_BYTES, Ordering::Relaxed);
        let number = self.records.push(|cells| {
            cells[0].get_or_init(|| VersionedValue { id, operation, value: value.to_owned().into(), next });
        });
        self.heads.set(mix(id), number + 1);
    }

    /// Number of the last operation that set a value of an id; 0 if none did.
    pub(super) fn last_set(&self, id: u64) -> u64 {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let Some(record) = self.records.get(next - 1)[0].get() else { break };
            if record.id == id {
                return record.operation;
            }
            next = record.next;
        }
        0
    }

    /// Value of an id after the first `version` operations. `None` if the id has no value, or if the value was set
    /// before the operation `forgotten`, which removed all values of the id.
    pub(super) fn find(&self, id: u64, version: u64, forgotten: u64) -> Option<&V> {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let record = self.records.get(next - 1)[0].get()?;
            if record.id == id && record.operation <= version {
                return (record.operation > forgotten).then_some(&*record.value);
            }
            next = record.next;
        }
        None
    }

    /// Values that the first `version` operations have set, oldest first.
    fn records_until(&self, version: u64) -> impl Iterator<Item = &VersionedValue<V>> {
        let all = (0..self.records.len()).filter_map(|number| self.records.get(number)[0].get());
        all.take_while(move |record| record.operation <= version)
    }

    /// Calls `visitor` with each value that the first `version` operations have set, and its id, oldest first.
    /// Replaced values are visited too, so an id may repeat.
    pub(super) fn visit(&self, version: u64, mut visitor: impl FnMut(u64, &V)) {
        self.records_until(version).for_each(|record| visitor(record.id, &record.value));
    }

    /// Value of each id after the first `version` operations, as (id, value), ascending by id. `forgotten` takes an
    /// id. It returns the number of the last operation that removed the id's value, or 0 if there is none.
    pub(super) fn sorted(&self, version: u64, forgotten: impl Fn(u64) -> u64) -> Vec<(u64, &V)> {
        let mut all: Vec<_> = self.records_until(version).collect();
        all.sort_by_key(|record| (record.id, std::cmp::Reverse(record.operation)));
        all.dedup_by_key(|record| record.id);
        all.retain(|record| record.operation > forgotten(record.id));
        all.into_iter().map(|record| (record.id, &*record.value)).collect()
    }

    /// Number of values set, including replaced ones.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.records.len())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes() + self.value_bytes.load(Ordering::Relaxed)
    }
}
