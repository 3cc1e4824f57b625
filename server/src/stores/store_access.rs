//! Access to a store: for writing, or for following another process that writes.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use simstore::fs::Fs;
use simstore::progress::ProgressCallback;
use simstore::raw::Segment;
use simstore::store::{CompactOptions, WriteStats};
use simstore::{Fingerprint, Result, Snapshot, Store};

use super::segment_age::segment_age;
use super::store_inspection::StoreInspection;
use super::store_upkeep::StoreUpkeep;
use crate::messages::{SegmentMessage, StoreStats};
use crate::service_error::{ServiceError, ServiceResult};

/// A writer that has a store open.
pub(super) trait HoldsStore<F: Fingerprint> {
    fn store(&self) -> &Store<F>;
}

/// A store that is open for writing, or a snapshot that is refreshed from time to time.
pub(super) enum StoreAccess<W, F> {
    Writing(W),
    Following(RwLock<Snapshot<F>>),
}

impl<F: Fingerprint, W: HoldsStore<F>> StoreAccess<W, F> {
    pub(super) fn following(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        Ok(StoreAccess::Following(RwLock::new(Snapshot::open_retrying_on(fs, path)?)))
    }

    /// Returns the writer, or the error of a write request to a service that only reads.
    pub(super) fn writer(&self) -> ServiceResult<&W> {
        match self {
            StoreAccess::Writing(writer) => Ok(writer),
            StoreAccess::Following(_) => Err(ServiceError::read_only()),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot<F> {
        match self {
            StoreAccess::Writing(writer) => writer.store().snapshot(),
            StoreAccess::Following(snapshot) => {
                snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
            }
        }
    }

    /// Returns the statistics that stores of all kinds have.
    pub(super) fn stats(&self) -> StoreStats {
        let snapshot = self.snapshot();
        let stats = snapshot.stats();
        let writes = match self {
            StoreAccess::Writing(writer) => writer.store().write_stats(),
            StoreAccess::Following(_) => WriteStats::default(),
        };
        let segments: Vec<SegmentMessage> =
            snapshot.segments().iter().map(|segment| describe_segment(snapshot.path(), segment)).collect();
        let segment_memory: u64 = snapshot.segments().iter().map(|segment| segment.stats().memory).sum();
        let all_bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let largest = segments.iter().map(|segment| segment.bytes).max().unwrap_or(0);
        let (logs, log_bytes) = logs(snapshot.path());
        StoreStats {
            kind: "fingerprints".to_owned(),
            bits: F::BITS,
            documents: stats.ids.max(stats.fingerprints) + stats.memtable_entries,
            distance: Some(snapshot.distance()),
            similarity: None,
            recall: None,
            keeps_texts: false,
            keeps_ids: snapshot.keeps_ids(),
            profile: snapshot.profile().to_owned(),
            plan: snapshot.plan_policy().to_owned(),
            codec: snapshot.codec().to_string(),
            bytes: stats.bytes,
            memory: stats.memory,
            segments,
            memtable_entries: stats.memtable_entries,
            memtable_bytes: stats.memory.saturating_sub(segment_memory),
            frozen_memtables: snapshot.memtable_sizes().len().saturating_sub(1),
            logs,
            log_bytes,
            compaction_debt_bytes: all_bytes - largest,
            flushes: writes.flushes,
            flush_bytes: writes.flush_bytes,
            compactions: writes.compactions,
            compaction_bytes: writes.compaction_bytes,
        }
    }
}

impl<F: Fingerprint, W: HoldsStore<F>> StoreUpkeep for StoreAccess<W, F> {
    fn sync(&self) -> ServiceResult<()> {
        Ok(self.writer()?.store().sync()?)
    }

    fn flush(&self) -> ServiceResult<usize> {
        self.writer()?.store().flush()?;
        Ok(self.snapshot().segments().len())
    }

    fn compact(&self, progress: ProgressCallback) -> ServiceResult<()> {
        let options = CompactOptions { progress: Some(progress), ..CompactOptions::default() };
        Ok(self.writer()?.store().compact_with(&options)?)
    }

    fn refresh(&self) -> Result<()> {
        if let StoreAccess::Following(current) = self {
            let newer = self.snapshot().refresh()?;
            *current.write().unwrap_or_else(PoisonError::into_inner) = newer;
        }
        Ok(())
    }

    fn inspection(&self) -> Box<dyn StoreInspection> {
        Box::new(self.snapshot())
    }
}

fn describe_segment<F: Fingerprint>(store: &Path, segment: &Segment<F>) -> SegmentMessage {
    let stats = segment.stats();
    SegmentMessage {
        number: segment.number(),
        fingerprints: stats.fingerprints,
        bytes: stats.bytes,
        plan: segment.plan().name().to_owned(),
        age_seconds: segment_age(store, segment),
    }
}

/// Returns the number of log files of a store, and their size in bytes. Files that another process removes meanwhile do not count.
fn logs(store: &Path) -> (usize, u64) {
    let files = std::fs::read_dir(store).into_iter().flatten().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
    logs.filter_map(|file| file.metadata().ok())
        .fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.len()))
}
