//! A table of bad requests to each route: status, code and message.

use serde_json::json;

use crate::support::{Answer, TestService, hex};

/// Bodies that no route takes: body, status, code, part of the message.
const BAD_BODIES: [(&str, u16, &str, &str); 19] = [
    ("", 400, "malformed-json", "EOF while parsing a value at line 1 column 0"),
    ("{", 400, "malformed-json", "line 1 column 1"),
    ("[", 400, "malformed-json", "line 1 column 1"),
    ("{\"id\": 1,\n \"text\" \"x\"}", 400, "malformed-json", "line 2 column 9"),
    ("{} {}", 400, "malformed-json", "trailing characters at line 1 column 4"),
    ("[] 1", 400, "malformed-json", "trailing characters"),
    ("nonsense", 400, "malformed-json", "line 1 column 2"),
    ("{\"text\": \"\\ud800\"}", 400, "malformed-json", "line 1 column 17"),
    ("{\"text\": \"a\nb\"}", 400, "malformed-json", "control character"),
    ("{\"text\": \"\u{ff}\"", 400, "malformed-json", "EOF"),
    ("null", 422, "invalid-member", "expected struct"),
    ("7", 422, "invalid-member", "expected struct"),
    ("\"text\"", 422, "invalid-member", "expected struct"),
    ("{}", 422, "invalid-member", "`text`"),
    ("{\"text\": 1}", 422, "invalid-member", "expected a string"),
    ("{\"txt\": \"a\"}", 422, "invalid-member", "unknown field `txt`"),
    ("{\"text\": \"a\", \"text\": \"b\"}", 422, "invalid-member", "duplicate field `text`"),
    ("{\"text\": \"a\", \"fingerprint\": \"0123456789abcdef\"}", 422, "invalid-member", "`text`"),
    ("{\"fingerprint\": 81985529216486895}", 422, "invalid-member", "JSON libraries round numbers"),
];

#[test]
fn bad_bodies() {
    let service = TestService::fingerprints();
    for path in ["/documents", "/query"] {
        for (body, status, code, message) in BAD_BODIES {
            let answer = service.post_bytes(path, body);
            assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
            answer.fails(status, code, message);
        }
        service.post_bytes(path, b"{\"text\": \"\xff\"}".to_vec()).fails(400, "malformed-json", "unicode");
        let long = service.post_bytes(path, format!("{{\"{}\": 1}}", "x".repeat(100_000)));
        assert!(long.body["error"].as_str().unwrap().len() < 300, "{}", long.body);
        long.fails(422, "invalid-member", "at line 1 column 100003");
        let deep = "[".repeat(100_000);
        service.post_bytes(path, deep.into_bytes()).fails(400, "malformed-json", "line 1");
        let nested = format!("{{\"text\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
        assert!([400, 422].contains(&service.post_bytes(path, nested).status));
    }
    assert_eq!(service.get("/stats").body["documents"], 0);
}

#[test]
fn bad_documents() {
    let service = TestService::fingerprints();
    let digits = hex(7);
    for (body, message) in [
        (format!("{{\"id\": 9007199254740992, \"fingerprint\": \"{digits}\"}}"), "as a string"),
        (format!("{{\"id\": 18446744073709551616, \"fingerprint\": \"{digits}\"}}"), "as a string"),
        (format!("{{\"id\": 1.5, \"fingerprint\": \"{digits}\"}}"), "as a string"),
        (format!("{{\"id\": -1, \"fingerprint\": \"{digits}\"}}"), "an id"),
        (format!("{{\"id\": [1], \"fingerprint\": \"{digits}\"}}"), "an id"),
        (format!("{{\"id\": \"{}\", \"fingerprint\": \"{digits}\"}}", "x".repeat(65_537)), "65536"),
        ("{\"id\": 1, \"fingerprint\": \"123\"}".to_owned(), "16 or 32 hexadecimal digits"),
        ("{\"id\": 1, \"fingerprint\": \"0123456789abcdeg\"}".to_owned(), "16 or 32 hexadecimal digits"),
        ("{\"id\": 1, \"fingerprint\": \"é23456789abcdeé\"}".to_owned(), "16 or 32 hexadecimal digits"),
        ("{\"id\": 1, \"fingerprint\": null}".to_owned(), "either"),
    ] {
        service.post_bytes("/documents", body.clone()).fails(422, "invalid-member", message);
    }
    let wide = service.post("/documents", &json!({"id": 1, "fingerprint": "0".repeat(32)}));
    wide.fails(422, "bad-argument", "64-bit");
    assert_eq!(service.get("/stats").body["documents"], 0);
}

#[test]
fn bad_queries() {
    let service = TestService::fingerprints();
    let digits = hex(7);
    for (body, code, message) in [
        (json!({"fingerprint": digits, "distance": -1}), "invalid-member", "-1"),
        (json!({"fingerprint": digits, "distance": 1.5}), "invalid-member", "1.5"),
        (json!({"fingerprint": digits, "distance": 4}), "distance", "more than the 3"),
        (json!({"fingerprint": digits, "similarity": 0.9}), "wrong-kind", "distance"),
        (json!({"fingerprint": digits, "limit": -1}), "invalid-member", "-1"),
        (json!({"fingerprint": digits, "limit": 10_001}), "limit", "10000"),
        (json!({"fingerprint": digits, "id": 1}), "invalid-member", "exactly one"),
        (json!({"fingerprint": "0".repeat(32)}), "bad-argument", "64-bit"),
    ] {
        service.post("/query", &body).fails(422, code, message);
    }
    let similar = TestService::similar();
    for (body, code, message) in [
        (json!({"text": "a", "similarity": 1.5}), "similarity", "from 0.8 to 1"),
        (json!({"text": "a", "similarity": -1}), "similarity", "from 0.8 to 1"),
        (json!({"text": "a", "similarity": 0.79}), "similarity", "less than the 0.8"),
        (json!({"text": "a", "similarity": "0.9"}), "invalid-member", "expected f64"),
    ] {
        similar.post("/query", &body).fails(422, code, message);
    }
    similar
        .post_bytes("/query", "{\"text\": \"a\", \"similarity\": 1e999}")
        .fails(400, "malformed-json", "range");
}

#[test]
fn bad_addresses_methods_and_types() {
    let service = TestService::fingerprints();
    for (method, path) in
        [("GET", "/nowhere"), ("POST", "/nothing"), ("GET", "/documents/1/2"), ("DELETE", "/stats/")]
    {
        let answer = Answer::read(service.request(method, path).send().unwrap());
        answer.fails(404, "no-path", "/openapi.json");
    }
    for (method, path, allowed) in [
        ("GET", "/documents", "POST"),
        ("PUT", "/documents/7", "GET,HEAD,DELETE"),
        ("GET", "/query", "POST"),
        ("DELETE", "/query", "POST"),
        ("GET", "/compare", "POST"),
        ("GET", "/trace", "POST"),
        ("POST", "/segments", "GET,HEAD"),
        ("POST", "/", "GET,HEAD"),
        ("DELETE", "/page/main.js", "GET,HEAD"),
        ("GET", "/flush", "POST"),
        ("GET", "/compact", "POST"),
        ("POST", "/stats", "GET,HEAD"),
        ("POST", "/livez", "GET,HEAD"),
        ("PATCH", "/readyz", "GET,HEAD"),
        ("POST", "/metrics", "GET,HEAD"),
        ("BREW", "/openapi.json", "GET,HEAD"),
    ] {
        let response = service.request(method, path).send().unwrap();
        assert_eq!(response.headers()["allow"], allowed, "{method} {path}");
        Answer::read(response).fails(405, "no-method", "`Allow`");
    }
    for content_type in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonl")]
    {
        for path in ["/documents", "/query"] {
            let request = service.request("POST", path).body("{}");
            let request =
                content_type.into_iter().fold(request, |request, kind| request.header("content-type", kind));
            Answer::read(request.send().unwrap()).fails(415, "media-type", "application/json");
        }
    }
    let request = service.request("POST", "/query").header("content-type", "Application/JSON; charset=utf-8");
    let request = request.body(json!({"fingerprint": hex(1)}).to_string());
    Answer::read(request.send().unwrap()).with_status(200);
    for query in
        ["if_new=maybe", "durability=never", "if_news=true", "if_new=true&if_new=false", "durability"]
    {
        let answer = service.post(&format!("/documents?{query}"), &json!({"fingerprint": hex(1)}));
        assert_eq!((answer.status, answer.body["code"].as_str()), (400, Some("bad-parameter")), "{query}");
    }
    let answer = Answer::read(service.request("DELETE", "/documents/1?if_new=true").send().unwrap());
    answer.fails(400, "bad-parameter", "if_new");
    let answer = Answer::read(service.request("GET", "/documents/%ff").send().unwrap());
    answer.fails(400, "bad-parameter", "UTF-8");
    assert_eq!(service.get("/documents/%00%0a").status, 404);
}

#[test]
fn answers_carry_the_id_of_the_request() {
    let service = TestService::fingerprints();
    let id = |request: reqwest::blocking::RequestBuilder| {
        request.send().unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(id(service.request("GET", "/stats").header("x-request-id", "abc-1")), "abc-1");
    assert_eq!(id(service.request("GET", "/nowhere").header("x-request-id", "abc-2")), "abc-2");
    let made = id(service.request("GET", "/stats").header("x-request-id", "a b"));
    assert!(made.len() == 16 && made != id(service.request("GET", "/stats")), "{made}");
}
