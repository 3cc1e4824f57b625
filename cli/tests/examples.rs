//! The examples in the help texts run unchanged and succeed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pages::{run_shell, with_samples};
use crate::{CommandOutput, TestFolder};

/// Names of all subcommands except `completions`, `man-pages` and `help`.
pub(crate) const COMMANDS: [&str; 19] = [
    "build", "add", "delete", "compact", "checkpoint", "compare", "query", "dedup", "fingerprint",
    "profiles", "evaluate", "idf", "inspect", "verify", "salvage", "dump", "serve", "plan", "compression",
];

/// Returns the commands of a help text's examples.
fn examples(help: &str) -> Vec<String> {
    let (_, examples) = help.rsplit_once("Example").unwrap();
    let lines = examples.lines().filter(|line| line.starts_with("  simstore "));
    // An explanation may follow an example after several spaces.
    lines.map(|line| line.trim().split("   ").next().unwrap().to_owned()).collect()
}

/// Creates a folder with the samples and two similar Markdown pages.
fn with_pages() -> TestFolder {
    let folder = with_samples();
    folder.write("page.md", "# A page\n\nSome words of a page, and then some more words of it.\n");
    folder.write("other.md", "# A page\n\nSome words of another page, and then some more words of it.\n");
    folder
}

#[cfg(unix)]
#[test]
fn examples_run_unchanged() {
    let folder = with_pages();
    // A service runs until a signal ends it: see serve.rs.
    let commands = COMMANDS.into_iter().filter(|command| *command != "serve");
    for command in std::iter::once(None).chain(commands.map(Some)) {
        let args: Vec<&str> = command.into_iter().chain(["--help"]).collect();
        let help = folder.run(&args).ok();
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{help}");
        for name in ["en.simstore", "zh.simstore", "pages.simstore"] {
            if command.is_some_and(|command| command != "build") {
                folder.run(&["build", "--force", name, "samples/en.jsonl"]).ok();
            } else {
                let _ = std::fs::remove_dir_all(folder.path(name));
            }
        }
        for example in examples {
            let run = run_shell(&folder, &example);
            assert_eq!(run.code, Some(0), "{example}: {}", run.stderr);
        }
    }
}

/// The demo shows duplicates first, and prints no warning about the samples.
#[cfg(unix)]
#[test]
fn the_demo() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo.sh");
    let mut demo = Command::new(script);
    let run = CommandOutput::new(demo.env("SIMSTORE", env!("CARGO_BIN_EXE_simstore")).output().unwrap());
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    let shown = run.ok();
    let places = ["cluster 1: ", "similarity 0.939", "\tdesktop-src/AD/forests.md", "bits each"]
        .map(|text| shown.find(text).unwrap_or_else(|| panic!("`{text}` is not in {shown}")));
    assert!(places.is_sorted(), "{places:?}");
    let mut last = shown.lines().rev().map(|line| line.rsplit_once(": ").unwrap().1);
    let (serve, page) = (last.next().unwrap(), last.next().unwrap());
    assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    let store = Path::new(serve.split_once(" serve ").unwrap().1);
    assert!(store.read_dir().unwrap().next().is_some(), "{serve}");
    assert!(shown.lines().count() < 100, "{shown}");
}

#[test]
fn help_explains_json() {
    let folder = TestFolder::new();
    for command in COMMANDS {
        let help = folder.run(&[command, "--help"]).ok();
        // Separate pages describe the output of `dedup`, and the answers of the service.
        let expected = match command {
            "dedup" => "See docs/dedup.md (output formats)",
            "serve" => "See docs/service.md",
            _ => "With --json",
        };
        assert!(help.contains(expected), "{command}");
        assert!(help.contains("Example"), "{command}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}");
    }
}

#[test]
fn bad_usage() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\n");
    for args in [
        &[][..],
        &["unknown"],
        &["build"],
        &["build", "store"],
        &["build", "store", "a.hex", "--bits", "32"],
        &["build", "store", "a.hex", "--codec", "lzma"],
        &["build", "store", "a.hex", "--memory", "lots"],
        &["build", "store", "a.hex", "--distance", "17"],
        &["build", "store", "a.hex", "--distance", "-1"],
        &["build", "store", "a.hex", "--profile", "letters"],
        &["build", "store", "a.hex", "--profile", "auto,weights=tf"],
        &["build", "store", "a.hex", "--no-ids", "--names"],
        &["build", "store", "a.hex", "--threads", "0"],
        &["build", "store", "a.hex", "--threads", "1025"],
        &["build", "store", "a.hex", "--plan", "nope"],
        &["build", "store", "a.hex", "--block-size", "300"],
        &["build", "store", "-", "-"],
        &["query", "store"],
        &["plan"],
        &["plan", "--count", "many"],
        &["plan", "--count", "0"],
        &["plan", "--count", "5", "--distance", "17"],
        &["plan", "--count", "5", "--medium", "tape"],
        &["inspect", "store", "--block", "1"],
        &["dump", "store", "--permuted"],
        &["dedup", "a.hex", "--output", "-", "--pairs", "-"],
        &["dedup", "a.hex", "--output", "same", "--pairs", "same"],
        &["dedup", "a.hex", "--distance", "33", "--bits", "128"],
        &["compression", "a.hex", "--level", "99"],
        &["compression", "a.hex", "--block-size", "300"],
        &["plan", "--count", "5", "--block-size", "300"],
        &["fingerprint", "a.hex"],
        &["evaluate"],
        &["evaluate", "a.hex", "--documents", "0"],
        &["evaluate", "a.hex", "--profile", "letters"],
    ] {
        let run = folder.run(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(folder.names(), ["a.hex"]);
}
