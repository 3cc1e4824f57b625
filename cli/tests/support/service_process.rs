//! A running `simstore serve`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::thread::JoinHandle;

use reqwest::blocking::Client;

use crate::TestFolder;

/// A running service. It is killed when this is dropped.
pub(crate) struct ServiceProcess {
    pub(crate) process: Child,
    /// Reads the log, so that the service never waits for a reader. Returns all of it.
    log: Option<JoinHandle<String>>,
    /// Scheme, address and port.
    pub(crate) url: String,
}

impl ServiceProcess {
    /// Serves a store of the folder, on a free port. Returns when the store is open.
    pub(crate) fn start(folder: &TestFolder, store: &str, args: &[&str]) -> ServiceProcess {
        let args = [&["serve", store, "--listen", "127.0.0.1:0"], args].concat();
        ServiceProcess::from_command(folder.command(&args))
    }

    /// Runs a command that serves a store. Returns when the store is open.
    pub(crate) fn from_command(mut command: Command) -> ServiceProcess {
        let mut process = command.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let (mut url, mut text, mut line) = (None, String::new(), String::new());
        while !line.contains("ready: ") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the service ended: {:?}: {text}", process.wait());
            text.push_str(&line);
            url = url.or_else(|| {
                Some(line.trim_end().split_once("listening on ")?.1.split('"').next()?.to_owned())
            });
        }
        let read_rest = move || {
            log.read_to_string(&mut text).unwrap();
            text
        };
        ServiceProcess { process, log: Some(std::thread::spawn(read_rest)), url: url.unwrap() }
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code and the log.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let log = self.log.take().unwrap().join().unwrap();
        (self.process.wait().unwrap().code(), log)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes a client without a time limit: how long an answer takes depends on the machine.
pub(crate) fn client() -> Client {
    // Another thread may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(None).build().unwrap()
}

/// Creates an empty store of fingerprints.
pub(crate) fn create_store(folder: &TestFolder, store: &str) {
    folder.write("none.hex", "");
    folder.run(&["add", store, "none.hex"]).ok();
}
