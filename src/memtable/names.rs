//! Names of documents, in order of the operations that gave them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::growing::{Growing, Heads, mix};

/// A name, and the operation that gave it.
struct Name {
    id: u64,
    since: u64,
    name: Box<str>,
    /// One more than the number of the next name of the chain.
    next: u32,
}

/// What the allocator adds to a name, about.
const ALLOCATION: u64 = 16;

/// Names, with a hash table of chains by id, the newest name first.
pub(super) struct Names {
    records: Growing<OnceLock<Name>>,
    heads: Heads,
    /// Bytes of the names themselves.
    text: AtomicU64,
}

impl Names {
    /// With 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        Names { records: Growing::new(1), heads: Heads::new(bits), text: AtomicU64::new(0) }
    }

    /// Gives a name. The writer's only.
    pub(super) fn add(&self, id: u64, name: &str, since: u64) {
        let next = self.heads.get(mix(id));
        // The same name again would only take memory.
        if self.find(id, since).is_some_and(|newest| newest == name) {
            return;
        }
        self.text.fetch_add(name.len() as u64 + ALLOCATION, Ordering::Relaxed);
        let number = self.records.push(|cells| {
            cells[0].get_or_init(|| Name { id, since, name: name.into(), next });
        });
        self.heads.set(mix(id), number + 1);
    }

    /// The newest name of an id that a version knows.
    pub(super) fn find(&self, id: u64, version: u64) -> Option<&str> {
        let mut next = self.heads.get(mix(id));
        while next > 0 {
            let name = self.records.get(next - 1)[0].get()?;
            if name.id == id && name.since <= version {
                return Some(&name.name);
            }
            next = name.next;
        }
        None
    }

    /// All that were given by a version, in order.
    fn given(&self, version: u64) -> impl Iterator<Item = &Name> {
        let all = (0..self.records.len()).filter_map(|number| self.records.get(number)[0].get());
        all.take_while(move |name| name.since <= version)
    }

    /// Calls `visitor` with ids and names as they were given.
    pub(super) fn visit(&self, version: u64, mut visitor: impl FnMut(u64, &str)) {
        self.given(version).for_each(|name| visitor(name.id, &name.name));
    }

    /// The newest name of each id, ascending by id.
    pub(super) fn sorted(&self, version: u64) -> Vec<(u64, String)> {
        let mut names: Vec<_> = self.given(version).collect();
        names.sort_by_key(|name| (name.id, std::cmp::Reverse(name.since)));
        names.dedup_by_key(|name| name.id);
        names.into_iter().map(|name| (name.id, name.name.to_string())).collect()
    }

    /// How many names were given, also those that another has replaced.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.records.len())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes() + self.text.load(Ordering::Relaxed)
    }
}
