//! Logs and metrics of requests.

use std::str::FromStr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, Uri};
use axum::response::Response;
use simstore::{Error, Result};
use tracing::level_filters::LevelFilter;

use crate::metrics::ServiceMetrics;
use crate::request_id::{REQUEST_ID, request_id};
use crate::service_error::ServiceError;

/// Requests that take longer are logged.
const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// Format of the log on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<LogFormat> {
        match name {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(Error::BadArgument(format!("unknown log format `{name}`; expected text or json"))),
        }
    }
}

/// Writes the log of this process to standard error. With `all_requests`, the log has each request; else, only requests that fail or
/// take longer than a second.
pub fn start_logging(format: LogFormat, all_requests: bool) {
    let level = if all_requests { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
    // A process that has a log already keeps it.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(log.with_ansi(false).finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(log.json().flatten_event(true).finish()),
    };
}

/// A request that is being answered.
pub(crate) struct RequestRecord {
    started: Instant,
    id: HeaderValue,
    method: Method,
    route: Option<MatchedPath>,
    uri: Uri,
}

impl RequestRecord {
    /// Begins to measure a request, and gives it an id if it has none.
    pub(crate) fn start(request: &Request) -> RequestRecord {
        RequestRecord {
            started: Instant::now(),
            id: request_id(request.headers()),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
            uri: request.uri().clone(),
        }
    }

    /// Counts and measures a request, logs it if it failed or was slow, and adds its id to the answer.
    pub(crate) fn finish(self, metrics: &ServiceMetrics, response: &mut Response) {
        let RequestRecord { started, id, method, route, uri } = self;
        let (elapsed, status, path) = (started.elapsed(), response.status(), uri.path());
        // A path without a route counts as one route, so that the number of metrics is bounded.
        let route = route.as_ref().map_or("other", MatchedPath::as_str);
        metrics.observe_request(&method, route, status, elapsed);
        let milliseconds = elapsed.as_secs_f64() * 1e3;
        let request_id = id.to_str().unwrap_or_default();
        let error = response.extensions().get::<ServiceError>();
        let error = error.map_or("", |error| error.message.as_str());
        if status.is_server_error() {
            tracing::warn!(request_id, %method, path, status = status.as_u16(), milliseconds, error, "request failed");
        } else if status.is_client_error() {
            tracing::info!(request_id, %method, path, status = status.as_u16(), milliseconds, error, "request refused");
        } else if elapsed > SLOW_REQUEST {
            tracing::info!(request_id, %method, path, status = status.as_u16(), milliseconds, "slow request");
        } else {
            tracing::debug!(request_id, %method, path, status = status.as_u16(), milliseconds, "request");
        }
        response.headers_mut().insert(REQUEST_ID, id);
    }
}
