//! Locks for ids and names: two requests for the same document run one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

/// Number of locks. Documents whose hashes have the same remainder share a lock.
const LOCK_COUNT: usize = 256;

/// A fixed number of locks, chosen by the id or the name of a document.
pub(super) struct StripedLocks([Mutex<()>; LOCK_COUNT]);

impl StripedLocks {
    pub(super) fn new() -> StripedLocks {
        StripedLocks(std::array::from_fn(|_| Mutex::new(())))
    }

    pub(super) fn lock_number(&self, id: u64) -> MutexGuard<'_, ()> {
        self.0[(id % LOCK_COUNT as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_name(&self, name: &str) -> MutexGuard<'_, ()> {
        self.lock_number(xxh3_64(name.as_bytes()))
    }
}
