//! Input formats, encodings, compression and malformed input.

use std::io::Write;

use crate::{CommandOutput, TestFolder};

pub(crate) const GOOD: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2, \"text\": \"two\"}\n";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the ids of the printed lines of HEX<TAB>ID.
pub(crate) fn ids(run: CommandOutput) -> Vec<String> {
    run.ok().lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect()
}

/// Asserts that a malformed input stops the command. With `--skip-bad`, the command skips it and reads the
/// next input.
#[track_caller]
fn assert_stops_or_skips(folder: &TestFolder, bad: &str, options: &[&str], message: &str) {
    folder.write("good.jsonl", GOOD);
    let args = [&["fingerprint", bad, "good.jsonl"], options].concat();
    folder.run(&args).fails(1, message);
    let skipping = folder.run(&[&args, &["--skip-bad"][..]].concat());
    assert!(skipping.stderr.contains(message), "{}", skipping.stderr);
    assert!(skipping.stderr.contains("skipped 1 invalid document or unreadable file"), "{}", skipping.stderr);
    let ids = ids(skipping);
    assert!(ids.ends_with(&["1".to_owned(), "2".to_owned()]), "{ids:?}");
}

#[test]
fn bad_input() {
    let folder = TestFolder::new();
    let lines = GOOD.repeat(1000);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 3].to_vec();
    let long = format!("{{\"text\": \"{}\"}}\n", "x".repeat(9000));
    let files: [(&str, Vec<u8>, &[&str], &str); 8] = [
        (
            "broken.jsonl",
            b"{\"text\": \"a\"}\n{\"text\"\n".to_vec(),
            &[],
            "broken.jsonl:2: EOF while parsing",
        ),
        ("missing.jsonl", b"{\"id\": 7}\n".to_vec(), &[], "missing.jsonl:1: no text field `text`"),
        (
            "cut.jsonl.gz",
            cut(gzip(lines.as_bytes())),
            &[],
            "the gzip data is truncated: the file ends at byte ",
        ),
        (
            "cut.jsonl.zst",
            cut(zstd::encode_all(lines.as_bytes(), 3).unwrap()),
            &[],
            "the zstd data is truncated",
        ),
        ("cut.jsonl.bz2", cut(bzip2(lines.as_bytes())), &[], "the bzip2 data is truncated"),
        ("cut.jsonl.xz", cut(xz(lines.as_bytes())), &[], "the xz data is truncated"),
        (
            "long.jsonl",
            long.into_bytes(),
            &["--max-document", "8K"],
            "long.jsonl:1: longer than the limit of 8192 bytes",
        ),
        (
            "cut.warc",
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Length: 9\r\n\r\n12345"
                .to_vec(),
            &[],
            "cut.warc:1: the file ends within this record, which lacks 4 of 9 bytes; the record starts at byte 0",
        ),
    ];
    for (name, bytes, options, message) in files {
        folder.write(name, bytes);
        assert_stops_or_skips(&folder, name, options, message);
    }
}

#[test]
#[cfg(unix)]
fn a_dangling_link() {
    let folder = TestFolder::new();
    std::os::unix::fs::symlink("nowhere", folder.path("gone.jsonl")).unwrap();
    assert_stops_or_skips(&folder, "gone.jsonl", &[], "gone.jsonl: a dangling link");
}

#[test]
#[cfg(feature = "parquet")]
fn parquet_files() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let folder = TestFolder::new();
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("body", Arc::new(StringArray::from(vec!["one", "two"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(folder.path("a.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(ids(folder.run(&["fingerprint", "a.parquet", "--text-field", "body"])), ["a", "b"]);
    let bytes = std::fs::read(folder.path("a.parquet")).unwrap();
    folder
        .run_with_input(&["fingerprint", "-"], bytes)
        .fails(1, "Parquet cannot be read from a pipe; save it as a file first");
}

#[test]
fn formats_by_name_by_content_and_by_force() {
    let folder = TestFolder::new();
    let table = "url,body\nu,one\nv,two\n";
    folder.write("a.csv", table);
    folder.write("b.dat", gzip(table.as_bytes()));
    folder.write("c.csv.xz", xz(table.as_bytes()));
    assert_eq!(folder.run(&["fingerprint", "-"]).ok(), "");
    folder.run(&["fingerprint", "*.none", "--skip-bad"]).fails(1, "*.none: no file matches this glob");
    let fields = ["--id-field", "url", "--text-field", "body"];
    let printed_ids = |args: &[&str]| ids(folder.run(&[&["fingerprint"], args, &fields].concat()));
    assert_eq!(printed_ids(&["a.csv"]), ["u", "v"]);
    assert_eq!(printed_ids(&["b.dat"]), ["u", "v"]);
    assert_eq!(printed_ids(&["*.csv*"]), ["u", "v", "u", "v"]);
    let args = [&["fingerprint", "-"][..], &fields].concat();
    assert_eq!(ids(folder.run_with_input(&args, table)), ["u", "v"]);
    assert_eq!(ids(folder.run_with_input(&args, bzip2(table.as_bytes()))), ["u", "v"]);
    // With `--format text`, a line of hexadecimal digits is a text; without it, a fingerprint.
    let text = folder.run_with_input(&["fingerprint", "-", "--format", "text"], "0123456789abcdef\n");
    assert_eq!(ids(text), ["-"]);
    folder
        .run_with_input(&["fingerprint", "-"], "0123456789abcdef\n")
        .fails(2, "needs documents, but the inputs are fingerprints");
    folder.run(&["fingerprint", "a.csv", "--format", "xml"]).fails(2, "expected one of jsonl, csv");
    folder.run(&["fingerprint", "a.csv", "--encoding", "utf-9"]).fails(2, "unknown encoding `utf-9`");
}

#[test]
fn encodings() {
    let folder = TestFolder::new();
    let line = |text: &str| format!("{{\"id\": 1, \"text\": \"{text}\"}}\n");
    let text = "近似重复的网页很常见，相似的文档具有相似的指纹。";
    folder.write("utf8.jsonl", line(text));
    folder.write("gbk.jsonl", encoding_rs::GBK.encode(&line(text)).0);
    folder.write("gbk.txt", encoding_rs::GBK.encode(text).0);
    let expected = folder.run(&["fingerprint", "utf8.jsonl"]).ok();
    assert_eq!(folder.run(&["fingerprint", "gbk.jsonl", "--encoding", "gb18030"]).ok(), expected);
    let detected = folder.run(&["fingerprint", "gbk.txt"]).ok();
    assert_eq!(detected[..16], expected[..16]);
    let message = "gbk.jsonl:1: not UTF-8 from here on; it looks like gb18030: give --encoding gb18030";
    folder.run(&["fingerprint", "gbk.jsonl"]).fails(1, message);
    let replaced = folder.run(&["fingerprint", "gbk.jsonl", "--encoding", "utf-8"]);
    assert!(replaced.stderr.contains("invalid in the encoding of the input"), "{}", replaced.stderr);
    assert_ne!(replaced.ok(), expected);
    folder.write("a.txt", b"It was the best of times, it was the worst \xe9 of times");
    folder
        .run(&["fingerprint", "-q", "a.txt"])
        .fails(0, "1 character was invalid in the encoding of the input and replaced");
}

/// Returns a ZIP archive with one uncompressed file.
pub(crate) fn zip_archive(name: &str, text: &str) -> Vec<u8> {
    let packed = text.as_bytes();
    let mut common = [20_u16, 1 << 11, 0, 0, 0x21].map(u16::to_le_bytes).concat();
    common.extend(crc32fast::hash(packed).to_le_bytes());
    common.extend([(packed.len() as u32).to_le_bytes(), (packed.len() as u32).to_le_bytes()].concat());
    common.extend([(name.len() as u16).to_le_bytes(), [0; 2]].concat());
    let member = [b"PK\x03\x04", &*common, name.as_bytes(), packed].concat();
    let directory = [b"PK\x01\x02\x14\0", &*common, &[0; 14], name.as_bytes()].concat();
    let lengths = [(directory.len() as u32).to_le_bytes(), (member.len() as u32).to_le_bytes()].concat();
    [&member, &directory, &b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &lengths, &[0; 2]].concat()
}

#[test]
fn skipped_inputs_are_reported() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("prints")).unwrap();
    folder.write("prints/a.hex", "0123456789abcdef\n");
    folder.write("prints/image.png", "x");
    // `--quiet` suppresses the summary, but not the notices.
    let run = folder.run(&["add", "-q", "store", "prints"]);
    assert_eq!((run.code, run.stderr.contains(" added")), (Some(0), false), "{}", run.stderr);
    for message in [
        "skipped 1 file with unknown extension: --format text reads it",
        "skipped 1 fingerprint file; give it as input to read it",
        "warning: the inputs hold nothing that can be read",
    ] {
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
    let warc = "WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    folder.write("a.warc", warc.repeat(3));
    let run = folder.run(&["dedup", "a.warc", "--output", "left.warc"]);
    assert!(run.stderr.contains("skipped 3 WARC records of type request (without text)"), "{}", run.stderr);
    folder.write("a.csv", "id;text\n1;a\n");
    let run = folder.run(&["fingerprint", "a.csv"]);
    assert!(run.stderr.contains("1 table with field separator ';' (detected)"), "{}", run.stderr);
    folder.run(&["fingerprint", "a.csv", "--delimiter", "tab"]).fails(1, "no text column `text`");
    folder.run(&["fingerprint", "a.csv", "--delimiter", "ab"]).fails(2, "expected one ASCII character");
    folder.write("b.txt", encoding_rs::GB18030.encode(&"相似的文档具有相似的指纹。".repeat(5)).0);
    let run = folder.run(&["fingerprint", "b.txt"]);
    assert!(
        run.stderr.contains("warning: 1 text is not in UTF-8 and was read as GBK (detected)"),
        "{}",
        run.stderr
    );
}

/// If a folder of pages also has JSON files that hold settings instead of texts, these files are skipped.
#[test]
fn settings_among_texts_are_skipped() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("site")).unwrap();
    let settings = "{\n  \"name\": \"site\",\n  \"scripts\": {\"build\": \"make\"}\n}\n";
    folder.write("site/package.json", settings);
    folder.write("site/tsconfig.json", "{\n  // with a comment\n  \"strict\": true\n}\n");
    for run in [&["dedup", "site"][..], &["dedup", "site", "--output", "kept"], &["build", "store", "site"]] {
        for file in ["site/a.md", "site/b.md"] {
            let _ = std::fs::remove_file(folder.path(file));
        }
        // If there are no other files, the error names the missing field.
        folder.run(run).fails(1, "site/package.json:");
        folder.write("site/a.md", "a page of some words");
        folder.write("site/b.md", "a page of some words");
        let run = folder.run(run);
        let message = "skipped 2 JSON files without the text field; select another field with --text-field";
        assert!(run.stderr.contains(message), "{}", run.stderr);
        run.ok();
    }
    assert_eq!(folder.read("kept"), "site/a.md\n");
    let summary = folder.run(&["dedup", "-q", "--json", "site"]).json().pop().unwrap();
    assert_eq!((&summary["documents"], &summary["skipped_files"]), (&2.into(), &2.into()));
    let run = folder.run(&["fingerprint", "site", "--text-field", "name"]);
    assert!(run.stderr.contains("package.json"), "{}", run.stderr);
    // JSON files in archives are skipped too.
    folder.write("a.zip", zip_archive("package.json", settings));
    let run = folder.run(&["dedup", "a.zip"]);
    assert!(run.stderr.contains("skipped 1 JSON file without the text field"), "{}", run.stderr);
    run.fails(1, "no documents were read");
}

#[test]
fn archives_through_all_commands() {
    let folder = TestFolder::new();
    folder.write("a.zip", zip_archive("in/pages.jsonl", GOOD));
    folder.write("b.zip", zip_archive("copy.jsonl", GOOD));
    let expected = ids(folder.run(&["fingerprint", "a.zip"]));
    assert_eq!(expected, ["1", "2"]);
    let plain = folder.run(&["dedup", "a.zip", "b.zip", "--skip-bad", "--output", "-"]).ok();
    for _ in 0..2 {
        let args = ["dedup", "a.zip", "b.zip", "--skip-bad", "--resume", "work", "--output", "-"];
        assert_eq!(folder.run(&args).ok(), plain);
    }
    assert_eq!(plain, GOOD);
    folder.run(&["dedup", "a.zip", "--output", "left.jsonl"]).ok();
    assert_eq!(folder.read("left.jsonl"), GOOD);
    assert_eq!(folder.run(&["dedup", "a.zip", "--output", "left.csv"]).code, Some(2));
    folder.run(&["add", "store", "a.zip"]).ok();
    let again = folder.run(&["add", "store", "a.zip", "--json"]).json();
    assert_eq!(again[0]["added"], 0);
    folder.write("a.xlsx", zip_archive("[Content_Types].xml", "<x/>"));
    folder.run(&["fingerprint", "a.xlsx"]).fails(1, "a.xlsx: looks like an Office document");
    folder.write("a.pdf", b"%PDF-1.4\0");
    assert_stops_or_skips(&folder, "a.pdf", &[], "a.pdf: looks like a PDF document, which is not supported");
}

#[test]
fn a_query_reads_what_build_reads() {
    let folder = TestFolder::new();
    let text = "相似的文档具有相似的指纹，功能的许多差异在这里都会被发现。";
    folder.write("a.txt", text);
    folder.write("b.txt", encoding_rs::GB18030.encode(text).0);
    folder.write("c.txt.gz", gzip(text.as_bytes()));
    folder.run(&["build", "store", "a.txt"]).ok();
    for file in ["a.txt", "b.txt", "c.txt.gz"] {
        let matches = folder.run(&["query", "store", "--file", file]).ok();
        assert!(matches.starts_with("0\t"), "{file}: {matches}");
    }
    let matches = folder.run_with_input(&["query", "store", "--file", "-"], text).ok();
    assert!(matches.starts_with("0\t"), "{matches}");
    folder.write("d.zip", zip_archive("a.txt", text));
    assert!(folder.run(&["query", "store", "--file", "d.zip"]).ok().starts_with("0\t"));
}

/// A zstd file with a window of 512 MiB (`zstd --long=29`) is read, although decoders accept only 128 MiB by default.
#[test]
fn a_long_window() {
    let folder = TestFolder::new();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(29).unwrap();
    encoder.write_all(GOOD.as_bytes()).unwrap();
    folder.write("a.jsonl.zst", encoder.finish().unwrap());
    assert_eq!(ids(folder.run(&["fingerprint", "a.jsonl.zst"])), ["1", "2"]);
}

/// Messages name the first ten malformed documents and count the others. `--bad` lists all of them.
#[test]
fn all_malformed_documents_are_listed() {
    let folder = TestFolder::new();
    let lines: String = (1..=15).map(|line| format!("no JSON {line}\n")).collect();
    folder.write("a.jsonl", lines + GOOD);
    folder.write("cut.jsonl.gz", &gzip(GOOD.as_bytes())[..20]);
    let args = ["fingerprint", "a.jsonl", "cut.jsonl.gz", "--skip-bad"];
    let run = folder.run(&[&args[..], &["--bad", "bad.jsonl"]].concat());
    assert!(run.stderr.contains("a.jsonl:10: ") && !run.stderr.contains("a.jsonl:11: "), "{}", run.stderr);
    assert!(
        run.stderr.contains("further invalid documents are only listed")
            && run.stderr.contains("skipped 16 invalid documents or unreadable files"),
        "{}",
        run.stderr
    );
    run.ok();
    let listed: Vec<serde_json::Value> =
        folder.read("bad.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<(&str, u64)> =
        listed.iter().map(|row| (row["file"].as_str().unwrap(), row["line"].as_u64().unwrap())).collect();
    let expected = (1..=15).map(|line| ("a.jsonl", line)).chain([("cut.jsonl.gz", 1)]);
    assert_eq!(places, expected.collect::<Vec<_>>());
    assert!(listed[15]["reason"].as_str().unwrap().contains("truncated"), "{}", listed[15]);
    // `dedup --quiet` writes the list too, here as a CSV table.
    folder.run(&["dedup", "-q", "a.jsonl", "--skip-bad", "--bad", "bad.csv"]).ok();
    assert_eq!(folder.read("bad.csv").lines().count(), 16);
    assert!(folder.read("bad.csv").starts_with("file,line,reason\na.jsonl,1,"));
    // Without `--bad`, a message suggests it.
    let run = folder.run(&args);
    assert!(run.stderr.contains("(--bad FILE lists them)"), "{}", run.stderr);
    folder.run(&["fingerprint", "a.jsonl", "--bad", "x"]).fails(2, "--skip-bad");
    // A failed command writes no list.
    folder.run(&[&args[..], &["missing.jsonl", "--bad", "none.csv"]].concat()).fails(1, "missing.jsonl");
    assert!(!folder.path("none.csv").exists());
}
