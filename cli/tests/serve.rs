//! `simstore serve`: the service as a process that is started, stopped and killed. `server/tests/` has the tests of its answers.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::support::service_process::{ServiceProcess, client, create_store};
use crate::{Random, TestFolder};

fn document(id: u64) -> Value {
    json!({"id": id, "fingerprint": format!("{:016x}", Random::hash(id))})
}

/// Stores documents from several threads until the service is gone. Calls `acknowledged` with the id of each stored document.
fn store_until_gone(url: &str, next: &AtomicU64, acknowledged: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = client();
                loop {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    let sent =
                        client.post(format!("{url}/documents?if_new=false")).json(&document(id)).send();
                    match sent.map(|answer| answer.status().as_u16()) {
                        Ok(201) => acknowledged(id),
                        Ok(other) => panic!("document {id}: status {other}"),
                        Err(_) => return,
                    }
                }
            });
        }
    });
}

/// Asserts that a store has all of the documents.
fn assert_stored(folder: &TestFolder, store: &str, ids: &BTreeSet<u64>) {
    let stored: BTreeSet<String> = folder.run(&["dump", store]).ok().lines().map(str::to_owned).collect();
    for &id in ids {
        let line = format!("{:016x}\t{id}", Random::hash(id));
        assert!(stored.contains(&line), "document {id} was acknowledged, and is lost");
    }
}

/// A service is killed many times while clients store documents. Each acknowledged document is there afterwards.
#[test]
fn acknowledged_documents_survive_kills() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let kills = std::env::var("SIMSTORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8);
    let (acknowledged, next) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    for kill in 0..kills {
        let service = ServiceProcess::start(&folder, "store", &["--memtable", "64K"]);
        let (count, wanted) = (AtomicU64::new(0), 1 + Random::hash(kill) % 100);
        store_until_gone(&service.url, &next, |id| {
            acknowledged.lock().unwrap().insert(id);
            if count.fetch_add(1, Ordering::Relaxed) + 1 == wanted {
                service.signal("KILL");
            }
        });
        drop(service);
        assert_stored(&folder, "store", &acknowledged.lock().unwrap());
    }
    folder.run(&["verify", "store"]).ok();
    let service = ServiceProcess::start(&folder, "store", &[]);
    let query = json!({"fingerprint": format!("{:016x}", Random::hash(0)), "distance": 0});
    let answer: Value =
        client().post(format!("{}/query", service.url)).json(&query).send().unwrap().json().unwrap();
    assert_eq!(answer["matches"][0]["id"], 0);
}

#[test]
fn a_signal_ends_the_service_after_its_answers() {
    for signal in ["TERM", "INT"] {
        let folder = TestFolder::new();
        create_store(&folder, "store");
        let mut service = ServiceProcess::start(&folder, "store", &[]);
        let (acknowledged, next, is_sent) =
            (Mutex::new(BTreeSet::new()), AtomicU64::new(0), AtomicBool::new(false));
        store_until_gone(&service.url, &next, |id| {
            acknowledged.lock().unwrap().insert(id);
            if id > 50 && !is_sent.swap(true, Ordering::Relaxed) {
                service.signal(signal);
            }
        });
        let (code, log) = service.wait();
        assert_eq!(code, Some(0), "{signal}: {log}");
        assert!(log.trim_end().ends_with("stopped"), "{signal}: {log}");
        assert_stored(&folder, "store", &acknowledged.lock().unwrap());
    }
}

#[test]
fn a_hangup_does_not_end_the_service() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let mut service = ServiceProcess::start(&folder, "store", &["--log", "json", "--log-requests"]);
    service.signal("HUP");
    let request = client().get(format!("{}/stats", service.url)).header("x-request-id", "after-hangup");
    assert_eq!(request.send().unwrap().status().as_u16(), 200);
    service.signal("TERM");
    let (code, log) = service.wait();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["request_id"] == "after-hangup").unwrap();
    assert_eq!((&line["path"], &line["status"]), (&json!("/stats"), &json!(200)));
}

#[test]
fn a_reader_beside_the_service() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let service = ServiceProcess::start(&folder, "store", &[]);
    let reader = ServiceProcess::start(&folder, "store", &["--read-only", "--refresh", "5"]);
    let sent = client().post(format!("{}/documents", service.url)).json(&document(1)).send().unwrap();
    assert_eq!(sent.status().as_u16(), 201);
    while client().get(format!("{}/documents/1", reader.url)).send().unwrap().status().as_u16() != 200 {}
    let refused = client().post(format!("{}/documents", reader.url)).json(&document(2)).send().unwrap();
    assert_eq!(refused.status().as_u16(), 403);
    folder.run(&["serve", "store", "--listen", "127.0.0.1:0"]).fails(1, "another process is writing");
}

#[test]
fn a_checkpoint_beside_the_service_has_what_was_acknowledged() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let service = ServiceProcess::start(&folder, "store", &["--memtable", "64K"]);
    let (acknowledged, next, copies) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0), AtomicU64::new(0));
    store_until_gone(&service.url, &next, |id| {
        acknowledged.lock().unwrap().insert(id);
        if id % 1000 == 999 {
            let expected = acknowledged.lock().unwrap().clone();
            let copy = format!("copy{}", copies.fetch_add(1, Ordering::Relaxed));
            folder.run(&["checkpoint", "store", &copy]).ok();
            folder.run(&["verify", &copy]).ok();
            assert_stored(&folder, &copy, &expected);
        }
        if id == 4999 {
            service.signal("KILL");
        }
    });
    assert!(copies.into_inner() >= 4);
}

#[test]
fn few_open_files_allow_few_connections() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    let mut command = std::process::Command::new("bash");
    command.args([
        "-c",
        "ulimit -n 100 && exec $simstore serve store --listen 127.0.0.1:0 --header-seconds 100000",
    ]);
    command.env("simstore", env!("CARGO_BIN_EXE_simstore")).current_dir(folder.0.path());
    command.stderr(std::process::Stdio::piped());
    let mut service = ServiceProcess::from_command(command);
    let address = service.url.strip_prefix("http://").unwrap().to_owned();
    let connections: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // Ten connections are closed, in any order; the others wait for a request.
    let is_closed = |mut connection: &TcpStream| {
        connection.set_nonblocking(true).unwrap();
        !connection.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    while connections.iter().filter(|connection| is_closed(connection)).count() < 10 {
        std::thread::yield_now();
    }
    assert_eq!(connections.iter().filter(|connection| is_closed(connection)).count(), 10);
    drop(connections);
    while client().post(format!("{}/documents", service.url)).json(&document(1)).send().is_err() {}
    service.signal("TERM");
    let (code, log) = service.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("at most 50 connections"), "{log}");
}

#[test]
fn tokens_come_from_files_or_the_environment() {
    let folder = TestFolder::new();
    create_store(&folder, "store");
    folder.write("write.token", "write-token-0123456789\n");
    folder.write("short.token", "short\n");
    let service = ServiceProcess::start(&folder, "store", &["--write-token-file", "write.token"]);
    let send = |token: Option<&str>| {
        let request = client().post(format!("{}/documents", service.url)).json(&document(1));
        let request = token.into_iter().fold(request, reqwest::blocking::RequestBuilder::bearer_auth);
        request.send().unwrap().status().as_u16()
    };
    assert_eq!(
        (send(None), send(Some("write-token-0123456780")), send(Some("write-token-0123456789"))),
        (401, 401, 201)
    );
    drop(service);
    let listen = ["serve", "store", "--listen", "0.0.0.0:0"];
    for (args, message) in [
        (&[][..], "--read-token-file and --write-token-file"),
        (&["--write-token-file", "write.token"], "--read-token-file"),
        (&["--read-token-file", "write.token"], "--write-token-file"),
        (&["--read-token-file", "write.token", "--write-token-file", "write.token"], "equal"),
        (&["--read-token-file", "short.token"], "16 or more"),
        (&["--read-only"], "--read-token-file"),
        (&["--tls-certificate", "write.token"], "--tls-key"),
        (&["--log", "xml"], "text or json"),
    ] {
        folder.run(&[&listen, args].concat()).fails(2, message);
    }
    let listen = ["serve", "store", "--listen", "127.0.0.1:0"];
    for (args, message) in [
        (&["--refresh", "5"][..], "--read-only"),
        (&["--allow-origin", "*"], "https://example.org"),
        (&["--max-requests", "0"], "limit is 0"),
    ] {
        folder.run(&[&listen, args].concat()).fails(2, message);
    }
    let mut command = folder.command(&listen);
    command.env("SIMSTORE_READ_TOKEN", "short");
    crate::CommandOutput::new(command.output().unwrap()).fails(2, "SIMSTORE_READ_TOKEN");
    folder.run(&["serve", "missing", "--listen", "127.0.0.1:0"]).fails(1, "missing");
    let tls = [
        "serve", "store", "--listen", "127.0.0.1:0", "--tls-certificate", "none.hex", "--tls-key", "none.hex",
    ];
    folder.run(&tls).fails(1, "PEM");
}
