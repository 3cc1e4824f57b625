//! How far long work has come, and whether it goes on.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// How far long work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What has been done so far: of a build, fingerprints written over all tables; of a verification, fingerprints read.
    pub done: u64,
    /// What there is to do, in all; 0 while that is not known.
    pub total: u64,
}

/// Is told how far long work has come, at least every tenth of a second, from the threads that work. With
/// [`ControlFlow::Break`] the work ends with [`Error::Cancelled`], and nothing half-written is left; the callback may be called
/// a few times more then, by other threads.
#[derive(Clone)]
pub struct ProgressCallback(Arc<dyn Fn(Progress) -> ControlFlow<()> + Send + Sync>);

impl ProgressCallback {
    /// A callback that is told of progress.
    pub fn new(callback: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        ProgressCallback(Arc::new(callback))
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// [`Error::Cancelled`] if a callback or a visitor says not to go on.
pub(crate) fn go_on(answer: ControlFlow<()>) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}

/// Records after which a callback is asked: what takes longest for each takes some hundredths of a second for so many.
pub(crate) const STEP: u64 = 1 << 16;

/// A step of long work, counted by any number of threads.
pub(crate) struct Steps<'a> {
    callback: Option<&'a ProgressCallback>,
    done: AtomicU64,
    total: u64,
    is_cancelled: AtomicBool,
}

impl<'a> Steps<'a> {
    /// Of `total`, which is 0 if it is not known.
    pub(crate) fn new(callback: Option<&'a ProgressCallback>, total: u64) -> Self {
        Steps { callback, done: AtomicU64::new(0), total, is_cancelled: AtomicBool::new(false) }
    }

    /// So many more are done: tells the callback.
    ///
    /// # Errors
    /// [`Error::Cancelled`], to every thread, once it has said so.
    pub(crate) fn add(&self, more: u64) -> Result<()> {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let Some(ProgressCallback(callback)) = self.callback else { return Ok(()) };
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let answer = callback(Progress { done, total: self.total });
        self.is_cancelled.fetch_or(answer.is_break(), Ordering::Relaxed);
        go_on(answer)
    }

    /// [`Steps::add`], once so many have come together that a callback may be asked; `pending` are those that it was not told of.
    pub(crate) fn add_some(&self, pending: &mut u64, more: u64) -> Result<()> {
        *pending += more;
        if *pending >= STEP { self.add(std::mem::take(pending)) } else { Ok(()) }
    }

    /// [`Steps::ask`] after so many records, of which `pending` have come since the last time.
    pub(crate) fn ask_some(&self, pending: &mut u64, more: u64) -> Result<()> {
        *pending += more;
        if *pending < STEP {
            return Ok(());
        }
        *pending = 0;
        self.ask()
    }

    /// Whether to go on, where nothing is done that counts.
    pub(crate) fn ask(&self) -> Result<()> {
        self.add(0)
    }

    /// [`Steps::ask`] for one in so many records; `seen` is the number of them.
    #[inline]
    pub(crate) fn ask_at(&self, seen: &mut u64) -> Result<()> {
        *seen += 1;
        if seen.is_multiple_of(STEP) { self.ask() } else { Ok(()) }
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
        let steps = Steps::new(Some(&breaks), 10);
        steps.add(2).unwrap();
        assert!(matches!(steps.add(1), Err(Error::Cancelled)));
        assert!(std::thread::scope(|scope| scope.spawn(|| steps.add(1)).join()).unwrap().is_err());
        assert!(Steps::new(None, 0).add(3).is_ok());
    }
}
