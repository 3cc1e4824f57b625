//! Services for tests, and a client that reads JSON.

mod gated_disk;
#[path = "../../../tests/support/random.rs"]
mod random;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::blocking::{Client, ClientBuilder, RequestBuilder, Response};
use serde_json::{Value, json};
use simstore::{Fingerprint, Store, StoreOptions};
use simstore_server::{RunningService, ServerConfig};
use simstore_text::{Profile, SimilarDocuments, SimilarSettings};
use tempfile::TempDir;

pub(crate) use self::gated_disk::{DiskMode, GatedDisk};
pub(crate) use self::random::Random;

/// A service on a store of its own, in a temporary folder.
pub(crate) struct TestService {
    service: Option<RunningService>,
    pub(crate) client: Client,
    pub(crate) url: String,
    folder: TempDir,
}

/// Status and JSON body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn read(response: Response) -> Answer {
        let status = response.status().as_u16();
        let text = response.text().unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} {text}: {error}"));
        Answer { status, body }
    }

    /// Asserts the status, and returns the body.
    #[track_caller]
    pub(crate) fn with_status(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// Asserts that this is an error with a status and a code, whose message contains a text.
    #[track_caller]
    pub(crate) fn fails(self, status: u16, code: &str, message: &str) {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.body);
        let text = self.body["error"].as_str().unwrap();
        assert!(text.contains(message), "`{message}` is not in: {text}");
    }
}

/// Returns a client of services on this machine.
pub(crate) fn client() -> Client {
    client_builder().build().unwrap()
}

pub(crate) fn client_builder() -> ClientBuilder {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(Duration::from_secs(120))
}

/// Creates a store of fingerprints with a text profile.
pub(crate) fn create_fingerprints<F: Fingerprint>(path: &Path, distance: u32) {
    let profile = Some(Profile::default().to_string());
    let options = StoreOptions { distance: Some(distance), profile, ..StoreOptions::default() };
    Store::<F>::open(path, options).unwrap();
}

/// Creates a store of similar documents.
pub(crate) fn create_similar(path: &Path, with_texts: bool) {
    let settings = SimilarSettings::new(0.8, 0.95).unwrap();
    let settings = if with_texts { settings.with_texts() } else { settings };
    SimilarDocuments::open(path, StoreOptions::default(), Profile::shingles(), settings).unwrap();
}

impl TestService {
    /// Starts a service on a store that `create` makes, with changes of the settings.
    pub(crate) fn start(create: impl FnOnce(&Path), change: impl FnOnce(&mut ServerConfig)) -> TestService {
        let folder = tempfile::tempdir().unwrap();
        create(&folder.path().join("store"));
        let mut service = TestService { service: None, client: client(), url: String::new(), folder };
        service.restart(change);
        service
    }

    /// A service on a store of fingerprints of 64 bits, for distances up to 3.
    pub(crate) fn fingerprints() -> TestService {
        TestService::start(|path| create_fingerprints::<u64>(path, 3), |_| ())
    }

    /// A service on a store of similar documents with texts.
    pub(crate) fn similar() -> TestService {
        TestService::start(|path| create_similar(path, true), |_| ())
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Stops the service if it runs, and starts it again on the same store.
    pub(crate) fn restart(&mut self, change: impl FnOnce(&mut ServerConfig)) {
        self.stop();
        let mut config = ServerConfig::new(&self.store());
        config.address.set_port(0);
        change(&mut config);
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let mut service = RunningService::start(&config).unwrap();
        service.wait_until_ready().unwrap();
        self.url = format!("{scheme}://{}", service.address());
        self.service = Some(service);
    }

    pub(crate) fn stop(&mut self) {
        self.service.take().into_iter().for_each(|service| service.stop().unwrap());
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.client.request(method.parse().unwrap(), format!("{}{path}", self.url))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Answer::read(self.request("GET", path).send().unwrap())
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        Answer::read(self.request("DELETE", path).send().unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::read(self.request("POST", path).json(body).send().unwrap())
    }

    /// Sends a body of any bytes as JSON.
    pub(crate) fn post_bytes(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        let request = self.request("POST", path).header("content-type", "application/json");
        Answer::read(request.body(body.into()).send().unwrap())
    }

    /// Sends a stream of lines, and returns the lines of the answer.
    pub(crate) fn post_lines(&self, path: &str, lines: &str) -> Vec<Value> {
        let request = self.request("POST", path).header("content-type", "application/x-ndjson");
        let response = request.body(lines.to_owned()).send().unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let text = response.text().unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Stores a fingerprint.
    pub(crate) fn add(&self, id: u64, fingerprint: u64) -> Answer {
        self.post("/documents?durability=os", &json!({"id": id, "fingerprint": hex(fingerprint)}))
    }
}

/// A connection on which a test sends bytes of its own.
pub(crate) struct RawConnection(pub(crate) TcpStream);

impl RawConnection {
    pub(crate) fn open(service: &TestService) -> RawConnection {
        let address = service.url.strip_prefix("http://").unwrap();
        RawConnection(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Sends the headers of a request with a JSON body of `length` bytes, and the beginning of the body.
    pub(crate) fn begin(service: &TestService, path: &str, length: usize, body: &str) -> RawConnection {
        let mut connection = RawConnection::open(service);
        connection.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
        connection
    }

    /// Reads until the service closes the connection.
    pub(crate) fn read_to_end(&mut self) -> String {
        let mut answer = Vec::new();
        // A reset connection is closed as well.
        let _ = self.0.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// Reads the first line of the answer.
    pub(crate) fn status_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(&self.0).read_line(&mut line).unwrap();
        line
    }
}

/// Waits until the service has as many requests under way.
pub(crate) fn wait_for_requests(service: &TestService, count: usize) {
    let line = format!("simstore_requests_under_way {count}\n");
    while !service.request("GET", "/metrics").send().unwrap().text().unwrap().contains(&line) {
        std::thread::yield_now();
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

pub(crate) fn hex(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

/// A text of `words` random words.
pub(crate) fn random_text(random: &mut Random, words: usize) -> String {
    (0..words).map(|_| format!("w{} ", random.below(1 << 40))).collect()
}
