//! Applies many operations at once, as when a log is replayed.
//!
//! A single insert waits for about ten cache misses. Here, the cache misses of about a hundred inserts overlap. If
//! there are many inserts, other threads fill the search index.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, MutexGuard};
use std::thread::{Builder, Scope};

use super::Memtable;
use crate::fingerprint::Fingerprint;
use crate::threads;
use crate::wal::Operation;

/// Number of inserts that are applied together, so that their cache misses overlap.
const INSERT_BATCH: usize = 128;
/// Number of inserted pairs that are added to the search index together, or sent together to the worker threads
/// that fill it.
const INDEX_BATCH: usize = 4096;
/// Capacity of a worker's queue, in batches for each band of the search index. With n bands, a queue holds n times this
/// number of batches.
const QUEUED_BATCHES: usize = 8;

/// Task of a worker thread that fills the search index: the number of a band (see [`super::multi_index`]), and the
/// fingerprints to add to this band, each with the index of its (fingerprint, id) pair.
type BandBatch<F> = (usize, Arc<Vec<(F, u32)>>);

/// Applies operations to a memtable in batches. Holds the writer's lock until it is dropped.
pub(crate) struct BulkWriter<'scope, 'env, F> {
    memtable: &'env Memtable<F>,
    scope: &'scope Scope<'scope, 'env>,
    operations: MutexGuard<'env, u64>,
    /// Pairs to insert, as (fingerprint, id, operation number).
    pending_inserts: Vec<(F, u64, u64)>,
    /// Inserted pairs that are not in the search index yet, as (fingerprint, index of the pair in insertion
    /// order).
    unindexed: Vec<(F, u32)>,
    /// Queues of the worker threads that fill the search index. Each worker fills some bands of the index. There
    /// are no workers until many pairs have been inserted.
    workers: Vec<SyncSender<BandBatch<F>>>,
    has_started: bool,
}

impl<F: Fingerprint> Memtable<F> {
    /// Runs `work` with a [`BulkWriter`], which applies operations in order. Readers see the operations only after
    /// the next [`Memtable::publish`], which must follow this call.
    pub(crate) fn apply_bulk<T>(&self, work: impl FnOnce(&mut BulkWriter<'_, '_, F>) -> T) -> T {
        std::thread::scope(|scope| {
            let mut writer = BulkWriter {
                memtable: self,
                scope,
                operations: self.operations(),
                pending_inserts: Vec::with_capacity(INSERT_BATCH),
                unindexed: Vec::new(),
                workers: Vec::new(),
                has_started: false,
            };
            let done = work(&mut writer);
            writer.flush_inserts();
            writer.flush_unindexed();
            done
        })
    }
}

impl<'scope, 'env, F: Fingerprint> BulkWriter<'scope, 'env, F> {
    /// Applies the next operation. Inserts are collected, and applied together when there are enough of them.
    pub(crate) fn apply(&mut self, operation: &Operation<'_, F>) {
        *self.operations += 1;
        let number = *self.operations;
        match *operation {
            Operation::Insert { fingerprint, id, name } => {
                self.pending_inserts.push((fingerprint, id, number));
                if let Some(name) = name {
                    self.memtable.set_name(id, name, number);
                }
                if self.pending_inserts.len() == INSERT_BATCH {
                    self.flush_inserts();
                }
            }
            Operation::Delete { .. } => {
                self.flush_inserts();
                self.memtable.apply_numbered(operation, number);
            }
            Operation::Metadata { .. } | Operation::Note { .. } => {
                self.memtable.apply_numbered(operation, number);
            }
        }
    }

    /// Inserts the pairs of `pending_inserts`, in order. Then, if many inserted pairs are still missing from the search
    /// index, adds these.
    fn flush_inserts(&mut self) {
        self.memtable
            .pairs
            .prefetch(&self.pending_inserts.iter().map(|&(fingerprint, id, _)| (fingerprint, id)));
        for (fingerprint, id, operation) in self.pending_inserts.drain(..) {
            let new = self.memtable.push_pair(fingerprint, id, operation);
            self.unindexed.extend(new.map(|number| (fingerprint, number)));
        }
        if self.unindexed.len() >= INDEX_BATCH {
            self.start_workers();
            self.flush_unindexed();
        }
    }

    /// Adds the pairs of `unindexed` to the search index, or sends them to the worker threads if there are any.
    fn flush_unindexed(&mut self) {
        let bands = 0..self.memtable.index.band_len();
        let pairs = std::mem::take(&mut self.unindexed);
        if self.workers.is_empty() {
            bands.for_each(|band| self.memtable.index.insert_into_band(band, &pairs));
            return;
        }
        let pairs = Arc::new(pairs);
        for band in bands {
            // Sending fails only if the worker panicked. Then the scope panics, too.
            let _ = self.workers[band % self.workers.len()].send((band, pairs.clone()));
        }
    }

    /// Starts worker threads on the other cores of the machine, at most one for each band of the search index. If
    /// none can be started, this thread fills the index.
    fn start_workers(&mut self) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let memtable = self.memtable;
        for _ in 0..(threads::default_count() - 1).min(memtable.index.band_len()) {
            let (queue, batches) = sync_channel::<BandBatch<F>>(QUEUED_BATCHES * memtable.index.band_len());
            let fill = move || {
                batches.into_iter().for_each(|(band, pairs)| memtable.index.insert_into_band(band, &pairs));
            };
            match Builder::new().name("simstore recovery".to_string()).spawn_scoped(self.scope, fill) {
                Ok(_) => self.workers.push(queue),
                Err(_) => break,
            }
        }
    }
}
