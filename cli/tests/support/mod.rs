//! Helpers that several tests share: a temporary folder for commands, their output, and generated inputs.

#[path = "../../../tests/support/random.rs"]
mod random;
#[cfg(unix)]
pub(crate) mod service_process;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::random::Random;

/// Temporary folder that commands run in. Removed when dropped.
pub(crate) struct TestFolder(pub(crate) TempDir);

/// Exit code and output of a finished command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestFolder {
    pub(crate) fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Sorted names of the folder's entries, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.0.path().read_dir().unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simstore"));
        command.args(args).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(self.command(args).output().unwrap())
    }

    /// Runs a bash command line. `$simstore` is the binary, `$en` is the English sample file.
    pub(crate) fn bash(&self, line: &str) -> CommandOutput {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.0.path());
        command.env("simstore", env!("CARGO_BIN_EXE_simstore")).env("en", sample("en.jsonl"));
        CommandOutput::new(command.output().unwrap())
    }

    /// Mounts a disk of `size` KiB at `disk` in the folder. Returns false, and prints a message, if the user may not mount.
    #[cfg(unix)]
    pub(crate) fn mount_small_disk(&self, size: u64) -> bool {
        std::fs::create_dir_all(self.path("disk")).unwrap();
        let is_mounted = self.bash(&format!("mount -t tmpfs -o size={size}k tmpfs disk")).code == Some(0);
        if !is_mounted {
            eprintln!("SKIPPED: no small disk can be mounted here (it takes the rights of root)");
        }
        is_mounted
    }

    /// Sorted ids or names of a store. An id with several fingerprints is returned once for each.
    pub(crate) fn ids(&self, store: &str) -> Vec<String> {
        let dump = self.run(&["dump", store]).ok();
        let mut ids: Vec<String> =
            dump.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect();
        ids.sort();
        ids
    }

    /// Contents of a store's files by file name, without the lock file.
    pub(crate) fn files(&self, store: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = self.path(store).read_dir().unwrap().map(Result::unwrap);
        let files = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
        files.filter(|(name, _)| name != "LOCK").collect()
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: impl AsRef<[u8]>) -> CommandOutput {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A command that fails early closes its input, so this write may fail.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        CommandOutput::new(child.wait_with_output().unwrap())
    }
}

impl CommandOutput {
    pub(crate) fn new(output: std::process::Output) -> CommandOutput {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Asserts exit code 0 and returns standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// Asserts this exit code, and that standard error contains `message` and no panic.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, message: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(message), "`{message}` is not in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Asserts exit code 0 and parses each line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Vec<Value> {
        self.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Field names of a JSON object, sorted.
pub(crate) fn fields(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

impl Random {
    /// Returns `count` fingerprints: about half are random, the others differ from an earlier one in 0 to 4 bits.
    pub(crate) fn clustered(&mut self, count: usize) -> Vec<u64> {
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

pub(crate) fn hex_lines(fingerprints: &[u64]) -> String {
    fingerprints.iter().map(|value| format!("{value:016x}\n")).collect()
}

/// Path of a file in the repository's `samples/`.
pub(crate) fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name);
    path.into_os_string().into_string().unwrap()
}
