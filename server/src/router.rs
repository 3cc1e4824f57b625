//! All routes of the service, and the checks that each request passes.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tower_layer::{LayerFn, layer_fn};

use crate::page::{page, page_file};
use crate::request_guard::RequestGuard;
use crate::request_origin::cors_layer;
use crate::request_recorder::RequestRecorder;
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
    // Without allowed origins, no answer allows one.
    if state.config.allowed_origins.is_empty() {
        // A pair is one layer of axum, which takes fewer allocations than two. A request passes the recorder first.
        return routes.layer((recorder(state.clone()), guard(state.clone())));
    }
    // Refusals of the guard have the headers of CORS too, so that scripts can read the reason.
    let cors = cors_layer(&state.config);
    routes.layer(guard(state.clone())).layer(cors).layer(recorder(state.clone()))
}

fn guard<S>(state: Arc<ServiceState>) -> LayerFn<impl Fn(S) -> RequestGuard<S> + Clone> {
    layer_fn(move |inner| RequestGuard { state: state.clone(), inner })
}

fn recorder<S>(state: Arc<ServiceState>) -> LayerFn<impl Fn(S) -> RequestRecorder<S> + Clone> {
    layer_fn(move |inner| RequestRecorder { state: state.clone(), inner })
}

async fn no_route() -> ServiceError {
    let message = "there is no such path; `/openapi.json` describes all paths";
    ServiceError::new(StatusCode::NOT_FOUND, "no-path", message)
}

async fn no_method() -> ServiceError {
    let message = "the path does not have this method; the header `Allow` has its methods";
    ServiceError::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", message)
}
