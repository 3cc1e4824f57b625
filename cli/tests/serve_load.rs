//! `simstore serve` for long, with many connections, and on a full disk.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::support::service_process::{ServiceProcess, client, create_store};
use crate::{Random, TestFolder};

/// Number of connections that stay open.
const IDLE_CONNECTIONS: usize = 10_000;
/// Memory that an idle connection may take, in KiB: buffers of a client, of a request, and of a task.
const MAX_CONNECTION_KIB: u64 = 40;

fn fingerprint(id: u64) -> String {
    format!("{:016x}", Random::hash(id))
}

/// Returns the memory of a process that no file backs, in KiB.
fn memory(service: &ServiceProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn send(client: &Client, url: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = client.post(format!("{url}{path}")).json(body).send().unwrap();
    (answer.status().as_u16(), answer.json().unwrap())
}

#[test]
fn ten_thousand_idle_connections() {
    // The connections of this process, and of the service, which raises its limit itself.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| (maximum as usize) < IDLE_CONNECTIONS + 1000) {
        eprintln!("SKIPPED: a process may open at most {:?} files here", limit.maximum);
        return;
    }
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let service = ServiceProcess::start(&folder, "store", &["--header-seconds", "100000"]);
    let address = service.url.strip_prefix("http://").unwrap();
    let before = memory(&service);
    let mut connections: Vec<TcpStream> = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(&connection).read_line(&mut line).unwrap();
        assert!(line.contains("200 OK"), "connection {}: {line}", connections.len());
        connections.push(connection);
    }
    let taken = memory(&service).saturating_sub(before);
    assert!(
        taken < MAX_CONNECTION_KIB * IDLE_CONNECTIONS as u64,
        "{taken} KiB for {IDLE_CONNECTIONS} connections"
    );
    let client = client();
    let (status, _) =
        send(&client, &service.url, "/documents", &json!({"id": 1, "fingerprint": "00000000000000ff"}));
    assert_eq!(status, 201);
    let (_, found) = send(&client, &service.url, "/query", &json!({"fingerprint": "00000000000000fe"}));
    assert_eq!(found["total"], 1);
    let metrics = client.get(format!("{}/metrics", service.url)).send().unwrap().text().unwrap();
    let count = metrics.lines().find_map(|line| line.strip_prefix("simstore_connections ")).unwrap();
    let count: usize = count.parse().unwrap();
    // The client has one connection or a few.
    assert!((IDLE_CONNECTIONS + 1..=IDLE_CONNECTIONS + 3).contains(&count), "{metrics}");
    // All connections still answer.
    for connection in &mut connections {
        connection.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    }
    for connection in &mut connections {
        let mut answers = String::new();
        connection.read_to_string(&mut answers).unwrap();
        assert!(answers.contains("200 OK"), "{answers}");
    }
}

/// A mounted disk. Unmounts it when dropped, so that the folder can be removed.
struct SmallDisk<'a>(&'a TestFolder);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        self.0.bash("umount --lazy disk");
    }
}

#[test]
fn a_full_disk_loses_no_acknowledged_document() {
    let folder = TestFolder::new();
    if !folder.mount_small_disk(1024) {
        return;
    }
    let _mounted = SmallDisk(&folder);
    create_store(&folder, "disk/store");
    let client = client();
    let mut service = ServiceProcess::start(&folder, "disk/store", &["--memtable", "256K"]);
    let mut stored: Vec<u64> = Vec::new();
    let failure = loop {
        let ids: Vec<u64> = (0..100).map(|at| stored.len() as u64 + at).collect();
        let documents: Vec<Value> =
            ids.iter().map(|&id| json!({"id": id, "fingerprint": fingerprint(id)})).collect();
        let (status, answer) = send(&client, &service.url, "/documents?if_new=false", &json!(documents));
        if status != 200 {
            break (status, answer);
        }
        stored.extend(ids);
    };
    assert!([503, 507].contains(&failure.0), "{failure:?}");
    assert!(stored.len() > 1000, "{}", stored.len());
    // Queries still find everything.
    let queries: Vec<Value> =
        stored.iter().map(|&id| json!({"fingerprint": fingerprint(id), "distance": 0})).collect();
    for queries in queries.chunks(1000) {
        let (status, found) = send(&client, &service.url, "/query", &json!(queries));
        assert_eq!(status, 200);
        assert!(found.as_array().unwrap().iter().all(|found| found["total"] == 1));
    }
    service.signal("TERM");
    let (code, log) = service.wait();
    assert!(code.is_some() && !log.contains("panicked"), "{code:?}: {log}");
    assert!(folder.bash("mount -o remount,size=1g disk").code == Some(0));
    let service = ServiceProcess::start(&folder, "disk/store", &[]);
    let (status, _) = send(
        &client,
        &service.url,
        "/documents",
        &json!({"id": 1_u64 << 40, "fingerprint": "0123456789abcdef"}),
    );
    assert_eq!(status, 201);
    drop(service);
    let ids: BTreeSet<String> = folder.ids("disk/store").into_iter().collect();
    assert!(stored.iter().all(|id| ids.contains(&id.to_string())));
    folder.run(&["verify", "disk/store"]).ok();
}

/// Number of documents in the store of a soak.
const SOAK_DOCUMENTS: u64 = 4000;
/// Largest growth of the memory in the second half of a soak, in KiB. Memtables and merges cause it.
const SOAK_GROWTH_KIB: u64 = 24 << 10;

/// Returns the seconds of a soak: `SIMSTORE_SOAK_SECONDS`, or a few.
fn soak_seconds() -> u64 {
    std::env::var("SIMSTORE_SOAK_SECONDS").map_or(10, |seconds| seconds.parse().unwrap())
}

/// Sends requests of all kinds until told to stop. Deletes and adds documents with ids below [`SOAK_DOCUMENTS`], so that the size of the
/// store is bounded. `content` returns the text or the fingerprint of a version of a document.
fn send_requests(url: &str, thread: u64, stop: &AtomicBool, content: fn(u64) -> Value) -> u64 {
    let client = client();
    let mut random = Random(thread);
    let mut requests = 0;
    while !stop.load(Ordering::Relaxed) {
        let with_id = |id: u64, version: u64| {
            let mut document = content(id ^ version << 32);
            document["id"] = json!(id);
            document
        };
        let id = random.below(SOAK_DOCUMENTS);
        match random.below(8) {
            0 => {
                let deleted = client.delete(format!("{url}/documents/{id}")).send().unwrap();
                assert!([200, 404].contains(&deleted.status().as_u16()), "{deleted:?}");
            }
            1 => {
                let document = with_id(id, random.below(1000));
                let (status, answer) = send(&client, url, "/documents?durability=os", &document);
                // Another document with this id may be stored.
                assert!([200, 201, 409].contains(&status), "{status}: {answer}");
            }
            2 => {
                let lines: String =
                    (0..20).map(|at| format!("{}\n", with_id((id + at) % SOAK_DOCUMENTS, 0))).collect();
                let request = client.post(format!("{url}/documents?durability=os"));
                let sent = request.header("content-type", "application/x-ndjson").body(lines).send().unwrap();
                assert_eq!(sent.text().unwrap().lines().count(), 20);
            }
            3 => {
                let queries: Vec<Value> = (0..20).map(|at| content(id + at)).collect();
                assert_eq!(send(&client, url, "/query", &json!(queries)).0, 200);
            }
            // Requests that fail.
            4 => assert_eq!(send(&client, url, "/query", &json!({"id": 1_u64 << 50})).0, 404),
            5 => {
                let mut connection = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
                connection
                    .write_all(b"POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
                    .unwrap();
            }
            6 => assert!(client.get(format!("{url}/stats")).send().unwrap().status().is_success()),
            _ => assert_eq!(send(&client, url, "/query", &content(id)).0, 200),
        }
        requests += 1;
    }
    requests
}

/// Sends requests of all kinds for some time, and asserts that the memory stays flat.
fn soak(folder: &TestFolder, content: fn(u64) -> Value) {
    let seconds = soak_seconds();
    let mut service = ServiceProcess::start(folder, "store", &["--memtable", "256K"]);
    let stop = AtomicBool::new(false);
    let (mut halves, mut requests) = ([0, 0], 0);
    std::thread::scope(|scope| {
        let senders = [1, 2, 3, 4];
        let senders = senders.map(|thread| {
            scope.spawn({
                let (url, stop) = (&service.url, &stop);
                move || send_requests(url, thread, stop, content)
            })
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds)
            && !senders.iter().any(|sender| sender.is_finished())
        {
            let half = usize::from(start.elapsed() > Duration::from_secs(seconds) / 2);
            halves[half] = memory(&service).max(halves[half]);
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        requests = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    });
    eprintln!(
        "{requests} requests in {seconds} s; at most {} and {} KiB in the two halves",
        halves[0], halves[1]
    );
    assert!(requests > 100);
    assert!(halves[1] < halves[0] + SOAK_GROWTH_KIB, "{} KiB, then {} KiB", halves[0], halves[1]);
    service.signal("TERM");
    let (code, log) = service.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    let verified = folder.run(&["verify", "store"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

#[test]
fn memory_stays_flat_with_fingerprints() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    soak(&folder, |number| json!({"fingerprint": fingerprint(number)}));
}

#[test]
fn memory_stays_flat_with_texts() {
    let folder = TestFolder::new();
    folder.write("none.jsonl", "");
    folder.run(&["add", "--similar", "0.8", "--with-texts", "store", "none.jsonl"]).ok();
    let text = |number| {
        let mut random = Random(number);
        let words: Vec<String> = (0..60).map(|_| format!("word{}", random.below(5000))).collect();
        json!({"text": words.join(" ")})
    };
    soak(&folder, text);
}
