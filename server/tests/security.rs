//! Tokens, hosts, origins, and TLS.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use reqwest::blocking::{Client, RequestBuilder};
use serde_json::json;
use simstore_server::{AccessToken, ServerConfig, TlsFiles};

use crate::support::{
    Answer, RawConnection, TestService, client_builder, create_fingerprints, hex, wait_for_requests,
};

const READ_TOKEN: &str = "read-token-0123456789";
const WRITE_TOKEN: &str = "write-token-0123456789";

fn token(text: &str) -> Option<AccessToken> {
    Some(AccessToken::new(text).unwrap())
}

/// All routes: method, path, and the status without a token, with a wrong one, with the token for reading, and with the one for
/// writing.
const ROUTES: [(&str, &str, [u16; 4]); 11] = [
    ("GET", "/livez", [200; 4]),
    ("GET", "/readyz", [200; 4]),
    ("GET", "/openapi.json", [200; 4]),
    ("GET", "/metrics", [401, 401, 200, 200]),
    ("GET", "/stats", [401, 401, 200, 200]),
    ("GET", "/documents/1", [401, 401, 404, 404]),
    ("POST", "/query", [401, 401, 200, 200]),
    ("POST", "/documents", [401, 401, 403, 201]),
    ("DELETE", "/documents/1", [401, 401, 403, 200]),
    ("POST", "/flush", [401, 401, 403, 200]),
    ("POST", "/compact", [401, 401, 403, 202]),
];

#[test]
fn each_route_needs_its_token() {
    let create = |path: &Path| create_fingerprints::<u64>(path, 3);
    let service = TestService::start(create, |config| {
        (config.read_token, config.write_token) = (token(READ_TOKEN), token(WRITE_TOKEN));
    });
    for (method, path, statuses) in ROUTES {
        let tokens = [None, Some("wrong-token-0123456789"), Some(READ_TOKEN), Some(WRITE_TOKEN)];
        for (token, status) in tokens.into_iter().zip(statuses) {
            let request = service.request(method, path).header("content-type", "application/json");
            let request = if method == "POST" {
                request.body(json!({"fingerprint": hex(1)}).to_string())
            } else {
                request
            };
            let request = token.into_iter().fold(request, RequestBuilder::bearer_auth);
            // The document that a POST stored has the id 0.
            let request = if method == "DELETE" && status == 200 {
                service.request(method, "/documents/0").bearer_auth(WRITE_TOKEN)
            } else {
                request
            };
            let response = request.send().unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {path} {token:?}");
            let asks = response.headers().get("www-authenticate").map(|value| value.to_str().unwrap());
            assert_eq!(asks, (status == 401).then_some("Bearer"), "{method} {path}");
            if status == 401 {
                Answer::read(response).fails(401, "needs-token", "Authorization: Bearer");
            } else if status == 403 {
                Answer::read(response).fails(403, "needs-write-token", "for writing");
            }
        }
    }
}

#[test]
fn web_pages_of_other_origins_are_refused() {
    let create = |path: &Path| create_fingerprints::<u64>(path, 3);
    let service =
        TestService::start(create, |config| config.allowed_origins.push("https://example.org".into()));
    let own = service.url.clone();
    let with =
        |header: &str, value: &str| service.request("GET", "/stats").header(header, value).send().unwrap();
    assert_eq!(with("origin", &own).status().as_u16(), 200);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        Answer::read(with("origin", origin)).fails(403, "foreign-origin", "allow_origin");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "10.1.2.3:80"] {
        Answer::read(with("host", host)).fails(403, "foreign-host", "`Host`");
    }
    assert_eq!(with("host", "localhost:1").status().as_u16(), 200);
    let allowed = with("origin", "https://example.org");
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://example.org");
    let preflight = service.request("OPTIONS", "/documents").header("origin", "https://example.org");
    let preflight = preflight.header("access-control-request-method", "POST").send().unwrap();
    assert_eq!(preflight.status().as_u16(), 200);
    assert!(preflight.headers()["access-control-allow-methods"].to_str().unwrap().contains("POST"));

    // Every answer has the id of its request. Only answers to an allowed origin have headers for it, refusals too.
    let tokens = TestService::start(create, |config| {
        config.allowed_origins.push("https://example.org".into());
        config.write_token = Some(AccessToken::new("write-token-0123456789").unwrap());
        config.limits.requests = 1;
    });
    let body = json!({"fingerprint": hex(1)}).to_string();
    let held = RawConnection::begin(&tokens, "/query", 1000, "{");
    wait_for_requests(&tokens, 1);
    let send = |method: &str, path: &str, origin: &str| {
        let request = tokens.request(method, path).header("origin", origin);
        request.header("content-type", "application/json").body(body.clone()).send().unwrap()
    };
    for (method, path, origin, status) in [
        ("POST", "/documents", "https://example.org", 401),
        ("POST", "/query", "https://example.org", 429),
        ("GET", "/livez", "https://example.org", 200),
        ("POST", "/documents", "https://evil.example", 403),
        ("OPTIONS", "/documents", "https://evil.example", 403),
        ("OPTIONS", "/nowhere", "https://evil.example", 403),
    ] {
        let response = send(method, path, origin);
        assert_eq!(response.status().as_u16(), status, "{method} {path} {origin}");
        assert!(response.headers().contains_key("x-request-id"), "{method} {path}");
        let allowed = response.headers().contains_key("access-control-allow-origin");
        assert_eq!(allowed, origin == "https://example.org", "{method} {path} {origin}");
    }
    drop(held);
    let metrics = tokens.request("GET", "/metrics").send().unwrap().text().unwrap();
    for (method, route, status) in
        [("POST", "/documents", 401), ("POST", "/query", 429), ("OPTIONS", "/documents", 403)]
    {
        let row = format!(
            "simstore_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} 1\n"
        );
        assert!(metrics.contains(&row), "{row}: {metrics}");
    }

    let closed = TestService::fingerprints();
    let preflight = closed.request("OPTIONS", "/documents").header("origin", "https://example.org");
    let preflight = preflight.header("access-control-request-method", "POST").send().unwrap();
    assert_eq!(preflight.status().as_u16(), 403);
    assert!(!preflight.headers().contains_key("access-control-allow-origin"));
}

/// Writes a new certificate for localhost and its key. Returns the certificate in PEM format.
fn write_certificate(files: &TlsFiles) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    made.cert.pem()
}

fn client_that_trusts(certificate: &str) -> Client {
    let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    client_builder().tls_certs_only([certificate]).build().unwrap()
}

#[test]
fn certificates_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let files = TlsFiles { certificate: path("cert.pem"), key: path("key.pem") };
    let first = write_certificate(&files);
    let create = |path: &Path| create_fingerprints::<u64>(path, 3);
    let service = TestService::start(create, |config| config.tls = Some(files.clone()));
    let url = service.url.replace("127.0.0.1", "localhost");
    let get = |certificate: &str| client_that_trusts(certificate).get(format!("{url}/livez")).send();
    let answer = get(&first).unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert!(service.client.get(format!("{url}/livez")).send().is_err(), "an unknown certificate");
    // Files that cannot be used leave the old certificate in place.
    std::fs::write(&files.certificate, "no certificate").unwrap();
    assert!(get(&first).is_ok());
    let second = write_certificate(&files);
    let started = SystemTime::now();
    while get(&second).is_err() {
        assert!(started.elapsed().unwrap().as_secs() < 120, "the new certificate is not used");
    }
    assert!(get(&first).is_err(), "the old certificate is still used");
}

#[test]
fn unusable_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    create_fingerprints::<u64>(&store, 3);
    let refused = |change: &dyn Fn(&mut ServerConfig)| {
        let mut config =
            ServerConfig { address: "127.0.0.1:0".parse().unwrap(), ..ServerConfig::new(&store) };
        change(&mut config);
        let error = simstore_server::RunningService::start(&config).map(drop).unwrap_err();
        error.to_string()
    };
    assert!(refused(&|config| config.address = "0.0.0.0:0".parse().unwrap()).contains("loopback"));
    let tls = TlsFiles { certificate: folder.path().join("a.pem"), key: folder.path().join("b.pem") };
    assert!(refused(&|config| config.tls = Some(tls.clone())).contains("a.pem"));
    assert!(refused(&|config| config.limits.requests = 0).contains("limit is 0"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    assert!(refused(&|config| config.address = address).contains(&address.to_string()));
}
