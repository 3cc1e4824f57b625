//! Tests of listing input files, and of detecting their formats.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use simstore::{Error, Result};
use simstore_corpus::{InputKind, fingerprint_documents, fingerprints};
use simstore_io::{
    Compression, DocumentFormat, DocumentOptions, InputFile, Record, documents, input_files, records,
};
use simstore_text::Profile;

use crate::{COMPRESSIONS, Random, TWO_LINES, TempFolder, gzip, ids_and_texts, kind_of};

#[test]
fn folders_are_walked_in_order() {
    let folder = TempFolder::new();
    folder.file("top/b.md", "b");
    folder.file("top/a/z.txt", "\u{feff}z\r\n");
    folder.file("top/a/y.txt.gz", gzip(b"y"));
    folder.file("top/c.jsonl", TWO_LINES);
    folder.file("top/image.png", b"\x89PNG");
    folder.file("top/prints.hex", "0000000000000000");
    folder.file("top/prints.tsv", "0000000000000000\t7");
    folder.file("top/d.tsv", "id\ttext\nx\tcell\n");
    folder.file("top/.hidden.txt", "");
    folder.file("top/.hidden/a.txt", "");
    let top = folder.0.path().join("top");
    let name = |file: &str| format!("{}/{file}", top.display());
    assert_eq!(
        ids_and_texts(&top),
        [
            (name("a/y.txt.gz"), "y".to_owned()),
            (name("a/z.txt"), "z\r\n".to_owned()),
            (name("b.md"), "b".to_owned()),
            ("1".to_owned(), "one".to_owned()),
            ("b".to_owned(), "two".to_owned()),
            ("x".to_owned(), "cell".to_owned()),
        ]
    );
    assert_eq!(kind_of(&top).unwrap(), InputKind::Documents);
}

/// Returns the ids of all documents in files and folders.
fn ids(paths: &[PathBuf], options: &DocumentOptions) -> Vec<String> {
    documents(paths, options).map(|document| document.unwrap().id.to_string()).collect()
}

#[test]
#[cfg(unix)]
fn links_are_followed() {
    let folder = TempFolder::new();
    folder.file("elsewhere/a.jsonl", TWO_LINES);
    folder.file("top/b.txt", "b");
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(folder.0.path().join(from), folder.0.path().join(to)).unwrap();
    };
    link("elsewhere", "top/a");
    link("elsewhere/a.jsonl", "top/c.jsonl");
    let top = folder.0.path().join("top");
    let text = format!("{}/b.txt", top.display());
    assert_eq!(ids(&[top], &DocumentOptions::default()), ["1", "b", &text]);
}

/// Collects in `files` the inodes of all files below a folder, with or without following links. `walked` has the inodes of the
/// folders seen so far, so that each folder is visited once.
#[cfg(unix)]
fn reached(folder: &Path, with_links: bool, walked: &mut BTreeSet<u64>, files: &mut BTreeSet<u64>) {
    use std::os::unix::fs::MetadataExt;

    if !walked.insert(folder.metadata().unwrap().ino()) {
        return;
    }
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.metadata().unwrap();
        if path.is_symlink() && !with_links {
        } else if metadata.is_dir() {
            reached(&path, with_links, walked, files);
        } else {
            files.insert(metadata.ino());
        }
    }
}

/// With random links between files and folders, each reachable file is listed once. If the file has a path without links, this
/// path is listed.
#[test]
#[cfg(unix)]
fn links_at_random() {
    use std::os::unix::fs::{MetadataExt, symlink};

    let mut random = Random(25);
    for _ in 0..200 {
        let folder = TempFolder::new();
        let here = |path: &Path| folder.0.path().join(path);
        // `side` is read only through links.
        let mut folders = ["top", "side"].map(PathBuf::from).to_vec();
        let mut files = vec![PathBuf::from("top/0.txt"), PathBuf::from("side/0.txt")];
        files.iter().for_each(|file| drop(folder.file(file.to_str().unwrap(), "0")));
        let mut pick = |count: usize| (random.next() % count as u64) as usize;
        for number in 1..14 {
            let (kind, into) = (pick(5), folders[pick(folders.len())].clone());
            // By its name, a link is listed before or after its target.
            let name = into.join(format!("{}{number}", ["a", "m", "z"][pick(3)]));
            let text = name.with_extension("txt");
            let to_file = here(&files[pick(files.len())]);
            match kind {
                0 => {
                    std::fs::create_dir(here(&name)).unwrap();
                    folders.push(name);
                }
                1 => {
                    std::fs::write(here(&text), "text").unwrap();
                    files.push(text);
                }
                2 => symlink(to_file, here(&text)).unwrap(),
                3 => std::fs::hard_link(to_file, here(&text)).unwrap(),
                _ => symlink(here(&folders[pick(folders.len())]), here(&name)).unwrap(),
            }
        }
        let top = here(Path::new("top"));
        let (mut all, mut without_links) = (BTreeSet::new(), BTreeSet::new());
        reached(&top, true, &mut BTreeSet::new(), &mut all);
        reached(&top, false, &mut BTreeSet::new(), &mut without_links);
        let listed = input_files(std::slice::from_ref(&top), &DocumentOptions::default());
        let paths: Vec<PathBuf> = listed.map(|file| file.unwrap().path).collect();
        let inodes: BTreeSet<u64> = paths.iter().map(|path| path.metadata().unwrap().ino()).collect();
        assert_eq!((paths.len(), &inodes), (all.len(), &all));
        for path in &paths {
            let has_such_a_name = without_links.contains(&path.metadata().unwrap().ino());
            assert!(!has_such_a_name || path.canonicalize().unwrap() == *path, "{path:?}");
        }
    }
}

#[test]
fn patterns_that_no_shell_has_seen() {
    let folder = TempFolder::new();
    for name in ["a1.jsonl", "a2.jsonl.gz", "b.jsonl", "deep/er/a3.jsonl", ".a4.jsonl"] {
        let line = format!("{{\"id\": \"{name}\", \"text\": \"\"}}\n");
        let is_packed = name.ends_with(".gz");
        folder.file(name, if is_packed { gzip(line.as_bytes()) } else { line.into_bytes() });
    }
    folder.file("a[1].jsonl", "{\"id\": \"[1]\", \"text\": \"\"}");
    folder.file("prints/a.hex", "0000000000000001\n");
    folder.file("prints/b.hex", "0000000000000002\n");
    let pattern = |pattern: &str| vec![folder.0.path().join(pattern)];
    let of = |name: &str| ids(&pattern(name), &DocumentOptions::default());
    assert_eq!(of("a?.jsonl*"), ["a1.jsonl", "a2.jsonl.gz"]);
    assert_eq!(of("**/a[0-9].jsonl"), ["a1.jsonl", "deep/er/a3.jsonl"]);
    assert_eq!(of("d*"), ["deep/er/a3.jsonl"]);
    // An existing file with this name has priority over the glob.
    assert_eq!(of("a[1].jsonl"), ["[1]"]);
    let values: Vec<u64> =
        fingerprints(&pattern("prints/*")).flat_map(|record| record.unwrap().fingerprint).collect();
    assert_eq!(values, [1, 2]);
    assert_eq!(kind_of(&pattern("prints/*")[0]).unwrap(), InputKind::Fingerprints);
    assert_eq!(kind_of(&pattern("a*.jsonl")[0]).unwrap(), InputKind::Documents);
    let mixed = kind_of(&pattern("**/a*")[0]).unwrap_err().to_string();
    assert!(mixed.contains("matches documents and fingerprints"), "{mixed}");
    // `**` works like in a shell with `globstar`. A matching folder is read with all its files.
    assert_eq!(of("**/a3.*"), ["deep/er/a3.jsonl"]);
    assert_eq!(of("deep/**"), ["deep/er/a3.jsonl"]);
    assert_eq!(of("*/er/../*/*.jsonl"), ["deep/er/a3.jsonl"]);
    assert_eq!(of(".a*.jsonl"), [".a4.jsonl"]);
    assert_eq!(of("d*/"), ["deep/er/a3.jsonl"]);
    assert_eq!(of("[!b]1.*"), ["a1.jsonl"]);
    for name in ["x*", "a[", "a***", "a1.jsonl/*", "deep/*/er"] {
        let read: Vec<_> = documents(&pattern(name), &DocumentOptions::default()).collect();
        assert!(matches!(&read[..], [Err(Error::BadArgument(_))]), "{name}: {read:?}");
    }
}

/// Files and folders whose names are not UTF-8 are read: as input paths, in a folder, and as matches of a glob.
#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_unicode() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = TempFolder::new();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let top = folder.0.path().join(name(b"caf\xe9"));
    std::fs::create_dir(&top).unwrap();
    for (file, text) in [(&b"\xe8.txt"[..], "one"), (b"\xe9.txt", "two"), (b"\\xE9.txt", "three")] {
        std::fs::write(top.join(name(file)), text).unwrap();
    }
    std::fs::write(top.join(name(b"\xff.jsonl")), "{\"text\": \"four\"}").unwrap();
    let shown = format!("{}/caf\\xE9", folder.0.path().display());
    // All ids differ. A backslash is doubled where it would look like an escaped byte.
    let file = |end: &str| format!("{shown}/{end}");
    let all = [file("\\\\xE9.txt"), file("\\xE8.txt"), file("\\xE9.txt"), file("\\xFF.jsonl:1")];
    let options = DocumentOptions::default();
    assert_eq!(ids(std::slice::from_ref(&top), &options), all);
    assert_eq!(ids(&[top.join("*")], &options), all);
    assert_eq!(ids(&[folder.0.path().join("c*/*")], &options), all);
    assert_eq!(ids(&[folder.0.path().join("**/?.txt")], &options), all[1..3]);
    assert_eq!(ids(&[top.join(name(b"\xe9.txt"))], &options), all[2..3]);
    let pattern = documents(&[top.join(name(b"\xe9*"))], &options).next().unwrap().unwrap_err().to_string();
    assert!(pattern.ends_with("not Unicode, which a glob must be"), "{pattern}");
    std::fs::write(top.join(name(b"\xff.hex")), "0000000000000001\n").unwrap();
    let values: Vec<u64> =
        fingerprints(&[top.join("*.hex")]).flat_map(|record| record.unwrap().fingerprint).collect();
    assert_eq!(values, [1]);
}

#[test]
fn formats_reported_by_content() {
    let folder = TempFolder::new();
    let contents: [(&str, &[u8]); 5] = [
        ("jsonl", TWO_LINES.as_bytes()),
        ("csv", b"id,text\n1,one\nb,two\n"),
        ("tsv", b"text\tid\none\t1\ntwo\tb\n"),
        (
            "warc",
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: 1\r\nContent-Length: 3\r\n\r\none\r\n\r\n\
              WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: b\r\nContent-Length: 3\r\n\r\ntwo\r\n\r\n",
        ),
        ("text", b"plain"),
    ];
    for (format, bytes) in contents {
        let name = format!("{}/content", folder.0.path().display());
        let expected = if format == "text" {
            vec![(name, "plain".to_owned())]
        } else {
            vec![("1".to_owned(), "one".to_owned()), ("b".to_owned(), "two".to_owned())]
        };
        assert_eq!(ids_and_texts(&folder.file("content", bytes)), expected, "{format}");
        for (_, compress) in COMPRESSIONS {
            assert_eq!(ids_and_texts(&folder.file("content", compress(bytes))), expected, "{format}");
        }
    }
}

#[test]
fn a_format_that_is_given() {
    let folder = TempFolder::new();
    folder.file("top/a.txt", "id,text\n1,one\n");
    folder.file("top/b.gz", gzip(b"id,text\n2,two\n"));
    let options = DocumentOptions { format: Some(DocumentFormat::Csv), ..DocumentOptions::default() };
    assert_eq!(ids(&[folder.0.path().to_path_buf()], &options), ["1", "2"]);
}

#[test]
fn files_are_listed_as_they_are_read() {
    let folder = TempFolder::new();
    folder.file("top/a.jsonl.gz", gzip(TWO_LINES.as_bytes()));
    folder.file("top/b/c.txt", "text");
    folder.file("top/b/packed.md", gzip(b"text"));
    folder.file("top/d.tsv", "text\nx\n");
    let single = folder.file("single", TWO_LINES);
    let paths = [folder.0.path().join("top"), single, folder.0.path().join("top/b/*.txt")];
    let options = DocumentOptions::default();
    let files: Vec<InputFile> = input_files(&paths, &options).collect::<Result<_>>().unwrap();
    let shown: Vec<_> = files
        .iter()
        .map(|file| {
            let name = file.path.strip_prefix(folder.0.path()).unwrap().to_str().unwrap();
            (name, file.format, file.compression)
        })
        .collect();
    let (text, jsonl) = (DocumentFormat::Text, DocumentFormat::Jsonl);
    assert_eq!(
        shown,
        [
            ("top/a.jsonl.gz", jsonl, Compression::Gzip),
            ("top/b/c.txt", text, Compression::None),
            ("top/b/packed.md", text, Compression::Gzip),
            ("top/d.tsv", DocumentFormat::Tsv, Compression::None),
            ("single", jsonl, Compression::None),
        ]
    );
    let sizes: Vec<u64> = files.iter().map(|file| file.path.metadata().unwrap().len()).collect();
    assert_eq!(files.iter().map(|file| file.bytes.unwrap()).collect::<Vec<_>>(), sizes);

    // Each file read separately gives the same documents as all files together.
    let read = |paths: &[PathBuf]| {
        let reading = fingerprint_documents::<u64>(paths, &options, &Profile::default());
        let progress = reading.progress();
        let read: Vec<_> = reading.map(|document| document.map(|d| (d.id, d.line)).unwrap()).collect();
        let records: Vec<_> = records(paths, &options).map(Result::unwrap).collect();
        assert!(read.iter().map(|&(_, line)| line).eq(records.iter().map(Record::line)));
        let read: Vec<_> = read.into_iter().zip(records).collect();
        (read, progress.bytes(), progress.files())
    };
    let (whole, bytes, count) = read(&paths);
    let alone: Vec<_> = files.iter().flat_map(|file| read(std::slice::from_ref(&file.path)).0).collect();
    assert_eq!(whole, alone);
    assert_eq!((bytes, count), (sizes.iter().sum(), 5));
    let none = input_files(
        &[Path::new("-").to_path_buf()],
        &DocumentOptions { format: Some(text), ..options.clone() },
    );
    assert_eq!(none.map(|file| file.unwrap().bytes).collect::<Vec<_>>(), [None]);
}
