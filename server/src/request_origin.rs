//! Protection from web pages of other origins, which a browser lets send requests to a service on the same machine.

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use tower_http::cors::{AllowHeaders, CorsLayer};

use crate::config::ServerConfig;
use crate::service_error::{ServiceError, ServiceResult};

/// Refuses a request of a web page of another origin, and a request to a loopback address by a foreign host name: a web page can let
/// its own name resolve to 127.0.0.1 (DNS rebinding).
///
/// # Errors
/// The status 403.
pub(crate) fn check_origin(config: &ServerConfig, request: &Request) -> ServiceResult<()> {
    let authority = request.uri().authority().map(Authority::as_str);
    let host = authority.or_else(|| header(request.headers(), &HOST)).unwrap_or_default();
    check(config, host, request.headers().get(ORIGIN))
}

fn header<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn check(config: &ServerConfig, host: &str, origin: Option<&HeaderValue>) -> ServiceResult<()> {
    if config.address.ip().is_loopback() && !is_own_host(config, host) {
        return Err(ServiceError::new(
            StatusCode::FORBIDDEN,
            "foreign-host",
            "the header `Host` names neither localhost nor a host that the service was started for (option `allow_host`)",
        ));
    }
    let Some(origin) = origin else { return Ok(()) };
    let is_own = origin.to_str().is_ok_and(|origin| {
        let of_service = if config.tls.is_some() { "https://" } else { "http://" };
        origin
            .strip_prefix(of_service)
            .is_some_and(|origin| !origin.is_empty() && origin.eq_ignore_ascii_case(host))
            || config.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    });
    if is_own {
        return Ok(());
    }
    Err(ServiceError::new(
        StatusCode::FORBIDDEN,
        "foreign-origin",
        "a web page of another origin sent this request, which needs the service's option `allow_origin`",
    ))
}

/// Whether a host name, with or without a port, is a name of this machine, or one that the settings allow.
fn is_own_host(config: &ServerConfig, host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        || config.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Returns the layer that answers browsers' questions about the allowed origins (CORS).
pub(crate) fn cors_layer(config: &ServerConfig) -> CorsLayer {
    let origins = config.allowed_origins.iter().filter_map(|origin| origin.parse::<HeaderValue>().ok());
    CorsLayer::new()
        .allow_origin(origins.collect::<Vec<_>>())
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::list([
            axum::http::header::AUTHORIZATION,
            axum::http::header::CONTENT_TYPE,
            crate::request_id::REQUEST_ID,
        ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_hosts_and_origins_are_refused() {
        let config = ServerConfig {
            allowed_origins: vec!["https://example.org".into()],
            allowed_hosts: vec!["pages.example.net".into()],
            ..ServerConfig::new("s".as_ref())
        };
        let code = |host: &str, origin: Option<&str>| {
            let origin = origin.map(|origin| HeaderValue::from_str(origin).unwrap());
            check(&config, host, origin.as_ref()).map_or_else(|error| error.code, |()| "ok")
        };
        for host in [
            "localhost", "LOCALHOST:8120", "127.0.0.1:1", "127.1.2.3", "[::1]:8120", "[::1]",
            "pages.example.net",
        ] {
            assert_eq!(code(host, None), "ok", "{host}");
        }
        for host in [
            "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
            "[2001:db8::1]", "@",
        ] {
            assert_eq!(code(host, None), "foreign-host", "{host}");
        }
        for origin in ["http://localhost:8120", "https://example.org"] {
            assert_eq!(code("localhost:8120", Some(origin)), "ok", "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://",
            "https://localhost:8120",
            "http://localhost",
            "http://evil.example",
            "https://example.org.evil.example",
        ] {
            assert_eq!(code("localhost:8120", Some(origin)), "foreign-origin", "{origin}");
        }
        let public = ServerConfig { address: "0.0.0.0:80".parse().unwrap(), ..config };
        assert!(check(&public, "any.example", None).is_ok());
        assert!(
            check(&public, "any.example", Some(&HeaderValue::from_static("http://evil.example"))).is_err()
        );
    }
}
