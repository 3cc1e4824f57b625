//! Commands under a limit of threads. They use fewer threads or fail with a message. They do not panic or hang.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{CommandOutput, Random, TestFolder, hex_lines};

/// Creates a command that runs as another user with at most `threads` threads. The system counts all threads
/// of a user and does not limit root.
fn limited_command(folder: &TestFolder, threads: usize, args: &[&str]) -> Command {
    let user = 50_000 + std::process::id() % 10_000;
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]);
    command.args(["prlimit", &format!("--nproc={threads}:{threads}"), env!("CARGO_BIN_EXE_simstore")]);
    command.args(args).current_dir(folder.0.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command under a limit of threads. Panics if it has not ended after 300 seconds.
fn run(folder: &TestFolder, threads: usize, args: &[&str]) -> CommandOutput {
    let mut child = limited_command(folder, threads, args).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(300) {
            child.kill().unwrap();
            panic!("{args:?} with {threads} threads has not ended after {:?}", started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    CommandOutput::new(child.wait_with_output().unwrap())
}

/// Makes a folder and everything in it readable and writable for all users.
fn make_accessible(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| make_accessible(&entry.unwrap().path()));
    }
}

#[test]
fn few_threads() {
    let folder = TestFolder::new();
    make_accessible(folder.0.path());
    match limited_command(&folder, 100, &["--version"]).output() {
        Ok(output) if output.status.success() => {}
        other => {
            return eprintln!(
                "SKIPPED, no limits of threads: that takes root, setpriv and prlimit: {other:?}"
            );
        }
    }
    let fingerprints = Random(31).clustered(4000);
    folder.write("a.hex", hex_lines(&fingerprints[..2000]));
    folder.write("b.hex", hex_lines(&fingerprints[2000..]));
    folder.run(&["build", "base", "a.hex"]).ok();
    // The memtable is so small that each batch becomes a segment.
    let add = ["add", "store", "b.hex", "--memtable", "1K"];
    let cores = std::thread::available_parallelism().unwrap().get();
    let enough = 2 * cores + 4;
    let query = format!("{:016x}", fingerprints[7]);
    for threads in (1..8).chain([enough]) {
        // Commands that read a store or build a new one succeed with any number of threads.
        for args in [
            &["build", "new", "a.hex"][..],
            &["verify", "new"],
            &["query", "new", &query],
            &["query", "new", "--batch", "b.hex"],
            &["dedup", "a.hex", "b.hex"],
            &["dump", "new"],
        ] {
            let run = run(&folder, threads, args);
            assert_eq!(run.code, Some(0), "{args:?}, {threads}: {run:?}");
        }
        std::fs::remove_dir_all(folder.path("new")).unwrap();
        let many = run(&folder, threads, &["dedup", "a.hex", "--threads", "1000"]);
        assert!(many.code == Some(0) && many.stderr.contains("warning: using "), "{many:?}");
        std::fs::create_dir(folder.path("store")).unwrap();
        for entry in folder.path("base").read_dir().unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), folder.path("store").join(entry.file_name())).unwrap();
        }
        make_accessible(folder.0.path());
        let mut before = folder.run(&["dump", "store"]).ok();
        for args in [&add[..], &["compact", "store"], &["delete", "store", "--id", "3"]] {
            let run = run(&folder, threads, args);
            let refused = run.code == Some(1) && run.stderr.contains("cannot start a thread");
            assert!(run.code == Some(0) || refused && threads < enough, "{args:?}, {threads}: {run:?}");
            assert!(!run.stderr.contains("panicked"), "{args:?}, {threads}: {run:?}");
            folder.run(&["verify", "store"]).ok();
            if refused {
                assert_eq!(folder.run(&["dump", "store"]).ok(), before, "{args:?}, {threads}");
            } else {
                before = folder.run(&["dump", "store"]).ok();
            }
        }
        std::fs::remove_dir_all(folder.path("store")).unwrap();
    }
}
