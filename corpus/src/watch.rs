//! What long work tells whoever waits for it, and how it is told to stop.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simstore::{Error, Result};

use crate::notice::Notice;
use simstore_io::ReadProgress;

/// How often a watch is told how far a step has come: at least after so long, and after so many.
const TOLD_EVERY: Duration = Duration::from_millis(50);
const TOLD_AFTER: u64 = 1024;

/// How far a step of long work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is counted: "documents", "fingerprints", "texts compared", ...
    pub what: &'static str,
    /// How many have been done.
    pub count: u64,
    /// Bytes read of the input files as they are on disk, where files are read.
    pub bytes: u64,
    /// All bytes of the input files, where they are known and were [asked for](Watch::wants_totals).
    pub total_bytes: Option<u64>,
}

/// Is told by long work how far it has come. All methods may be called from any thread; by default they do nothing, and the
/// work goes on. `()` is one that never has a word.
pub trait Watch: Sync {
    /// A step has come so far; at least every tenth of a second while there is work. [`ControlFlow::Break`] ends the work with
    /// [`Error::Cancelled`], and nothing half-written is left.
    fn progress(&self, progress: &Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// A step has ended: what has been shown of it may be taken away.
    fn done(&self, what: &'static str) {
        let _ = what;
    }

    /// Something is to be told.
    fn notice(&self, notice: &Notice<'_>) {
        let _ = notice;
    }

    /// Whether totals are shown: finding out takes a look at each file.
    fn wants_totals(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// A step of long work, counted by any number of threads: the watch is told of it often enough, and of its end when it is
/// dropped.
pub struct Step<'a> {
    watch: &'a dyn Watch,
    what: &'static str,
    count: AtomicU64,
    /// Where the bytes are counted that have been read of files, and how many there are.
    read: Option<Arc<ReadProgress>>,
    total_bytes: Option<u64>,
    started: Instant,
    /// When the watch is told next, in milliseconds after the start.
    due: AtomicU64,
    is_cancelled: AtomicBool,
}

impl<'a> Step<'a> {
    /// A step of which nothing is done yet; `what` is counted.
    pub fn new(watch: &'a dyn Watch, what: &'static str) -> Self {
        Step {
            watch,
            what,
            count: AtomicU64::new(0),
            read: None,
            total_bytes: None,
            started: Instant::now(),
            due: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// The same, of files that are read; the total of their bytes is found out only if it is wanted.
    pub fn reading(mut self, read: Arc<ReadProgress>, total_bytes: impl FnOnce() -> Option<u64>) -> Self {
        self.total_bytes = if self.watch.wants_totals() { total_bytes() } else { None };
        self.read = Some(read);
        self
    }

    /// So many more are done; none at all to ask whether to go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`], to every thread, once the watch has said so.
    pub fn add(&self, more: u64) -> Result<()> {
        let before = self.count.fetch_add(more, Ordering::Relaxed);
        let count = before + more;
        let due = self.due.load(Ordering::Relaxed);
        let now = self.started.elapsed().as_millis() as u64;
        let next = now + TOLD_EVERY.as_millis() as u64;
        let is_due = now >= due || before / TOLD_AFTER < count / TOLD_AFTER;
        // One of the threads tells it.
        if is_due && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let bytes = self.read.as_ref().map_or(0, |read| read.bytes());
            let progress = Progress { what: self.what, count, bytes, total_bytes: self.total_bytes };
            if self.watch.progress(&progress).is_break() {
                self.is_cancelled.store(true, Ordering::Relaxed);
            }
        }
        if self.is_cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Visits items in a step of their own.
pub fn each<T>(
    watch: &dyn Watch,
    what: &'static str,
    items: impl Iterator<Item = T>,
    mut visitor: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    /// Items that are counted together: to count each takes time.
    const COUNTED: u64 = 64;
    let step = Step::new(watch, what);
    step.add(0)?;
    for (count, item) in (1..).zip(items) {
        visitor(item)?;
        if u64::is_multiple_of(count, COUNTED) {
            step.add(COUNTED)?;
        }
    }
    Ok(())
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.watch.done(self.what);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Told {
        counts: Mutex<Vec<u64>>,
        done: AtomicU64,
    }

    impl Watch for Told {
        fn progress(&self, progress: &Progress) -> ControlFlow<()> {
            self.counts.lock().unwrap().push(progress.count);
            ControlFlow::Break(())
        }

        fn done(&self, what: &'static str) {
            assert_eq!(what, "things");
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_step_is_told_at_once_and_ended_for_every_thread() {
        let told = Told::default();
        let step = Step::new(&told, "things");
        assert!(matches!(step.add(3), Err(Error::Cancelled)));
        assert_eq!(*told.counts.lock().unwrap(), [3]);
        assert!(std::thread::scope(|scope| scope.spawn(|| step.add(1)).join()).unwrap().is_err());
        drop(step);
        assert_eq!(told.done.load(Ordering::Relaxed), 1);
    }
}
