//! `POST /compact`: starts a compaction.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::messages::{CompactionStarted, ErrorMessage, json_response};
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Start a compaction
///
/// Starts to merge all segments into one. Queries and writes go on meanwhile. `/stats` has the progress.
#[utoipa::path(
    post,
    path = "/compact",
    responses(
        (status = 202, description = "Started", body = CompactionStarted),
        (status = 409, description = "A compaction is running", body = ErrorMessage),
    ),
    tag = "Maintenance"
)]
pub(crate) async fn compact(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    let store = state.opened()?.store.clone();
    if state.config.read_only {
        return Err(ServiceError::read_only());
    }
    state.compaction.start(store)?;
    let started = CompactionStarted { compaction: "started".to_owned() };
    Ok(json_response(StatusCode::ACCEPTED, &started))
}
