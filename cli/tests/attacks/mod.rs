//! Disturbed commands: killed, short of files, memory or disk space, with closed outputs, or with inputs that
//! change during the run. In each case, a command that reports success has done all of its work, and a
//! command that fails prints the reason. The same command, run again undisturbed, reaches the same state as a
//! run that was never disturbed.
//!
//! `SIMSTORE_ATTACKS=200 cargo test --test cli attacks` disturbs each command 200 times. The default is a few times.

mod cases;
mod inputs;
mod kills;
mod limits;
mod outputs;

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use self::cases::{CommandCase, FAST_PROFILE};
use crate::TestFolder;

/// Number of times that each command is disturbed: `SIMSTORE_ATTACKS` if set, else `default`.
fn repetitions(default: u64) -> u64 {
    std::env::var("SIMSTORE_ATTACKS").ok().and_then(|repetitions| repetitions.parse().ok()).unwrap_or(default)
}

/// Exit code, messages and duration of a finished command.
#[derive(Debug)]
struct CommandExit {
    /// `None` if a signal ended the command.
    code: Option<i32>,
    stderr: String,
    duration: Duration,
}

/// Time after which a command counts as hanging. No command here takes this long, even on the slowest machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);

impl TestFolder {
    /// Creates a command that runs a bash line. `$simstore` is the binary, `$words` is [`FAST_PROFILE`].
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("simstore", env!("CARGO_BIN_EXE_simstore")).env("words", FAST_PROFILE);
        command
    }

    /// Starts a bash line, discards its output and captures its messages.
    fn start(&self, line: &str) -> Child {
        self.shell(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a bash line and waits for its exit.
    #[track_caller]
    fn run_line(&self, line: &str) -> CommandExit {
        wait_for_exit(self.start(line), line)
    }

    /// Runs a bash line, asserts success and returns its output.
    #[track_caller]
    fn output_of(&self, line: &str) -> String {
        let output = self.shell(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Paths of all files below the folder, including hidden files.
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

/// Waits until a command exits. Panics if it runs longer than [`COMMAND_TIMEOUT`].
#[track_caller]
fn wait_for_exit(mut child: Child, line: &str) -> CommandExit {
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
        if started.elapsed() > COMMAND_TIMEOUT {
            child.kill().unwrap();
            panic!("does not end: {line}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    CommandExit { code: status.code(), stderr: reader.join().unwrap(), duration: started.elapsed() }
}

impl CommandExit {
    /// Asserts that the command ended without a signal or a panic, with a documented exit code, and with a
    /// message if it failed.
    #[track_caller]
    fn check(&self, context: &str) {
        assert!(!self.stderr.contains("panicked"), "{context}: {}", self.stderr);
        let code = self.code.unwrap_or_else(|| panic!("{context}: ended by a signal: {}", self.stderr));
        assert!([0, 1, 2, 130].contains(&code), "{context}: exit code {code}: {}", self.stderr);
        assert!(code == 0 || !self.stderr.trim().is_empty(), "{context}: exit code {code} without a message");
    }
}

/// Disturbs a command in a new folder, then runs it again undisturbed and asserts that it reaches the
/// `expected` state without leftover temporary files. A disturbed run that reports success must have reached
/// this state too.
///
/// `run` executes the disturbed command, and returns its exit, or `None` if there is no exit to check, such as after
/// a kill.
#[track_caller]
fn disturb(
    case: &CommandCase,
    context: &str,
    expected: &str,
    run: impl FnOnce(&TestFolder) -> Option<CommandExit>,
) {
    let folder = TestFolder::new();
    case.prepare(&folder);
    let context = format!("{}, {context}", case.name);
    if let Some(exit) = run(&folder) {
        exit.check(&context);
        if exit.code == Some(0) {
            assert!(
                case.state(&folder) == expected,
                "{context}: reports success, but the state differs: {}",
                exit.stderr
            );
        }
    }
    let again = folder.run_line(case.command);
    assert_eq!(again.code, Some(0), "{context}, run again: {}", again.stderr);
    let state = case.state(&folder);
    assert!(state == expected, "{context}, run again: {}", first_difference(&state, expected));
    let leftovers: Vec<PathBuf> =
        folder.all_files().into_iter().filter(|path| path.to_string_lossy().ends_with(".tmp")).collect();
    assert!(leftovers.is_empty(), "{context}: left behind: {leftovers:?}");
}

/// Describes the first line that differs between two states.
fn first_difference(state: &str, expected: &str) -> String {
    let lines = state.lines().map(Some).chain([None]).zip(expected.lines().map(Some).chain([None]));
    let mut lines = lines.skip_while(|(a, b)| a == b);
    let counts = format!("{} lines instead of {}", state.lines().count(), expected.lines().count());
    format!("{counts}, the first that differs: {:?}", lines.next())
}
