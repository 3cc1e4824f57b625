//! Names and notes of documents, in order of the operations that gave them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::growing::{Growing, Heads, mix};

/// A name or a note, and the operation that gave it.
struct Given<V: ?Sized> {
    id: u64,
    since: u64,
    value: Box<V>,
    /// One more than the number of the next one of the chain.
    next: u32,
}

/// Approximate overhead of the allocator for a value, in bytes.
const ALLOCATION: u64 = 16;

/// Values, names as `str` or notes as `[u8]`, with a hash table of chains by id, the newest first.
pub(super) struct ById<V: ?Sized> {
    records: Growing<OnceLock<Given<V>>>,
    heads: Heads,
    /// Bytes of the values themselves.
    value_bytes: AtomicU64,
}

impl<V: ?Sized + PartialEq + ToOwned> ById<V>
where
    V::Owned: Into<Box<V>>,
{
    /// With 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        ById { records: Growing::new(1), heads: Heads::new(bits), value_bytes: AtomicU64::new(0) }
    }

    /// Gives an id a value. The operation `forgotten` removed the older values of the id. The writer's only.
    pub(super) fn add(&self, id: u64, value: &V, since: u64, forgotten: u64) {
        let next = self.heads.get(mix(id));
        // The same again would only take memory.
        if self.find(id, since, forgotten).is_some_and(|newest| newest == value) {
            return;
        }
        self.value_bytes.fetch_add(size_of_val(value) as u64 + ALLOCATION, Ordering::Relaxed);
        let number = self.records.push(|cells| {
            cells[0].get_or_init(|| Given { id, since, value: value.to_owned().into(), next });
        });
        self.heads.set(mix(id), number + 1);
    }

    /// The newest operation that gave an id a value; 0 if none did.
    pub(super) fn last_given(&self, id: u64) -> u64 {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let Some(given) = self.records.get(next - 1)[0].get() else { break };
            if given.id == id {
                return given.since;
            }
            next = given.next;
        }
        0
    }

    /// The newest value of an id that a version knows, if the id was given it after the operation `forgotten`.
    pub(super) fn find(&self, id: u64, version: u64, forgotten: u64) -> Option<&V> {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let given = self.records.get(next - 1)[0].get()?;
            if given.id == id && given.since <= version {
                return (given.since > forgotten).then_some(&*given.value);
            }
            next = given.next;
        }
        None
    }

    /// All that were given by a version, in order.
    fn given(&self, version: u64) -> impl Iterator<Item = &Given<V>> {
        let all = (0..self.records.len()).filter_map(|number| self.records.get(number)[0].get());
        all.take_while(move |given| given.since <= version)
    }

    /// Calls `visitor` with ids and values as they were given.
    pub(super) fn visit(&self, version: u64, mut visitor: impl FnMut(u64, &V)) {
        self.given(version).for_each(|given| visitor(given.id, &given.value));
    }

    /// The newest value of each id, ascending by id; none is copied. `forgotten` returns the last operation that deleted a pair of an id.
    pub(super) fn sorted(&self, version: u64, forgotten: impl Fn(u64) -> u64) -> Vec<(u64, &V)> {
        let mut all: Vec<_> = self.given(version).collect();
        all.sort_by_key(|given| (given.id, std::cmp::Reverse(given.since)));
        all.dedup_by_key(|given| given.id);
        all.retain(|given| given.since > forgotten(given.id));
        all.into_iter().map(|given| (given.id, &*given.value)).collect()
    }

    /// How many values were given, also those that another has replaced.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.records.len())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes() + self.value_bytes.load(Ordering::Relaxed)
    }
}
