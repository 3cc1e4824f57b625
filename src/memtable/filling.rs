//! Many operations at once, as a log has them.
//!
//! An insert by itself waits for memory ten times. Here a hundred inserts wait together. If there are many more, other threads
//! fill the bands.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, MutexGuard};
use std::thread::{Builder, Scope};

use super::Memtable;
use crate::fingerprint::Fingerprint;
use crate::threads;
use crate::wal::Operation;

/// Inserts whose waits for memory overlap.
const AT_ONCE: usize = 128;
/// Pairs that are handed to the threads that fill bands.
const HANDED: usize = 4096;
/// How many times so many may wait for such a thread.
const AHEAD: usize = 8;

/// A band, and the pairs to add to it, with their numbers.
type Share<F> = (usize, Arc<Vec<(F, u32)>>);

/// Operations that are being done to a memtable.
pub(crate) struct Filling<'scope, 'env, F> {
    memtable: &'env Memtable<F>,
    scope: &'scope Scope<'scope, 'env>,
    operations: MutexGuard<'env, u64>,
    /// Pairs to be inserted, each with its operation.
    inserts: Vec<(F, u64, u64)>,
    /// Pairs that are not in the bands yet.
    pairs: Vec<(F, u32)>,
    /// Threads that fill bands, each some of them; none for few pairs.
    threads: Vec<SyncSender<Share<F>>>,
    has_started: bool,
}

impl<F: Fingerprint> Memtable<F> {
    /// Does many operations, as they follow one another. Visible once published, after this.
    pub(crate) fn fill<T>(&self, work: impl FnOnce(&mut Filling<'_, '_, F>) -> T) -> T {
        std::thread::scope(|scope| {
            let mut filling = Filling {
                memtable: self,
                scope,
                operations: self.operations(),
                inserts: Vec::with_capacity(AT_ONCE),
                pairs: Vec::new(),
                threads: Vec::new(),
                has_started: false,
            };
            let done = work(&mut filling);
            filling.insert_all();
            filling.hand_over();
            done
        })
    }
}

impl<'scope, 'env, F: Fingerprint> Filling<'scope, 'env, F> {
    /// Does an operation.
    pub(crate) fn apply(&mut self, operation: &Operation<'_, F>) {
        *self.operations += 1;
        let number = *self.operations;
        match *operation {
            Operation::Insert { fingerprint, id, name } => {
                self.inserts.push((fingerprint, id, number));
                if let Some(name) = name {
                    self.memtable.give_name(id, name, number);
                }
                if self.inserts.len() == AT_ONCE {
                    self.insert_all();
                }
            }
            Operation::Delete { .. } => {
                self.insert_all();
                self.memtable.do_one(operation, number);
            }
            Operation::Mark { .. } | Operation::Note { .. } => self.memtable.do_one(operation, number),
        }
    }

    /// Inserts those that wait, in order.
    fn insert_all(&mut self) {
        self.memtable.pairs.ask_for(&self.inserts.iter().map(|&(fingerprint, id, _)| (fingerprint, id)));
        for (fingerprint, id, operation) in self.inserts.drain(..) {
            let new = self.memtable.push(fingerprint, id, operation);
            self.pairs.extend(new.map(|number| (fingerprint, number)));
        }
        if self.pairs.len() >= HANDED {
            self.start();
            self.hand_over();
        }
    }

    /// Puts new pairs into the bands, or has it done.
    fn hand_over(&mut self) {
        let bands = 0..self.memtable.bands.len();
        let pairs = std::mem::take(&mut self.pairs);
        if self.threads.is_empty() {
            bands.for_each(|band| self.memtable.bands.fill(band, &pairs));
            return;
        }
        let pairs = Arc::new(pairs);
        for band in bands {
            // One that panics ends all this: the scope panics, too.
            let _ = self.threads[band % self.threads.len()].send((band, pairs.clone()));
        }
    }

    /// Starts threads, one for a band at most, as far as the machine has other cores. Where none can be started this
    /// one does it all.
    fn start(&mut self) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let memtable = self.memtable;
        for _ in 0..(threads::usual() - 1).min(memtable.bands.len()) {
            let (thread, shares) = sync_channel::<Share<F>>(AHEAD * memtable.bands.len());
            let fill = move || shares.into_iter().for_each(|(band, pairs)| memtable.bands.fill(band, &pairs));
            match Builder::new().name("simstore recovery".to_string()).spawn_scoped(self.scope, fill) {
                Ok(_) => self.threads.push(thread),
                Err(_) => break,
            }
        }
    }
}
