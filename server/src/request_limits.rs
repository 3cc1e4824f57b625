//! Limits of the number of requests under way, and of their time.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
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

/// Refuses requests while too many are under way, and ends those that take too long.
pub(crate) async fn limit_requests(
    State(state): State<Arc<ServiceState>>,
    mut request: Request,
    next: Next,
) -> ServiceResult<Response> {
    if UNLIMITED_PATHS.contains(&request.uri().path()) {
        return Ok(next.run(request).await);
    }
    let limits = state.config.limits;
    let Ok(permit) = state.requests.clone().try_acquire_owned() else {
        return Err(ServiceError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-requests",
            format!("{} requests are under way, the maximum: try again in a moment", limits.requests),
        ));
    };
    let under_way = UnderWay(Arc::new(permit));
    request.extensions_mut().insert(under_way.clone());
    let answer = tokio::time::timeout(limits.request_time, next.run(request)).await;
    drop(under_way);
    answer.map_err(|_| {
        let message = format!(
            "the request took longer than {} seconds; a write may still be carried out",
            limits.request_time.as_secs_f64()
        );
        ServiceError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    })
}
