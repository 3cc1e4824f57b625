//! Reading documents and fingerprints from files.
#![cfg(feature = "corpus")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use simstore::corpus::{
    Document, DocumentId, DocumentOptions, InputKind, MAX_NAME_BYTES, documents, fingerprint_documents,
    fingerprints, records,
};
use simstore::text::Profile;
use simstore::{Error, Fingerprint, Result};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn read(path: &Path) -> Vec<Result<Document>> {
    documents(&[path.to_path_buf()], &DocumentOptions::default()).collect()
}

fn ids_and_texts(path: &Path) -> Vec<(String, String)> {
    read(path).into_iter().map(|document| document.unwrap()).map(|d| (d.id.to_string(), d.text)).collect()
}

fn bad_line<T>(result: &Result<T>) -> Option<u64> {
    match result {
        Err(Error::BadInput { line, .. }) => Some(*line),
        _ => None,
    }
}

const TWO_LINES: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": \"b\", \"text\": \"two\"}\n";

#[test]
fn json_lines_plain_and_compressed() {
    let folder = Folder::new();
    let mut members = gzip(&TWO_LINES.as_bytes()[..30]);
    members.extend(gzip(&TWO_LINES.as_bytes()[30..]));
    let mut frames = zstd::encode_all(&TWO_LINES.as_bytes()[..30], 3).unwrap();
    frames.extend(zstd::encode_all(&TWO_LINES.as_bytes()[30..], 3).unwrap());
    let expected = [("1".to_owned(), "one".to_owned()), ("b".to_owned(), "two".to_owned())];
    for (name, bytes) in [
        ("a.jsonl", TWO_LINES.into()),
        ("a.ndjson", TWO_LINES.replace('\n', "\r\n").into()),
        ("a.json", format!("\u{feff}\n\n  \r\n{}", TWO_LINES.trim_end()).into()),
        ("a.jsonl.gz", gzip(TWO_LINES.as_bytes())),
        ("members.jsonl.gz", members),
        ("frames.JSONL.ZST", frames),
        ("unknown", TWO_LINES.into()),
        ("unknown.gz", gzip(TWO_LINES.as_bytes())),
    ] {
        let path = folder.file(name, bytes);
        assert_eq!(ids_and_texts(&path), expected, "{name}");
        assert_eq!(InputKind::detect(&path).unwrap(), InputKind::Documents, "{name}");
    }
}

#[test]
fn malformed_lines_do_not_end_the_reading() {
    let folder = Folder::new();
    let long = "x".repeat(200);
    let mut bytes = b"{\"text\": \"a\"}\n\nnot json\n{\"text\": \"\xff\"}\n".to_vec();
    bytes.extend(format!("{{\"text\": \"{long}\"}}\n{{\"text\": \"b\"}}\n{{}}").bytes());
    let path = folder.file("a.jsonl", bytes);
    let options = DocumentOptions { max_bytes: 100, ..DocumentOptions::default() };
    let read: Vec<_> = documents(std::slice::from_ref(&path), &options).collect();
    assert_eq!(
        read.iter().map(bad_line).collect::<Vec<_>>(),
        [None, Some(3), Some(4), Some(5), None, Some(7)]
    );
    let last_good = read[4].as_ref().unwrap();
    assert_eq!((last_good.line, &last_good.text[..]), (6, "b"));
    assert_eq!(last_good.id, DocumentId::Name(format!("{}:6", path.display())));
    assert_eq!(&*last_good.path, path);
    let message = read[3].as_ref().unwrap_err().to_string();
    assert_eq!(message, format!("{}:5: longer than the limit of 100 bytes", path.display()));

    let fingerprinted: Vec<_> =
        fingerprint_documents::<u64>(&[path], &options, &Profile::default()).collect();
    assert_eq!(fingerprinted.len(), 6);
    assert_eq!(bad_line(&fingerprinted[5]), Some(7));
    assert_eq!(fingerprinted[4].as_ref().unwrap().ordinal, 4);
}

#[test]
fn a_line_as_long_as_the_limit() {
    let folder = Folder::new();
    let line = "{\"text\": \"abc\"}";
    let options = |max_bytes| DocumentOptions { max_bytes, ..DocumentOptions::default() };
    for end in ["", "\n"] {
        let path = folder.file("a.jsonl", format!("{line}{end}"));
        let read = |limit| documents(std::slice::from_ref(&path), &options(limit)).next().unwrap();
        assert!(read(line.len()).is_ok(), "{end:?}");
        assert_eq!(bad_line(&read(line.len() - 1)), Some(1), "{end:?}");
    }
    let path = folder.file("a.txt", "abc");
    assert!(documents(std::slice::from_ref(&path), &options(3)).next().unwrap().is_ok());
    assert!(bad_line(&documents(&[path], &options(2)).next().unwrap()).is_some());
}

#[test]
fn fields() {
    let folder = Folder::new();
    let path = folder.file(
        "a.jsonl",
        "{\"url\": \"u\", \"title\": \"t\", \"body\": \"b\"}\n{\"body\": \"b\"}\n{\"url\": \"v\", \"url\": \"w\", \"body\": \"\"}",
    );
    let options = DocumentOptions {
        id_field: Some("url".to_owned()),
        text_fields: vec!["title".to_owned(), "body".to_owned()],
        ..DocumentOptions::default()
    };
    let read: Vec<_> = documents(&[path], &options).collect();
    let first = read[0].as_ref().unwrap();
    assert_eq!((&first.id, &first.text[..]), (&DocumentId::Name("u".to_owned()), "t\nb"));
    assert!(read[1].as_ref().unwrap_err().to_string().ends_with(":2: no id field `url`"));
    assert!(read[2].as_ref().unwrap_err().to_string().contains("`url` comes twice"));
}

#[test]
fn names_have_a_limit() {
    let folder = Folder::new();
    let line = |length| format!("{{\"id\": \"{}\", \"text\": \"\"}}\n", "x".repeat(length));
    let path = folder.file("a.jsonl", line(MAX_NAME_BYTES) + &line(MAX_NAME_BYTES + 1));
    assert_eq!(read(&path).iter().map(bad_line).collect::<Vec<_>>(), [None, Some(2)]);
    let line = |length| format!("{}\t{}\n", 7_u64.to_hex(), "x".repeat(length));
    let path =
        folder.file("a.hex", line(MAX_NAME_BYTES) + &line(MAX_NAME_BYTES + 1) + &line(1 << 21) + &line(1));
    let read: Vec<_> = fingerprints::<u64>(&[path]).collect();
    assert_eq!(read.iter().map(bad_line).collect::<Vec<_>>(), [None, Some(2), Some(3), None]);
}

#[test]
fn folders_are_walked_in_order() {
    let folder = Folder::new();
    folder.file("top/b.md", "b");
    folder.file("top/a/z.txt", "\u{feff}z\r\n");
    folder.file("top/a/y.txt.gz", gzip(b"y"));
    folder.file("top/c.jsonl", TWO_LINES);
    folder.file("top/image.png", b"\x89PNG");
    folder.file("top/prints.hex", "0000000000000000");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.0.path(), folder.0.path().join("top/loop")).unwrap();
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
        ]
    );
    assert_eq!(InputKind::detect(&top).unwrap(), InputKind::Documents);
}

#[test]
fn texts_must_be_utf8() {
    let folder = Folder::new();
    let paths = [folder.file("bad.txt", b"ab\xff"), folder.file("good.txt", "")];
    let read: Vec<_> = documents(&paths, &DocumentOptions::default()).collect();
    assert_eq!(read.iter().map(bad_line).collect::<Vec<_>>(), [Some(1), None]);
    assert!(read[0].as_ref().unwrap_err().to_string().ends_with("not UTF-8 at byte 3"));
}

#[test]
fn truncated_and_false_archives_end_the_reading() {
    let folder = Folder::new();
    let lines: String =
        (0..5000).map(|i| format!("{{\"id\": {i}, \"text\": \"text {}\"}}\n", i * i)).collect();
    let (gz, zst) = (gzip(lines.as_bytes()), zstd::encode_all(lines.as_bytes(), 3).unwrap());
    let good = folder.file("good.jsonl", TWO_LINES);
    for (name, bytes) in [
        ("cut.jsonl.gz", &gz[..gz.len() / 2]),
        ("cut.jsonl.zst", &zst[..zst.len() / 2]),
        ("text.jsonl.gz", TWO_LINES.as_bytes()),
        ("text.jsonl.zst", TWO_LINES.as_bytes()),
    ] {
        let path = folder.file(name, bytes);
        let paths = [path.clone(), good.clone()];
        let read: Vec<_> = documents(&paths, &DocumentOptions::default()).collect();
        let (last, before) = read.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok), "{name}");
        assert!(matches!(last, Err(Error::Io { path: of, .. }) if *of == path), "{name}");
        let last =
            fingerprint_documents::<u64>(&paths, &DocumentOptions::default(), &Profile::default()).last();
        assert!(matches!(last, Some(Err(Error::Io { .. }))), "{name}");
    }
}

#[test]
fn missing_and_empty_files() {
    let folder = Folder::new();
    let missing = folder.0.path().join("missing.jsonl");
    let read_missing = read(&missing);
    assert!(matches!(&read_missing[..], [Err(Error::Io { path, .. })] if *path == missing));
    let missing = folder.0.path().join("missing.hex");
    assert!(matches!(fingerprints::<u64>(&[missing]).next(), Some(Err(Error::Io { .. }))));
    assert!(matches!(InputKind::detect(&folder.0.path().join("missing")), Err(Error::Io { .. })));

    let empty = folder.file("empty.jsonl", "");
    assert!(read(&empty).is_empty());
    assert!(read(&folder.file("empty.jsonl.gz", gzip(b""))).is_empty());
    let texts = read(&folder.file("empty.txt", ""));
    assert_eq!(texts[0].as_ref().unwrap().text, "");
    let none = fingerprint_documents::<u64>(&[empty], &DocumentOptions::default(), &Profile::default());
    assert_eq!(none.count(), 0);
    assert_eq!(fingerprints::<u64>(&[folder.file("empty.u64", "")]).count(), 0);
    assert_eq!(InputKind::detect(&folder.file("empty", "")).unwrap(), InputKind::Documents);
}

#[test]
fn fingerprint_lines() {
    let folder = Folder::new();
    let lines = "\u{feff}00000000000000ff\r\n\n00000000000000FE\t7\n00000000000000fd\t007\n";
    let first = folder.file("a.hex", lines);
    let second =
        folder.file("b.gz", gzip(b"xyz\n0000000000000001\n0000000000000001\t\n0000000000000001\ta\tb\n\xff"));
    assert_eq!(InputKind::detect(&first).unwrap(), InputKind::Fingerprints);
    let read: Vec<_> = fingerprints::<u64>(&[first, second]).collect();
    let good: Vec<_> = read.iter().flatten().map(|record| (record.fingerprint, record.id.clone())).collect();
    assert_eq!(
        good,
        [
            (0xff, DocumentId::Number(0)),
            (0xfe, DocumentId::Number(7)),
            (0xfd, DocumentId::Name("007".to_owned())),
            (1, DocumentId::Number(4)),
        ]
    );
    let bad: Vec<_> = read.iter().filter_map(bad_line).collect();
    assert_eq!(bad, [1, 3, 4, 5]);

    let wide = folder.file("wide", format!("{}\n", 5_u128.to_hex()));
    assert_eq!(InputKind::detect(&wide).unwrap(), InputKind::Fingerprints);
    assert_eq!(bad_line(&fingerprints::<u64>(std::slice::from_ref(&wide)).next().unwrap()), Some(1));
    assert_eq!(fingerprints::<u128>(&[wide]).next().unwrap().unwrap().fingerprint, 5);
}

#[test]
fn raw_fingerprints() {
    let folder = Folder::new();
    let mut bytes = Vec::new();
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    let whole = folder.file("a.u64", &bytes);
    assert_eq!(InputKind::detect(&whole).unwrap(), InputKind::Fingerprints);
    bytes.pop();
    let cut = folder.file("b.u64.gz", gzip(&bytes));
    let read: Vec<_> = fingerprints::<u64>(&[whole.clone(), cut, whole.clone()]).collect();
    let good: Vec<_> = read.iter().flatten().map(|r| (r.id.to_string(), r.fingerprint)).collect();
    let expected = [("0", 1), ("1", u64::MAX), ("2", 1), ("4", 1), ("5", u64::MAX)];
    assert_eq!(good, expected.map(|(id, value)| (id.to_owned(), value)));
    let message = read[3].as_ref().unwrap_err().to_string();
    assert!(
        message.ends_with("b.u64.gz:2: the file ends within a fingerprint: 7 of 8 bytes at offset 8"),
        "{message}"
    );

    let read: Vec<_> = fingerprints::<u128>(&[whole.clone(), whole]).collect();
    assert!(matches!(&read[..], [Err(Error::BadArgument(_))]));
    assert!(matches!(read_one(&folder, "c.u64"), Err(Error::BadArgument(_))));
}

fn read_one(folder: &Folder, name: &str) -> Result<Document> {
    documents(&[folder.file(name, [0; 8])], &DocumentOptions::default()).next().unwrap()
}

#[test]
fn documents_are_no_fingerprints() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", TWO_LINES);
    assert!(matches!(fingerprints::<u64>(&[path]).next(), Some(Err(Error::BadArgument(_)))));
    assert!(matches!(read_one(&folder, "a.hex"), Err(Error::BadArgument(_))));
}

#[test]
fn batches_keep_the_order() {
    let folder = Folder::new();
    let text = "word ".repeat(1000);
    let lines: String =
        (0..5000).map(|i| format!("{{\"id\": {i}, \"text\": \"{text} {i} {}\"}}\n", i * 7)).collect();
    let path = folder.file("a.jsonl", &lines);
    let (options, profile) = (DocumentOptions::default(), "words-1".parse::<Profile>().unwrap());
    let mut expected = documents(std::slice::from_ref(&path), &options);
    let mut count = 0;
    for fingerprinted in fingerprint_documents::<u128>(std::slice::from_ref(&path), &options, &profile) {
        let (fingerprinted, document) = (fingerprinted.unwrap(), expected.next().unwrap().unwrap());
        assert_eq!(fingerprinted.id, document.id);
        assert_eq!(fingerprinted.ordinal, count);
        assert_eq!(fingerprinted.simhash, profile.fingerprint(&document.text));
        count += 1;
    }
    assert_eq!(count, 5000);
    let rejoined: Vec<u8> =
        records(&[path], &options).flat_map(|r| [r.unwrap().bytes(), b"\n"].concat()).collect();
    assert_eq!(rejoined, lines.as_bytes());
}

#[test]
fn a_real_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/zh/dotnet-docs.jsonl.gz");
    if !path.exists() {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    }
    let options = DocumentOptions::default();
    let read = fingerprint_documents::<u64>(&[path], &options, &Profile::default());
    let simhashes: Vec<_> = read.map(|document| document.unwrap().simhash).collect();
    assert_eq!(simhashes.len(), 14_168);
    assert!(simhashes.iter().all(Option::is_some));
}
