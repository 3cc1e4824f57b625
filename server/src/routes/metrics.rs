//! `GET /metrics`: metrics for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Media type of the text format of OpenMetrics, which Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "Metrics in the text format of OpenMetrics", body = String, content_type = "application/openmetrics-text")),
    tag = "Probes"
)]
pub(crate) async fn metrics(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    let store = match state.opened() {
        Ok(_) => Some(state.on_engine_thread(|store| Ok(store.stats())).await?),
        Err(_) => None,
    };
    let text =
        state.metrics.encode(store.as_ref(), state.requests_under_way(), state.compaction.is_running());
    let text = text.map_err(|_| ServiceError::panicked())?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
