//! Services that read a store beside another process that writes.

use std::time::Duration;

use serde_json::{Value, json};
use simstore_server::ServerConfig;

use crate::support::{Answer, Random, TestService, client, create_fingerprints, hex, random_text};

/// Starts a service that follows the store of another service. Returns it with its address.
fn follow(service: &TestService) -> (simstore_server::RunningService, String) {
    let config = ServerConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        read_only: true,
        refresh: Duration::from_millis(5),
        ..ServerConfig::new(&service.store())
    };
    let mut follower = simstore_server::RunningService::start(&config).unwrap();
    follower.wait_until_ready().unwrap();
    let url = format!("http://{}", follower.address());
    (follower, url)
}

fn post(url: &str, path: &str, body: &Value) -> Answer {
    Answer::read(client().post(format!("{url}{path}")).json(body).send().unwrap())
}

/// Asks again until the answer is as expected. Without the answer, the test does not end.
fn wait_for(url: &str, query: &Value, is_expected: impl Fn(&Value) -> bool) {
    while !is_expected(&post(url, "/query", query).with_status(200)) {
        std::thread::yield_now();
    }
}

#[test]
fn a_follower_sees_inserts_flushes_and_deletions() {
    let service = TestService::start(|path| create_fingerprints::<u64>(path, 3), |_| ());
    let (follower, url) = follow(&service);
    for round in 0..10 {
        let fingerprint = hex(Random::hash(round));
        service.post("/documents", &json!({"id": round, "fingerprint": fingerprint})).with_status(201);
        wait_for(&url, &json!({"fingerprint": fingerprint}), |answer| answer["matches"][0]["id"] == round);
        if round % 4 == 3 {
            service.post("/flush", &json!({})).with_status(200);
        }
    }
    service.delete("/documents/5").with_status(200);
    wait_for(&url, &json!({"fingerprint": hex(Random::hash(5))}), |answer| answer["total"] == 0);
    let get = |path: &str| Answer::read(client().get(format!("{url}{path}")).send().unwrap());
    assert_eq!(get("/documents/6").with_status(200)["fingerprints"], json!([hex(Random::hash(6))]));
    get("/documents/5").fails(404, "no-document", "`5`");
    assert_eq!(post(&url, "/query", &json!({"id": 6})).with_status(200)["total"], 0);
    assert_eq!(get("/stats").with_status(200)["read_only"], true);
    for (method, path) in
        [("POST", "/documents"), ("DELETE", "/documents/6"), ("POST", "/flush"), ("POST", "/compact")]
    {
        let request = client().request(method.parse().unwrap(), format!("{url}{path}"));
        let request = request.json(&json!({"id": 1, "fingerprint": hex(1)}));
        Answer::read(request.send().unwrap()).fails(403, "read-only", "only reads");
    }
    follower.stop().unwrap();
}

#[test]
fn a_follower_of_similar_documents() {
    let service = TestService::similar();
    let (follower, url) = follow(&service);
    let text = random_text(&mut Random(7), 60);
    service.post("/documents", &json!({"id": "page", "text": text})).with_status(201);
    wait_for(&url, &json!({"text": format!("{text} more")}), |answer| answer["matches"][0]["id"] == "page");
    let get = |path: &str| Answer::read(client().get(format!("{url}{path}")).send().unwrap());
    assert_eq!(get("/documents/page").with_status(200), json!({"id": "page", "text": text}));
    service.delete("/documents/page").with_status(200);
    wait_for(&url, &json!({"text": text}), |answer| answer["total"] == 0);
    get("/documents/page").fails(404, "no-document", "page");
    follower.stop().unwrap();
}
