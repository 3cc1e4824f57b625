//! All routes of the service, and the layers that each request passes.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::access_log::record_request;
use crate::authorization::check_token;
use crate::page::{page, page_file};
use crate::request_limits::limit_requests;
use crate::request_origin::{check_origin, cors_layer};
use crate::routes::{
    compact, compare, document, documents, flush, health, metrics, openapi, query, segments, stats, trace,
};
use crate::service_error::ServiceError;
use crate::service_state::ServiceState;

/// Returns the service of all routes.
pub(crate) fn router(state: &Arc<ServiceState>) -> Router {
    let routes = Router::new()
        .route("/documents", post(documents::add_documents))
        .route("/documents/{id}", get(document::get_document).delete(document::delete_document))
        .route("/query", post(query::query))
        .route("/compare", post(compare::compare))
        .route("/flush", post(flush::flush))
        .route("/compact", post(compact::compact))
        .route("/stats", get(stats::stats))
        .route("/trace", post(trace::trace))
        .route("/segments", get(segments::segments))
        .route("/segments/{segment}/tables/{table}", get(segments::table))
        .route("/segments/{segment}/tables/{table}/blocks/{block}", get(segments::block))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::openapi))
        .route("/", get(page))
        .route("/page/{name}", get(page_file))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(state.clone());
    // A request passes the layers from the last one to the first one.
    let guarded = routes
        .layer(from_fn_with_state(state.clone(), limit_requests))
        .layer(from_fn_with_state(state.clone(), check_token));
    // Without allowed origins, no answer allows one.
    let has_origins = !state.config.allowed_origins.is_empty();
    let guarded = if has_origins { guarded.layer(cors_layer(&state.config)) } else { guarded };
    guarded
        .layer(from_fn_with_state(state.clone(), check_origin))
        .layer(CatchPanicLayer::custom(|_| -> Response { ServiceError::panicked().into_response() }))
        .layer(from_fn_with_state(state.clone(), record_request))
}

async fn no_route() -> ServiceError {
    let message = "there is no such path; `/openapi.json` describes all paths";
    ServiceError::new(StatusCode::NOT_FOUND, "no-path", message)
}

async fn no_method() -> ServiceError {
    let message = "the path does not have this method; the header `Allow` has its methods";
    ServiceError::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", message)
}
