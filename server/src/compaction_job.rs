//! The compaction that a request started: one at a time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use simstore::progress::{Progress, ProgressCallback};

use crate::messages::CompactionMessage;
use crate::service_error::{ServiceError, ServiceResult};
use crate::stores::ServedStore;

/// State of the compaction of a store.
#[derive(Debug, Default)]
pub(crate) struct CompactionJob {
    is_running: AtomicBool,
    /// Whether the service stops, so that the compaction must end.
    is_cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl CompactionJob {
    /// Starts a compaction on a thread of its own.
    ///
    /// # Errors
    /// The status 409 if one is running.
    pub(crate) fn start(self: &Arc<Self>, store: Arc<dyn ServedStore>) -> ServiceResult<()> {
        if self.is_running.swap(true, Ordering::AcqRel) {
            let message = "a compaction is running: `/stats` has its progress";
            return Err(ServiceError::new(StatusCode::CONFLICT, "compaction-running", message));
        }
        self.done.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
        let (job, counted) = (self.clone(), self.clone());
        let progress = ProgressCallback::new(move |progress| counted.record(progress));
        tokio::task::spawn_blocking(move || {
            let result = store.upkeep().compact(progress);
            if let Err(error) = &result {
                tracing::error!(error = error.message, "the compaction failed");
            }
            *job.last_error.lock().unwrap_or_else(PoisonError::into_inner) =
                result.err().map(|error| error.message);
            job.is_running.store(false, Ordering::Release);
        });
        Ok(())
    }

    fn record(&self, progress: Progress) -> ControlFlow<()> {
        self.done.store(progress.done, Ordering::Relaxed);
        self.total.store(progress.total, Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Ends the running compaction soon. The store keeps its segments.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    pub(crate) fn describe(&self) -> CompactionMessage {
        let is_running = self.is_running();
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let progress = if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) };
        CompactionMessage {
            is_running,
            progress: is_running.then_some(progress),
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
