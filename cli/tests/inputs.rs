//! Formats and bad input, through the binary.

use std::io::Write;

use crate::{Folder, Run};

const GOOD: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2, \"text\": \"two\"}\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
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

/// The ids of the fingerprints that were printed.
fn ids(run: Run) -> Vec<String> {
    run.ok().lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect()
}

/// A bad input stops the command, or is skipped, and the next one is read.
#[track_caller]
fn stops_or_is_skipped(folder: &Folder, bad: &str, options: &[&str], message: &str) {
    folder.write("good.jsonl", GOOD);
    let args = [&["fingerprint", bad, "good.jsonl"], options].concat();
    folder.run(&args).fails(1, message);
    let skipping = folder.run(&[&args, &["--skip-bad"][..]].concat());
    assert!(skipping.stderr.contains(message), "{}", skipping.stderr);
    assert!(skipping.stderr.contains("1 document or file malformed, skipped"), "{}", skipping.stderr);
    let ids = ids(skipping);
    assert!(ids.ends_with(&["1".to_owned(), "2".to_owned()]), "{ids:?}");
}

#[test]
fn bad_input() {
    let folder = Folder::new();
    let lines = GOOD.repeat(1000);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 3].to_vec();
    let long = format!("{{\"text\": \"{}\"}}\n", "x".repeat(9000));
    let files: [(&str, Vec<u8>, &[&str], &str); 14] = [
        (
            "broken.jsonl",
            b"{\"text\": \"a\"}\n{\"text\"\n".to_vec(),
            &[],
            "broken.jsonl:2: EOF while parsing",
        ),
        ("missing.jsonl", b"{\"id\": 7}\n".to_vec(), &[], "missing.jsonl:1: no text field `text`"),
        ("array.json", b"[{\"text\": \"a\"}".to_vec(), &[], "array.json:2: the file ends within the array"),
        (
            "cut.jsonl.gz",
            cut(gzip(lines.as_bytes())),
            &[],
            "the gzip data is cut off: the file ends at byte ",
        ),
        (
            "cut.jsonl.zst",
            cut(zstd::encode_all(lines.as_bytes(), 3).unwrap()),
            &[],
            "the zstd data is cut off",
        ),
        ("cut.jsonl.bz2", cut(bzip2(lines.as_bytes())), &[], "the bzip2 data is cut off"),
        ("cut.jsonl.xz", cut(xz(lines.as_bytes())), &[], "the xz data is cut off"),
        (
            "long.jsonl",
            long.into_bytes(),
            &["--max-document", "8K"],
            "long.jsonl:1: longer than the limit of 8192 bytes",
        ),
        ("few.csv", b"id,text\n1\n".to_vec(), &[], "few.csv:2: a row of 1 fields, but the header has 2"),
        ("many.csv", b"id,text\n1,2,3\n".to_vec(), &[], "many.csv:2: a row of more than 2 fields"),
        (
            "columns.csv",
            b"id,body\n1,2\n3,4\n".to_vec(),
            &[],
            "columns.csv:1: no text column `text`; the columns are `id`, `body`",
        ),
        ("quote.tsv", b"text\n\"a\nb\n".to_vec(), &[], "quote.tsv:2: the file ends within quotes"),
        (
            "cut.warc",
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Length: 9\r\n\r\n12345"
                .to_vec(),
            &[],
            "cut.warc:1: the file ends within this record, which lacks 4 of 9 bytes; it starts at byte 0",
        ),
        #[cfg(feature = "parquet")]
        ("false.parquet", GOOD.into(), &[], "false.parquet: no Parquet file, or damaged"),
        #[cfg(not(feature = "parquet"))]
        ("none.jsonl", b"{".to_vec(), &[], "none.jsonl:1"),
    ];
    for (name, bytes, options, message) in files {
        folder.write(name, bytes);
        stops_or_is_skipped(&folder, name, options, message);
    }
}

#[test]
#[cfg(unix)]
fn bad_files() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    std::os::unix::fs::symlink("nowhere", folder.path("gone.jsonl")).unwrap();
    stops_or_is_skipped(&folder, "gone.jsonl", &[], "gone.jsonl: a link that leads nowhere");
    std::os::unix::fs::symlink("itself.jsonl", folder.path("itself.jsonl")).unwrap();
    stops_or_is_skipped(&folder, "itself.jsonl", &[], "itself.jsonl: cannot open: ");
    std::os::unix::fs::symlink("itself", folder.path("itself")).unwrap();
    stops_or_is_skipped(&folder, "itself", &[], "itself: cannot open: ");

    folder.write("locked.jsonl", GOOD);
    std::fs::set_permissions(folder.path("locked.jsonl"), std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(folder.path("locked.jsonl")).is_ok() {
        eprintln!("SKIPPED: this user may read every file");
        return;
    }
    stops_or_is_skipped(&folder, "locked.jsonl", &[], "locked.jsonl: cannot open: ");
    std::fs::rename(folder.path("locked.jsonl"), folder.path("locked")).unwrap();
    stops_or_is_skipped(&folder, "locked", &[], "locked: cannot open: ");
}

/// A folder of texts with other names of them, and things that are no files.
#[cfg(unix)]
fn linked(folder: &Folder) {
    use std::os::unix::fs::symlink;

    std::fs::create_dir_all(folder.path("d/sub")).unwrap();
    folder.write("d/m-real.md", "a text that stands here once and is read once");
    folder.write("d/sub/other.md", "something else, of other words altogether");
    symlink("m-real.md", folder.path("d/a-link.md")).unwrap();
    symlink(folder.path("d/m-real.md"), folder.path("d/z-link.md")).unwrap();
    symlink("sub", folder.path("d/b-linked")).unwrap();
    symlink("../../d", folder.path("d/sub/back")).unwrap();
    std::fs::hard_link(folder.path("d/m-real.md"), folder.path("d/n-hard.md")).unwrap();
    symlink("nowhere", folder.path("d/gone.md")).unwrap();
    symlink("itself.md", folder.path("d/itself.md")).unwrap();
    std::process::Command::new("mkfifo").arg(folder.path("d/pipe.md")).status().unwrap();
}

/// What is found has no part of a link, whatever is kept.
#[test]
#[cfg(unix)]
fn one_file_is_one_document_whatever_names_it_has() {
    let folder = Folder::new();
    linked(&folder);
    let notes = "5 names passed over, of files and folders that are read under another";
    for keep in ["first", "none", "longest"] {
        let args = ["dedup", "d", "--keep", keep, "--keep-list", "kept", "--remove-list", "gone"];
        let run = folder.run(&args);
        for said in [notes, "2 links to nothing passed over", "1 pipe or device passed over"] {
            assert!(run.stderr.contains(said), "{}", run.stderr);
        }
        assert!(
            run.stderr.contains(
                "\n5 names of what is read under another, passed over\n3 files or links passed over"
            )
        );
        run.ok();
        assert_eq!(folder.read("kept"), "d/m-real.md\nd/sub/other.md\n", "{keep}");
        assert_eq!(folder.read("gone"), "", "{keep}");
    }
    let counts = |args: &[&str]| {
        let summary = folder.run(args).json().pop().unwrap();
        ["documents", "other_names", "passed_over"].map(|field| summary[field].as_u64().unwrap())
    };
    assert_eq!(counts(&["dedup", "--json", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["dedup", "--json", "--resume", "parts", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["dedup", "--json", "--resume", "parts", "d"]), [2, 5, 3]);
    // Named by a shell, in whatever order; by a pattern; and a folder beside a file in it.
    let named = ["d/a-link.md", "d/gone.md", "d/m-real.md", "d/n-hard.md", "d/sub"];
    assert_eq!(counts(&[&["dedup", "--json", "--skip-bad"][..], &named].concat())[..2], [2, 3]);
    assert_eq!(counts(&["dedup", "--json", "d/*.md"]), [1, 3, 3]);
    assert_eq!(counts(&["dedup", "--json", "d/sub", "d", "d/n-hard.md"]), [2, 6, 3]);
    assert_eq!(ids(folder.run(&["fingerprint", "d/a-link.md", "d/m-real.md"])), ["d/m-real.md"]);
    assert_eq!(ids(folder.run(&["fingerprint", "d/a-link.md"])), ["d/a-link.md"]);
    assert_eq!(counts(&["build", "--json", "built", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["add", "--json", "added", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["add", "--json", "added", "d"]), [2, 5, 3]);
}

/// Commands end and say what they find, also where it is put on disk or kept in parts, and is added.
#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_unicode_are_told_apart() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    for file in [&b"d/\xe8.txt"[..], b"d/\xe9.txt", b"d/a.txt"] {
        std::fs::write(folder.0.path().join(OsStr::from_bytes(file)), "one text in three files").unwrap();
    }
    let common =
        ["dedup", "-q", "--clusters", "clusters.csv", "--remove-list", "gone", "--keep-list", "kept"];
    for more in [
        &["d"][..],
        &["d/*"],
        &["d/**/*.txt"],
        &["d", "--memory", "1K"],
        &["d", "--resume", "p"],
        &["d", "--resume", "p"],
    ] {
        folder.run(&[&common[..], more].concat()).ok();
        assert_eq!(folder.read("kept"), "d/a.txt\n", "{more:?}");
        assert_eq!(folder.read("gone"), "d/\\\\xE8.txt\nd/\\\\xE9.txt\n", "{more:?}");
        let clusters = folder.read("clusters.csv");
        assert_eq!(clusters.lines().nth(1), Some("d/a.txt,1,d/a.txt,1"), "{more:?}");
        assert_eq!(clusters.lines().nth(2), Some("d/\\xE8.txt,1,d/a.txt,1"), "{more:?}");
    }
    let mut output = std::ffi::OsString::from("new");
    output.push(OsStr::from_bytes(b"\xe9.jsonl"));
    folder.write("a.jsonl", GOOD);
    for _ in 0..2 {
        let mut command =
            folder.command(&["dedup", "--distance", "3", "a.jsonl", "--against", "s", "--add", "-o"]);
        Run::new(command.arg(&output).output().unwrap()).ok();
        assert_eq!(std::fs::read_to_string(folder.0.path().join(&output)).unwrap(), GOOD);
    }
    folder.run(&["add", "texts", "d"]).ok();
    assert_eq!(folder.run(&["query", "texts", "--text", "one text in three files"]).ok().lines().count(), 3);
}

/// Lists hold any name that a file can have, when they are read and when they are written.
#[test]
#[cfg(target_os = "linux")]
fn lists_of_names_that_end_in_zeros() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    let names = [&b"d/a.txt"[..], b"d/b\nc.txt", b"d/\\x41.txt", b"d/\xe9.txt"];
    for name in names {
        std::fs::write(folder.0.path().join(OsStr::from_bytes(name)), "one text in four files").unwrap();
    }
    folder.write("d/other.txt", "something else altogether, of other words");
    let list =
        |names: &[&[u8]]| names.iter().flat_map(|name| [name, &b"\0"[..]].concat()).collect::<Vec<u8>>();
    folder.write("list", list(&names));
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let (of_folder, of_list) = ([names[0], names[1], names[3]], &names[1..]);
    for (input, kept, gone) in [
        (&["d"][..], &[names[2], b"d/other.txt"][..], &of_folder[..]),
        (&["d", "--memory", "1K"], &[names[2], b"d/other.txt"], &of_folder),
        (&["d", "--resume", "p"], &[names[2], b"d/other.txt"], &of_folder),
        (&["d", "--resume", "p"], &[names[2], b"d/other.txt"], &of_folder),
        (&["--files-from", "list"], &names[..1], of_list),
        (&["--files-from", "list", "d/other.txt"], &[b"d/other.txt", names[0]], of_list),
    ] {
        let args = ["dedup", "-q", "--null", "--keep-list", "kept", "--remove-list", "gone", "-o", "left"];
        folder.run(&[&args, input].concat()).ok();
        assert_eq!((bytes("kept"), bytes("left")), (list(kept), list(kept)), "{input:?}");
        assert_eq!(bytes("gone"), list(gone), "{input:?}");
    }
    // From a pipe, and to one.
    let run = folder.run_with_input(&["fingerprint", "--null", "--files-from", "-"], list(&names[..2]));
    assert_eq!(run.ok().lines().count(), 2);
    let lines = folder.run_with_input(&["fingerprint", "--files-from", "-"], "d/a.txt\r\n\nd/other.txt\n");
    assert_eq!(ids(lines), ["d/a.txt", "d/other.txt"]);
    let fails = |args: &[&str], code: i32, message: &str| folder.run(args).fails(code, message);
    fails(
        &["dedup", "d", "--null", "--keep-list", "x.csv"],
        2,
        "x.csv: --null is for lists that are no tables",
    );
    fails(&["dedup", "d", "--null", "--remove-list", "x", "--reasons"], 2, "without --reasons");
    fails(&["dedup", "-", "--files-from", "-"], 2, "standard input (`-`) can be read only once");
    fails(&["dedup", "--files-from", "none"], 1, "none: cannot read");
    fails(&["dedup"], 2, "INPUT");
    // By such a list, documents are deleted from a store.
    folder.run(&["build", "-q", "store", "d"]).ok();
    folder.write("ids", "d/a.txt\0d/b\nc.txt\0");
    folder.run(&["delete", "store", "--null", "--ids", "ids"]).ok();
    assert!(!folder.run(&["dump", "store"]).ok().contains("a.txt"));
}

#[test]
#[cfg(unix)]
fn one_file_of_fingerprints_is_read_once() {
    let folder = Folder::new();
    folder.write("a.hex", "0000000000000001\n00000000ffffffff\n");
    std::os::unix::fs::symlink("a.hex", folder.path("0.hex")).unwrap();
    for args in [&["0.hex", "a.hex", "a.hex"][..], &["*.hex", "a.hex"]] {
        let run = folder.run(&[&["dedup", "--json", "-q"], args].concat()).json();
        let [summary] = &run[..] else { panic!("clusters: {run:?}") };
        assert_eq!((&summary["documents"], &summary["other_names"]), (&2.into(), &2.into()));
        let built = folder.run(&[&["build", "--json", "--force", "store"], args].concat()).json();
        assert_eq!((&built[0]["ids"], &built[0]["other_names"]), (&2.into(), &2.into()));
        let added = folder.run(&[&["add", "--json", "--again", "live"], args].concat()).json();
        assert_eq!((&added[0]["documents"], &added[0]["other_names"]), (&2.into(), &2.into()));
    }
}

#[test]
#[cfg(feature = "parquet")]
fn parquet_files() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let folder = Folder::new();
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
    let message = "a.parquet: no text column `text`; the columns are `id`, `body`";
    stops_or_is_skipped(&folder, "a.parquet", &[], message);
    let bytes = std::fs::read(folder.path("a.parquet")).unwrap();
    folder
        .run_with_input(&["fingerprint", "-"], bytes)
        .fails(1, "Parquet is read from its end, which a pipe has not; save it as a file first");
}

#[test]
fn empty_files() {
    let folder = Folder::new();
    for name in ["a.jsonl", "a.csv", "a.tsv", "a.warc"] {
        folder.write(name, "");
        assert_eq!(folder.run(&["fingerprint", name]).ok(), "", "{name}");
    }
    assert_eq!(folder.run(&["fingerprint", "-"]).ok(), "");
    folder.run(&["fingerprint", "none.jsonl"]).fails(1, "none.jsonl: cannot open");
    folder.run(&["fingerprint", "*.none", "--skip-bad"]).fails(1, "*.none: matches no file");
}

#[test]
fn formats_by_name_by_content_and_by_force() {
    let folder = Folder::new();
    let table = "url,body\nu,one\nv,two\n";
    folder.write("a.csv", table);
    folder.write("b.dat", gzip(table.as_bytes()));
    folder.write("c.csv.xz", xz(table.as_bytes()));
    let fields = ["--id-field", "url", "--text-field", "body"];
    let of = |args: &[&str]| ids(folder.run(&[&["fingerprint"], args, &fields].concat()));
    assert_eq!(of(&["a.csv"]), ["u", "v"]);
    assert_eq!(of(&["b.dat"]), ["u", "v"]);
    assert_eq!(of(&["*.csv*"]), ["u", "v", "u", "v"]);
    let args = [&["fingerprint", "-"][..], &fields].concat();
    assert_eq!(ids(folder.run_with_input(&args, table)), ["u", "v"]);
    assert_eq!(ids(folder.run_with_input(&args, bzip2(table.as_bytes()))), ["u", "v"]);
    // What would be lines of JSON, and what would be fingerprints.
    let text = folder.run_with_input(&["fingerprint", "-", "--format", "text"], "0123456789abcdef\n");
    assert_eq!(ids(text), ["-"]);
    folder.run_with_input(&["fingerprint", "-"], "0123456789abcdef\n").fails(2, "hold fingerprints already");
    folder.run(&["fingerprint", "a.csv", "--format", "xml"]).fails(2, "expected one of jsonl, csv");
    folder.run(&["fingerprint", "a.csv", "--encoding", "utf-9"]).fails(2, "`utf-9` is no encoding");
}

#[test]
fn encodings() {
    let folder = Folder::new();
    let line = |text: &str| format!("{{\"id\": 1, \"text\": \"{text}\"}}\n");
    let text = "近似重复的网页很常见，相似的文档具有相似的指纹。";
    folder.write("utf8.jsonl", line(text));
    folder.write("gbk.jsonl", encoding_rs::GBK.encode(&line(text)).0);
    folder.write("gbk.txt", encoding_rs::GBK.encode(text).0);
    let expected = folder.run(&["fingerprint", "utf8.jsonl"]).ok();
    assert_eq!(folder.run(&["fingerprint", "gbk.jsonl", "--encoding", "gb18030"]).ok(), expected);
    let detected = folder.run(&["fingerprint", "gbk.txt"]).ok();
    assert_eq!(detected[..16], expected[..16]);
    let message =
        "gbk.jsonl:1: not UTF-8 from here on, it looks like gb18030: --encoding gb18030 reads it so";
    folder.run(&["fingerprint", "gbk.jsonl"]).fails(1, message);
    let replaced = folder.run(&["fingerprint", "gbk.jsonl", "--encoding", "utf-8"]);
    assert!(replaced.stderr.contains("not in the encoding of the input"), "{}", replaced.stderr);
    assert_ne!(replaced.ok(), expected);
}

fn zip_of(name: &str, text: &str) -> Vec<u8> {
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
fn what_is_passed_over_is_told() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("prints")).unwrap();
    folder.write("prints/a.hex", "0123456789abcdef\n");
    folder.write("prints/image.png", "x");
    let run = folder.run(&["add", "store", "prints"]);
    assert_eq!(run.code, Some(0));
    for said in [
        "1 file passed over, by their names no documents",
        "1 file of fingerprints passed over; name them to read them",
        "warning: there is nothing in the inputs that could be read",
    ] {
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    let warc = "WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    folder.write("a.warc", warc.repeat(3));
    let run = folder.run(&["dedup", "a.warc", "--output", "left.warc"]);
    assert!(run.stderr.contains("3 WARC records of type request without text passed over"), "{}", run.stderr);
    folder.write("a.csv", "id;text\n1;a\n");
    let run = folder.run(&["fingerprint", "a.csv"]);
    assert!(
        run.stderr.contains("1 table with ';' between the fields, as the columns show"),
        "{}",
        run.stderr
    );
    folder.run(&["fingerprint", "a.csv", "--delimiter", "tab"]).fails(1, "no text column `text`");
    folder.run(&["fingerprint", "a.csv", "--delimiter", "ab"]).fails(2, "expected one character of ASCII");
    folder.write("b.txt", encoding_rs::GB18030.encode(&"相似的文档具有相似的指纹。".repeat(5)).0);
    let run = folder.run(&["fingerprint", "b.txt"]);
    assert!(
        run.stderr.contains("warning: 1 text not in UTF-8, read as GBK by what they look like"),
        "{}",
        run.stderr
    );
}

/// A site of pages is deduplicated though settings of programs stand beside them.
#[test]
fn settings_among_texts_are_passed_over() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("site")).unwrap();
    let settings = "{\n  \"name\": \"site\",\n  \"scripts\": {\"build\": \"make\"}\n}\n";
    folder.write("site/package.json", settings);
    folder.write("site/tsconfig.json", "{\n  // with a comment\n  \"strict\": true\n}\n");
    for run in [&["dedup", "site"][..], &["dedup", "site", "--output", "kept"], &["build", "store", "site"]] {
        for file in ["site/a.md", "site/b.md"] {
            let _ = std::fs::remove_file(folder.path(file));
        }
        // Where there is nothing else, it is said what is missing.
        folder.run(run).fails(1, "site/package.json:");
        folder.write("site/a.md", "a page of some words");
        folder.write("site/b.md", "a page of some words");
        let run = folder.run(run);
        let said = "2 files of JSON without the text field passed over; --text-field names another field";
        assert!(run.stderr.contains(said), "{}", run.stderr);
        run.ok();
    }
    assert_eq!(folder.read("kept"), "site/a.md\n");
    let summary = folder.run(&["dedup", "-q", "--json", "site"]).json().pop().unwrap();
    assert_eq!((&summary["documents"], &summary["passed_over"]), (&2.into(), &2.into()));
    let run = folder.run(&["fingerprint", "site", "--text-field", "name"]);
    assert!(run.stderr.contains("package.json"), "{}", run.stderr);
    // Members of archives are read as files of folders are.
    folder.write("a.zip", zip_of("package.json", settings));
    let run = folder.run(&["dedup", "a.zip"]);
    assert!(run.stderr.contains("1 file of JSON without the text field passed over"), "{}", run.stderr);
    run.ok();
}

#[test]
fn archives_through_all_commands() {
    let folder = Folder::new();
    folder.write("a.zip", zip_of("in/pages.jsonl", GOOD));
    folder.write("b.zip", zip_of("copy.jsonl", GOOD));
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
    folder.write("a.xlsx", zip_of("[Content_Types].xml", "<x/>"));
    folder.run(&["fingerprint", "a.xlsx"]).fails(1, "a.xlsx: looks like a document of an office program");
    folder.write("a.pdf", b"%PDF-1.4\0");
    stops_or_is_skipped(&folder, "a.pdf", &[], "a.pdf: looks like a PDF document, which is not read");
}

#[test]
fn a_query_reads_what_build_reads() {
    let folder = Folder::new();
    let text = "相似的文档具有相似的指纹，功能的许多差异在这里都会被发现。";
    folder.write("a.txt", text);
    folder.write("b.txt", encoding_rs::GB18030.encode(text).0);
    folder.write("c.txt.gz", gzip(text.as_bytes()));
    folder.run(&["build", "store", "a.txt"]).ok();
    for file in ["a.txt", "b.txt", "c.txt.gz"] {
        let found = folder.run(&["query", "store", "--file", file]).ok();
        assert!(found.starts_with("0\t"), "{file}: {found}");
    }
    let found = folder.run_with_input(&["query", "store", "--file", "-"], text).ok();
    assert!(found.starts_with("0\t"), "{found}");
    folder.write("d.zip", zip_of("a.txt", text));
    assert!(folder.run(&["query", "store", "--file", "d.zip"]).ok().starts_with("0\t"));
}

/// `zstd --long=31`.
#[test]
fn a_long_window() {
    let folder = Folder::new();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(29).unwrap();
    encoder.write_all(GOOD.as_bytes()).unwrap();
    folder.write("a.jsonl.zst", encoder.finish().unwrap());
    assert_eq!(ids(folder.run(&["fingerprint", "a.jsonl.zst"])), ["1", "2"]);
}

/// Ten are named, and the others counted; a list has them all.
#[test]
fn a_list_of_all_that_is_malformed() {
    let folder = Folder::new();
    let lines: String = (1..=15).map(|line| format!("no JSON {line}\n")).collect();
    folder.write("a.jsonl", lines + GOOD);
    folder.write("cut.jsonl.gz", &gzip(GOOD.as_bytes())[..20]);
    let args = ["fingerprint", "a.jsonl", "cut.jsonl.gz", "--skip-bad"];
    let run = folder.run(&[&args[..], &["--bad", "bad.jsonl"]].concat());
    assert!(run.stderr.contains("a.jsonl:10: ") && !run.stderr.contains("a.jsonl:11: "), "{}", run.stderr);
    assert!(
        run.stderr.contains("is only listed") && run.stderr.contains("16 documents or files malformed"),
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
    assert!(listed[15]["reason"].as_str().unwrap().contains("cut off"), "{}", listed[15]);
    // As a table, and of deduplication, quietly too.
    folder.run(&["dedup", "-q", "a.jsonl", "--skip-bad", "--bad", "bad.csv"]).ok();
    assert_eq!(folder.read("bad.csv").lines().count(), 16);
    assert!(folder.read("bad.csv").starts_with("file,line,reason\na.jsonl,1,"));
    // Without it, it is said how to get it.
    let run = folder.run(&args);
    assert!(run.stderr.contains("--bad lists it"), "{}", run.stderr);
    folder.run(&["fingerprint", "a.jsonl", "--bad", "x"]).fails(2, "--skip-bad");
    // A command that could not be done leaves none.
    folder.run(&[&args[..], &["missing.jsonl", "--bad", "none.csv"]].concat()).fails(1, "missing.jsonl");
    assert!(!folder.path("none.csv").exists());
}

/// Quiet is no summary; what has not been read is told.
#[test]
fn what_is_passed_over_is_told_quietly_too() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    folder.write("d/a.jsonl", GOOD);
    folder.write("d/b.dat", "no document by its name");
    folder.write("d/c.hex", "0123456789abcdef\n");
    let run = folder.run(&["fingerprint", "-q", "d"]);
    assert!(
        run.stderr.contains("1 file passed over")
            && run.stderr.contains("1 file of fingerprints passed over"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("fingerprints in "), "{}", run.stderr);
}

/// A slip is no other encoding: it is replaced, and told.
#[test]
fn one_bad_byte_is_no_other_encoding() {
    let folder = Folder::new();
    folder.write("a.txt", b"It was the best of times, it was the worst \xe9 of times");
    folder.write("a.jsonl", b"{\"id\": 1, \"text\": \"It was the best of \xfc times\"}\n");
    for name in ["a.txt", "a.jsonl"] {
        let run = folder.run(&["fingerprint", "-q", name]);
        assert!(
            run.stderr.contains("1 character not in the encoding of the input, replaced"),
            "{name}: {}",
            run.stderr
        );
        assert!(!run.stderr.contains("windows"), "{name}: {}", run.stderr);
        run.ok();
    }
}
