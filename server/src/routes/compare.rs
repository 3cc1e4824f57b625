//! `POST /compare`: compares two documents.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use crate::body_reader::{BodyKind, read_body};
use crate::json_items::{RequestItem, parse_item};
use crate::messages::{CompareMessage, ComparisonAnswer, ErrorMessage, json_response};
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Compare two documents
///
/// Compares two texts word by word, or two fingerprints. Each of the two is given, or is a stored document.
#[utoipa::path(
    post,
    path = "/compare",
    request_body(
        description = "The two documents",
        content((CompareMessage = "application/json", examples(
            ("text" = (summary = "A text with a stored document", value = json!({"a": {"text": "To be or not to be: that is the question!"}, "b": {"id": 7}}))),
            ("fingerprint" = (summary = "A fingerprint with a stored document", value = json!({"a": {"fingerprint": "0123456789abcdee"}, "b": {"id": 8}}))),
        )))
    ),
    responses(
        (status = 200, description = "The similarity and the passages of the texts, or the distance of the fingerprints", body = ComparisonAnswer),
        (status = 404, description = "No document has the `id`", body = ErrorMessage),
        (status = 422, description = "Not documents of this store, or a store without texts", body = ErrorMessage),
    ),
    tag = "Queries"
)]
pub(crate) async fn compare(
    State(state): State<Arc<ServiceState>>,
    request: Request,
) -> ServiceResult<Response> {
    let message: CompareMessage = read_object(&state, request).await?;
    let answer = state.on_engine_thread(move |store| store.compare(&message.a, &message.b)).await?;
    Ok(json_response(StatusCode::OK, &answer))
}

/// Reads the body of a request that takes one object alone.
pub(super) async fn read_object<T: RequestItem>(
    state: &Arc<ServiceState>,
    request: Request,
) -> ServiceResult<T> {
    state.opened()?;
    let (parts, body) = request.into_parts();
    if BodyKind::from_headers(&parts.headers)? == BodyKind::Lines {
        let message = "the header `Content-Type` must be application/json: this path takes one object";
        return Err(ServiceError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", message));
    }
    let (body, _memory) = read_body(state, &parts.headers, body).await?;
    parse_item(&body, &state.config.limits)
}
