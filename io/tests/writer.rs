//! Tests of writing documents unchanged.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};
use simstore_io::{ClusterAnnotation, DocumentOptions, DocumentWriter, records};

use crate::{TWO_LINES, TempFolder, zstd};

fn options(encoding: &str) -> DocumentOptions {
    DocumentOptions { encoding: encoding.parse().unwrap(), ..DocumentOptions::default() }
}

/// Writes all documents of the files by a [`DocumentWriter`], and returns the output.
fn copy(paths: &[PathBuf], encoding: &str) -> Result<Vec<u8>> {
    let mut writer = DocumentWriter::new(Vec::new());
    for record in records(paths, &options(encoding)) {
        writer.write(&record?, None)?;
    }
    writer.finish()
}

/// Writes all documents of a file, annotated with the clusters 0, none, 2, none, ..., and returns the output.
fn annotate(path: &Path, encoding: &str, field: &str) -> Result<Vec<u8>> {
    let mut writer = DocumentWriter::new(Vec::new());
    for (at, record) in records(&[path.to_path_buf()], &options(encoding)).enumerate() {
        let cluster = (at % 2 == 0).then_some(at as u64);
        writer.write(&record?, Some(&ClusterAnnotation { field, cluster }))?;
    }
    writer.finish()
}

fn text(bytes: Result<Vec<u8>>) -> String {
    String::from_utf8(bytes.unwrap()).unwrap()
}

const TABLE: &str = "\u{feff}id,\"text\"\r\n1,\"a\r\n,\"\"b\"\r\n2 , c\r\n";

#[test]
fn documents_stay_as_they_are() {
    let folder = TempFolder::new();
    let odd = "{ \"text\":\t\"\\u0061\", \"x\": [1,  2] } \r\n{\"text\":\"\"}\n";
    for (name, bytes) in [("a.jsonl", odd), ("a.csv", TABLE), ("a.tsv", "text\tid\na\t1\n\"b\t\"\t2\n")] {
        assert_eq!(text(copy(&[folder.file(name, bytes)], "auto")), bytes, "{name}");
        let packed = folder.file(&format!("{name}.zst"), zstd(bytes.as_bytes()));
        assert_eq!(text(copy(&[packed], "auto")), bytes, "{name}");
    }
    let warc: Vec<u8> = ["http://a/", "http://b/"]
        .iter()
        .flat_map(|uri| {
            let head = format!(
                "WARC/1.1\r\nwarc-type: conversion\r\nWARC-Target-URI: {uri}\r\nContent-Length: 1\r\n"
            );
            [head.as_bytes(), b"\r\n\xff\r\n\r\n"].concat()
        })
        .collect();
    assert_eq!(copy(&[folder.file("a.warc", &warc)], "auto").unwrap(), warc);
    let file = folder.file("top/a.txt", "text");
    assert_eq!(text(copy(&[folder.0.path().join("top")], "auto")), format!("{}\n", file.display()));

    // Two files give one header. The last line of the first file has no newline.
    let (first, second) = (folder.file("1.csv", "text\na"), folder.file("2.csv", "text\nb\n"));
    assert_eq!(text(copy(&[first, second], "auto")), "text\na\nb\n");
    assert_eq!(text(DocumentWriter::new(Vec::new()).finish()), "");
}

#[test]
fn other_encodings_stay_too() {
    let folder = TempFolder::new();
    for encoding in ["big5", "gb18030"] {
        let encode = |text: &str| {
            let charset = if encoding == "big5" { encoding_rs::BIG5 } else { encoding_rs::GB18030 };
            let (bytes, _, unmappable) = charset.encode(text);
            assert!(!unmappable);
            bytes.into_owned()
        };
        let line = "{\"text\": \"許功蓋\"}\n";
        let path = folder.file("a.jsonl", encode(line));
        assert_eq!(copy(std::slice::from_ref(&path), encoding).unwrap(), encode(line));
        let expected = "{\"text\": \"許功蓋\",\"\\u7c07\":0}\n";
        assert_eq!(annotate(&path, encoding, "簇").unwrap(), encode(expected));
        let path = folder.file("a.csv", encode("text,功\n許,\"\n\"\n"));
        assert_eq!(annotate(&path, encoding, "群").unwrap(), encode("text,功,群\n許,\"\n\",0\n"));
    }
    let path = folder.file("a.csv", encoding_rs::BIG5.encode("text\n許\n").0);
    let message = annotate(&path, "big5", "\u{1f600}").unwrap_err().to_string();
    assert!(message.contains("cannot be written in Big5"), "{message}");
    // Lines of UTF-16 become UTF-8.
    let utf16: Vec<u8> = TABLE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(text(copy(&[folder.file("a.csv", utf16)], "auto")), TABLE);
}

#[test]
fn annotations() {
    let folder = TempFolder::new();
    let path = folder.file("a.jsonl", "{ \"text\": \"{}\" } \r\n{\"text\":\"\"}\n{\"text\":\"\"}");
    assert_eq!(
        text(annotate(&path, "auto", "cluster")),
        "{ \"text\": \"{}\" ,\"cluster\":0} \r\n{\"text\":\"\",\"cluster\":null}\n{\"text\":\"\",\"cluster\":2}\n"
    );
    assert_eq!(
        text(annotate(&folder.file("a.csv", TABLE), "auto", "a,\"b\"")),
        "\u{feff}id,\"text\",\"a,\"\"b\"\"\"\r\n1,\"a\r\n,\"\"b\",0\r\n2 , c,\r\n"
    );
    assert_eq!(text(annotate(&folder.file("a.tsv", "text\nx\n"), "auto", "n")), "text\tn\nx\t0\n");
    let path = folder.file("a.txt", "");
    assert_eq!(text(annotate(&path, "auto", "n")), format!("{}\t0\n", path.display()));
    assert_eq!(ClusterAnnotation::default(), ClusterAnnotation { field: "cluster", cluster: None });
}

#[test]
fn records_that_do_not_fit_the_output_are_refused() {
    let folder = TempFolder::new();
    let message = |written: Result<Vec<u8>>| match written {
        Err(Error::BadArgument(message)) => message,
        other => panic!("{other:?}"),
    };
    let jsonl = folder.file("a.jsonl", TWO_LINES);
    let csv = folder.file("a.csv", "text\nx\n");
    let text = folder.file("a.txt", "");
    let refused = message(copy(&[jsonl.clone(), csv.clone()], "auto"));
    let expected = format!(
        "{}:2: holds csv, but the output began with jsonl of {}; write files of one format at a time",
        csv.display(),
        jsonl.display()
    );
    assert_eq!(refused, expected);
    assert!(
        message(copy(&[text, jsonl.clone()], "auto")).contains("holds jsonl, but the output began with text")
    );
    let other = folder.file("b.csv", "text,id\nx,1\n");
    assert!(message(copy(&[csv.clone(), other], "auto")).contains("b.csv:2: has other columns"));
    assert!(message(annotate(&jsonl, "auto", "id")).contains("a.jsonl:1: a field `id` already exists"));
    assert!(message(annotate(&csv, "auto", "text")).contains("a.csv:2: a column `text` already exists"));
    let warc = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    assert!(message(annotate(&folder.file("a.warc", warc), "auto", "n")).contains("cannot hold clusters"));

    let mut writer = DocumentWriter::new(Vec::new());
    let record = records(&[jsonl], &options("auto")).next().unwrap().unwrap();
    writer.write(&record, None).unwrap();
    assert!(writer.write(&record, Some(&ClusterAnnotation::default())).is_err());
}

#[test]
fn a_full_disk() {
    let folder = TempFolder::new();
    let record = records(&[folder.file("a.jsonl", TWO_LINES)], &options("auto")).next().unwrap().unwrap();
    let mut small = [0; 10];
    let mut writer = DocumentWriter::new(&mut small[..]).with_path(Path::new("out.jsonl"));
    let error = writer.write(&record, None).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path, action: "write", .. } if path == Path::new("out.jsonl")),
        "{error}"
    );
}
