//! Tests of web archives.

use std::path::PathBuf;

use simstore::Result;
use simstore_io::{Document, DocumentFormat, DocumentOptions, ReadDiagnostic, documents, records};

use crate::{COMPRESSIONS, TempFolder, bad_line, gzip};

/// Returns a record of a web archive, with the `WARC-Type` `kind` and the content `block`.
fn record(kind: &str, uri: &str, content_type: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2024-05-0{}T00:00:00Z\r\n\
         WARC-Record-ID: <urn:uuid:{}>\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        1 + uri.len() % 9,
        uri.len(),
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn response(uri: &str, status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let block = [format!("HTTP/1.1 {status} x\r\n{headers}\r\n\r\n").as_bytes(), body].concat();
    record("response", uri, "application/http; msgtype=response", &block)
}

const HTML: &str = "Content-Type: text/html";

/// Returns a web archive with records of many types, and the ids and texts of the documents in it.
fn archive() -> (Vec<u8>, Vec<(&'static str, &'static str)>) {
    let gbk = encoding_rs::GBK.encode("相似的文档").0.into_owned();
    let bytes = [
        record("warcinfo", "", "application/warc-fields", b"software: x\r\n"),
        record("request", "http://a/", "application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"),
        response("http://a/", 200, HTML, b"<p>a\r\n\r\nb"),
        response("http://b/", 404, HTML, b"not found"),
        response("http://c/", 200, "Content-Type: image/png", &[0x89; 1 << 17]),
        response("http://d/", 200, "content-type: text/html; charset=gb2312", &gbk),
        response(
            "http://e/",
            200,
            "Content-Type: text/plain\r\nTransfer-Encoding: chunked",
            b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        record("metadata", "http://e/", "application/warc-fields", b"x: y\r\n"),
        record("revisit", "http://a/", "application/http; msgtype=response", b"HTTP/1.1 200 OK\r\n\r\n"),
        record("response", "dns:a", "text/dns", b"20240501\r\n"),
        record("conversion", "<http://f/>", "text/plain", "text \u{4e2d}".as_bytes()),
        record("resource", "file:g", "text/plain", b""),
    ]
    .concat();
    let documents = vec![
        ("http://a/", "<p>a\r\n\r\nb"),
        ("http://d/", "相似的文档"),
        ("http://e/", "abc"),
        ("http://f/", "text \u{4e2d}"),
        ("file:g", ""),
    ];
    (bytes, documents)
}

fn read(path: PathBuf, options: &DocumentOptions) -> Vec<Result<Document>> {
    documents(&[path], options).collect()
}

#[test]
fn pages_and_texts() {
    let folder = TempFolder::new();
    let (bytes, expected) = archive();
    let check = |path: PathBuf| {
        let read = read(path, &DocumentOptions::default());
        let read: Vec<_> = read.iter().map(|document| document.as_ref().unwrap()).collect();
        let found: Vec<_> = read.iter().map(|document| (document.id.to_string(), &*document.text)).collect();
        let expected: Vec<_> = expected.iter().map(|&(id, text)| (id.to_owned(), text)).collect();
        assert_eq!(found, expected);
        assert_eq!(read.iter().map(|document| document.line).collect::<Vec<_>>(), [3, 6, 7, 11, 12]);
    };
    check(folder.file("a.warc", &bytes));
    check(folder.file("a", &bytes));
    for (ending, compress) in COMPRESSIONS {
        let half = bytes.len() / 2;
        check(folder.file(
            &format!("a.warc.wet{ending}"),
            [compress(&bytes[..half]), compress(&bytes[half..])].concat(),
        ));
    }
}

#[test]
fn headers_are_fields() {
    let folder = TempFolder::new();
    let path = folder.file("a.warc", record("conversion", "http://a/", "text/plain", b"a"));
    let options = DocumentOptions {
        id_field: Some("warc-record-id".to_owned()),
        extra_field: Some("WARC-Date".to_owned()),
        ..DocumentOptions::default()
    };
    let document = read(path, &options).remove(0).unwrap();
    assert_eq!(document.id.to_string(), "urn:uuid:9");
    assert_eq!(document.extra.as_deref(), Some("2024-05-01T00:00:00Z"));
}

#[test]
fn records_stand_as_they_are() {
    let folder = TempFolder::new();
    let texts = ["http://a/", "http://bb/"].map(|uri| record("conversion", uri, "text/plain", b"a\r\n\r\n"));
    let path = folder.file("a.wet", texts.concat());
    for (record, bytes) in records(&[path], &DocumentOptions::default()).map(Result::unwrap).zip(&texts) {
        assert_eq!((record.bytes(), record.format()), (Some(&bytes[..]), DocumentFormat::Warc));
    }
}

#[test]
fn archives_cut_anywhere() {
    let folder = TempFolder::new();
    let (bytes, _) = archive();
    let whole = read(folder.file("a.warc", &bytes), &DocumentOptions::default()).len();
    let starts: Vec<usize> =
        (0..bytes.len()).filter(|&at| bytes[at..].starts_with(b"WARC/1.0")).chain([bytes.len()]).collect();
    for length in (0..bytes.len()).filter(|length| !(2000..132_000).contains(length)) {
        let read = read(folder.file("a.warc", &bytes[..length]), &DocumentOptions::default());
        // The four bytes after a record may be missing.
        let at_end = starts.iter().any(|&start| (start.saturating_sub(4)..=start).contains(&length));
        let (last, before) = match read.split_last() {
            Some((last, before)) if last.is_err() => (Some(last), before),
            _ => (None, &read[..]),
        };
        assert!(before.iter().all(Result::is_ok) && before.len() <= whole, "{length}");
        assert_eq!(last.is_none(), at_end, "{length}");
        if let Some(last) = last {
            let record = starts.iter().rposition(|&start| start < length).unwrap();
            assert_eq!(bad_line(last), Some(record as u64 + 1), "{length}");
            let message = last.as_ref().unwrap_err().to_string();
            assert!(message.contains("the file ends within"), "{message}");
            assert!(message.contains(&format!("starts at byte {} ", starts[record])), "{message}");
        }
    }
}

#[test]
fn malformed_records() {
    let folder = TempFolder::new();
    let good = record("conversion", "http://a/", "text/plain", b"a");
    let options = DocumentOptions { max_bytes: 1000, ..DocumentOptions::default() };
    for (bad, reason, passed) in [
        (
            record("conversion", "http://b/", "text/plain", &[b'x'; 1001]),
            "longer than the limit of 1000 bytes",
            None,
        ),
        (
            record("response", "http://b/", "application/http", b"no response"),
            "expected an HTTP response",
            None,
        ),
        (
            b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "no id header `WARC-Target-URI`; the record has `WARC-Type`, `Content-Length`",
            None,
        ),
        (
            b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\n".to_vec(),
            "without Content-Length; the record starts at byte",
            Some(35),
        ),
        (b"<html>\r\n\r\nmore\n".to_vec(), "expected the headers of a WARC record", Some(15)),
        (
            [b"x".repeat(1 << 17), b"\n".to_vec()].concat(),
            "expected the headers of a WARC record",
            Some((1 << 17) + 1),
        ),
    ] {
        let bytes = [&good[..], &bad, &good].concat();
        for (name, bytes) in [("a.warc", bytes.clone()), ("a.warc.gz", gzip(&bytes))] {
            let read = read(folder.file(name, bytes), &options);
            assert_eq!(read.len(), 3, "{reason}");
            assert!(read[0].is_ok() && read[2].is_ok());
            let message = read[1].as_ref().unwrap_err().to_string();
            assert!(message.contains(&format!("{name}:2: ")) && message.contains(reason), "{message}");
            if let Some(passed) = passed {
                let passed = format!("; skipped {passed} bytes, up to the next record");
                assert!(message.ends_with(&passed), "{message}");
            }
        }
    }
    // A record with an impossible length consumes all following bytes.
    let bad = b"WARC/1.0\r\nContent-Length: 18446744073709551615\r\n\r\n";
    let read = read(folder.file("a.warc", [&good[..], bad, &good].concat()), &options);
    let message = read[1].as_ref().unwrap_err().to_string();
    assert!(read.len() == 2 && message.contains("the file ends within this record"), "{message}");
    assert!(message.ends_with(" bytes, up to the end of the file"), "{message}");
}

/// In an archive with one gzip member for each record, if one member is damaged, at most its record and the next one are
/// lost.
#[test]
fn a_damaged_member_is_one_record() {
    let folder = TempFolder::new();
    let options = DocumentOptions::default();
    let uris: Vec<String> = (0..20).map(|i| format!("http://{i}/")).collect();
    let mut random = crate::Random(7);
    let body = |i: usize| format!("{i} ").repeat(500 + i).into_bytes();
    let members: Vec<Vec<u8>> =
        (0..20).map(|i| gzip(&record("conversion", &uris[i], "text/plain", &body(i)))).collect();
    for damaged in [0, 7, 19] {
        for _ in 0..20 {
            let mut members = members.clone();
            // The first bytes stay intact: without them, no member is found.
            let at = 10 + random.index(members[damaged].len() - 10);
            members[damaged][at] ^= 1 << random.below(8);
            let read = read(folder.file("a.warc.gz", members.concat()), &options);
            let bad: Vec<_> = read.iter().filter_map(|document| document.as_ref().err()).collect();
            // A damaged member may first give a malformed record, and then an error of its checksum.
            assert!((1..=2).contains(&bad.len()), "{damaged} {at}: {bad:?}");
            let message = bad[bad.len() - 1].to_string();
            assert!(message.contains(" bytes, up to the "), "{message}");
            // Only the damaged document and the next one may be missing. If only the checksum is wrong, the damaged one
            // is read too.
            let ids: Vec<String> = read.iter().flatten().map(|document| document.id.to_string()).collect();
            let missing = uris.iter().enumerate().filter(|(_, uri)| !ids.contains(uri));
            let missing: Vec<usize> = missing.map(|(at, _)| at).collect();
            assert!(
                missing.iter().all(|at| (damaged..=damaged + 1).contains(at)),
                "{damaged} {at}: {missing:?}"
            );
        }
    }
}

#[test]
fn records_without_text_are_counted() {
    let folder = TempFolder::new();
    let mut records = records(&[folder.file("a.warc", archive().0)], &DocumentOptions::default());
    let progress = records.progress();
    assert_eq!(records.by_ref().filter(Result::is_ok).count(), 5);
    let expected = [("metadata", 1), ("request", 1), ("response", 3), ("revisit", 1), ("warcinfo", 1)];
    let notes: Vec<_> = progress.diagnostics().into_iter().collect();
    assert_eq!(notes, expected.map(|(kind, count)| (ReadDiagnostic::WarcRecordWithoutText(kind), count)));
}

#[test]
fn folded_and_malformed_headers_hide_nothing() {
    let folder = TempFolder::new();
    let block = b"HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nno header\r\nContent-Type: text/html; charset=gbk\r\n\r\n\xce\xd2";
    let head = format!(
        "WARC/1.0\r\nX: a\r\n folded: b\r\nno header\r\nWARC-Type: response\r\nbad(name): x\r\n\
         Content-Type: application/http\r\nContent-Length: {} \r\nWARC-Target-URI: http://",
        block.len()
    );
    let bytes = [head.as_bytes(), b"\xe9/\r\n\r\n", block, b"\r\n\r\n"].concat();
    let document = read(folder.file("a.warc", bytes), &DocumentOptions::default()).remove(0).unwrap();
    // Non-ASCII bytes of an address are read as Latin-1.
    assert_eq!((document.id.to_string(), &*document.text), ("http://\u{e9}/".to_owned(), "\u{6211}"));
}

#[test]
fn pages_that_are_no_text_are_refused() {
    let folder = TempFolder::new();
    for (body, what) in [
        (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "the page looks like an image (PNG)"),
        (b"%PDF-1.4\n\xe2\xe3", "the page looks like a PDF document"),
        (b"PK\x03\x04\x14\0\0\0", "the page looks like a ZIP archive"),
        (&gzip(b"page"), "the page is compressed by gzip, but its headers do not say so"),
    ] {
        let bytes = [response("http://a/", 200, HTML, body), response("http://b/", 200, HTML, b"b")].concat();
        let read = read(folder.file("a.warc", bytes), &DocumentOptions::default());
        let message = read[0].as_ref().unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
        assert_eq!(read[1].as_ref().unwrap().text, "b");
    }
}

#[test]
fn arc_is_refused_by_name() {
    let folder = TempFolder::new();
    let bytes = b"filedesc://a.arc 0.0.0.0 20060101000000 text/plain 7\n1 0 a\n\n";
    for (name, bytes) in [("a.arc", bytes.to_vec()), ("a.txt", bytes.to_vec()), ("a.arc.gz", gzip(bytes))] {
        let message =
            read(folder.file(name, bytes), &DocumentOptions::default()).remove(0).unwrap_err().to_string();
        assert!(message.contains("old ARC format") && message.contains("to WARC first"), "{message}");
    }
}
