//! Tests of damaged and malformed inputs: each error has the file and line, and the next file is read.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};
use simstore_corpus::{InputKind, fingerprint_documents, fingerprints};
use simstore_io::{DocumentOptions, documents};
use simstore_text::Profile;

use crate::{COMPRESSIONS, Random, TWO_LINES, TempFolder, bad_line, kind_of, read};

/// Reads a bad file and then a good one. Returns the error message, and the number of documents before the error.
fn message(folder: &TempFolder, bad: &Path) -> (String, usize) {
    let paths = [bad.to_path_buf(), folder.file("good.jsonl", TWO_LINES)];
    let options = DocumentOptions { max_bytes: 1 << 20, ..DocumentOptions::default() };
    let read: Vec<_> = documents(&paths, &options).collect();
    assert_eq!(read.iter().filter(|document| document.is_err()).count(), 1, "{}", bad.display());
    let at = read.iter().position(Result::is_err).unwrap();
    assert_eq!(read.len(), at + 3, "{}", bad.display());
    assert!(matches!(&read[at], Err(Error::BadInput { path, .. }) if *path == bad));
    let fingerprinted: Vec<_> = fingerprint_documents::<u64>(&paths, &options, &Profile::default()).collect();
    assert_eq!(fingerprinted.len(), read.len());
    assert_eq!(fingerprinted[at + 2].as_ref().unwrap().position, at as u64 + 2);
    (read[at].as_ref().unwrap_err().to_string(), at)
}

/// Returns lines of JSON that stay large when they are compressed, because they have random numbers.
fn lines() -> String {
    let mut random = Random(3);
    (0..5000).map(|i| format!("{{\"id\": {i}, \"text\": \"text {}\"}}\n", random.next())).collect()
}

#[test]
fn truncated_archives() {
    let folder = TempFolder::new();
    let lines = lines();
    for (ending, compress) in COMPRESSIONS {
        let bytes = compress(lines.as_bytes());
        for keep in [bytes.len() / 2, bytes.len() - 1, bytes.len() - 20, 30] {
            let cut = folder.file(&format!("cut.jsonl{ending}"), &bytes[..keep]);
            let (message, at) = message(&folder, &cut);
            assert!(message.contains(&format!("cut.jsonl{ending}:{}: the ", at + 1)), "{message}");
            assert!(
                message.contains(&format!("data is truncated: the file ends at byte {keep}")),
                "{message}"
            );
        }
        // Cut in the second of two compressed members.
        let cut = folder.file(&format!("cut{ending}"), [&bytes[..], &bytes[..bytes.len() / 2]].concat());
        let (message, at) = message(&folder, &cut);
        assert!(at >= 5000 && message.contains("data is truncated"), "{message}");
        let cut = folder.file(&format!("cut.txt{ending}"), &bytes[..bytes.len() / 2]);
        assert!(self::message(&folder, &cut).0.contains(":1: the "));
    }
}

#[test]
fn damaged_archives() {
    let folder = TempFolder::new();
    let mut random = Random(4);
    for (ending, compress) in COMPRESSIONS {
        let false_name = folder.file(&format!("false.jsonl{ending}"), TWO_LINES);
        let (message, _) = message(&folder, &false_name);
        assert!(message.contains(" data, or damaged, at or before byte "), "{message}");
        let bytes = compress(lines().as_bytes());
        let whole = read(&folder.file("whole.jsonl", lines()));
        let whole: Vec<_> = whole.into_iter().map(|document| document.unwrap().text).collect();
        for _ in 0..20 {
            let mut bytes = bytes.clone();
            let at = random.index(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            let damaged = folder.file(&format!("damaged.jsonl{ending}"), bytes);
            // Some bits have no effect. A format with a checksum reads correctly, or ends in an error.
            let read = read(&damaged);
            if ending != ".zst" && read.last().is_some_and(Result::is_ok) {
                let texts: Vec<_> = read.into_iter().map(|document| document.unwrap().text).collect();
                assert!(texts == whole, "{ending} {at}");
            }
        }
    }
}

#[test]
fn truncated_fingerprints() {
    let folder = TempFolder::new();
    let bytes = crate::gzip(lines().as_bytes());
    let paths = [
        folder.file("cut.u64.gz", &bytes[..bytes.len() / 2]),
        folder.file("cut.hex.gz", &crate::gzip(b"0000000000000001\n")[..20]),
        folder.file("good.hex", "0000000000000007\n"),
    ];
    let read: Vec<_> = fingerprints::<u64>(&paths).collect();
    let bad: Vec<_> = read.iter().filter_map(|record| record.as_ref().err()).map(Error::to_string).collect();
    assert!(
        bad.len() == 2 && bad.iter().all(|message| message.contains("the gzip data is truncated")),
        "{bad:?}"
    );
    let last = read.last().unwrap().as_ref().unwrap();
    assert_eq!((last.fingerprint, last.id.to_string()), (Some(7), (read.len() - 1).to_string()));
}

#[test]
fn files_that_are_json_but_not_lines() {
    let folder = TempFolder::new();
    let pretty = folder.file("pretty.json", "\n{\n  \"text\": \"a\"\n}\n");
    let (said, at) = message(&folder, &pretty);
    let reason = "a JSON object over several lines, expected one object a line; convert it with `jq -c .`";
    assert!(at == 0 && said.contains(&format!("pretty.json:2: {reason}")), "{said}");
    let (message, _) = message(&folder, &folder.file("cut.json", "{\"text\": \"a\",\n"));
    assert!(message.ends_with("expected a whole JSON object on each line"), "{message}");
}

#[test]
fn one_very_long_line() {
    let folder = TempFolder::new();
    let path = folder.file("long.jsonl", format!("{{\"text\": \"{}\"}}\n", "x".repeat(3 << 20)));
    assert!(message(&folder, &path).0.contains("long.jsonl:1: longer than the limit of 1048576 bytes; "));
    let path = folder.file("long.txt", "x".repeat(3 << 20));
    assert!(message(&folder, &path).0.contains("long.txt:1: longer than the limit of 1048576 bytes; "));
}

#[test]
#[cfg(unix)]
fn files_that_cannot_be_opened() {
    let folder = TempFolder::new();
    for name in ["itself.jsonl", "itself"] {
        let path = folder.0.path().join(name);
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let (message, _) = message(&folder, &path);
        assert!(message.starts_with(&format!("{}: cannot open: ", path.display())), "{message}");
        assert!(matches!(kind_of(&path), Err(Error::BadInput { .. })));
    }
}

#[test]
#[cfg(unix)]
fn files_without_permission() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempFolder::new();
    let forbid = |path: &PathBuf| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
        std::fs::File::open(path).is_err()
    };
    let locked = folder.file("locked.jsonl", TWO_LINES);
    if !forbid(&locked) {
        eprintln!("SKIPPED: this user may read every file");
        return;
    }
    let unknown = folder.file("locked", TWO_LINES);
    forbid(&unknown);
    for path in [locked, unknown] {
        let (message, _) = message(&folder, &path);
        assert!(message.starts_with(&format!("{}: cannot open: ", path.display())), "{message}");
        let kind = kind_of(&path);
        assert!(matches!(kind, Ok(InputKind::Documents) | Err(Error::BadInput { .. })));
    }
}

#[test]
fn missing_and_empty_files() {
    let folder = TempFolder::new();
    let missing = folder.0.path().join("missing.jsonl");
    let read_missing = read(&missing);
    assert!(matches!(&read_missing[..], [Err(Error::Io { path, .. })] if *path == missing));
    let missing = folder.0.path().join("missing.hex");
    assert!(matches!(fingerprints::<u64>(&[missing]).next(), Some(Err(Error::Io { .. }))));
    assert!(matches!(kind_of(&folder.0.path().join("missing")), Err(Error::Io { .. })));

    for name in ["empty.jsonl", "empty.csv", "empty.tsv", "empty.warc"] {
        let empty = folder.file(name, "");
        assert!(read(&empty).is_empty(), "{name}");
        for (ending, compress) in COMPRESSIONS {
            assert!(
                read(&folder.file(&format!("{name}{ending}"), compress(b""))).is_empty(),
                "{name}{ending}"
            );
        }
        let none = fingerprint_documents::<u64>(&[empty], &DocumentOptions::default(), &Profile::default());
        assert_eq!(none.count(), 0);
    }
    let texts = read(&folder.file("empty.txt", ""));
    assert_eq!(texts[0].as_ref().unwrap().text, "");
    assert_eq!(fingerprints::<u64>(&[folder.file("empty.u64", "")]).count(), 0);
    assert_eq!(kind_of(&folder.file("empty", "")).unwrap(), InputKind::Documents);
    assert_eq!(bad_line(&read(&folder.file("one.jsonl", "{"))[0]), Some(1));
}
