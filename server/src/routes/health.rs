//! `GET /livez` and `GET /readyz`: probes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::messages::{ErrorMessage, HealthMessage, json_response};
use crate::service_error::ServiceResult;
use crate::service_state::ServiceState;

fn health(status: &str) -> Response {
    json_response(StatusCode::OK, &HealthMessage { status: status.to_owned() })
}

/// Whether the process answers
#[utoipa::path(
    get,
    path = "/livez",
    responses((status = 200, description = "The process answers", body = HealthMessage)),
    tag = "Probes"
)]
pub(crate) async fn livez() -> Response {
    health("live")
}

/// Whether the store is open
///
/// The service listens before it opens the store. Opening replays the log, which may take some seconds.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "The store is open", body = HealthMessage),
        (status = 503, description = "The store is being opened", body = ErrorMessage),
    ),
    tag = "Probes"
)]
pub(crate) async fn readyz(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    state.opened()?;
    Ok(health("ready"))
}
