//! `GET /openapi.json`: the description of the service in the OpenAPI format.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, Ref, ResponseBuilder};

use super::{compact, compare, document, documents, flush, health, metrics, query, segments, stats, trace};
use crate::messages::{
    AnswerId, BlockDetails, CompactionStarted, CompareMessage, ComparisonAnswer, DeletionAnswer,
    DocumentAnswer, DocumentMessage, ErrorMessage, FlushAnswer, HealthMessage, MatchList, QueryMessage,
    SegmentDetails, ServiceStats, StoredDocumentMessage, TableDetails, TraceAnswer,
};

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

/// The description that the routes' attributes define.
#[derive(OpenApi)]
#[openapi(
    info(title = "simstore", description = "A store of fingerprints or similar documents as a service"),
    paths(
        documents::add_documents,
        document::get_document,
        document::delete_document,
        query::query,
        compare::compare,
        trace::trace,
        flush::flush,
        compact::compact,
        stats::stats,
        segments::segments,
        segments::table,
        segments::block,
        health::livez,
        health::readyz,
        metrics::metrics,
        openapi,
    ),
    components(schemas(
        AnswerId, BlockDetails, CompactionStarted, CompareMessage, ComparisonAnswer, DeletionAnswer,
        DocumentAnswer, DocumentMessage, ErrorMessage, FlushAnswer, HealthMessage, MatchList, QueryMessage,
        SegmentDetails, ServiceStats, StoredDocumentMessage, TableDetails, TraceAnswer
    ))
)]
struct RouteDescriptions;

/// Says whether a route, with this path, has an error. The second argument is whether the route takes a body.
type AppliesTo = fn(&str, bool) -> bool;

/// Errors that many routes have: status, description, routes.
const COMMON_ERRORS: [(&str, &str, AppliesTo); 8] = [
    ("400", "Malformed JSON, an unknown parameter, or a body that ends early", |path, _| takes_input(path)),
    ("401", "No token, or an unknown one", |path, _| needs_token(path)),
    (
        "403",
        "A foreign `Host` or `Origin`, a token for reading alone, or a service that only reads",
        |_, _| true,
    ),
    ("408", "The body did not arrive in time", |path, has_body| has_body && takes_input(path)),
    ("413", "The body is too large, or has too many items", |path, has_body| has_body && takes_input(path)),
    ("415", "The body is neither JSON nor lines of JSON", |path, has_body| has_body && takes_input(path)),
    ("429", "Too many requests under way: try again after the seconds in `Retry-After`", |path, _| {
        is_limited(path)
    }),
    ("503", "The store is being opened, or can no longer be written", |path, _| uses_store(path)),
];

fn takes_input(path: &str) -> bool {
    path.starts_with("/documents")
        || path.starts_with("/segments/")
        || ["/query", "/compare", "/trace"].contains(&path)
}

fn needs_token(path: &str) -> bool {
    !["/livez", "/readyz", "/openapi.json"].contains(&path)
}

fn is_limited(path: &str) -> bool {
    !["/livez", "/readyz", "/metrics"].contains(&path)
}

fn uses_store(path: &str) -> bool {
    !["/livez", "/openapi.json", "/metrics"].contains(&path)
}

/// Adds the common errors to an operation.
fn add_common_errors(path: &str, operation: &mut Operation) {
    let has_body = operation.request_body.is_some();
    for (status, description, applies) in COMMON_ERRORS {
        if applies(path, has_body) && !operation.responses.responses.contains_key(status) {
            let schema = Ref::from_schema_name("ErrorMessage");
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/json", Content::new(Some(schema)));
            operation.responses.responses.insert(status.to_owned(), response.build().into());
        }
    }
}

/// Returns the description of the service as JSON, in the OpenAPI format.
pub fn openapi_json() -> String {
    let mut description = RouteDescriptions::openapi();
    for (path, item) in &mut description.paths.paths {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            add_common_errors(path, operation);
        }
    }
    description.to_pretty_json().unwrap_or_default()
}
