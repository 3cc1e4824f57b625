//! State that all requests of a service share.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::compaction_job::CompactionJob;
use crate::config::ServerConfig;
use crate::metrics::{ServiceMetrics, SharedMetrics};
use crate::service_error::{ServiceError, ServiceResult};
use crate::stores::ServedStore;
use crate::sync_group::SyncGroup;

/// Number of threads that work on the store at a time, for each core. More than one, because some wait for the disk.
const ENGINE_THREADS_PER_CORE: usize = 4;
/// Unit of the memory for bodies, in bytes.
pub(crate) const BODY_UNIT: usize = 1 << 10;

/// A store that is open, and the task that syncs it.
pub(crate) struct ServingStore {
    pub(crate) store: Arc<dyn ServedStore>,
    pub(crate) syncs: SyncGroup,
}

/// State that all requests of a service share.
pub(crate) struct ServiceState {
    pub(crate) config: ServerConfig,
    pub(crate) metrics: SharedMetrics,
    pub(crate) started: Instant,
    pub(crate) compaction: Arc<CompactionJob>,
    /// One permit for each request that may be under way.
    pub(crate) requests: Arc<Semaphore>,
    /// One permit for each thread that may work on the store.
    pub(crate) engine_threads: Arc<Semaphore>,
    /// One permit for each [`BODY_UNIT`] of memory for bodies.
    pub(crate) body_units: Arc<Semaphore>,
    opened: OnceLock<ServingStore>,
    last_error: std::sync::Mutex<Option<String>>,
}

impl ServiceState {
    pub(crate) fn new(config: ServerConfig) -> ServiceState {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let limits = config.limits;
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        ServiceState {
            metrics: Arc::new(ServiceMetrics::new()),
            started: Instant::now(),
            compaction: Arc::default(),
            requests: semaphore(limits.requests),
            engine_threads: semaphore(cores * ENGINE_THREADS_PER_CORE),
            body_units: semaphore(limits.all_bodies_bytes.div_ceil(BODY_UNIT)),
            opened: OnceLock::new(),
            last_error: std::sync::Mutex::default(),
            config,
        }
    }

    /// Makes the store available to requests. Must be called inside the runtime, once.
    pub(crate) fn set_store(&self, store: Arc<dyn ServedStore>) {
        let syncs = SyncGroup::start(store.clone(), self.metrics.clone());
        // The store is set once, when it is open.
        let _ = self.opened.set(ServingStore { store, syncs });
    }

    /// Returns the store.
    ///
    /// # Errors
    /// The status 503 while the store is being opened.
    pub(crate) fn opened(&self) -> ServiceResult<&ServingStore> {
        self.opened.get().ok_or_else(ServiceError::not_ready)
    }

    /// Takes the store out of the state, so that it can be closed.
    pub(crate) fn into_store(self) -> Option<Arc<dyn ServedStore>> {
        self.opened.into_inner().map(|opened| opened.store)
    }

    /// Records the message of an error of the store, which `/stats` shows.
    pub(crate) fn record_error(&self, message: &str) {
        let mut last = self.last_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.as_deref() != Some(message) {
            tracing::error!(error = message, "the store reports an error");
            *last = Some(message.to_owned());
        }
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Number of requests under way.
    pub(crate) fn requests_under_way(&self) -> usize {
        self.config.limits.requests.saturating_sub(self.requests.available_permits())
    }
}
