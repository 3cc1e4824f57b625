//! The token that a request needs.

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::{Method, StatusCode};

use crate::access_token::AccessToken;
use crate::config::ServerConfig;
use crate::service_error::{ServiceError, ServiceResult};

/// Right that a request needs: none, the right to read, or the right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeededRight {
    None,
    Read,
    Write,
}

impl NeededRight {
    fn of_request(method: &Method, path: &str) -> NeededRight {
        match (method, path) {
            // Probes have no token. The page and the description of the service contain no data of the store.
            (&Method::GET | &Method::HEAD, "/livez" | "/readyz" | "/" | "/openapi.json") => NeededRight::None,
            (&Method::GET | &Method::HEAD, path) if path.starts_with("/page/") => NeededRight::None,
            (&Method::GET | &Method::HEAD | &Method::OPTIONS, _)
            | (&Method::POST, "/query" | "/compare" | "/trace") => NeededRight::Read,
            _ => NeededRight::Write,
        }
    }
}

/// Refuses a request without the token that it needs.
///
/// # Errors
/// The status 401 or 403.
pub(crate) fn check_token(config: &ServerConfig, request: &Request) -> ServiceResult<()> {
    let needed = NeededRight::of_request(request.method(), request.uri().path());
    let header = request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    check(needed, header, config.read_token.as_ref(), config.write_token.as_ref())
}

fn check(
    needed: NeededRight,
    header: Option<&str>,
    read: Option<&AccessToken>,
    write: Option<&AccessToken>,
) -> ServiceResult<()> {
    let token = header.and_then(|header| {
        let (scheme, token) = header.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let has = |expected: &AccessToken| token.is_some_and(|token| expected.is_equal(token));
    let (can_read, can_write) = (read.is_none_or(has), write.is_none_or(has));
    let is_allowed = match needed {
        NeededRight::None => true,
        NeededRight::Read => can_read || write.is_some_and(has),
        NeededRight::Write => can_write,
    };
    if is_allowed {
        return Ok(());
    }
    if needed == NeededRight::Write && read.is_some_and(has) {
        let message = "this token allows reading alone: send the token for writing";
        return Err(ServiceError::new(StatusCode::FORBIDDEN, "needs-write-token", message));
    }
    let message = "send the header `Authorization: Bearer TOKEN` with a token of this service";
    Err(ServiceError::new(StatusCode::UNAUTHORIZED, "needs-token", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_needs_its_token() {
        let tokens = ["read-token-0123456789", "write-token-0123456789"];
        let [read, write] = tokens.map(|token| AccessToken::new(&format!(" {token}\n")).unwrap());
        let status = |needed, header: Option<&str>| {
            check(needed, header, Some(&read), Some(&write))
                .map_or_else(|error| error.status.as_u16(), |()| 200)
        };
        let (with_read, with_write) = (format!("Bearer {}", tokens[0]), format!("bearer {}", tokens[1]));
        assert_eq!(status(NeededRight::None, None), 200);
        for header in [None, Some(""), Some("Bearer"), Some("Bearer x"), Some(tokens[0]), Some("Basic eDp5")]
        {
            assert_eq!((status(NeededRight::Read, header), status(NeededRight::Write, header)), (401, 401));
        }
        assert_eq!(
            (status(NeededRight::Read, Some(&with_read)), status(NeededRight::Read, Some(&with_write))),
            (200, 200)
        );
        assert_eq!(
            (status(NeededRight::Write, Some(&with_read)), status(NeededRight::Write, Some(&with_write))),
            (403, 200)
        );
        assert!(check(NeededRight::Write, None, None, None).is_ok());
        assert!(check(NeededRight::Read, None, None, Some(&write)).is_ok());
        assert!(check(NeededRight::Write, None, None, Some(&write)).is_err());
    }

    #[test]
    fn routes_need_rights() {
        let right = |method: &str, path| NeededRight::of_request(&method.parse().unwrap(), path);
        assert_eq!((right("GET", "/livez"), right("GET", "/")), (NeededRight::None, NeededRight::None));
        assert_eq!(
            (right("GET", "/documents/7"), right("POST", "/query")),
            (NeededRight::Read, NeededRight::Read)
        );
        for (method, path) in
            [("POST", "/documents"), ("DELETE", "/documents/7"), ("POST", "/flush"), ("POST", "/livez")]
        {
            assert_eq!(right(method, path), NeededRight::Write, "{method} {path}");
        }
    }
}
