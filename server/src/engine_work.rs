//! Work on the store, on threads that may wait for the disk.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;
use crate::stores::ServedStore;

impl ServiceState {
    /// Runs work on the store, on a thread that may wait. The number of these threads is bounded; other requests wait for one.
    pub(crate) async fn on_engine_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ServedStore) -> ServiceResult<T> + Send + 'static,
    ) -> ServiceResult<T> {
        let store = Arc::clone(&self.opened()?.store);
        let permit =
            self.engine_threads.clone().acquire_owned().await.map_err(|_| ServiceError::not_ready())?;
        let work = move || {
            let _permit = permit;
            work(&*store)
        };
        let done = tokio::task::spawn_blocking(work).await;
        let result = done.unwrap_or_else(|_| Err(ServiceError::panicked()));
        self.note_failure(&result);
        result
    }

    /// Waits until all earlier writes are on the disk.
    pub(crate) async fn sync(&self) -> ServiceResult<()> {
        let result = self.opened()?.syncs.sync().await;
        self.note_failure(&result);
        result
    }

    /// Records an error of the store itself, as opposed to an error of the request.
    pub(crate) fn note_failure<T>(&self, result: &ServiceResult<T>) {
        if let Err(error) = result
            && (error.status.is_server_error() && error.status != StatusCode::NOT_IMPLEMENTED)
            && error.code != "not-ready"
        {
            self.record_error(&error.message);
        }
    }
}
