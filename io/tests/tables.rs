//! Tests of CSV and TSV.

use std::path::PathBuf;

use simstore_io::{DocumentFormat, DocumentOptions, ReadDiagnostic, documents, records};

use crate::{Random, TempFolder, bad_line, ids_and_texts};

fn read(path: &PathBuf, options: &DocumentOptions) -> Vec<(String, String, u64)> {
    documents(std::slice::from_ref(path), options)
        .map(|document| document.unwrap())
        .map(|document| (document.id.to_string(), document.text, document.line))
        .collect()
}

#[test]
fn columns_by_name() {
    let folder = TempFolder::new();
    let path = folder.file(
        "a.csv",
        "\u{feff}url,title,\"body, of it\",date\r\nu,t,b,2024\r\n\r\nv,,\"say \"\"so\"\"\",\r\n",
    );
    let options = DocumentOptions {
        id_field: Some("url".to_owned()),
        text_fields: vec!["title".to_owned(), "none".to_owned(), "body, of it".to_owned()],
        extra_field: Some("date".to_owned()),
        ..DocumentOptions::default()
    };
    assert_eq!(
        read(&path, &options),
        [("u".to_owned(), "t\nb".to_owned(), 2), ("v".to_owned(), "\nsay \"so\"".to_owned(), 4)]
    );
    let extra: Vec<_> =
        documents(&[path], &options).map(|document| document.unwrap().extra.unwrap()).collect();
    assert_eq!(extra, ["2024", ""]);
    // A document without an id is named by its position.
    let path = folder.file("b.tsv", "text\nfirst\n\"two\nlines\"\nlast");
    let name = |line: u64| format!("{}:{line}", path.display());
    let expected = [("first", 2), ("two\nlines", 3), ("last", 5)];
    assert_eq!(
        read(&path, &DocumentOptions::default()),
        expected.map(|(text, line)| (name(line), text.to_owned(), line))
    );
}

/// Returns a random table with quotes and newlines, as other programs write them, and the ids and texts of its rows.
fn table(random: &mut Random, delimiter: char) -> (String, Vec<(String, String)>) {
    const PIECES: [&str; 12] =
        ["a", "bc", "\"", "\"\"", ",", "\t", "\n", "\r\n", " ", "中文", "", "\u{1f600}"];
    let cell = |value: &str, quoted: bool| {
        if quoted || value.contains(['"', ',', '\t', '\n', '\r']) {
            format!("\"{}\"", value.replace('"', "\"\""))
        } else {
            value.to_owned()
        }
    };
    let mut bytes = format!("id{delimiter}other{delimiter}text\n");
    let mut rows = Vec::new();
    for _ in 0..random.below(40) {
        let mut value =
            || (0..random.below(6)).map(|_| PIECES[random.index(PIECES.len())]).collect::<String>();
        let (id, other, text) = (format!("n{}", value()), value(), value());
        let quoted = random.below(2) == 0;
        bytes += &[&*id, &other, &text].map(|value| cell(value, quoted)).join(&delimiter.to_string());
        bytes += ["\n", "\r\n", "\n\n"][random.index(3)];
        rows.push((id, text));
    }
    (bytes, rows)
}

#[test]
fn tables_come_back_as_they_were_written() {
    let folder = TempFolder::new();
    let mut random = Random(1);
    for round in 0..300 {
        let (name, delimiter) = [("a.csv", ','), ("a.tsv", '\t')][round % 2];
        let (mut bytes, rows) = table(&mut random, delimiter);
        if round % 3 == 0 {
            bytes.truncate(bytes.trim_end_matches('\n').len());
        }
        let path = folder.file(name, &bytes);
        assert_eq!(ids_and_texts(&path), rows, "{bytes:?}");
        // The records are the lines of the file, except blank lines.
        let kept: Vec<u8> = records(&[path], &DocumentOptions::default())
            .flat_map(|record| [record.unwrap().bytes().unwrap(), b"\n"].concat())
            .collect();
        let body = bytes.split_once('\n').unwrap_or_default().1;
        let is_quoted = |at: usize| body[..at].matches('"').count() % 2 == 1;
        let expected: String = body
            .char_indices()
            .filter(|&(at, c)| c != '\n' || is_quoted(at) || !body[..at].ends_with('\n'))
            .map(|(_, c)| c)
            .collect();
        assert_eq!(String::from_utf8(kept).unwrap().trim_end(), expected.trim_end());
    }
}

#[test]
fn malformed_rows_are_left_out() {
    let folder = TempFolder::new();
    let path = folder
        .file("a.csv", format!("id,text\n1,a\n2\n3,b,c\n\"4\nx\",{}\n5,b\n6,\"open\n7,x\n", "y".repeat(40)));
    let options = DocumentOptions { max_bytes: 40, ..DocumentOptions::default() };
    let read: Vec<_> = documents(&[path], &options).collect();
    assert_eq!(
        read.iter().map(bad_line).collect::<Vec<_>>(),
        [None, Some(3), Some(4), Some(5), None, Some(8)]
    );
    let message = |at: usize| read[at].as_ref().unwrap_err().to_string();
    assert!(message(1).ends_with("a.csv:3: a row of 1 fields, but the header has 2"), "{}", message(1));
    assert!(message(2).ends_with("a row of more than 2 fields, but the header has 2"), "{}", message(2));
    assert!(
        message(3)
            .contains("a.csv:5: a row that covers lines 5 to 6 (2 lines) is longer than the limit of 40"),
        "{}",
        message(3)
    );
    let expected =
        "a.csv:8: the file ends within quotes that this row opens; the row covers lines 8 to 9 (2 lines) up";
    assert!(message(5).contains(expected), "{}", message(5));
}

#[test]
fn a_stray_quote_merges_no_rows() {
    let folder = TempFolder::new();
    let table = "id,text\n0,a\n1,\"a\n2,unique\n3,\" \n4,b \"c\" d\"\n\"5\"x,a\n\"6\",\"\"\n7,\"\"\"\"\n8,\"x\n\"\"y\"\"\n\"\n\
                 9,\"a\n10,\"b,c\"\n11,\"a\n12,\"\n13,\"end\"";
    for newline in ["\n", "\r\n"] {
        for name in ["a.csv", "a.tsv"] {
            let bytes = table.replace('\n', newline);
            let bytes = if name == "a.tsv" { bytes.replace(',', "\t") } else { bytes };
            let path = folder.file(name, bytes);
            let read: Vec<_> = documents(std::slice::from_ref(&path), &DocumentOptions::default()).collect();
            let ids: Vec<_> = read.iter().flatten().map(|document| document.id.to_string()).collect();
            assert_eq!(ids, ["0", "4", "6", "7", "8", "11", "13"]);
            assert_eq!(read[2].as_ref().unwrap().text, "b \"c\" d\"");
            let said: Vec<_> =
                read.iter().filter_map(|document| Some(document.as_ref().err()?.to_string())).collect();
            let expected = [
                "3: text after a closing quote on line 5; the row covers lines 3 to 5 (3 lines): write each quote within",
                "7: text after a closing quote on line 7; the row covers line 7: write",
                "13: text after a closing quote on line 14; the row covers lines 13 to 14 (2 lines): write",
            ];
            assert_eq!(said.len(), expected.len(), "{said:?}");
            for (said, expected) in said.iter().zip(expected) {
                assert!(said.contains(&format!("{name}:{expected}")), "{said}");
            }
        }
    }
    // Errors for a header, and for a row with another number of fields, name the lines that it covers.
    for (table, expected) in [
        ("id,\"text\"s\n1,a\n", "a.csv:1: text after a closing quote on line 1; the row covers line 1: "),
        (
            "id,text\n1,\"a\n2,\",b\n",
            "a.csv:2: a row of more than 2 fields, but the header has 2; the row covers lines 2 to 3 (2 lines)",
        ),
    ] {
        let read: Vec<_> = documents(&[folder.file("a.csv", table)], &DocumentOptions::default()).collect();
        let message = read[0].as_ref().unwrap_err().to_string();
        assert!(message.contains(expected) && read.len() == 1, "{message}");
    }
}

#[test]
fn tables_without_the_columns() {
    let folder = TempFolder::new();
    let good = folder.file("good.csv", "text\nx\n");
    let with_id = DocumentOptions { id_field: Some("url".to_owned()), ..DocumentOptions::default() };
    for (header, options, reason) in [
        ("id,body", DocumentOptions::default(), "no text column `text`; the columns are `id`, `body`"),
        ("id,text", with_id, "no id column `url`; the columns are `id`, `text`"),
        ("id,text,text", DocumentOptions::default(), "two columns are named `text`"),
    ] {
        let bad = folder.file("bad.csv", format!("{header}\n1,2\n3,4\n"));
        let read: Vec<_> = documents(&[bad, good.clone()], &options).collect();
        let message = read[0].as_ref().unwrap_err().to_string();
        assert!(message.ends_with(&format!("bad.csv:1: {reason}")), "{message}");
        assert_eq!(read.len(), 2);
    }
}

#[test]
fn other_encodings() {
    let folder = TempFolder::new();
    let table = "id,text\n許功蓋,\"功能,\n的\"\n二,許\n";
    let expected = [("許功蓋".to_owned(), "功能,\n的".to_owned(), 2), ("二".to_owned(), "許".to_owned(), 4)];
    let utf16 = || table.encode_utf16();
    for (encoding, bytes) in [
        ("big5", encoding_rs::BIG5.encode(table).0.into_owned()),
        ("gb18030", encoding_rs::GB18030.encode(table).0.into_owned()),
        ("utf-16le", utf16().flat_map(u16::to_le_bytes).collect()),
        ("auto", [0xfeff].into_iter().chain(utf16()).flat_map(u16::to_be_bytes).collect()),
    ] {
        let path = folder.file("a.csv", bytes);
        let options = DocumentOptions { encoding: encoding.parse().unwrap(), ..DocumentOptions::default() };
        assert_eq!(read(&path, &options), expected, "{encoding}");
    }
    let record =
        records(&[folder.file("a.csv", "text\n a \n")], &DocumentOptions::default()).next().unwrap().unwrap();
    assert_eq!((record.format(), record.line(), record.bytes()), (DocumentFormat::Csv, 2, Some(&b" a "[..])));
}

#[test]
fn other_delimiters() {
    let folder = TempFolder::new();
    let with = |delimiter| DocumentOptions { delimiter, ..DocumentOptions::default() };
    let expected = [("7".to_owned(), "a, \"b;\nc\"".to_owned(), 2), ("x".to_owned(), "y|z\t".to_owned(), 4)];
    for delimiter in [b';', b'|', b'\t', b','] {
        let sign = char::from(delimiter).to_string();
        let table = "id;text;n\n7;\"a, \"\"b;\nc\"\"\";1\nx;\"y|z\t\";2\n";
        // The delimiter is replaced only outside quotes.
        let table = table.replace(";t", &format!("{sign}t")).replace(";n", &format!("{sign}n"));
        let table = table.replace("7;", &format!("7{sign}")).replace("\";", &format!("\"{sign}"));
        let table = table.replace("x;", &format!("x{sign}"));
        for name in ["a.csv", "a.tsv", "a"] {
            let path = folder.file(name, &table);
            assert_eq!(read(&path, &DocumentOptions::default()), expected, "{name} {sign}");
            assert_eq!(read(&path, &with(Some(delimiter))), expected, "{name} {sign}");
            let mut records = records(std::slice::from_ref(&path), &DocumentOptions::default());
            let progress = records.progress();
            assert!(records.by_ref().all(|record| record.is_ok()));
            let usual = if name == "a.tsv" { b'\t' } else { b',' };
            let is_said = progress
                .diagnostics()
                .contains_key(&ReadDiagnostic::DetectedDelimiter(sign.chars().next().unwrap()));
            assert_eq!(is_said, delimiter != usual && (name, delimiter) != ("a", b'\t'), "{name} {sign}");
        }
    }
    // A delimiter given by an option is taken as it is; without one, the most frequent delimiter counts.
    let path = folder.file("a.csv", "id;body;a,b\n1;2;3\n");
    let message = |delimiter| {
        let read = documents(std::slice::from_ref(&path), &with(delimiter)).next().unwrap();
        read.unwrap_err().to_string()
    };
    assert!(message(None).ends_with("no text column `text`; the columns are `id`, `body`, `a,b`"));
    assert!(message(Some(b',')).ends_with("no text column `text`; the columns are `id;body;a`, `b`"));
}
