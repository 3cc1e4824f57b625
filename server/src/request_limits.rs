//! Limits of the number of requests under way, and of their time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Permit of a request under way. A request that goes on after its answer has begun, a stream, keeps a copy.
#[derive(Clone)]
pub(crate) struct UnderWay(
    #[expect(dead_code, reason = "held until it is dropped")] Arc<OwnedSemaphorePermit>,
);

/// Paths of requests that are always answered, so that a busy service can be watched.
const UNLIMITED_PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Counts a request as under way, until the returned value is dropped. Probes and metrics are not counted, so that they are answered
/// when the limit is reached.
///
/// # Errors
/// The status 429 at the limit.
pub(crate) fn begin_request(state: &ServiceState, request: &mut Request) -> ServiceResult<Option<UnderWay>> {
    if UNLIMITED_PATHS.contains(&request.uri().path()) {
        return Ok(None);
    }
    let Ok(permit) = state.requests.clone().try_acquire_owned() else {
        let maximum = state.config.limits.requests;
        return Err(ServiceError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-requests",
            format!("{maximum} requests are under way, the maximum: try again in a moment"),
        ));
    };
    let under_way = UnderWay(Arc::new(permit));
    request.extensions_mut().insert(under_way.clone());
    Ok(Some(under_way))
}

/// Waits for an answer, up to a maximum.
///
/// # Errors
/// The status 503 at the maximum.
pub(crate) async fn answer_in_time<T>(
    maximum: Duration,
    answer: impl Future<Output = T>,
) -> ServiceResult<T> {
    tokio::time::timeout(maximum, answer).await.map_err(|_| {
        let message = format!(
            "the request took longer than {} seconds; a write may still be carried out",
            maximum.as_secs_f64()
        );
        ServiceError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    })
}
