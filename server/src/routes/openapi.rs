//! `GET /openapi.json`: the description of the service.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::openapi::openapi_json;

/// This description
#[utoipa::path(
    get,
    path = "/openapi.json",
    responses((status = 200, description = "The description of the service in the OpenAPI format", body = Object, content_type = "application/json")),
    tag = "Probes"
)]
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}
