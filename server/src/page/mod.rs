//! The page of the service: its files, which are part of the program.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_64;

use crate::service_error::ServiceError;

/// The page loads its own files, asks this service, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Name and content of a file below `/page/`.
type PageFile = (&'static str, &'static str);

macro_rules! page_files {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!($name))),+] };
}

const FILES: [PageFile; 14] = page_files![
    "block_view.js", "code_histogram.js", "comparison.js", "elements.js", "health_view.js", "icon.svg",
    "main.js", "page.css", "query_view.js", "service.js", "store_view.js", "threshold.js", "trace_view.js",
    "verdicts.js",
];

/// Serves the page.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    serve_file("text/html; charset=utf-8", include_str!("page.html"), &headers)
}

/// Serves a file of the page.
pub(crate) async fn page_file(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let file = FILES.iter().find(|(file, _)| *file == name);
    let &(name, content) = file.ok_or_else(|| {
        ServiceError::new(StatusCode::NOT_FOUND, "no-path", "the page has no such file; `/` is the page")
    })?;
    let media_type = match name.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    };
    Ok(serve_file(media_type, content, &headers))
}

/// Answers with a file, or with the status 304 if the client has it. A client asks each time, so that a new version of the service is
/// never mixed with an old page.
fn serve_file(media_type: &'static str, content: &'static str, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:016x}\"", xxh3_64(content.as_bytes()));
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let security = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, security, [(ETAG, tag)]).into_response();
    }
    (security, [(CONTENT_TYPE, media_type.to_owned()), (ETAG, tag)], content).into_response()
}
