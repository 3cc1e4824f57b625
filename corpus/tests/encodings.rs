//! Tests of inputs in other encodings than UTF-8, and of inputs that are not text.

use std::path::Path;

use simstore_corpus::{fingerprint_documents, fingerprints};
use simstore_io::{DocumentOptions, Encoding, ReadDiagnostic, documents};
use simstore_text::Profile;

use crate::{TempFolder, gzip, kind_of};

const CHINESE: &str = "相似的文档具有相似的指纹，功能的许多差异在这里都会被发现。近似重复的网页很常见。";

fn encoded(text: &str, label: &str) -> Vec<u8> {
    match label {
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned(),
    }
}

/// Reads a file in the encoding named `encoding`. Returns the text of each document, or the error message for it.
fn texts(path: &Path, encoding: &str) -> Vec<Result<String, String>> {
    let options = DocumentOptions { encoding: encoding.parse().unwrap(), ..DocumentOptions::default() };
    let texts = documents(&[path.to_path_buf()], &options);
    texts.map(|document| document.map(|document| document.text).map_err(|error| error.to_string())).collect()
}

#[test]
fn lines_in_another_encoding_are_named() {
    let folder = TempFolder::new();
    for (name, table) in [
        ("a.csv", format!("id,text\n1,ascii\n2,{CHINESE}\n")),
        ("a.tsv", format!("id\ttext\n1\tascii\n2\t{CHINESE}\n")),
        ("a.jsonl", format!("{{\"text\": \"\"}}\n{{\"text\": \"ascii\"}}\n{{\"text\": \"{CHINESE}\"}}\n")),
        ("a.json", format!("[{{\"text\": \"ascii\"}},{{\"text\": \"{CHINESE}\"}}]")),
    ] {
        for label in ["gb18030", "big5", "utf-16le", "utf-16be"] {
            let text = if label == "big5" {
                table.replace(CHINESE, "相似的文章具有相似的指紋，功能的許多差異在這裡都會被發現")
            } else {
                table.clone()
            };
            let bytes = encoded(&text, label);
            for path in [folder.file(name, &bytes), folder.file(&format!("{name}.gz"), gzip(&bytes))] {
                let read = texts(&path, "auto");
                let last = read.last().unwrap().as_ref().unwrap_err();
                assert!(
                    last.contains(&format!("it looks like {label}: give option `encoding` {label}")),
                    "{last}"
                );
                assert_eq!(read.iter().filter(|text| text.is_err()).count(), 1);
                let read = texts(&path, label);
                assert!(read.iter().all(|text| text.as_ref().is_ok_and(|text| !text.contains('\u{fffd}'))));
            }
        }
    }
    // The message has the line where the other encoding begins.
    let lines =
        "{\"text\": \"x\"}\n".repeat(100_000) + &format!("{{\"text\": \"{}\"}}\n", CHINESE.repeat(100));
    let path = folder.file("a.jsonl", encoded(&lines, "gb18030"));
    let read = texts(&path, "auto");
    assert!(read.len() == 100_001 && read[..100_000].iter().all(Result::is_ok));
    let message = read[100_000].as_ref().unwrap_err();
    assert!(message.contains("a.jsonl:100001: not UTF-8 from here on; it looks like gb18030"), "{message}");
    let read = texts(&path, "utf-8");
    assert!(read.len() == 100_001 && read.iter().all(Result::is_ok));
    // In a short table, two accented letters are enough to detect an encoding. One may be a damaged byte.
    let path = folder.file("a.csv", b"id,text\n1,caf\xe9 \xe0 la carte\n");
    let message = texts(&path, "auto")[0].as_ref().unwrap_err().clone();
    assert!(message.contains("it looks like windows-1252"), "{message}");
    let path = folder.file("a.csv", b"id,text\n1,caf\xe9\n");
    assert_eq!(texts(&path, "auto"), [Ok("caf\u{fffd}".to_owned())]);
}

#[test]
fn a_zero_in_utf8_is_a_control_character() {
    let folder = TempFolder::new();
    for (name, bytes, text) in [
        ("a.csv", &b"id,text\n1,a\0b words\n2,more\n"[..], "a\0b words"),
        ("a.csv", b"id,text\n1,\0ab words\n2,more\n", "\0ab words"),
        ("a.tsv", "id\ttext\n1\t相似的\0文档\n2\tmore\n".as_bytes(), "相似的\0文档"),
        ("a.txt", b"To be, or\0not to be", "To be, or\0not to be"),
    ] {
        let read = texts(&folder.file(name, bytes), "auto");
        assert_eq!(read[0].as_deref(), Ok(text));
        assert!(name == "a.txt" || read[1].as_deref() == Ok("more"), "{read:?}");
    }
    // The same tables in UTF-16 have many zero bytes.
    for label in ["utf-16le", "utf-16be"] {
        let read = texts(&folder.file("a.csv", encoded("id,text\n1,a\n", label)), "auto");
        assert!(
            read[0].as_ref().is_err_and(|error| error.contains(&format!("it looks like {label}"))),
            "{read:?}"
        );
    }
}

#[test]
fn a_few_malformed_characters_are_no_other_encoding() {
    let folder = TempFolder::new();
    for line in ["x".repeat(20_000), "é".to_owned()] {
        let bytes = [b"{\"text\": \"", line.as_bytes(), b"\xff\"}\n{\"text\": \"b\"}\n"].concat();
        let path = folder.file("a.jsonl", bytes);
        let read = texts(&path, "auto");
        assert_eq!(read, [Ok(format!("{line}\u{fffd}")), Ok("b".to_owned())]);
    }
}

#[test]
fn texts_are_guessed_and_counted() {
    let folder = TempFolder::new();
    folder.file("top/a.txt", encoded(CHINESE, "gb18030"));
    folder.file("top/b.txt", encoded(&format!("{CHINESE}\n"), "utf-16le"));
    folder.file("top/c.txt", CHINESE);
    let top = folder.0.path().join("top");
    let options = DocumentOptions::default();
    let read: Vec<_> = documents(std::slice::from_ref(&top), &options).map(Result::unwrap).collect();
    assert!(read.iter().all(|document| document.text.trim_end() == CHINESE));
    let guessed: Vec<_> =
        read.iter().map(|document| document.detected_encoding.map(Encoding::name)).collect();
    assert_eq!(guessed, [Some("GBK"), Some("UTF-16LE"), None]);
    let mut read = fingerprint_documents::<u64>(&[top], &options, &Profile::default());
    let progress = read.progress();
    assert_eq!(read.by_ref().count(), 3);
    let notes: Vec<_> = progress.diagnostics().into_iter().collect();
    assert_eq!(
        notes,
        [(ReadDiagnostic::DetectedEncoding("GBK"), 1), (ReadDiagnostic::DetectedEncoding("UTF-16LE"), 1)]
    );
}

#[test]
fn values_that_are_not_text_are_refused() {
    let folder = TempFolder::new();
    let good = folder.file("good.txt", "good");
    for (bytes, what) in [
        (&b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"[..], "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "an image (PNG)"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow file"),
        (b"SQLite format 3\0\x10\0\x01\x01", "an SQLite database"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "a program (ELF)"),
        (b"\x01\x02\x03\x04\x05 data", "binary data"),
    ] {
        // Refused with any file name, plain and compressed. Raw fingerprints may be any bytes.
        for name in ["a", "a.txt", "a.csv", "a.jsonl", "a.html", "a.dat", "a.txt.gz", "a.hex"] {
            let bytes = if name.ends_with(".gz") { gzip(bytes) } else { bytes.to_vec() };
            let path = folder.file(name, bytes);
            let message = if name == "a.hex" {
                fingerprints::<u64>(&[path]).next().unwrap().unwrap_err().to_string()
            } else {
                let paths = [path, good.clone()];
                let mut read = documents(&paths, &DocumentOptions::default());
                let message = read.next().unwrap().unwrap_err().to_string();
                assert_eq!(read.next().unwrap().unwrap().text, "good");
                message
            };
            assert!(message.contains(&format!("{name}: looks like {what}")), "{message}");
        }
        assert!(kind_of(&folder.file("a.u64", bytes)).is_ok());
    }
    // With format `text`, a file is accepted unless it starts like a known binary format.
    let options =
        DocumentOptions { format: Some(simstore_io::DocumentFormat::Text), ..DocumentOptions::default() };
    let path = folder.file("a", b"\x01\x02\x03 data");
    assert!(documents(&[path], &options).next().unwrap().is_ok());
}
