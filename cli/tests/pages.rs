//! The commands of all pages run as they stand, each page in a directory of its own, with `samples/`.

use std::path::Path;
use std::process::Command;

use crate::{TestFolder, CommandOutput};

/// Beginnings of commands that this test does not run, and where they run.
const RUN_ELSEWHERE: [(&str, &str); 5] = [
    ("./demo.sh", "tests/examples.rs"),
    ("./test.sh", "this test is a part of it"),
    ("pip install simstore", "the wheel is not in a registry"),
    ("pip install", "./test.sh makes and installs the wheel"),
    ("export PYSPARK_PYTHON", "python/tests/spark"),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// README.md, the pages of `docs/`, and the page of the Python package.
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

/// A directory with the samples.
pub(crate) fn with_samples() -> TestFolder {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("samples")).unwrap();
    for name in ["en.jsonl", "zh.jsonl", "pairs.jsonl", "fingerprints.u64"] {
        std::fs::copy(root().join("samples").join(name), folder.path("samples").join(name)).unwrap();
    }
    folder
}

/// Runs lines of shell in a directory, with the binary under test on the path.
pub(crate) fn run_shell(folder: &TestFolder, lines: &str) -> CommandOutput {
    let binary = Path::new(env!("CARGO_BIN_EXE_simstore")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", lines]).current_dir(folder.path("")).env("PATH", &path);
    CommandOutput::new(shell.output().unwrap())
}

/// All commands succeed. A block of output directly below a block of commands must equal the end of their output.
#[cfg(unix)]
#[test]
fn commands_run_and_print_what_is_shown() {
    let (mut count, mut run_count) = (0, 0);
    for (name, page) in pages() {
        let folder = with_samples();
        for rest in page.split("```console\n").skip(1) {
            let (commands, rest) = rest.split_once("```\n").unwrap();
            let commands: Vec<&str> = commands.lines().filter(|command| is_run_here(command)).collect();
            let shown = rest.strip_prefix("\n```text\n").map(|shown| shown.split_once("```").unwrap().0);
            // A comment names the other tool that a block is for.
            let shown = shown.filter(|shown| !shown.starts_with('#'));
            run_count += commands.len();
            let run = run_shell(&folder, &commands.join("\n"));
            if let Some(shown) = shown {
                assert!(run.stdout.ends_with(shown), "{name}: {commands:?} prints\n{}", run.stdout);
                count += 1;
            }
            assert_eq!(run.code, Some(0), "{name}: {commands:?}: {}", run.stderr);
        }
    }
    assert!(count >= 2 && run_count > 40, "{count} blocks, {run_count} commands");
}

/// The first 40 lines introduce simstore and compare it with other tools; the page has at most 150 lines.
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
