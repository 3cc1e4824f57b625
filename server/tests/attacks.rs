//! Slow, cut, large and many requests; a full disk; a stop during requests.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::{
    Answer, DiskMode, GatedDisk, RawConnection, TestService, create_fingerprints, hex, wait_for_requests,
};

fn start(change: impl FnOnce(&mut simstore_server::ServerConfig)) -> TestService {
    TestService::start(|path| create_fingerprints::<u64>(path, 3), change)
}

#[test]
fn slow_clients_are_cut_off() {
    let service = start(|config| {
        config.limits.header_time = Duration::from_millis(200);
        config.limits.idle_time = Duration::from_millis(200);
    });
    // Nothing, a part of a line, headers without an end.
    for beginning in ["", "GE", "GET /stats HTTP/1.1\r\nhost: localhost\r\nx-header"] {
        let mut connection = RawConnection::open(&service);
        connection.send(beginning);
        let answer = connection.read_to_end();
        assert!(!answer.contains("200 OK"), "{beginning}: {answer}");
    }
    // A second request on a connection has the same time for its headers.
    let mut connection = RawConnection::open(&service);
    connection.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nho");
    assert_eq!(connection.read_to_end().matches("200 OK").count(), 1);
    // A body that stops.
    let mut connection = RawConnection::begin(&service, "/documents", 100, "{\"id\": 1");
    let answer = connection.read_to_end();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body-timeout"), "{answer}");
    assert_eq!(service.get("/stats").body["documents"], 0);
}

#[test]
fn clients_that_do_not_read_are_cut_off() {
    let service = start(|config| config.limits.idle_time = Duration::from_millis(300));
    let list = (0..2000_u64).map(|id| json!({"id": id, "fingerprint": hex(1)})).collect::<Vec<_>>();
    service.post("/documents?if_new=false&durability=os", &json!(list)).with_status(200);
    // An answer of 15 MB, more than the buffers of the connection take.
    let query = json!(vec![json!({"fingerprint": hex(1), "limit": 2000}); 100]).to_string();
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(RawConnection::begin(&service, "/query", query.len(), &query));
    }
    // The connection that asks for the metrics is the only one left.
    let count = "simstore_connections 1\n";
    while !service.request("GET", "/metrics").send().unwrap().text().unwrap().contains(count) {
        std::thread::yield_now();
    }
}

#[test]
fn cut_bodies_store_nothing() {
    let service = start(|_| ());
    let document = json!({"id": 1, "fingerprint": hex(1)}).to_string();
    for length in [0, 1, document.len() - 1, document.len()] {
        let mut connection =
            RawConnection::begin(&service, "/documents", document.len() + 1, &document[..length]);
        connection.0.shutdown(Shutdown::Write).unwrap();
        let answer = connection.read_to_end();
        assert!(!answer.contains(" 201 ") && !answer.contains(" 500 "), "{length}: {answer}");
    }
    // A stream of lines: the lines before the cut are stored.
    let mut connection = RawConnection::open(&service);
    connection.send("POST /documents HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000\r\n\r\n");
    connection.send(&format!("{}\n{{\"id\": 2,", json!({"id": 9, "fingerprint": hex(9)})));
    assert!(connection.status_line().contains("200"));
    drop(connection);
    wait_for_requests(&service, 0);
    assert_eq!(service.get("/stats").body["documents"], 1);
    service.get("/documents/9").with_status(200);
}

#[test]
fn large_requests_are_refused() {
    let service = start(|config| {
        config.limits.body_bytes = 2000;
        config.limits.all_bodies_bytes = 4000;
        config.limits.items = 3;
        config.limits.text_bytes = 50;
        config.limits.results = 5;
    });
    let large = format!("{{\"text\": \"{}\"}}", "x".repeat(2000));
    for path in ["/documents", "/query"] {
        service.post_bytes(path, large.clone()).fails(413, "body-too-large", "2000 bytes");
        // Without a length in advance.
        let body = reqwest::blocking::Body::new(std::io::Cursor::new(large.clone().into_bytes()));
        let request = service.request("POST", path).header("content-type", "application/json").body(body);
        Answer::read(request.send().unwrap()).fails(413, "body-too-large", "2000 bytes");
        let lines = service.post_lines(path, &format!("{{\"text\": \"short words\"}}\n{large}{large}"));
        assert_eq!(lines.last().unwrap()["code"], "body-too-large", "{lines:?}");
        let item = json!({"fingerprint": hex(1)});
        service.post(path, &json!([item, item, item, item])).fails(413, "too-many-items", "at most 3");
        service.post(path, &json!({"text": "x ".repeat(26)})).fails(422, "text-too-long", "52 bytes");
    }
    service.post("/query", &json!({"fingerprint": hex(1), "limit": 6})).fails(422, "limit", "5");
}

#[test]
fn requests_beyond_the_limit_are_told_to_come_again() {
    let service = start(|config| config.limits.requests = 2);
    let held: Vec<RawConnection> =
        (0..2).map(|_| RawConnection::begin(&service, "/query", 100, "{")).collect();
    wait_for_requests(&service, 2);
    let response = service.request("GET", "/stats").send().unwrap();
    assert_eq!(response.headers()["retry-after"], "1");
    Answer::read(response).fails(429, "too-many-requests", "2 requests");
    for path in ["/livez", "/readyz"] {
        service.get(path).with_status(200);
    }
    let metrics = service.request("GET", "/metrics").send().unwrap().text().unwrap();
    assert!(metrics.contains("simstore_requests_rejected_total 1\n"), "{metrics}");
    drop(held);
    wait_for_requests(&service, 0);
    service.get("/stats").with_status(200);
}

#[test]
fn bodies_beyond_the_memory_are_told_to_come_again() {
    let service = start(|config| {
        config.limits.body_bytes = 100_000;
        config.limits.all_bodies_bytes = 100_000;
    });
    let held = RawConnection::begin(&service, "/query", 100_000, &" ".repeat(90_000));
    let body = format!("{}{}", json!({"fingerprint": hex(1)}), " ".repeat(20_000));
    // The first body arrives part by part.
    while service.post_bytes("/query", body.clone()).status != 429 {}
    let answer = service.post_bytes("/query", body.clone());
    answer.fails(429, "bodies-memory", "memory");
    drop(held);
    wait_for_requests(&service, 0);
    service.post_bytes("/query", body).with_status(200);
}

#[test]
fn requests_have_a_time_limit() {
    let service = start(|config| config.limits.request_time = Duration::from_millis(100));
    let mut connection = RawConnection::begin(&service, "/query", 100, "{");
    let answer = connection.status_line();
    assert!(answer.contains(" 503 "), "{answer}");
    wait_for_requests(&service, 0);
}

#[test]
fn many_idle_connections() {
    let service = start(|config| config.limits.connections = 1010);
    let mut idle: Vec<RawConnection> = Vec::new();
    for _ in 0..1000 {
        let mut connection = RawConnection::open(&service);
        connection.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
        idle.push(connection);
    }
    assert!(idle.iter_mut().all(|connection| connection.status_line().contains("200 OK")));
    service.add(1, 0xff).with_status(201);
    let metrics = service.request("GET", "/metrics").send().unwrap().text().unwrap();
    assert!(metrics.contains("simstore_connections 1001\n"), "{metrics}");
    // Connections beyond the limit are closed without an answer.
    let mut more: Vec<RawConnection> = (0..20).map(|_| RawConnection::open(&service)).collect();
    let refused = more.iter_mut().rev().find_map(|connection| {
        connection.0.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (connection.read_to_end() == "").then_some(())
    });
    assert!(refused.is_some());
}

#[test]
fn a_full_disk_stops_writes_but_no_queries() {
    let disk = GatedDisk::default();
    let gate = disk.gate.clone();
    let mut service = start(|config| config.store_options.fs = Arc::new(disk));
    service.add(1, 0xff).with_status(201);
    gate.set(DiskMode::Full);
    service.add(2, 0xff00).fails(507, "io", "cannot");
    gate.set(DiskMode::Normal);
    // The content of the disk is unknown after a failed write, so the store has to be opened again.
    service.add(2, 0xff00).fails(503, "poisoned", "open the store again");
    service.delete("/documents/1").fails(503, "poisoned", "open the store again");
    service.post("/flush", &json!({})).fails(503, "poisoned", "open the store again");
    let list = json!([{"id": 2, "fingerprint": hex(0xff00)}]);
    service.post("/documents", &list).fails(503, "poisoned", "open the store again");
    assert_eq!(service.post("/query", &json!({"fingerprint": hex(0xff)})).with_status(200)["total"], 1);
    let stats = service.get("/stats").with_status(200);
    assert!(stats["last_error"].as_str().unwrap().contains("closed for writing"), "{stats}");
    service.restart(|_| ());
    assert_eq!(service.get("/stats").body["documents"], 1);
    service.add(2, 0xff00).with_status(201);
}

#[test]
fn a_stop_answers_what_was_accepted() {
    let mut service = start(|_| ());
    let document = json!({"id": 1, "fingerprint": hex(1)}).to_string();
    let (first, second) = document.split_at(5);
    let mut accepted = RawConnection::begin(&service, "/documents", document.len(), first);
    let mut idle = RawConnection::open(&service);
    wait_for_requests(&service, 1);
    let address = service.url.strip_prefix("http://").unwrap().to_owned();
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            // The idle connection is closed at once, and no other is accepted.
            assert_eq!(idle.read_to_end(), "");
            while std::net::TcpStream::connect(&address).is_ok() {}
            accepted.send(second);
            accepted.read_to_end()
        });
        service.stop();
        waiting.join().unwrap()
    });
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    service.restart(|_| ());
    service.get("/documents/1").with_status(200);
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let mut service = start(|config| config.shutdown_time = Duration::from_millis(100));
    let mut held = RawConnection::begin(&service, "/documents", 100, "{");
    wait_for_requests(&service, 1);
    service.stop();
    assert_eq!(held.read_to_end(), "");
}

#[test]
fn answers_of_lists_are_bounded() {
    let service = start(|config| config.limits.results = 2);
    let list = (0..10_u64).map(|id| json!({"id": id, "fingerprint": hex(1)})).collect::<Vec<_>>();
    service.post("/documents?if_new=false&durability=os", &json!(list)).with_status(200);
    let query = json!({"fingerprint": hex(1), "limit": 2});
    let answers = service.post("/query", &json!(vec![query.clone(); 100])).with_status(200);
    assert_eq!((answers.as_array().unwrap().len(), &answers[99]["total"]), (100, &json!(10)));
    service.post("/query", &json!(vec![query.clone(); 101])).fails(413, "too-many-matches", "200 matches");
    // A stream is answered part by part.
    let lines = service.post_lines("/query", &format!("{query}\n").repeat(300));
    assert!(lines.len() == 300 && lines.iter().all(|line| line["matches"].as_array().unwrap().len() == 2));
}
