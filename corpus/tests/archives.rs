//! Tests of tar and zip archives: their members are read like the files of a folder.

use std::io::Write;
use std::path::Path;

use simstore::{Error, Result};
use simstore_corpus::{InputKind, fingerprint_documents};
use simstore_io::{DocumentFormat, DocumentOptions, ReadDiagnostic, documents, input_files, records};
use simstore_text::Profile;

use crate::{COMPRESSIONS, Random, TWO_LINES, TempFolder, gzip, kind_of, read};

/// Names and contents of the members of an archive.
type ArchiveContents = Vec<(&'static str, Vec<u8>)>;

/// Returns members to make a folder or an archive of, and the ids and texts of all documents that reading it must return.
fn members() -> (ArchiveContents, Vec<(&'static str, &'static str)>) {
    let warc = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/plain\r\n\
                Content-Length: 4\r\n\r\npage\r\n\r\n";
    let members = vec![
        ("a/b.txt", b"first".to_vec()),
        ("a/image.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec()),
        ("a/lines.jsonl.gz", gzip(TWO_LINES.as_bytes())),
        ("a/.hidden.txt", b"hidden".to_vec()),
        (".git/c.txt", b"hidden".to_vec()),
        ("__MACOSX/._b.txt", b"\0\x05\x16\x07".to_vec()),
        ("table.csv", b"id,text\nx,cell\n".to_vec()),
        ("prints.hex", b"0123456789abcdef\n".to_vec()),
        ("w.warc", warc.as_bytes().to_vec()),
        ("empty.txt", Vec::new()),
        ("相似.md", "文档".as_bytes().to_vec()),
    ];
    let documents = vec![
        ("@/a/b.txt", "first"),
        ("1", "one"),
        ("b", "two"),
        ("x", "cell"),
        ("http://a/", "page"),
        ("@/empty.txt", ""),
        ("@/相似.md", "文档"),
    ];
    (members, documents)
}

fn tar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &**bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// Makes a zip file whose members are compressed with `method`.
fn zip(members: &[(&str, Vec<u8>)], method: u16) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let packed = match method {
            8 => {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            12 => crate::bzip2(content),
            93 => crate::zstd(content),
            95 => crate::xz(content),
            _ => content.clone(),
        };
        let start = bytes.len() as u32;
        // Version, flags (bit 11: names are in UTF-8), method, time and date.
        let mut common = [20_u16, 1 << 11, method, 0, 0x21].map(u16::to_le_bytes).concat();
        common.extend(crc32fast::hash(content).to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        bytes.extend([b"PK\x03\x04", &*common, name.as_bytes(), &packed].concat());
        let place = [&[0; 10][..], &start.to_le_bytes()].concat();
        directory.extend([b"PK\x01\x02\x14\0", &*common, &place, name.as_bytes()].concat());
    }
    let (start, count) = (bytes.len() as u32, members.len() as u16);
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    end.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    end.extend([(directory.len() as u32).to_le_bytes(), start.to_le_bytes()].concat());
    end.extend([0; 2]);
    [bytes, directory, end].concat()
}

fn check(path: &Path, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(id, text)| (id.replace('@', &path.display().to_string()), (*text).to_owned()))
        .collect();
    assert_eq!(crate::ids_and_texts(path), expected, "{}", path.display());
    assert_eq!(kind_of(path).unwrap(), InputKind::Documents);
    let files: Vec<_> = input_files(&[path.to_path_buf()], &DocumentOptions::default()).collect();
    assert!(matches!(&files[..], [Ok(file)] if file.format == DocumentFormat::Archive));
}

#[test]
fn members_are_files() {
    let folder = TempFolder::new();
    let (members, expected) = members();
    let bytes = tar(&members);
    for name in ["a.tar", "a", "a.jsonl"] {
        check(&folder.file(name, &bytes), &expected);
    }
    for (ending, compress) in COMPRESSIONS {
        check(&folder.file(&format!("a.tar{ending}"), compress(&bytes)), &expected);
    }
    check(&folder.file("a.tgz", gzip(&bytes)), &expected);
    for method in [0, 8, 12, 93, 95] {
        for name in ["a.zip", "a", "a.csv"] {
            check(&folder.file(name, zip(&members, method)), &expected);
        }
    }
    check(&folder.file("empty.zip", zip(&[], 0)), &[]);
    check(&folder.file("empty.tar", tar(&[])), &[]);
}

#[test]
fn archives_stand_among_other_files() {
    let folder = TempFolder::new();
    let (members, expected) = members();
    folder.file("top/1.txt", "before");
    folder.file("top/2.zip", zip(&members, 8));
    folder.file("top/3.tar.gz", gzip(&tar(&members)));
    folder.file("top/4.txt", "after");
    let top = folder.0.path().join("top");
    let options = DocumentOptions::default();
    let read: Vec<_> = documents(std::slice::from_ref(&top), &options).map(Result::unwrap).collect();
    assert_eq!(read.len(), 2 + 2 * expected.len());
    assert!(read[1].path.ends_with("top/2.zip/a/b.txt") && read[1].line == 1);
    assert!(read[3].path.ends_with("top/2.zip/a/lines.jsonl.gz") && read[3].line == 2);
    let fingerprinted =
        fingerprint_documents::<u64>(std::slice::from_ref(&top), &options, &Profile::default());
    let ids: Vec<_> = fingerprinted.map(|document| document.unwrap().id).collect();
    assert_eq!(ids, read.iter().map(|document| document.id.clone()).collect::<Vec<_>>());
    // Each file read separately gives the same documents, and skipped files are counted.
    let mut alone = Vec::new();
    for file in input_files(std::slice::from_ref(&top), &options) {
        alone.extend(documents(&[file.unwrap().path], &options).map(Result::unwrap));
    }
    assert_eq!(alone, read);
    let mut records = records(&[top], &options);
    let progress = records.progress();
    assert_eq!(records.by_ref().filter(Result::is_ok).count(), read.len());
    let notes: Vec<_> = progress.diagnostics().into_iter().collect();
    assert_eq!(notes, [(ReadDiagnostic::UnknownExtension, 2), (ReadDiagnostic::FingerprintFile, 2)]);
    assert_eq!(progress.files(), 4);
}

#[test]
fn links_are_counted() {
    let folder = TempFolder::new();
    let mut tar = tar::Builder::new(Vec::new());
    let long = format!("{}/c.txt", "folder/".repeat(60));
    for (kind, name) in [
        (tar::EntryType::Directory, "folder/"),
        (tar::EntryType::Symlink, "a.txt"),
        (tar::EntryType::Link, "b"),
        (tar::EntryType::Symlink, &*long),
        (tar::EntryType::Symlink, ".hidden.txt"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        tar.append_link(&mut header, name, "z.txt").unwrap();
    }
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    tar.append_data(&mut header, "z.txt", &b"good"[..]).unwrap();
    let tar = tar.into_inner().unwrap();
    let mut zip = zip(&[("a.txt", b"z.txt".to_vec()), ("z.txt", b"good".to_vec())], 0);
    let directory = zip.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    // Sets the system to Unix, and the Unix file type to symbolic link.
    zip[directory + 5] = 3;
    zip[directory + 40..directory + 42].copy_from_slice(&0o120_777_u16.to_le_bytes());
    for (name, bytes, links) in [("a.tar", &tar, 3), ("a.tar.gz", &gzip(&tar), 3), ("a.zip", &zip, 1)] {
        let mut records = records(&[folder.file(name, bytes)], &DocumentOptions::default());
        let progress = records.progress();
        let texts: Vec<_> =
            records.by_ref().map(|record| record.unwrap().bytes().unwrap().to_vec()).collect();
        assert_eq!(texts, [b"good"], "{name}");
        assert_eq!(
            progress.diagnostics().into_iter().collect::<Vec<_>>(),
            [(ReadDiagnostic::ArchiveLink, links)],
            "{name}"
        );
    }
}

#[test]
fn a_format_is_that_of_all_members() {
    let folder = TempFolder::new();
    let path = folder.file("a.zip", zip(&[("a.dat", TWO_LINES.into()), ("b", TWO_LINES.into())], 8));
    let format = Some(DocumentFormat::Jsonl);
    let options = DocumentOptions { format, ..DocumentOptions::default() };
    assert_eq!(documents(&[path], &options).map(Result::unwrap).count(), 4);
}

#[test]
fn names_that_lead_elsewhere() {
    let folder = TempFolder::new();
    let text = |name: &'static str| (name, b"x".to_vec());
    let path = folder.file("a.zip", zip(&[text("../../b.txt"), text("/etc/c.txt"), text("./d.txt")], 0));
    let ids: Vec<String> =
        read(&path).iter().map(|document| document.as_ref().unwrap().id.to_string()).collect();
    let expected = ["b.txt", "etc/c.txt", "d.txt"].map(|name| format!("{}/{name}", path.display()));
    assert_eq!(ids, expected);
    let long = format!("{}/e.txt", "folder/".repeat(60));
    let path = folder.file("a.tar", tar(&[(&long, b"x".to_vec())]));
    assert!(read(&path)[0].as_ref().unwrap().id.to_string().ends_with(&long.replace("//", "/")));
}

/// Reads the documents of a file, and returns the error messages.
fn error_messages(path: &Path, options: &DocumentOptions) -> Vec<String> {
    let paths = [path.to_path_buf()];
    documents(&paths, options).filter_map(|document| Some(document.err()?.to_string())).collect()
}

#[test]
fn members_that_cannot_be_read() {
    let folder = TempFolder::new();
    let options = DocumentOptions { max_bytes: 1000, ..DocumentOptions::default() };
    let good = || ("z.txt", b"good".to_vec());
    let good_zip = zip(&[good()], 8);
    for (name, bytes, reason) in [
        ("long.txt", vec![b'x'; 1001], ":1: longer than the limit of 1000 bytes"),
        ("bomb.txt", vec![0; 1 << 20], ": looks like binary data"),
        ("in.zip", good_zip.clone(), ": an archive within an archive"),
        ("p.parquet", b"PAR1".to_vec(), ": Parquet cannot be read inside an archive"),
        ("a.pdf.txt", b"%PDF-1.4\0".to_vec(), ": looks like a PDF document"),
        ("a.jsonl", b"{\"text\": \n".to_vec(), ":1: EOF while parsing"),
        ("a.csv", b"id,body\n".to_vec(), ":1: no text column `text`"),
        ("a.txt.gz", b"\x1f\x8b\x08\0\0".to_vec(), ":1: the gzip data is truncated"),
    ] {
        let members = [(name, bytes), good()];
        for path in [folder.file("a.tar", tar(&members)), folder.file("a.zip", zip(&members, 8))] {
            let said = error_messages(&path, &options);
            let expected = format!("{}/{name}{reason}", path.display());
            assert!(said.len() == 1 && said[0].starts_with(&expected), "{expected}: {said:?}");
            let last = documents(&[path], &options).last().unwrap().unwrap();
            assert_eq!(last.text, "good");
        }
    }
    // An encrypted member, a member with another compression, and a member with a wrong checksum.
    let members = [("a.txt", b"aaaaaaaa".to_vec()), good()];
    let directory = |bytes: &[u8]| bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    for (at, value, reason) in [
        (8, 9, "a.txt: is encrypted, and cannot be read"),
        (10, 14, "a.txt: is compressed by "),
        (16, 0, "a.txt:1: cannot read after byte "),
    ] {
        let mut bytes = zip(&members, 0);
        let at = at + directory(&bytes);
        bytes[at] = value;
        let path = folder.file("a.zip", bytes);
        let said = error_messages(&path, &options);
        assert!(said.len() == 1 && said[0].contains(reason), "{said:?}");
        assert_eq!(documents(&[path], &options).last().unwrap().unwrap().text, "good");
    }
}

#[test]
fn documents_of_office_programs() {
    let folder = TempFolder::new();
    let member = |name| (name, b"<xml/>".to_vec());
    for (names, what) in [
        (
            ["[Content_Types].xml", "xl/workbook.xml"],
            "a spreadsheet (.xlsx), which is not supported: save its sheets as .csv",
        ),
        (["[Content_Types].xml", "word/document.xml"], "a Word document (.docx)"),
        (["mimetype", "content.xml"], "an OpenDocument file or a book"),
    ] {
        for name in ["a.xlsx", "a.csv", "a.zip", "a"] {
            let said =
                error_messages(&folder.file(name, zip(&names.map(member), 8)), &DocumentOptions::default());
            let expected = format!("{name}: looks like {what}");
            assert!(said.len() == 1 && said[0].contains(&expected), "{said:?}");
        }
    }
}

#[test]
fn archives_cut_anywhere() {
    let folder = TempFolder::new();
    let (members, expected) = members();
    let whole = tar(&members);
    let mut random = Random(5);
    for _ in 0..100 {
        let length = 1 + random.index(whole.len() - 1);
        let read = read(&folder.file("a.tar", &whole[..length]));
        assert!(read.iter().flatten().count() <= expected.len());
        for error in read.iter().filter_map(|document| document.as_ref().err()) {
            let text = error.to_string();
            assert!(matches!(error, Error::BadInput { .. }) && text.contains("a.tar"), "{text}");
        }
    }
    let packed = gzip(&whole);
    let said_of_cut =
        error_messages(&folder.file("a.tar.gz", &packed[..packed.len() / 2]), &DocumentOptions::default());
    assert!(!said_of_cut.is_empty() && said_of_cut.last().unwrap().contains("is skipped"), "{said_of_cut:?}");
    let zipped = zip(&members, 8);
    for length in [30, zipped.len() / 2, zipped.len() - 1] {
        let said = error_messages(&folder.file("a.zip", &zipped[..length]), &DocumentOptions::default());
        assert!(said.len() == 1 && said[0].contains("a.zip: damaged or truncated zip file: "), "{said:?}");
    }
}

#[test]
fn archives_damaged_anywhere() {
    let folder = TempFolder::new();
    let (members, _) = members();
    let mut random = Random(6);
    for whole in [tar(&members), zip(&members, 8), gzip(&tar(&members))] {
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.index(bytes.len());
                bytes[at] = random.next() as u8;
            }
            for error in read(&folder.file("a.archive", bytes)).into_iter().filter_map(Result::err) {
                assert!(matches!(error, Error::BadInput { .. } | Error::BadArgument(_)), "{error}");
            }
        }
    }
}

#[test]
fn a_checksum_behind_the_last_member_counts() {
    let folder = TempFolder::new();
    let whole = gzip(&tar(&[("a.txt", b"some words".to_vec())]));
    let mut flipped = whole.clone();
    let at = flipped.len() - 8;
    flipped[at] ^= 1;
    for (name, bytes, sound) in [
        ("a.tar.gz", &whole[..], true),
        ("b.tar.gz", &flipped, false),
        ("c.tar.gz", &whole[..whole.len() - 4], false),
    ] {
        let read = read(&folder.file(name, bytes));
        assert_eq!(read.iter().all(Result::is_ok), sound, "{name}: {read:?}");
    }
}

#[test]
fn an_archive_within_one_that_is_cut_off_is_not_taken_for_it() {
    let folder = TempFolder::new();
    let inner = zip(&[("word.txt", b"an attachment".to_vec())], 0);
    let outer = zip(&[("corpus.txt", b"some words".to_vec()), ("attached.zip", inner)], 0);
    for cut in 1..80 {
        let path = folder.file("cut.zip", &outer[..outer.len() - cut]);
        let read = read(&path);
        assert!(!read.is_empty() && read.iter().all(Result::is_err), "{cut} bytes: {read:?}");
    }
}
