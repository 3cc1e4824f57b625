//! Commands that are killed, starved, cut off from their output, or whose inputs change under them. In
//! each case, a command that reports success has done all of its work, and a command that fails says why. The same command, run
//! again undisturbed, ends in the same state as an undisturbed run.
//!
//! `SIMSTORE_ATTACKS=200 cargo test --test cli attacks` disturbs each command so often; the default is a few times.

mod inputs;
mod jobs;
mod kills;
mod limits;
mod outputs;

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use self::jobs::{Job, WORDS};
use crate::Folder;

/// How often a command is disturbed.
fn times(default: u64) -> u64 {
    std::env::var("SIMSTORE_ATTACKS").ok().and_then(|times| times.parse().ok()).unwrap_or(default)
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    /// None if a signal ended it.
    code: Option<i32>,
    stderr: String,
    took: Duration,
}

/// Longer than any command here takes on the slowest machine: a command that takes so long hangs.
const HANGS: Duration = Duration::from_secs(180);

impl Folder {
    /// Makes a command of a shell line. `$simstore` is the program, `$words` a profile.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("simstore", env!("CARGO_BIN_EXE_simstore")).env("words", WORDS);
        command
    }

    /// Starts a shell line and throws away its output.
    fn start(&self, line: &str) -> Child {
        self.shell(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a shell line to its end.
    #[track_caller]
    fn attempt(&self, line: &str) -> Ended {
        end(self.start(line), line)
    }

    /// Runs a shell line that has to succeed, and returns its output.
    #[track_caller]
    fn print(&self, line: &str) -> String {
        let output = self.shell(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All files below the folder, hidden ones too.
    fn all_files(&self) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.0.path().to_path_buf()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }
}

/// Waits for the end of a command.
#[track_caller]
fn end(mut child: Child, line: &str) -> Ended {
    let started = Instant::now();
    let mut stderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > HANGS {
            child.kill().unwrap();
            panic!("does not end: {line}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ended { code: status.code(), stderr: reader.join().unwrap(), took: started.elapsed() }
}

impl Ended {
    /// Checks exit code and messages of a command that was not killed.
    #[track_caller]
    fn check(&self, what: &str) {
        assert!(!self.stderr.contains("panicked"), "{what}: {}", self.stderr);
        let code = self.code.unwrap_or_else(|| panic!("{what}: ended by a signal: {}", self.stderr));
        assert!([0, 1, 2, 130].contains(&code), "{what}: exit code {code}: {}", self.stderr);
        assert!(code == 0 || !self.stderr.trim().is_empty(), "{what}: exit code {code} without a word");
    }
}

/// Disturbs a job in a folder of its own, then runs it again undisturbed, and compares the states. A disturbed run
/// that reports success has reached this state, too.
#[track_caller]
fn disturb(job: &Job, what: &str, expected: &str, run: impl FnOnce(&Folder) -> Option<Ended>) {
    let folder = Folder::new();
    job.prepare(&folder);
    let what = format!("{}, {what}", job.name);
    if let Some(ended) = run(&folder) {
        ended.check(&what);
        if ended.code == Some(0) {
            assert!(job.state(&folder) == expected, "{what}: said to be done: {}", ended.stderr);
        }
    }
    let again = folder.attempt(job.line);
    assert_eq!(again.code, Some(0), "{what}, run again: {}", again.stderr);
    let state = job.state(&folder);
    assert!(state == expected, "{what}, run again: {}", difference(&state, expected));
    let litter: Vec<PathBuf> =
        folder.all_files().into_iter().filter(|path| path.to_string_lossy().ends_with(".tmp")).collect();
    assert!(litter.is_empty(), "{what}: left behind: {litter:?}");
}

/// Finds the first line that differs between two states.
fn difference(state: &str, expected: &str) -> String {
    let lines = state.lines().map(Some).chain([None]).zip(expected.lines().map(Some).chain([None]));
    let mut lines = lines.skip_while(|(a, b)| a == b);
    let counts = format!("{} lines instead of {}", state.lines().count(), expected.lines().count());
    format!("{counts}, the first that differs: {:?}", lines.next())
}
