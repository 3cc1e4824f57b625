//! Progress and cancellation of long operations.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Progress of a long operation, such as a build, a merge or a verification, in units of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of finished units. A build counts the fingerprints that it writes to tables, a verification counts the
    /// fingerprints that it reads.
    pub done: u64,
    /// Number of units of the whole operation; 0 while unknown.
    pub total: u64,
}

/// Callback that receives the [`Progress`] of a long operation, and can cancel it.
///
/// The worker threads call it at least every tenth of a second. If it returns [`ControlFlow::Break`], the
/// operation fails with [`Error::Cancelled`] and leaves no partial output. After that, other threads may
/// still call it a few times.
#[derive(Clone)]
pub struct ProgressCallback(Arc<dyn Fn(Progress) -> ControlFlow<()> + Send + Sync>);

impl ProgressCallback {
    /// Wraps a function as a callback.
    pub fn new(callback: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        ProgressCallback(Arc::new(callback))
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// Converts the answer of a callback or visitor to a result: [`ControlFlow::Break`] becomes [`Error::Cancelled`].
pub(crate) fn break_to_cancelled(answer: ControlFlow<()>) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}

/// Number of records that an operation processes between two calls of its callback. The slowest operation takes
/// some hundredths of a second for this number of records.
pub(crate) const CANCEL_CHECK_INTERVAL: u64 = 1 << 16;

/// Counter of the finished units of an operation. All threads of the operation share one counter, which reports
/// each addition to the caller's [`ProgressCallback`], if there is one.
pub(crate) struct ProgressCounter<'a> {
    callback: Option<&'a ProgressCallback>,
    done: AtomicU64,
    total: u64,
    is_cancelled: AtomicBool,
}

impl<'a> ProgressCounter<'a> {
    /// Creates a counter for `total` units, none of them finished. `total` is 0 if the number is unknown.
    pub(crate) fn new(callback: Option<&'a ProgressCallback>, total: u64) -> Self {
        ProgressCounter { callback, done: AtomicU64::new(0), total, is_cancelled: AtomicBool::new(false) }
    }

    /// Adds `more` finished units, and calls the callback.
    ///
    /// # Errors
    /// [`Error::Cancelled`], in every thread, once the callback has returned [`ControlFlow::Break`].
    pub(crate) fn add(&self, more: u64) -> Result<()> {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let Some(ProgressCallback(callback)) = self.callback else { return Ok(()) };
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let answer = callback(Progress { done, total: self.total });
        self.is_cancelled.fetch_or(answer.is_break(), Ordering::Relaxed);
        break_to_cancelled(answer)
    }

    /// Counts `more` finished units in `pending`. When `pending` reaches [`CANCEL_CHECK_INTERVAL`], adds the pending
    /// units to the counter by [`ProgressCounter::add`], and sets `pending` to 0. At the end, the caller must add the
    /// units that are still pending.
    pub(crate) fn add_batched(&self, pending: &mut u64, more: u64) -> Result<()> {
        *pending += more;
        if *pending >= CANCEL_CHECK_INTERVAL { self.add(std::mem::take(pending)) } else { Ok(()) }
    }

    /// Counts `more` records in `pending`. When `pending` reaches [`CANCEL_CHECK_INTERVAL`], calls
    /// [`ProgressCounter::check_cancelled`], and sets `pending` to 0.
    pub(crate) fn check_cancelled_batched(&self, pending: &mut u64, more: u64) -> Result<()> {
        *pending += more;
        if *pending < CANCEL_CHECK_INTERVAL {
            return Ok(());
        }
        *pending = 0;
        self.check_cancelled()
    }

    /// Calls the callback without adding finished units. So the callback can also cancel work that does not count as
    /// progress.
    ///
    /// # Errors
    /// The errors of [`ProgressCounter::add`].
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        self.add(0)
    }

    /// Adds 1 to `seen`, the number of records processed so far. Calls [`ProgressCounter::check_cancelled`] whenever `seen`
    /// is a multiple of [`CANCEL_CHECK_INTERVAL`].
    #[inline]
    pub(crate) fn check_cancelled_at(&self, seen: &mut u64) -> Result<()> {
        *seen += 1;
        if seen.is_multiple_of(CANCEL_CHECK_INTERVAL) { self.check_cancelled() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_is_heard_by_all_threads() {
        let breaks = ProgressCallback::new(|Progress { done, total }| {
            assert_eq!(total, 10);
            if done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let counter = ProgressCounter::new(Some(&breaks), 10);
        counter.add(2).unwrap();
        assert!(matches!(counter.add(1), Err(Error::Cancelled)));
        assert!(std::thread::scope(|scope| scope.spawn(|| counter.add(1)).join()).unwrap().is_err());
        assert!(ProgressCounter::new(None, 0).add(3).is_ok());
    }
}
