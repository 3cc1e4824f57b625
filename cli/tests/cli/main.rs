//! The command line, through its binary.

mod add;
mod build;
mod dedup;
mod dedup_again;
mod dedup_choices;
mod dedup_ids;
mod evaluate;
mod examples;
mod fingerprint;
mod inputs;
mod killed;
mod live;
mod outputs;
mod pipes;
mod profile;
mod query;
mod runs;
mod salvage;
mod store;
mod synth;
#[cfg(unix)]
mod threads;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder in which commands are run, removed at the end.
struct Folder(TempDir);

/// What a command has done.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of all that is in the folder.
    fn names(&self) -> Vec<String> {
        let entries = self.0.path().read_dir().unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simstore"));
        command.args(args).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::new(self.command(args).output().unwrap())
    }

    fn run_with_input(&self, args: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A command that fails early does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        Run::new(child.wait_with_output().unwrap())
    }
}

impl Run {
    fn new(output: std::process::Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }

    #[track_caller]
    fn fails(self, code: i32, message: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(message), "`{message}` is not in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    #[track_caller]
    fn json(self) -> Vec<Value> {
        self.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The fields of an object, by name.
fn fields(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Pseudo-random numbers, the same every time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `count` fingerprints: some random, some within a few bits of another, some equal to another.
    fn clustered(&mut self, count: usize) -> Vec<u64> {
        let mut fingerprints: Vec<u64> = Vec::new();
        while fingerprints.len() < count {
            let mut value = self.next();
            if !fingerprints.is_empty() && value.is_multiple_of(2) {
                value = fingerprints[(self.next() % fingerprints.len() as u64) as usize];
                for _ in 0..self.next() % 5 {
                    value ^= 1 << (self.next() % 64);
                }
            }
            fingerprints.push(value);
        }
        fingerprints
    }
}

fn hex_lines(fingerprints: &[u64]) -> String {
    fingerprints.iter().map(|value| format!("{value:016x}\n")).collect()
}

/// The repository's samples.
fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name);
    path.into_os_string().into_string().unwrap()
}
