//! All routes of the service, and the checks that each request passes.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tower_layer::layer_fn;

use crate::page::{page, page_file};
use crate::request_guard::RequestGuard;
use crate::request_origin::cors_layer;
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
    let guarded_state = state.clone();
    let guarded = routes.layer(layer_fn(move |inner| RequestGuard { state: guarded_state.clone(), inner }));
    // Without allowed origins, no answer allows one. With them, refusals allow them too, so that scripts can read the reason.
    let has_origins = !state.config.allowed_origins.is_empty();
    if has_origins { guarded.layer(cors_layer(&state.config)) } else { guarded }
}

async fn no_route() -> ServiceError {
    let message = "there is no such path; `/openapi.json` describes all paths";
    ServiceError::new(StatusCode::NOT_FOUND, "no-path", message)
}

async fn no_method() -> ServiceError {
    let message = "the path does not have this method; the header `Allow` has its methods";
    ServiceError::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", message)
}
