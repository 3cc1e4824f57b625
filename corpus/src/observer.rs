//! Progress reports, diagnostics and cancellation of jobs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simstore::{Error, Result};

use crate::diagnostic::Diagnostic;
use simstore_io::ReadProgress;

/// Time after which a stage reports its progress again, when it counts the next item.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// Number of items after which a stage reports its progress even before [`REPORT_INTERVAL`] has passed.
const REPORT_COUNT: u64 = 1024;

/// Progress of a stage: a part of a job that counts one kind of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageProgress {
    /// Name of the stage: the plural of the items that it counts, such as "documents", "fingerprints" or "texts compared".
    pub stage: &'static str,
    /// Number of items that the stage has processed so far.
    pub count: u64,
    /// Number of bytes read from the input files so far, as they are on disk (perhaps compressed). 0 if the stage reads no
    /// files.
    pub bytes: u64,
    /// Total size of the input files on disk, in bytes; `None` if it is unknown or was not [wanted](Observer::wants_totals).
    pub total_bytes: Option<u64>,
}

/// Receives progress and diagnostics of a job, and can cancel it. Methods may be called from any thread. The default methods
/// do nothing. `()` is an observer that ignores everything.
pub trait Observer: Sync {
    /// Receives the progress of a stage, at least every tenth of a second while items are counted. If it returns
    /// [`ControlFlow::Break`], the job ends with [`Error::Cancelled`], and no partial output remains.
    fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// Called when a stage has ended, successfully or not. For example, a program can then remove the progress bar of the
    /// stage.
    fn stage_ended(&self, stage: &'static str) {
        let _ = stage;
    }

    /// Receives a message that is not an error.
    fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        let _ = diagnostic;
    }

    /// Whether [`StageProgress::total_bytes`] is wanted. Computing it examines each input file.
    fn wants_totals(&self) -> bool {
        false
    }
}

impl Observer for () {}

/// A stage of a job: counts the items that the job has processed, on any number of threads. The stage reports its progress
/// to the observer. When the stage is dropped, it reports its end.
pub struct Stage<'a> {
    observer: &'a dyn Observer,
    name: &'static str,
    count: AtomicU64,
    /// Counter of the bytes read from input files; `None` if the stage reads no files.
    read_progress: Option<Arc<ReadProgress>>,
    total_bytes: Option<u64>,
    started: Instant,
    /// Time of the next report, in milliseconds after `started`.
    next_report_ms: AtomicU64,
    is_cancelled: AtomicBool,
}

impl<'a> Stage<'a> {
    /// Starts a stage named after the items that it counts.
    pub fn new(observer: &'a dyn Observer, stage_name: &'static str) -> Self {
        Stage {
            observer,
            name: stage_name,
            count: AtomicU64::new(0),
            read_progress: None,
            total_bytes: None,
            started: Instant::now(),
            next_report_ms: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Makes the stage report the bytes read from input files too. Calls `total_bytes`, which computes the total size of
    /// the files, only if the observer wants totals.
    pub fn with_read_progress(
        mut self,
        read: Arc<ReadProgress>,
        total_bytes: impl FnOnce() -> Option<u64>,
    ) -> Self {
        self.total_bytes = if self.observer.wants_totals() { total_bytes() } else { None };
        self.read_progress = Some(read);
        self
    }

    /// Counts `more` items as processed, and reports the progress if a report is due. Call it with 0 only to check for
    /// cancellation.
    ///
    /// # Errors
    /// [`Error::Cancelled`] on every thread after the observer has cancelled the job.
    pub fn add(&self, more: u64) -> Result<()> {
        let before = self.count.fetch_add(more, Ordering::Relaxed);
        let count = before + more;
        let due = self.next_report_ms.load(Ordering::Relaxed);
        let now = self.started.elapsed().as_millis() as u64;
        let next = now + REPORT_INTERVAL.as_millis() as u64;
        let is_due = now >= due || before / REPORT_COUNT < count / REPORT_COUNT;
        // Only one thread reports.
        if is_due
            && self.next_report_ms.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let bytes = self.read_progress.as_ref().map_or(0, |read| read.bytes());
            let progress = StageProgress { stage: self.name, count, bytes, total_bytes: self.total_bytes };
            if self.observer.progress(&progress).is_break() {
                self.is_cancelled.store(true, Ordering::Relaxed);
            }
        }
        if self.is_cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Visits items in order, and counts them in a new stage, which reports progress to the observer.
///
/// # Errors
/// Errors of the visitor, and [`Error::Cancelled`] if the observer cancels.
pub fn visit_in_stage<T>(
    observer: &dyn Observer,
    stage_name: &'static str,
    items: impl Iterator<Item = T>,
    mut visitor: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    /// Number of visited items after which the count of the stage is increased, because an increase for each item would be
    /// slow.
    const COUNT_BATCH: u64 = 64;
    let stage = Stage::new(observer, stage_name);
    stage.add(0)?;
    for (count, item) in (1..).zip(items) {
        visitor(item)?;
        if u64::is_multiple_of(count, COUNT_BATCH) {
            stage.add(COUNT_BATCH)?;
        }
    }
    Ok(())
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.observer.stage_ended(self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct CancellingObserver {
        counts: Mutex<Vec<u64>>,
        done: AtomicU64,
    }

    impl Observer for CancellingObserver {
        fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
            self.counts.lock().unwrap().push(progress.count);
            ControlFlow::Break(())
        }

        fn stage_ended(&self, stage_name: &'static str) {
            assert_eq!(stage_name, "things");
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stage_is_reported_at_once_and_ended_for_every_thread() {
        let cancelling = CancellingObserver::default();
        let stage = Stage::new(&cancelling, "things");
        assert!(matches!(stage.add(3), Err(Error::Cancelled)));
        assert_eq!(*cancelling.counts.lock().unwrap(), [3]);
        assert!(std::thread::scope(|scope| scope.spawn(|| stage.add(1)).join()).unwrap().is_err());
        drop(stage);
        assert_eq!(cancelling.done.load(Ordering::Relaxed), 1);
    }
}
