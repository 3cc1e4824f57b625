//! `GET /stats`: describes the store and the service.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::messages::{ServiceStats, json_response};
use crate::service_error::ServiceResult;
use crate::service_state::ServiceState;

/// Describe the store
///
/// Returns counts, sizes and settings of the store, and the state of the service.
#[utoipa::path(
    get,
    path = "/stats",
    responses((status = 200, description = "The statistics", body = ServiceStats)),
    tag = "Maintenance"
)]
pub(crate) async fn stats(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    let store = state.on_engine_thread(|store| Ok(store.stats())).await?;
    let stats = ServiceStats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: state.started.elapsed().as_secs_f64(),
        read_only: state.config.read_only,
        last_error: state.last_error(),
        compaction: state.compaction.describe(),
        store,
    };
    Ok(json_response(StatusCode::OK, &stats))
}
