//! `/openapi.json` against what the service does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use reqwest::blocking::RequestBuilder;
use serde_json::{Value, json};
use simstore_server::{AccessToken, RunningService, ServerConfig, openapi_json};

use crate::support::{
    DiskMode, GatedDisk, RawConnection, TestService, client, create_fingerprints, create_similar, hex,
    wait_for_requests,
};

/// Method and path of an operation.
type Route = (String, String);

fn description() -> Value {
    serde_json::from_str(&openapi_json()).unwrap()
}

/// Returns a path with values for its parameters.
fn example_path(path: &str) -> String {
    path.replace("{id}", "7").replace("{segment}", "1").replace("{table}", "0").replace("{block}", "0")
}

/// Statuses of all operations, by method and path.
fn documented() -> BTreeMap<Route, BTreeSet<u16>> {
    let mut routes = BTreeMap::new();
    for (path, item) in description()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            let statuses = statuses.map(|status| status.parse().unwrap()).collect();
            routes.insert((method.to_uppercase(), path.clone()), statuses);
        }
    }
    routes
}

#[test]
fn all_served_routes_are_documented() {
    let service = TestService::fingerprints();
    let routes = documented();
    let paths: BTreeSet<&String> = routes.keys().map(|(_, path)| path).collect();
    for path in paths {
        // The header `Allow` of a method that no path has names all methods of the path.
        let response = service.request("BREW", &example_path(path)).send().unwrap();
        assert_eq!(response.status().as_u16(), 405, "{path}");
        let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
        let served: BTreeSet<String> =
            allowed.split(',').filter(|method| *method != "HEAD").map(str::to_owned).collect();
        let of_path = routes.keys().filter(|(_, other)| other == path);
        assert_eq!(served, of_path.map(|(method, _)| method.clone()).collect(), "{path}");
    }
    // The source of the router lists the paths, so that none is missing here.
    let router = include_str!("../src/router.rs");
    let served: BTreeSet<&str> =
        router.split(".route(\"").skip(1).map(|route| route.split('"').next().unwrap()).collect();
    let served: BTreeSet<&str> =
        served.into_iter().filter(|path| *path != "/" && !path.starts_with("/page/")).collect();
    assert_eq!(served, routes.keys().map(|(_, path)| path.as_str()).collect());
    let answer = service.get("/openapi.json").with_status(200);
    assert_eq!(answer, description());
}

#[test]
fn the_examples_run() {
    let service = TestService::start(|path| create_fingerprints::<u64>(path, 3), |_| ());
    let similar = TestService::start(|path| create_similar(path, true), |_| ());
    let mut run = 0;
    for path in ["/documents", "/query", "/compare", "/trace"] {
        let content = &description()["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        // `text` comes first, so that the other examples find the document 7.
        let mut examples: Vec<(&String, &Value)> = content["examples"].as_object().unwrap().iter().collect();
        examples.sort_by_key(|(name, _)| *name != "text");
        for (name, example) in examples {
            let answer = service.post(path, &example["value"]);
            assert!([200, 201].contains(&answer.status), "{path} {name}: {}", answer.body);
            if !example["value"].to_string().contains("fingerprint") {
                let answer = similar.post(path, &example["value"]);
                assert!([200, 201].contains(&answer.status), "{path} {name}: {}", answer.body);
            }
            run += 1;
        }
    }
    assert_eq!(run, 11);
    let found = similar.post("/query", &json!({"text": "To be or not to be: that is the question!"}));
    assert_eq!(found.with_status(200)["matches"][0]["id"], 7);
}

/// Collects the statuses that requests of these tests get, and checks that each is documented.
struct StatusCollector {
    documented: BTreeMap<Route, BTreeSet<u16>>,
    seen: BTreeMap<Route, BTreeSet<u16>>,
}

impl StatusCollector {
    fn record(&mut self, method: &str, path: &str, status: u16) {
        let route = (method.to_owned(), path.to_owned());
        assert!(self.documented[&route].contains(&status), "{method} {path}: {status} is not documented");
        self.seen.entry(route).or_default().insert(status);
    }

    /// Sends a request, with a document as its body, and records the status.
    fn send(
        &mut self,
        service: &TestService,
        method: &str,
        path: &str,
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> u16 {
        let request = service.request(method, &example_path(path));
        let request = if method == "POST" { request.json(&json!({"fingerprint": hex(7)})) } else { request };
        let status = change(request).send().unwrap().status().as_u16();
        self.record(method, path, status);
        status
    }

    fn routes(&self) -> Vec<Route> {
        self.documented.keys().cloned().collect()
    }
}

#[test]
fn each_documented_status_occurs() {
    let mut statuses = StatusCollector { documented: documented(), seen: BTreeMap::new() };
    let create = |path: &std::path::Path| create_fingerprints::<u64>(path, 3);
    let with_body = ["/documents", "/query", "/compare", "/trace"];

    // A service with small limits: success, foreign hosts, and each kind of bad input.
    let service = TestService::start(create, |config| {
        config.limits.body_bytes = 1000;
        config.limits.requests = 1;
        config.limits.idle_time = Duration::from_millis(300);
    });
    let numbered = json!({"id": 7, "fingerprint": hex(7)});
    statuses.send(&service, "POST", "/documents", |request| request.json(&numbered));
    statuses.send(&service, "POST", "/documents", |request| request.json(&numbered));
    statuses.send(&service, "POST", "/documents", |request| {
        request.json(&json!({"id": 7, "fingerprint": hex(8)}))
    });
    statuses.send(&service, "POST", "/query", |request| request);
    statuses.send(&service, "POST", "/query", |request| request.json(&json!({"id": 8})));
    statuses.send(&service, "POST", "/trace", |request| request);
    statuses.send(&service, "POST", "/trace", |request| request.json(&json!({"id": 8})));
    for id in [7, 8] {
        let body = json!({"a": {"id": id}, "b": {"fingerprint": hex(8)}});
        statuses.send(&service, "POST", "/compare", |request| request.json(&body));
    }
    assert_eq!(statuses.send(&service, "POST", "/flush", |request| request), 200);
    assert_eq!(statuses.send(&service, "GET", "/segments", |request| request), 200);
    let number = service.get("/segments").with_status(200)[0]["number"].to_string();
    for path in ["/segments/{segment}/tables/{table}", "/segments/{segment}/tables/{table}/blocks/{block}"] {
        for (segment, status) in [(&*number, 200), ("99", 404), ("x", 400)] {
            let address = example_path(&path.replace("{segment}", segment));
            let answer = service.request("GET", &address).send().unwrap();
            assert_eq!(answer.status().as_u16(), status, "{address}");
            statuses.record("GET", path, status);
        }
    }
    for (method, path) in statuses.routes() {
        if with_body.contains(&&*path) {
            statuses.send(&service, &method, &path, |request| request.json(&json!({})));
            statuses.send(&service, &method, &path, |request| request.body("{"));
            statuses.send(&service, &method, &path, |request| request.body("x".repeat(1001)));
            let untyped = service.request(&method, &path).body("{}").send().unwrap();
            statuses.record(&method, &path, untyped.status().as_u16());
            let mut slow = RawConnection::begin(&service, &path, 10, "{");
            let line = slow.read_to_end();
            statuses.record(&method, &path, line[9..12].parse().unwrap());
        }
        let status =
            statuses.send(&service, &method, &path, |request| request.header("host", "evil.example"));
        assert_eq!(status, 403, "{method} {path}");
        if path != "/documents/{id}" {
            continue;
        }
        let request = service.request(&method, "/documents/%ff").send().unwrap();
        statuses.record(&method, &path, request.status().as_u16());
    }
    for path in ["/stats", "/livez", "/readyz", "/metrics", "/openapi.json", "/documents/{id}"] {
        assert_eq!(statuses.send(&service, "GET", path, |request| request), 200);
    }
    for status in [200, 404] {
        assert_eq!(statuses.send(&service, "DELETE", "/documents/{id}", |request| request), status);
    }
    assert_eq!(statuses.send(&service, "GET", "/documents/{id}", |request| request), 404);
    assert_eq!(statuses.send(&service, "POST", "/flush", |request| request), 200);

    // Too many requests.
    let held = RawConnection::begin(&service, "/query", 10, "{");
    wait_for_requests(&service, 1);
    for (method, path) in statuses.routes() {
        if statuses.documented[&(method.clone(), path.clone())].contains(&429) {
            // The held request may have timed out meanwhile; then it is held again.
            let mut held = None;
            while statuses.send(&service, &method, &path, |request| request) != 429 {
                held = Some(RawConnection::begin(&service, "/query", 10, "{"));
            }
            drop(held);
        }
    }
    drop(held);

    // Tokens.
    let token = |text: &str| Some(AccessToken::new(text).unwrap());
    let guarded = TestService::start(create, |config| {
        (config.read_token, config.write_token) =
            (token("read-token-0123456789"), token("write-token-0123456789"));
    });
    for (method, path) in statuses.routes() {
        statuses.send(&guarded, &method, &path, |request| request);
    }

    // A store without ids.
    let without_ids = TestService::start(
        |path| {
            let options = simstore::StoreOptions { ids: Some(false), ..Default::default() };
            simstore::Store::<u64>::open(path, options).unwrap();
        },
        |_| (),
    );
    for method in ["GET", "DELETE"] {
        assert_eq!(statuses.send(&without_ids, method, "/documents/{id}", |request| request), 422);
    }

    // A disk that is full, and one that makes a compaction wait.
    for (method, path) in [("POST", "/documents"), ("DELETE", "/documents/{id}"), ("POST", "/flush")] {
        let disk = GatedDisk::default();
        let gate = disk.gate.clone();
        let service = TestService::start(create, |config| config.store_options.fs = Arc::new(disk));
        service.add(7, 0xff << 20).with_status(201);
        gate.set(DiskMode::Full);
        assert_eq!(statuses.send(&service, method, path, |request| request), 507);
    }
    let disk = GatedDisk::default();
    let gate = disk.gate.clone();
    let service = TestService::start(create, |config| config.store_options.fs = Arc::new(disk));
    for id in 0..2 {
        service.add(id, 0xff << (20 * id)).with_status(201);
        service.post("/flush", &json!({})).with_status(200);
    }
    gate.set(DiskMode::Held);
    for status in [202, 409] {
        assert_eq!(statuses.send(&service, "POST", "/compact", |request| request), status);
    }
    gate.set(DiskMode::Normal);

    // A store that cannot be opened is never ready.
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig { address: "127.0.0.1:0".parse().unwrap(), ..ServerConfig::new(folder.path()) };
    let closed = RunningService::start(&config).unwrap();
    for (method, path) in statuses.routes() {
        let url = format!("http://{}{}", closed.address(), example_path(&path));
        let request = client().request(method.parse().unwrap(), url).json(&json!({"fingerprint": hex(7)}));
        statuses.record(&method, &path, request.send().unwrap().status().as_u16());
    }
    closed.stop().unwrap();

    for (route, documented) in &statuses.documented {
        assert_eq!(statuses.seen.get(route), Some(documented), "{route:?}: documented on the right");
    }
}
