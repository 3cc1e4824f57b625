//! `simstore dedup`: inputs that change during a run, and interrupted runs that are repeated.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::{CommandOutput, Random, TestFolder, hex_lines};

/// Waits until a run has created `temporary`, the temporary file of an output.
fn wait_for_file(folder: &TestFolder, temporary: &str) {
    while !folder.path(temporary).exists() {
        std::thread::yield_now();
    }
}

/// Starts a command with a pipe as standard input.
fn start(folder: &TestFolder, args: &[&str]) -> Child {
    folder.command(args).stdin(Stdio::piped()).spawn().unwrap()
}

/// A run fails if an input changes after the run has listed it and before the run reads it.
#[test]
fn inputs_that_change_under_a_run_stop_it() {
    let line = |id: &str| format!("{{\"id\": \"{id}\", \"text\": \"document {id} has words\"}}\n");
    type Change = fn(&TestFolder);
    let changes: [(&str, Change); 5] = [
        ("a.jsonl", |folder| folder.write("in/a.jsonl", "{\"id\": \"new\", \"text\": \"the first file\"}\n")),
        ("b.jsonl", |folder| {
            folder.write("in/b.jsonl", folder.read("in/b.jsonl") + "{\"text\": \"one more\"}\n");
        }),
        ("b.jsonl", |folder| std::fs::remove_file(folder.path("in/b.jsonl")).unwrap()),
        ("c.jsonl", |folder| {
            let time = folder.path("in/c.jsonl").metadata().unwrap().modified().unwrap();
            folder.write("other", folder.read("in/c.jsonl").replace("has", "had"));
            let other = std::fs::File::options().write(true).open(folder.path("other")).unwrap();
            other.set_modified(time).unwrap();
            std::fs::rename(folder.path("other"), folder.path("in/c.jsonl")).unwrap();
        }),
        ("z.jsonl", |folder| folder.write("in/z.jsonl", "{\"id\": \"new\", \"text\": \"the last file\"}\n")),
    ];
    for (name, change) in changes {
        let folder = TestFolder::new();
        std::fs::create_dir(folder.path("in")).unwrap();
        folder.write("in/b.jsonl", line("b1") + &line("b2"));
        folder.write("in/c.jsonl", line("c1"));
        folder.write("kept", "as before");
        let mut child = start(&folder, &["dedup", "in", "-", "--output", "kept"]);
        let mut input = child.stdin.take().unwrap();
        input.write_all(line("from a pipe").as_bytes()).unwrap();
        wait_for_file(&folder, ".kept.tmp");
        change(&folder);
        drop(input);
        CommandOutput::new(child.wait_with_output().unwrap())
            .fails(1, &format!("in/{name}: the list of input files changed while they were read"));
        assert_eq!(folder.names(), ["in", "kept"], "{name}");
        assert_eq!(folder.read("kept"), "as before", "{name}");
    }
}

/// A file that is read again is checked by content: a change is detected even if length and modification time
/// are equal.
#[test]
fn documents_that_are_read_again_are_checked() {
    let folder = TestFolder::new();
    let filler = |from: usize| {
        let line = |id: usize| format!("{{\"id\": {id}, \"text\": \"{id:0>60}\"}}\n");
        (from..from + 2000).map(line).collect::<String>()
    };
    let content = |text: &str| format!("{}{{\"id\": 1, \"text\": \"{text}\"}}\n{}", filler(10), filler(5000));
    let time = SystemTime::now() - Duration::from_secs(1000);
    let write = |text: &str| {
        folder.write("a.jsonl", content(text));
        let file = std::fs::File::options().write(true).open(folder.path("a.jsonl")).unwrap();
        file.set_modified(time).unwrap();
    };
    let args = ["dedup", "a.jsonl", "-q", "-d", "0", "--resume", "work"];
    for output in ["--output", "--annotated"] {
        write("some words");
        folder.run(&[&args[..], &["--output", "kept.jsonl"]].concat()).ok();
        assert_eq!(folder.read("kept.jsonl"), content("some words"));
        write("some wordy");
        let run = folder.run(&[&args[..], &[output, "new.jsonl"]].concat());
        run.fails(1, "a.jsonl:2001: the file changed while the inputs were read");
    }
    assert_eq!(folder.names(), ["a.jsonl", "kept.jsonl", "work"]);
}

const OLD: &str = "0000000000000000\told\n";
const NEW: &str =
    "0000000000000001\tlike old\nffff000000000000\tx\nffff000000000001\tlike x\n00000000ffffffff\ty\n";
const KEPT: &str = "ffff000000000000\tx\n00000000ffffffff\ty\n";

const ADD: [&str; 6] = ["dedup", "-", "--against", "seen", "--add", "-q"];

#[test]
fn a_repeated_run_adds_nothing_and_keeps_its_output() {
    let folder = TestFolder::new();
    folder.write("old.tsv", OLD);
    folder.run(&["build", "seen", "old.tsv"]).ok();
    let run = |more: &[&str], input: &str| folder.run_with_input(&[&ADD, more].concat(), input);
    run(&["--output", "new.tsv"], NEW).ok();
    for _ in 0..2 {
        assert_eq!(folder.read("new.tsv"), KEPT);
        assert_eq!(folder.ids("seen"), ["old", "x", "y"]);
        run(&["--output", "./new.tsv"], NEW).ok();
    }
    let summary = &run(&["--output", "new.tsv", "--json"], NEW).json()[0];
    assert_eq!((&summary["added"], &summary["added_before"]), (&0.into(), &2.into()));
    // A repeated run cannot write an output that the first run did not write.
    run(&["--output", "-"], NEW).fails(1, "its output (standard output) is missing");
    run(&["--output", "new.tsv", "--pairs", "pairs"], NEW).fails(1, "its output (pairs) is missing");
    run(&["--output", "other.tsv", "--again"], NEW).ok();
    assert_eq!(folder.read("other.tsv"), "");
    // With other documents, it is a different run.
    run(&["--output", "new.tsv"], "000000000000ffff\tz\n").ok();
    assert_eq!(folder.read("new.tsv"), "000000000000ffff\tz\n");
    assert_eq!(folder.ids("seen"), ["old", "x", "y", "z"]);
}

/// A run has added documents to the store but failed to rename its output file. The same command with the same
/// input then completes this output, and with another input it fails and does not overwrite the output.
#[test]
fn a_repeated_run_completes_the_output_of_an_interrupted_run() {
    let folder = TestFolder::new();
    folder.write("old.tsv", OLD);
    folder.run(&["build", "seen", "old.tsv"]).ok();
    let args = [&ADD[..], &["--output", "new.tsv", "--keep-list", "ids"]].concat();
    let mut child = start(&folder, &args);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    input.write_all(NEW.as_bytes()).unwrap();
    wait_for_file(&folder, ".ids.tmp");
    // A folder at the output's path makes the rename fail.
    std::fs::create_dir(folder.path("new.tsv")).unwrap();
    drop(input);
    CommandOutput::new(child.wait_with_output().unwrap()).fails(1, "new.tsv: cannot write");
    assert_eq!(folder.ids("seen"), ["old", "x", "y"]);
    std::fs::remove_dir(folder.path("new.tsv")).unwrap();
    let names = |folder: &TestFolder| folder.names().into_iter().filter(|name| name.starts_with('.')).count();
    assert!(names(&folder) > 0);
    // A different run does not overwrite the pending output.
    folder
        .run_with_input(&args, "000000000000ffff\tz\n")
        .fails(1, "new.tsv: holds the result of another run");
    assert_eq!(folder.read("new.tsv"), KEPT);
    folder.run_with_input(&args, NEW).ok();
    assert_eq!((folder.read("new.tsv").as_str(), folder.read("ids").as_str()), (KEPT, "x\ny\n"));
    assert_eq!(folder.ids("seen"), ["old", "x", "y"]);
    assert_eq!(names(&folder), 0);
}

#[test]
fn a_run_killed_at_any_time_loses_nothing() {
    let folder = TestFolder::new();
    let mut random = Random(7);
    let old = random.clustered(2000);
    let new: Vec<u64> = old.iter().step_by(3).copied().chain(random.clustered(3000)).collect();
    folder.write("old.hex", hex_lines(&old));
    let named: String = new.iter().enumerate().map(|(i, value)| format!("{value:016x}\tnew {i}\n")).collect();
    folder.write("new.tsv", named);
    let names: String = old.iter().enumerate().map(|(i, value)| format!("{value:016x}\told {i}\n")).collect();
    folder.write("old.tsv", names);
    folder.run(&["build", "first", "old.tsv"]).ok();
    let run = |store: &str| {
        let (kept, pairs) = (format!("{store}.kept"), format!("{store}.pairs"));
        let args = ["dedup", "new.tsv", "--against", store, "--add", "--output", &kept, "--pairs", &pairs];
        folder.command(&args).spawn().unwrap()
    };
    let copy = |store: &str| {
        let copied = Command::new("cp").args(["-r", "first", store]).current_dir(folder.path(".")).status();
        assert!(copied.unwrap().success());
    };
    let dump = |store: &str| {
        let mut lines: Vec<String> = folder.run(&["dump", store]).ok().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    copy("whole");
    let started = std::time::Instant::now();
    CommandOutput::new(run("whole").wait_with_output().unwrap()).ok();
    let mut time = started.elapsed().as_micros() as u64;
    let mut killed = 0;
    for round in 0..10 {
        let store = format!("s{round}");
        copy(&store);
        for _ in 0..4 {
            let mut child = run(&store);
            // Every second round kills near the end of the run, where the outputs and the store are committed.
            let wait =
                if round % 2 == 0 { random.next() % time } else { time * 3 / 4 + random.next() % (time / 2) };
            std::thread::sleep(Duration::from_micros(wait));
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                // The run was faster than measured before: kill earlier next time.
                time = (time * 3 / 4).max(100);
            } else {
                killed += 1;
            }
        }
        CommandOutput::new(run(&store).wait_with_output().unwrap()).ok();
        for output in ["kept", "pairs"] {
            let (now, whole) =
                (folder.read(&format!("{store}.{output}")), folder.read(&format!("whole.{output}")));
            assert!(now == whole, "round {round}: {output}");
        }
        assert!(dump(&store) == dump("whole"), "round {round}");
    }
    assert!(killed > 5, "{killed}");
    assert!(folder.names().iter().all(|name| !name.starts_with('.')), "{:?}", folder.names());
}

/// A closed standard output does not stop the run from adding documents to the store.
#[cfg(unix)]
#[test]
fn documents_are_added_even_if_standard_output_is_closed() {
    let folder = TestFolder::new();
    let lines: String = (0..50_000_u64)
        .map(|i| format!("{:016x}\tname {i}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    folder.write("a.tsv", lines);
    for (store, more) in [("s", "--output -"), ("t", "-d 6"), ("u", "--keep-list - -q")] {
        let line =
            format!("set -o pipefail; $simstore dedup --against {store} --add {more} a.tsv | head -c 100");
        let run = folder.bash(&line);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let dump = folder.run(&["dump", store]).ok().lines().count();
        let expected = if store == "t" { 1..50_001 } else { 49_000..50_001 };
        assert!(expected.contains(&dump), "{dump}");
        if store != "t" {
            assert!(run.stderr.contains("standard output was closed early"), "{}", run.stderr);
        }
    }
}
