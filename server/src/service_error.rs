//! Errors of requests: their status, code and message.

use std::io::ErrorKind;

use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use simstore::Error;
use simstore::error::{ErrorCode, excerpt};

use crate::messages::{ErrorMessage, JsonId, json_response};

/// Result of a request, or of a part of it.
pub(crate) type ServiceResult<T> = Result<T, ServiceError>;

/// Reason why a request failed, as its answer reports it.
#[derive(Clone, Debug)]
pub(crate) struct ServiceError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// Seconds after which a client may try again, in the header `Retry-After`.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

impl ServiceError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ServiceError {
        ServiceError { status, code, message: message.into() }
    }

    /// Returns the error for content that is valid JSON, but that the service cannot use.
    pub(crate) fn unusable(code: &'static str, message: impl Into<String>) -> ServiceError {
        ServiceError::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// Returns the error for an id that is stored with other content.
    pub(crate) fn conflict(message: impl Into<String>) -> ServiceError {
        ServiceError::new(StatusCode::CONFLICT, "id-conflict", message)
    }

    /// Returns the error for a write request to a service that only reads.
    pub(crate) fn read_only() -> ServiceError {
        let message = "this service only reads: send the request to the service that writes to the store";
        ServiceError::new(StatusCode::FORBIDDEN, "read-only", message)
    }

    /// Returns the error for a request that came before the store was open.
    pub(crate) fn not_ready() -> ServiceError {
        let message = "the store is being opened, and its logs are read: try again in a moment";
        ServiceError::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", message)
    }

    /// Returns the error for a text that has no features.
    pub(crate) fn empty_text() -> ServiceError {
        ServiceError::unusable("empty-text", "the text has no words, so nothing is similar to it")
    }

    /// Returns the error for a document that is not stored.
    pub(crate) fn no_document(id: &JsonId) -> ServiceError {
        let message = format!("no document has the id `{}`", excerpt(&id.to_string()).escape_debug());
        ServiceError::new(StatusCode::NOT_FOUND, "no-document", message)
    }

    /// Returns the error for a panic, which is a bug.
    pub(crate) fn panicked() -> ServiceError {
        Error::Bug("a request failed unexpectedly".to_owned()).into()
    }

    /// Returns the body of the answer.
    pub(crate) fn body(&self) -> ErrorMessage {
        ErrorMessage { error: self.message.clone(), code: self.code.to_owned() }
    }
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let status = match error.code() {
            ErrorCode::BadArgument | ErrorCode::BadInput | ErrorCode::Distance | ErrorCode::Width => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ErrorCode::Exhausted => StatusCode::INSUFFICIENT_STORAGE,
            ErrorCode::Io if is_disk_full(&error) => StatusCode::INSUFFICIENT_STORAGE,
            ErrorCode::Bug => StatusCode::INTERNAL_SERVER_ERROR,
            // The rest says that the store is not usable for this request now: poisoned, damaged, closed.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        ServiceError::new(status, error.code().name(), error.to_string())
    }
}

fn is_disk_full(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.body());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, RETRY_SECONDS);
            }
            _ => {}
        }
        // A method that is not allowed has the header `Allow` from the router.
        debug_assert!(self.status != StatusCode::METHOD_NOT_ALLOWED || !headers.contains_key(ALLOW));
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn errors_of_the_engine_have_a_status() {
        let io =
            |kind: ErrorKind| Error::Io { path: "s".into(), action: "write", source: io::Error::from(kind) };
        for (error, status, code) in [
            (Error::BadArgument("a".into()), 422, "bad-argument"),
            (Error::Distance { path: "s".into(), requested: 9, supported: 3 }, 422, "distance"),
            (io(ErrorKind::StorageFull), 507, "io"),
            (io(ErrorKind::PermissionDenied), 503, "io"),
            (Error::Poisoned { path: "s".into(), reason: "r".into() }, 503, "poisoned"),
            (Error::Bug("b".into()), 500, "bug"),
        ] {
            let error = ServiceError::from(error);
            assert_eq!((error.status.as_u16(), error.code), (status, code), "{}", error.message);
        }
    }
}
