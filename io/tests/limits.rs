//! Tests of documents that are longer than the limit, in each format. The error for such a document gives its position
//! and advice.

use std::io::Write;
use std::path::{Path, PathBuf};

use liblzma::stream::{Filters, LzmaOptions, Stream};
use simstore::{Error, Result};
use simstore_io::{Document, DocumentOptions, documents};

use crate::{COMPRESSIONS, TempFolder, gzip};

/// Memory budget of the tests in bytes. With this budget, a document may have 1.25 MiB.
const MEMORY: u64 = 20 << 20;
const LIMIT_MESSAGE: &str =
    "longer than the limit of 1310720 bytes for one document, with 20.0 MiB of memory; raise option `memory`";

fn read(path: &Path, memory: Option<u64>) -> Vec<Result<Document>> {
    let options = DocumentOptions { memory, ..DocumentOptions::default() };
    documents(&[path.to_path_buf()], &options).collect()
}

/// Reads a file in which exactly one document is refused. Returns the reason, path, and line of this error.
#[track_caller]
fn refused(path: &Path, memory: Option<u64>) -> (String, PathBuf, u64) {
    let mut bad = read(path, memory).into_iter().filter_map(Result::err);
    let Some(Error::BadInput { path, line, reason }) = bad.next() else { panic!("{}", path.display()) };
    assert!(bad.next().is_none(), "{}", path.display());
    (reason, path, line)
}

/// Returns a text of different words, with a length of about `bytes` bytes.
fn long(bytes: usize) -> String {
    (0..)
        .map(|word| format!("word{word} "))
        .scan(0, |length, word| {
            *length += word.len();
            (*length <= bytes).then_some(word)
        })
        .collect()
}

fn warc(block: &[u8], headers: &str) -> Vec<u8> {
    let head =
        format!("WARC/1.0\r\nWARC-Target-URI: http://a/\r\n{headers}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

#[test]
fn documents_that_are_too_long_for_the_memory_are_refused_in_every_format() {
    let folder = TempFolder::new();
    let long = long(1_400_000);
    let line = format!("{{\"id\": 1, \"text\": \"{long}\"}}\n");
    let small = "{\"id\": 2, \"text\": \"small\"}\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n";
    let packed_page = [&response[..], &gzip(long.as_bytes())].concat();
    let small_page = warc(b"small", "WARC-Type: conversion\r\n");
    let page = |first: Vec<u8>| [&first[..], &small_page].concat();
    let mut files = vec![
        ("a.jsonl".to_owned(), (line.clone() + small).into_bytes(), 1),
        ("a.json".to_owned(), format!("[{line}, {small}]").into_bytes(), 1),
        ("a.csv".to_owned(), format!("id,text\n1,{long}\n2,small\n").into_bytes(), 2),
        ("a.tsv".to_owned(), format!("id\ttext\n1\t\"{long}\"\n2\tsmall\n").into_bytes(), 2),
        ("a.warc".to_owned(), page(warc(long.as_bytes(), "WARC-Type: conversion\r\n")), 1),
        // Short while it is compressed.
        (
            "packed.warc".to_owned(),
            page(warc(&packed_page, "WARC-Type: response\r\nContent-Type: application/http\r\n")),
            1,
        ),
    ];
    for (ending, compress) in COMPRESSIONS {
        files.push((format!("a.jsonl{ending}"), compress((line.clone() + small).as_bytes()), 1));
    }
    for (name, bytes, line) in files {
        let path = folder.file(&name, bytes);
        let (reason, named, at) = refused(&path, Some(MEMORY));
        assert!(reason.starts_with(LIMIT_MESSAGE), "{name}: {reason}");
        assert_eq!((&named, at), (&path, line), "{name}");
        let rest = read(&path, Some(MEMORY)).into_iter().filter_map(Result::ok).map(|document| document.text);
        assert_eq!(rest.collect::<Vec<_>>(), ["small"], "{name}");
        // With a larger budget, and without one, it is read.
        for memory in [Some(2 * MEMORY), None] {
            assert_eq!(read(&path, memory).into_iter().filter(Result::is_ok).count(), 2, "{name} {memory:?}");
        }
    }
    for (name, bytes) in [("a.txt", long.clone().into_bytes()), ("a.html.gz", gzip(long.as_bytes()))] {
        let (reason, named, _) = refused(&folder.file(name, bytes), Some(MEMORY));
        assert!(reason == LIMIT_MESSAGE && named.ends_with(name), "{name}: {reason}");
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [("long.txt", &*long), ("small.txt", "small")] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    let path = folder.file("a.zip", archive.finish().unwrap().into_inner());
    let (reason, named, _) = refused(&path, Some(MEMORY));
    assert!(reason == LIMIT_MESSAGE && named == path.join("long.txt"), "{reason}");
}

/// If `max_bytes` is smaller than the limit that follows from the memory budget, the error for a longer document advises
/// to raise `max_bytes`, which users know as the option `max_document`.
#[test]
fn the_lesser_limit_counts() {
    let folder = TempFolder::new();
    let path = folder.file("a.txt", "more than ten bytes");
    let options = DocumentOptions { max_bytes: 10, memory: Some(MEMORY), ..DocumentOptions::default() };
    let error = documents(&[path], &options).next().unwrap().unwrap_err().to_string();
    assert!(error.ends_with("longer than the limit of 10 bytes; raise option `max_document`"), "{error}");
}

#[test]
fn windows_that_are_too_large_for_the_memory_are_refused() {
    let folder = TempFolder::new();
    let line = b"{\"id\": 1, \"text\": \"some words\"}\n";
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.window_log(27).unwrap();
    zstd.write_all(line).unwrap();
    let mut lzma = LzmaOptions::new_preset(0).unwrap();
    lzma.dict_size(64 << 20);
    let filters =
        Stream::new_stream_encoder(Filters::new().lzma2(&lzma), liblzma::stream::Check::Crc32).unwrap();
    let mut xz = liblzma::write::XzEncoder::new_stream(Vec::new(), filters);
    xz.write_all(line).unwrap();
    for (name, bytes) in [("a.jsonl.zst", zstd.finish().unwrap()), ("a.jsonl.xz", xz.finish().unwrap())] {
        let path = folder.file(name, bytes);
        let (reason, named, _) = refused(&path, Some(MEMORY));
        assert!(
            reason.starts_with("decompression needs more than 16.0 MiB of memory; raise option `memory`"),
            "{name}: {reason}"
        );
        assert_eq!(named, path);
        for memory in [Some(4 << 30), None] {
            assert_eq!(read(&path, memory).remove(0).unwrap().text, "some words", "{name}");
        }
    }
    // The usual levels need less memory than is always allowed.
    for (ending, compress) in COMPRESSIONS {
        let path = folder.file(&format!("small.jsonl{ending}"), compress(&line.repeat(10_000)));
        assert!(read(&path, Some(1)).iter().all(Result::is_ok), "{ending}");
    }
}

#[test]
fn tables_have_so_many_columns_at_most() {
    let folder = TempFolder::new();
    let table = |columns: usize| {
        let names: String = (2..columns).map(|column| format!(",c{column}")).collect();
        format!("id,text{names}\n1,one{}\n2,two{}\n", ",".repeat(columns - 2), ",".repeat(columns - 2))
    };
    let read = |columns: usize| read(&folder.file("a.csv", table(columns)), None);
    let texts: Vec<String> = read(100_000).into_iter().map(|document| document.unwrap().text).collect();
    assert_eq!(texts, ["one", "two"]);
    let (reason, _, line) = refused(&folder.file("a.csv", table(100_001)), None);
    assert_eq!((&*reason, line), ("the header has more than 100,000 columns, the maximum of a table", 1));
    let (reason, ..) = refused(&folder.file("a.tsv", "x".repeat((16 << 20) + 1)), None);
    assert_eq!(reason, "a header longer than the limit of 16777216 bytes");
    // A message lists only the first names, and shortens long ones.
    let header = format!("{},{}\n", "x".repeat(1000), "y,".repeat(200));
    let (reason, ..) = refused(&folder.file("b.csv", header), None);
    assert!(reason.len() < 1000 && reason.ends_with(" and 172 more"), "{reason}");
}
