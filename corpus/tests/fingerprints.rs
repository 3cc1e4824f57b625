//! Tests of reading files of fingerprints.

use simstore::{Error, Fingerprint, Result};
use simstore_corpus::{InputKind, fingerprints};
use simstore_io::{Document, DocumentId, DocumentOptions, documents};

use crate::{TWO_LINES, TempFolder, bad_line, gzip, kind_of};

#[test]
fn fingerprint_lines() {
    let folder = TempFolder::new();
    let lines = "\u{feff}00000000000000ff\r\n\n00000000000000FE\t7\n00000000000000fd\t007\n";
    let first = folder.file("a.hex", lines);
    let second =
        folder.file("b.gz", gzip(b"xyz\n0000000000000001\n0000000000000001\t\n0000000000000001\ta\tb\n\xff"));
    assert_eq!(kind_of(&first).unwrap(), InputKind::Fingerprints);
    let read: Vec<_> = fingerprints::<u64>(&[first, second]).collect();
    let good: Vec<_> =
        read.iter().flatten().map(|item| (item.fingerprint.unwrap(), item.id.clone())).collect();
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
    assert_eq!(kind_of(&wide).unwrap(), InputKind::Fingerprints);
    assert_eq!(bad_line(&fingerprints::<u64>(std::slice::from_ref(&wide)).next().unwrap()), Some(1));
    assert_eq!(fingerprints::<u128>(&[wide]).next().unwrap().unwrap().fingerprint, Some(5));
}

#[test]
fn raw_fingerprints() {
    let folder = TempFolder::new();
    let mut bytes = Vec::new();
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    let whole = folder.file("a.u64", &bytes);
    assert_eq!(kind_of(&whole).unwrap(), InputKind::Fingerprints);
    bytes.pop();
    let cut = folder.file("b.u64.gz", gzip(&bytes));
    let copy = folder.file("c.u64", std::fs::read(&whole).unwrap());
    let read: Vec<_> = fingerprints::<u64>(&[whole.clone(), cut, copy]).collect();
    let good: Vec<_> = read.iter().flatten().map(|r| (r.id.to_string(), r.fingerprint.unwrap())).collect();
    let expected = [("0", 1), ("1", u64::MAX), ("2", 1), ("4", 1), ("5", u64::MAX)];
    assert_eq!(good, expected.map(|(id, value)| (id.to_owned(), value)));
    let message = read[3].as_ref().unwrap_err().to_string();
    assert!(
        message.ends_with("b.u64.gz:2: the file ends within a fingerprint: 7 of 8 bytes at offset 8"),
        "{message}"
    );

    let read: Vec<_> = fingerprints::<u128>(&[whole.clone(), whole]).collect();
    assert!(matches!(&read[..], [Err(Error::BadArgument(_))]));
    assert!(matches!(read_one(&folder, "d.u64"), Err(Error::BadArgument(_))));
}

fn read_one(folder: &TempFolder, name: &str) -> Result<Document> {
    documents(&[folder.file(name, "0123456789abcdef")], &DocumentOptions::default()).next().unwrap()
}

#[test]
fn documents_are_no_fingerprints() {
    let folder = TempFolder::new();
    let path = folder.file("a.jsonl", TWO_LINES);
    assert!(matches!(fingerprints::<u64>(&[path]).next(), Some(Err(Error::BadArgument(_)))));
    assert!(matches!(read_one(&folder, "a.hex"), Err(Error::BadArgument(_))));
}

#[test]
fn lines_in_utf16() {
    let folder = TempFolder::new();
    for (mark, order) in
        [("\u{feff}", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("", u16::to_le_bytes), ("", u16::to_be_bytes)]
    {
        let lines = format!("{mark}0000000000000001\ta\n0000000000000002\tb\n");
        let path = folder.file("a.hex", lines.encode_utf16().flat_map(order).collect::<Vec<u8>>());
        let read: Vec<_> = fingerprints::<u64>(&[path]).map(|record| record.unwrap().fingerprint).collect();
        assert_eq!(read, [Some(1), Some(2)]);
    }
}
