//! `POST /flush`: writes memtables to segments.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::messages::{ErrorMessage, FlushAnswer, json_response};
use crate::service_error::ServiceResult;
use crate::service_state::ServiceState;

/// Write memory to segments
///
/// Writes all documents that are in memory and in the log to a segment, and waits until it is on the disk.
#[utoipa::path(
    post,
    path = "/flush",
    responses(
        (status = 200, description = "Done", body = FlushAnswer),
        (status = 507, description = "The disk is full", body = ErrorMessage),
    ),
    tag = "Maintenance"
)]
pub(crate) async fn flush(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    let segments = state.on_engine_thread(|store| store.upkeep().flush()).await?;
    Ok(json_response(StatusCode::OK, &FlushAnswer { segments }))
}
