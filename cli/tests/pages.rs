//! The commands in README.md and the other pages run unchanged. Each page has its own directory with `samples/`.

use std::path::Path;
use std::process::Command;

use crate::{CommandOutput, TestFolder};

/// Beginnings of the commands on the pages that this test does not run, each with the reason, or with the test that
/// runs them.
const RUN_ELSEWHERE: [(&str, &str); 5] = [
    ("./demo.sh", "tests/examples.rs"),
    ("./test.sh", "this test is a part of it"),
    ("pip install simstore", "the wheel is not in a registry"),
    ("pip install", "./test.sh makes and installs the wheel"),
    ("export PYSPARK_PYTHON", "python/tests/spark"),
];

/// Path of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Names and texts of README.md, all pages in `docs/`, and the page of the Python package.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.extend(["README.md", "python/PYPI.md"].map(|name| root().join(name)));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

fn is_run_here(command: &str) -> bool {
    !RUN_ELSEWHERE.iter().any(|(beginning, _)| command.starts_with(beginning))
}

/// Creates a directory with a copy of the samples.
pub(crate) fn with_samples() -> TestFolder {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("samples")).unwrap();
    for name in ["en.jsonl", "zh.jsonl", "pairs.jsonl", "fingerprints.u64"] {
        std::fs::copy(root().join("samples").join(name), folder.path("samples").join(name)).unwrap();
    }
    folder
}

/// Runs shell lines in a directory, with the tested binary in `PATH`. Stops at the first failure.
pub(crate) fn run_shell(folder: &TestFolder, lines: &str) -> CommandOutput {
    let binary = Path::new(env!("CARGO_BIN_EXE_simstore")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", lines]).current_dir(folder.path("")).env("PATH", &path);
    CommandOutput::new(shell.output().unwrap())
}

/// All commands on the pages succeed. If a block of output directly follows a block of commands, the output of these
/// commands must end with the text of that block.
#[cfg(unix)]
#[test]
fn commands_run_and_print_the_shown_output() {
    let (mut output_count, mut run_count) = (0, 0);
    for (name, page) in pages() {
        let folder = with_samples();
        for rest in page.split("```console\n").skip(1) {
            let (commands, rest) = rest.split_once("```\n").unwrap();
            let commands: Vec<&str> = commands.lines().filter(|command| is_run_here(command)).collect();
            let shown = rest.strip_prefix("\n```text\n").map(|shown| shown.split_once("```").unwrap().0);
            // A block that starts with a comment shows the output of another tool.
            let shown = shown.filter(|shown| !shown.starts_with('#'));
            run_count += commands.len();
            let run = run_shell(&folder, &commands.join("\n"));
            if let Some(shown) = shown {
                assert!(run.stdout.ends_with(shown), "{name}: {commands:?} prints\n{}", run.stdout);
                output_count += 1;
            }
            assert_eq!(run.code, Some(0), "{name}: {commands:?}: {}", run.stderr);
        }
    }
    assert!(output_count >= 2 && run_count > 40, "{output_count} blocks, {run_count} commands");
}

/// README.md compares simstore with other tools in its first 40 lines, and has at most 150 lines.
#[test]
fn the_front_page_is_short() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let lines: Vec<&str> = page.lines().collect();
    assert!(lines.len() <= 150, "{} lines", lines.len());
    let line_of = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or(usize::MAX);
    for text in [
        "docs/peers.svg", "| simstore", "| rensa", "| datasketch", "| text-dedup", "| gaoya", "Jaccard",
        "MinHash",
    ] {
        assert!(line_of(text) < 40, "`{text}` is not in the first 40 lines");
    }
    let about = lines[2].trim_end_matches('.');
    let help = TestFolder::new().run(&["--help"]).ok();
    assert!(help.starts_with(about), "the help begins otherwise than README.md: {help}");
}
