//! `POST /trace`: shows where a query looks in the store.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::compare::read_object;
use crate::messages::{ErrorMessage, QueryMessage, TraceAnswer, json_response};
use crate::service_error::ServiceResult;
use crate::service_state::ServiceState;

/// Trace a query
///
/// Counts the work of a query in each table: how many prefixes it looks up, and how many fingerprints it compares. This takes longer than
/// the query itself.
#[utoipa::path(
    post,
    path = "/trace",
    request_body(
        description = "The query, as for `/query`",
        content((QueryMessage = "application/json", examples(
            ("text" = (summary = "A text", value = json!({"text": "To be or not to be: that is the question!"}))),
            ("fingerprint" = (summary = "A fingerprint, within 2 bits", value = json!({"fingerprint": "0123456789abcdee", "distance": 2}))),
        )))
    ),
    responses(
        (status = 200, description = "The work in each table", body = TraceAnswer),
        (status = 404, description = "No document has the `id` of the query", body = ErrorMessage),
        (status = 422, description = "Not a query of this store", body = ErrorMessage),
    ),
    tag = "Inspection"
)]
pub(crate) async fn trace(
    State(state): State<Arc<ServiceState>>,
    request: Request,
) -> ServiceResult<Response> {
    let query: QueryMessage = read_object(&state, request).await?;
    let answer = state.on_engine_thread(move |store| store.trace(&query)).await?;
    Ok(json_response(StatusCode::OK, &answer))
}
