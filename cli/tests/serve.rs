//! `simstore serve`: the service as a process that is started, stopped and killed. `server/tests/` has the tests of its answers.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{Random, TestFolder};

/// A running service. It is killed when this is dropped.
struct ServiceProcess {
    process: Child,
    log: BufReader<std::process::ChildStderr>,
    url: String,
}

impl ServiceProcess {
    fn start(folder: &TestFolder, args: &[&str]) -> ServiceProcess {
        let args = [&["serve", "store", "--listen", "127.0.0.1:0"], args].concat();
        let mut process = folder.command(&args).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut url = None;
        let mut line = String::new();
        // The service is ready when it says that the store is open.
        while !line.contains("ready: ") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the service ended: {:?}", process.wait());
            url = url.or_else(|| {
                Some(line.trim_end().split_once("listening on ")?.1.split('"').next()?.to_owned())
            });
        }
        ServiceProcess { process, log, url: url.unwrap() }
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code and the rest of the log.
    fn wait(&mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        (self.process.wait().unwrap().code(), log)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn client() -> Client {
    // Another thread may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// Creates an empty store of fingerprints.
fn create(folder: &TestFolder) {
    folder.write("none.hex", "");
    folder.run(&["add", "store", "none.hex"]).ok();
}

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
fn assert_stored(folder: &TestFolder, ids: &BTreeSet<u64>) {
    let stored: BTreeSet<String> = folder.run(&["dump", "store"]).ok().lines().map(str::to_owned).collect();
    for &id in ids {
        let line = format!("{:016x}\t{id}", Random::hash(id));
        assert!(stored.contains(&line), "document {id} was acknowledged, and is lost");
    }
}

/// A service is killed many times while clients store documents. Each acknowledged document is there afterwards.
#[test]
fn acknowledged_documents_survive_kills() {
    let folder = TestFolder::new();
    create(&folder);
    let kills = std::env::var("SIMSTORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8);
    let (acknowledged, next) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    for kill in 0..kills {
        let service = ServiceProcess::start(&folder, &["--memtable", "64K"]);
        let (count, wanted) = (AtomicU64::new(0), 1 + Random::hash(kill) % 100);
        store_until_gone(&service.url, &next, |id| {
            acknowledged.lock().unwrap().insert(id);
            if count.fetch_add(1, Ordering::Relaxed) + 1 == wanted {
                service.signal("KILL");
            }
        });
        drop(service);
        assert_stored(&folder, &acknowledged.lock().unwrap());
    }
    folder.run(&["verify", "store"]).ok();
    let service = ServiceProcess::start(&folder, &[]);
    let query = json!({"fingerprint": format!("{:016x}", Random::hash(0)), "distance": 0});
    let answer: Value =
        client().post(format!("{}/query", service.url)).json(&query).send().unwrap().json().unwrap();
    assert_eq!(answer["matches"][0]["id"], 0);
}

#[test]
fn a_signal_ends_the_service_after_its_answers() {
    for signal in ["TERM", "INT"] {
        let folder = TestFolder::new();
        create(&folder);
        let mut service = ServiceProcess::start(&folder, &[]);
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
        assert_stored(&folder, &acknowledged.lock().unwrap());
    }
}

#[test]
fn a_hangup_does_not_end_the_service() {
    let folder = TestFolder::new();
    create(&folder);
    let mut service = ServiceProcess::start(&folder, &["--log", "json", "--log-requests"]);
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
    create(&folder);
    let service = ServiceProcess::start(&folder, &[]);
    let reader = ServiceProcess::start(&folder, &["--read-only", "--refresh", "5"]);
    let sent = client().post(format!("{}/documents", service.url)).json(&document(1)).send().unwrap();
    assert_eq!(sent.status().as_u16(), 201);
    while client().get(format!("{}/documents/1", reader.url)).send().unwrap().status().as_u16() != 200 {}
    let refused = client().post(format!("{}/documents", reader.url)).json(&document(2)).send().unwrap();
    assert_eq!(refused.status().as_u16(), 403);
    folder.run(&["serve", "store", "--listen", "127.0.0.1:0"]).fails(1, "another process is writing");
}

#[test]
fn tokens_come_from_files_or_the_environment() {
    let folder = TestFolder::new();
    create(&folder);
    folder.write("write.token", "write-token-0123456789\n");
    folder.write("short.token", "short\n");
    let service = ServiceProcess::start(&folder, &["--write-token-file", "write.token"]);
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
