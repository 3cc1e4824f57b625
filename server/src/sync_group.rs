//! One sync for all requests that wait for the disk.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::metrics::SharedMetrics;
use crate::service_error::{ServiceError, ServiceResult};
use crate::stores::ServedStore;

/// Maximum number of requests that share a sync.
const MAX_WAITING: usize = 4096;

/// Lets requests wait for a sync of the store without a thread for each. Requests that come during a sync share the next one.
pub(crate) struct SyncGroup {
    waiting: mpsc::Sender<oneshot::Sender<ServiceResult<()>>>,
}

impl SyncGroup {
    /// Starts the task that syncs. It ends when the last [`SyncGroup`] is dropped.
    pub(crate) fn start(store: Arc<dyn ServedStore>, metrics: SharedMetrics) -> SyncGroup {
        let (waiting, mut requests) = mpsc::channel(MAX_WAITING);
        tokio::spawn(async move {
            let mut group: Vec<oneshot::Sender<ServiceResult<()>>> = Vec::new();
            while requests.recv_many(&mut group, MAX_WAITING).await > 0 {
                let (store, started) = (store.clone(), Instant::now());
                let synced = tokio::task::spawn_blocking(move || store.upkeep().sync()).await;
                let result = synced.unwrap_or_else(|_| Err(ServiceError::panicked()));
                metrics.observe_sync(started.elapsed());
                // A request that timed out no longer listens.
                group.drain(..).for_each(|request| drop(request.send(result.clone())));
            }
        });
        SyncGroup { waiting }
    }

    /// Waits until all writes before this call are on the disk.
    pub(crate) async fn sync(&self) -> ServiceResult<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.send(sender).await.map_err(|_| ServiceError::not_ready())?;
        receiver.await.unwrap_or_else(|_| Err(ServiceError::not_ready()))
    }
}
