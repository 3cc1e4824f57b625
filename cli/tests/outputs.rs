//! Output files: formats chosen by file name, and files left by interrupted commands.

use std::io::{Read, Write};

use crate::TestFolder;

const LINES: &str = "{\"id\": 1, \"text\": \"one two three\"}\n{\"id\": 2, \"text\": \"one two three\"}\n{\"id\": 3, \"text\": \"others\"}\n";
const KEPT: &str = "{\"id\": 1, \"text\": \"one two three\"}\n{\"id\": 3, \"text\": \"others\"}\n";

/// Returns the decompressed text of a file, by its extension.
fn decompressed(folder: &TestFolder, name: &str) -> String {
    let bytes = std::fs::read(folder.path(name)).unwrap();
    let mut text = String::new();
    match name.rsplit('.').next().unwrap() {
        "gz" => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text),
        "zst" => zstd::Decoder::new(&bytes[..]).unwrap().read_to_string(&mut text),
        "bz2" => bzip2::read::BzDecoder::new(&bytes[..]).read_to_string(&mut text),
        _ => liblzma::read::XzDecoder::new(&bytes[..]).read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn the_extension_selects_the_compression() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES);
    for end in ["gz", "zst", "bz2", "xz"] {
        let file = |name: &str| format!("{name}.{end}");
        let (kept, clusters, list) = (file("kept.jsonl"), file("clusters.csv"), file("list"));
        let (annotated, pairs) = (file("annotated.jsonl"), file("pairs.jsonl"));
        let mut args = vec!["dedup", "a.jsonl", "-q", "-o", &kept, "--clusters", &clusters];
        args.extend(["--keep-list", &list, "--annotated", &annotated, "--pairs", &pairs]);
        folder.run(&args).ok();
        assert_eq!(decompressed(&folder, &kept), KEPT);
        let table = decompressed(&folder, &clusters);
        assert_eq!(table, "id,cluster,representative,similarity\n1,1,1,1\n2,1,1,1\n");
        assert_eq!(decompressed(&folder, &list), "1\n3\n");
        assert_eq!(decompressed(&folder, &annotated).matches("\"cluster\":1").count(), 2);
        assert_eq!(decompressed(&folder, &pairs), "{\"a\":1,\"b\":2,\"similarity\":1.0}\n");
        // The file name gives the input format.
        assert_eq!(folder.run(&["dedup", &kept, "-q", "--keep-list", "-"]).ok(), "1\n3\n");
    }
    folder.run(&["build", "s", "a.jsonl"]).ok();
    folder.run(&["dump", "s", "-o", "dump.hex.gz"]).ok();
    assert_eq!(decompressed(&folder, "dump.hex.gz"), folder.run(&["dump", "s"]).ok());
}

/// Each record of a compressed WARC file is a separate gzip member, as WARC readers expect.
#[test]
fn records_of_a_compressed_archive_are_members() {
    let folder = TestFolder::new();
    let record = |n: u32| {
        let text = format!("the text of page {n}, {n}, {n}");
        let length = text.len();
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://x/{n}\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    let records: Vec<String> = (0..3).map(record).collect();
    folder.write("a.wet", records.concat());
    folder.run(&["dedup", "a.wet", "-d", "0", "-o", "kept.warc.gz"]).ok();
    assert_eq!(decompressed(&folder, "kept.warc.gz"), records.concat());
    let bytes = std::fs::read(folder.path("kept.warc.gz")).unwrap();
    let mut first = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut first).unwrap();
    assert_eq!(first, records[0]);
}

#[test]
fn an_extension_of_another_format_is_refused() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES);
    folder.write("a.csv", "id,text\n1,one\n");
    folder.write("a.hex", "0000000000000000\n");
    folder.write("page.md", "a page");
    let refused = |args: &[&str], message: &str| {
        folder.run(&[&["dedup"], args].concat()).fails(2, message);
    };
    refused(&["a.csv", "-o", "x.jsonl"], "x.jsonl: the output is always in the format of the inputs (csv)");
    refused(&["a.csv", "--annotated", "x.parquet"], "in the format of the inputs (csv)");
    refused(&["a.jsonl", "-o", "x.csv.gz"], "in the format of the inputs (jsonl)");
    refused(&["a.hex", "-o", "x.jsonl"], "HEX<TAB>ID");
    refused(&["page.md", "-o", "x.jsonl"], "a list of paths");
    refused(&["a.jsonl", "a.csv", "-o", "x"], "a.jsonl holds jsonl and a.csv holds csv");
    refused(&["a.jsonl", "--clusters", "x.parquet.gz"], "x.parquet.gz: Parquet is compressed inside");
    refused(&["a.jsonl", "--clusters", "x.xlsx"], "cannot write .xlsx files");
    refused(&["a.jsonl", "-o", "x.jsonl.lz4"], "cannot write .lz4 files");
    refused(&["a.jsonl", "--pairs", "x.warc"], "a table is .jsonl");
    assert_eq!(folder.names(), ["a.csv", "a.hex", "a.jsonl", "page.md"]);
    // Extensions that match the format or are of no known format are accepted.
    for args in [
        ["a.jsonl", "-o", "x.json"],
        ["a.jsonl", "-o", "x.ndjson.gz"],
        ["a.jsonl", "-o", "x.out"],
        ["a.csv", "-o", "x"],
        ["a.hex", "-o", "x.tsv"],
        ["page.md", "-o", "x.txt"],
        ["a.jsonl", "--clusters", "x.json"],
    ] {
        folder.run(&[&["dedup", "-q"][..], &args].concat()).ok();
    }
    // Inputs of several formats are refused only for outputs of documents.
    folder.run(&["dedup", "a.jsonl", "a.csv", "--clusters", "x.csv"]).ok();
}

#[test]
fn outputs_are_distinct_and_do_not_overwrite_inputs() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES);
    std::fs::create_dir(folder.path("sub")).unwrap();
    let refused = |args: &[&str], message: &str| {
        folder.run(&[&["dedup", "a.jsonl"], args].concat()).fails(2, message);
    };
    refused(&["-o", "./z", "--pairs", "z"], "z: given for two outputs");
    refused(&["-o", "sub/../z", "--pairs", folder.path("z").to_str().unwrap()], "given for two outputs");
    refused(&["--pairs", "./a.jsonl"], "is an input");
    refused(&["-o", "a.jsonl", "-d", "3", "--against", "s", "--add", "--force"], "is an input");
    refused(&["-o", "a.jsonl"], "a.jsonl: is also an input; --force overwrites it");
    refused(&["--annotated", "sub/../a.jsonl"], "is also an input; --force");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.jsonl", folder.path("link.jsonl")).unwrap();
        std::fs::hard_link(folder.path("a.jsonl"), folder.path("hard.jsonl")).unwrap();
        refused(&["-o", "link.jsonl"], "link.jsonl: is also an input; --force");
        refused(&["-o", "hard.jsonl"], "hard.jsonl: is also an input; --force");
        folder.run(&["dedup", "hard.jsonl", "-o", "a.jsonl"]).fails(2, "is also an input; --force");
        folder.run(&["dedup", ".", "-o", "a.jsonl"]).fails(2, "is also an input; --force");
        std::fs::remove_file(folder.path("link.jsonl")).unwrap();
        std::fs::remove_file(folder.path("hard.jsonl")).unwrap();
    }
    folder.write("a.hex", "0000000000000001\n");
    for input in ["a.hex", "*.hex"] {
        folder.run(&["dedup", input, "-o", "a.hex"]).fails(2, "is also an input; --force");
        folder.run(&["dedup", input, "--pairs", "a.hex"]).fails(2, "a.hex: ");
    }
    folder.run(&["dedup", "a.hex", "-o", "a.hex", "--force"]).ok();
    assert_eq!(folder.read("a.hex"), "0000000000000001\t0\n");
    std::fs::remove_file(folder.path("a.hex")).unwrap();
    folder
        .run(&["evaluate", "a.jsonl", "--svg", "./a.jsonl"])
        .fails(2, "is an input; choose another path for --svg");
    assert_eq!(folder.names(), ["a.jsonl", "sub"]);
    // An input is read completely before it is replaced.
    folder.run(&["dedup", "a.jsonl", "-o", "./a.jsonl", "--force"]).ok();
    assert_eq!(folder.read("a.jsonl"), KEPT);
}

/// A run overwrites the temporary files that a killed process has left, and leaves none behind.
#[cfg(target_os = "linux")]
#[test]
fn temporary_files_of_a_killed_process_are_reused() {
    use std::process::Stdio;

    let folder = TestFolder::new();
    let mut command = folder.command(&["dedup", "-", "--keep-list", "kept", "--pairs", "pairs"]);
    let mut killed = command.stdin(Stdio::piped()).spawn().unwrap();
    // The process waits as long as its input stays open.
    let mut input = killed.stdin.take().unwrap();
    input.write_all(LINES.as_bytes()).unwrap();
    while folder.names().len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(folder.names(), [".kept.tmp", ".pairs.tmp"]);
    // A second process does not write to the same temporary file.
    folder.write("a.jsonl", LINES);
    folder
        .run(&["dedup", "a.jsonl", "--keep-list", "kept"])
        .fails(1, "another simstore process is writing it");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(folder.names(), [".kept.tmp", ".pairs.tmp", "a.jsonl"]);
    folder.write(".kept.tmp", "longer than what is written now");
    folder.run(&["dedup", "a.jsonl", "--keep-list", "kept", "--pairs", "pairs"]).ok();
    assert_eq!(folder.names(), ["a.jsonl", "kept", "pairs"]);
    assert_eq!(folder.read("kept"), "1\n3\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_file_sizes_is_reported() {
    let folder = TestFolder::new();
    let line = "ulimit -f 1; trap '' PIPE; exec $simstore dedup \"$en\" -q -d 3 --output kept.jsonl";
    folder.bash(line).fails(1, "kept.jsonl: cannot write: File too large");
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn an_output_inside_an_input_folder_is_reported() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("in")).unwrap();
    folder.write("in/a.jsonl", "{\"id\": 1, \"text\": \"some words\"}\n");
    let is_warned = |output: &str| {
        let run = folder.run(&["dedup", "in", "--output", output]);
        let has_warning = run.stderr.contains("is inside an input directory");
        run.ok();
        has_warning
    };
    assert!(!is_warned("out.jsonl"));
    assert!(is_warned("in/out.jsonl"));
}

#[test]
fn outputs_inside_a_store_are_refused() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES);
    folder.run(&["build", "store", "a.jsonl"]).ok();
    for name in ["store/MANIFEST", "store/000001.ids", "store/other"] {
        folder.run(&["dedup", "a.jsonl", "--output", name]).fails(2, "is inside a store");
        folder.run(&["dump", "store", "--output", name]).fails(2, "is inside a store");
    }
    folder.run(&["verify", "store"]).ok();
}

#[test]
fn control_characters_in_names_are_escaped() {
    let folder = TestFolder::new();
    folder.write("e\u{1b}]0;x\u{7}.jsonl", "not json\n");
    let run = folder.run(&["dedup", "e\u{1b}]0;x\u{7}.jsonl"]);
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
    run.fails(1, "e\\u{1b}]0;x\\u{7}.jsonl:1");
}

/// If the inputs have no documents, outputs are replaced only with `--allow-empty`.
#[test]
fn a_run_without_a_document_replaces_nothing() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("typo")).unwrap();
    std::fs::create_dir(folder.path("code")).unwrap();
    folder.write("code/main.rs", "fn main() {}");
    folder.write("none.jsonl", "");
    folder.write("bad.jsonl", "{\"id\": 1\nno JSON\n");
    let inputs: [&[&str]; 5] = [
        &["typo/"],
        &["code/"],
        &["none.jsonl"],
        &["bad.jsonl", "--skip-bad"],
        &["typo/", "bad.jsonl", "--skip-bad"],
    ];
    let outputs: [&[&str]; 7] = [
        &["--output", "out"],
        &["--annotated", "out"],
        &["--clusters", "out"],
        &["--pairs", "out"],
        &["--keep-list", "out"],
        &["--remove-list", "out"],
        &["--against", "pages", "--add", "--remove-list", "out"],
    ];
    folder.write("page.jsonl", "{\"id\": 1, \"text\": \"one two three four five\"}\n");
    folder.run(&["add", "--similar", "0.8", "pages", "page.jsonl"]).ok();
    let stored = folder.run(&["dump", "pages"]).ok();
    for input in inputs {
        for output in outputs {
            folder.write("out", "precious");
            folder.run(&[&["dedup"], input, output].concat()).fails(1, "no documents were read");
            assert_eq!(folder.read("out"), "precious", "{input:?} {output:?}");
        }
        folder.run(&[&["dedup"], input].concat()).fails(1, "no documents were read");
        folder.run(&[&["dedup"], input, &["--output", "out", "--allow-empty"]].concat()).ok();
        assert_eq!(folder.read("out"), "", "{input:?}");
    }
    assert_eq!(folder.run(&["dump", "pages"]).ok(), stored);
    folder.run(&["dedup", "none.jsonl", "--against", "new", "--add"]).fails(1, "no documents were read");
    assert!(!folder.path("new").exists());
}
