//! Tests of reading documents from lines of JSON, text files and folders.

use std::path::Path;

use simstore::Fingerprint;
use simstore_corpus::{InputKind, fingerprint_documents, fingerprints};
use simstore_io::{Document, DocumentId, DocumentOptions, MAX_NAME_BYTES, Record, documents, records};
use simstore_text::Profile;

use crate::{COMPRESSIONS, TWO_LINES, TempFolder, bad_line, gzip, ids_and_texts, kind_of, read};

#[test]
fn json_lines_plain_and_compressed() {
    let folder = TempFolder::new();
    let expected = [("1".to_owned(), "one".to_owned()), ("b".to_owned(), "two".to_owned())];
    let check = |name: &str, bytes: &[u8]| {
        let path = folder.file(name, bytes);
        assert_eq!(ids_and_texts(&path), expected, "{name}");
        assert_eq!(kind_of(&path).unwrap(), InputKind::Documents, "{name}");
    };
    check("a.jsonl", TWO_LINES.as_bytes());
    check("a.ndjson", TWO_LINES.replace('\n', "\r\n").as_bytes());
    check("a.json", format!("\u{feff}\n\n  \r\n{}", TWO_LINES.trim_end()).as_bytes());
    check("unknown", TWO_LINES.as_bytes());
    for (ending, compress) in COMPRESSIONS {
        let whole = compress(TWO_LINES.as_bytes());
        let members = [compress(&TWO_LINES.as_bytes()[..30]), compress(&TWO_LINES.as_bytes()[30..])].concat();
        check(&format!("a.jsonl{ending}"), &whole);
        check(&format!("MEMBERS.JSONL{}", ending.to_uppercase()), &members);
        check(&format!("unknown{ending}"), &whole);
        // Names without the extension of the compression, or without any extension.
        check("packed.jsonl", &members);
        check("packed", &whole);
    }
}

#[test]
fn malformed_lines_do_not_end_the_reading() {
    let folder = TempFolder::new();
    let long = "x".repeat(200);
    let mut bytes = b"{\"text\": \"\xc3\xa9\xc3\xa8\"}\n\nnot json\n{\"text\": \"\xff\"}\n".to_vec();
    bytes.extend(format!("{{\"text\": \"{long}\"}}\n{{\"text\": \"b\"}}\n{{}}").bytes());
    let path = folder.file("a.jsonl", bytes);
    let options = DocumentOptions { max_bytes: 100, ..DocumentOptions::default() };
    let read: Vec<_> = documents(std::slice::from_ref(&path), &options).collect();
    assert_eq!(read.iter().map(bad_line).collect::<Vec<_>>(), [None, Some(3), None, Some(5), None, Some(7)]);
    let replaced = read[2].as_ref().unwrap();
    assert_eq!((&*replaced.text, replaced.replacements), ("\u{fffd}", 1));
    let last_good = read[4].as_ref().unwrap();
    assert_eq!((last_good.line, &last_good.text[..]), (6, "b"));
    assert_eq!(last_good.id, DocumentId::Name(format!("{}:6", path.display())));
    assert_eq!(&*last_good.path, path);
    let message = read[3].as_ref().unwrap_err().to_string();
    let said = "longer than the limit of 100 bytes; raise option `max_document`";
    assert_eq!(message, format!("{}:5: {said}", path.display()));

    let fingerprinted: Vec<_> =
        fingerprint_documents::<u64>(&[path], &options, &Profile::default()).collect();
    assert_eq!(fingerprinted.len(), 6);
    assert!(fingerprinted[5].is_err());
    assert_eq!(fingerprinted[4].as_ref().unwrap().position, 4);
}

#[test]
fn a_line_as_long_as_the_limit() {
    let folder = TempFolder::new();
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
    let folder = TempFolder::new();
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
    assert!(
        read[1]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains(":2: no id field `url`; the document has `body`: select another with option")
    );
    assert!(read[2].as_ref().unwrap_err().to_string().contains("two fields are named `url`"));
}

#[test]
fn names_have_a_limit() {
    let folder = TempFolder::new();
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
fn batches_keep_the_order() {
    let folder = TempFolder::new();
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
        assert_eq!(fingerprinted.position, count);
        let simhash = profile.fingerprint(&document.text);
        assert_eq!(fingerprinted.fingerprint, simhash.map(|simhash| simhash.fingerprint));
        assert_eq!(fingerprinted.feature_count, simhash.map(|simhash| simhash.features));
        count += 1;
    }
    assert_eq!(count, 5000);
    let rejoined: Vec<u8> =
        records(&[path], &options).flat_map(|r| [r.unwrap().bytes().unwrap(), b"\n"].concat()).collect();
    assert_eq!(rejoined, lines.as_bytes());
}

#[test]
fn a_real_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/zh/dotnet-docs.jsonl.gz");
    if !path.exists() {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    }
    let options = DocumentOptions::default();
    let read = fingerprint_documents::<u64>(&[path], &options, &Profile::default());
    let simhashes: Vec<_> = read.map(|document| document.unwrap().fingerprint).collect();
    assert_eq!(simhashes.len(), 14_168);
    assert!(simhashes.iter().all(Option::is_some));
}

#[test]
fn texts_in_other_encodings() {
    let folder = TempFolder::new();
    let chinese = "近似重复的网页很常见，相似的文档具有相似的指纹。";
    let gbk = encoding_rs::GBK.encode(chinese).0.into_owned();
    let utf16: Vec<u8> =
        [0xfeff].into_iter().chain(chinese.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let options =
        |name: &str| DocumentOptions { encoding: name.parse().unwrap(), ..DocumentOptions::default() };
    let text = |path: &Path, encoding: &str| {
        let document = documents(&[path.to_path_buf()], &options(encoding)).next().unwrap().unwrap();
        (document.text, document.replacements)
    };
    let path = folder.file("a.txt", &gbk);
    assert_eq!(text(&path, "auto"), (chinese.to_owned(), 0));
    assert_eq!(text(&path, "gb18030"), (chinese.to_owned(), 0));
    assert!(text(&path, "utf-8").1 > 10);
    assert_eq!(text(&folder.file("b.md", &utf16), "auto"), (chinese.to_owned(), 0));
    // Markup is left alone.
    let page = [b"<meta charset=gb2312><p>", &gbk[..]].concat();
    let expected = format!("<meta charset=gb2312><p>{chinese}");
    assert_eq!(text(&folder.file("c.html.xz", crate::xz(&page)), "auto"), (expected, 0));

    let line = format!("{{\"text\": \"{chinese}\\n\", \"id\": \"功\"}}\n");
    for (encoding, bytes) in [
        ("gb18030", encoding_rs::GB18030.encode(&line.repeat(2)).0.into_owned()),
        ("utf-16be", line.repeat(2).encode_utf16().flat_map(u16::to_be_bytes).collect()),
        (
            "auto",
            [
                &[0xff, 0xfe][..],
                &line.repeat(2).encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
            ]
            .concat(),
        ),
    ] {
        let path = folder.file("lines.jsonl", bytes);
        let read: Vec<Document> = documents(&[path], &options(encoding)).map(Result::unwrap).collect();
        assert_eq!(read.len(), 2, "{encoding}");
        assert_eq!(
            (&*read[1].text, read[1].id.to_string(), read[1].line),
            (&*format!("{chinese}\n"), "功".to_owned(), 2)
        );
    }
}

#[test]
fn features_beside_fingerprints() {
    let folder = TempFolder::new();
    let path = folder
        .file("a.jsonl", b"{\"text\": \"\xffab\", \"date\": \"2024\"}\n{\"text\": \"\xc3\xa9\xc3\xa8\"}");
    let options = DocumentOptions { extra_field: Some("date".to_owned()), ..DocumentOptions::default() };
    let reading = || fingerprint_documents::<u64>(std::slice::from_ref(&path), &options, &Profile::default());
    let read: Vec<_> = reading().with_texts().map(Result::unwrap).collect();
    assert_eq!((read[0].replacements, read[0].text_bytes, read[0].extra.as_deref()), (1, 5, Some("2024")));
    assert_eq!((read[1].replacements, read[1].text_bytes, read[1].extra.as_deref()), (0, 4, None));
    assert_eq!(read[0].text.as_deref(), Some("\u{fffd}ab"));
    assert!(reading().all(|document| document.unwrap().text.is_none()));
}

#[test]
fn checksums_tell_whether_a_document_is_the_same() {
    let folder = TempFolder::new();
    let options = DocumentOptions::default();
    let checksums = |name: &str, bytes: &str| -> Vec<u64> {
        let path = [folder.file(name, bytes)];
        let plain: Vec<u64> =
            records(&path, &options).map(|record| record.unwrap().checksum(&options)).collect();
        let made = fingerprint_documents::<u64>(&path, &options, &Profile::default());
        assert_eq!(made.map(|document| document.unwrap().checksum).collect::<Vec<_>>(), plain, "{name}");
        plain
    };
    let lines = checksums("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"a\"}\n{\"text\": \"b\"}");
    assert!(lines[0] == lines[1] && lines[1] != lines[2]);
    let rows = checksums("a.csv", "id,text\n1,a\n2,a\n1,a\n");
    assert!(rows[0] == rows[2] && rows[0] != rows[1]);
    // The same rows with another header are other documents.
    assert_ne!(rows, checksums("b.csv", "text,id\n1,a\n2,a\n1,a\n"));
    assert_ne!(checksums("a.txt", "a"), checksums("b.txt", "b"));
}

#[test]
fn documents_that_were_read_before_get_no_fingerprint() {
    let folder = TempFolder::new();
    let path = [folder.file("a.jsonl", "{\"text\": \"a b\"}\n{\"text\": \"b c\"}\n{\"text\": \"c d\"}\n")];
    let read = |after| {
        let documents = fingerprint_documents::<u64>(&path, &DocumentOptions::default(), &Profile::default());
        let wanted = move |path: &Path, line| path.ends_with("a.jsonl") && line > after;
        documents.with_filter(wanted).map(|document| document.unwrap()).collect::<Vec<_>>()
    };
    let (all, last) = (read(0), read(2));
    assert!(last[..2].iter().all(|document| document.fingerprint.is_none()));
    assert_eq!((&last[2], last.len()), (&all[2], 3));
    assert!(all.iter().all(|document| document.fingerprint.is_some()));
}

/// Returns the text of each document of a file, or the error message for it.
fn texts(path: &Path, options: &DocumentOptions) -> Vec<Result<String, String>> {
    let texts = documents(&[path.to_path_buf()], options);
    texts.map(|document| document.map(|document| document.text).map_err(|error| error.to_string())).collect()
}

#[test]
fn a_null_text_is_empty_and_a_missing_one_malformed() {
    let folder = TempFolder::new();
    let path = folder.file(
        "a.jsonl",
        "{\"text\": null}\n{\"id\": 7}\n{\"text\": \"a\"}\n{\"id\": 8, \"txt\": \"a\", \"meta\": {\"url\": \"u\"}}\n{}\n",
    );
    let read = texts(&path, &DocumentOptions::default());
    assert_eq!([&read[0], &read[2]], [&Ok(String::new()), &Ok("a".to_owned())]);
    for (at, said) in [
        (
            1,
            "a.jsonl:2: no text field `text`; the document has `id`: select another with option `text_field`",
        ),
        (
            3,
            "a.jsonl:4: no text field `text` (did you mean `txt`?); the document has `id`, `meta.url`, `txt`: select \
             another with option `text_field`",
        ),
        (
            4,
            "a.jsonl:5: no text field `text`; the document has no fields: select another with option `text_field`",
        ),
    ] {
        assert!(read[at].as_ref().unwrap_err().ends_with(said), "{:?}", read[at]);
    }
    // A document needs only one of several text fields, in lines and in arrays.
    let options = DocumentOptions {
        text_fields: vec!["title".to_owned(), "text".to_owned()],
        ..DocumentOptions::default()
    };
    let path = folder.file("a.json", r#"[{"title": "t"}, {"id": 1}, {"text": "a"}]"#);
    let read = texts(&path, &options);
    assert_eq!([&read[0], &read[2]], [&Ok("t".to_owned()), &Ok("a".to_owned())]);
    assert!(read[1].as_ref().unwrap_err().contains("a.json:2: no text field `title`, `text`"), "{read:?}");
}

#[test]
fn fields_of_objects_in_objects() {
    let folder = TempFolder::new();
    let path = folder.file(
        "a.jsonl",
        "{\"meta\": {\"url\": \"u\", \"date\": 7}, \"body\": {\"text\": \"t\"}}\n\
         {\"meta\": {\"url\": \"v\"}, \"body.text\": \"own\", \"body\": {\"text\": \"t\"}}\n\
         {\"meta\": {}, \"body\": null}\n",
    );
    let options = DocumentOptions {
        id_field: Some("meta.url".to_owned()),
        text_fields: vec!["body.text".to_owned()],
        extra_field: Some("meta.date".to_owned()),
        ..DocumentOptions::default()
    };
    let read: Vec<_> = documents(&[path], &options).collect();
    let found = |at: usize| {
        let document: &Document = read[at].as_ref().unwrap();
        (document.id.to_string(), document.text.clone(), document.extra.clone())
    };
    assert_eq!(found(0), ("u".to_owned(), "t".to_owned(), Some("7".to_owned())));
    assert_eq!(found(1), ("v".to_owned(), "own".to_owned(), None));
    let message = read[2].as_ref().unwrap_err().to_string();
    assert!(
        message.ends_with(
            ":3: no id field `meta.url`; the document has `body`, `meta`: select another with option `id_field`"
        ),
        "{message}"
    );
}

#[test]
fn arrays_of_objects() {
    let folder = TempFolder::new();
    let options = DocumentOptions { max_bytes: 60, ..DocumentOptions::default() };
    let array = "[\n  {\n    \"id\": 1,\n    \"text\": \"許功蓋, \\\"a\\\" ]}\"\n  },\n\
                 {\"text\": \"b\", \"n\": [1, [2]]}, 7, {\"text\": null},\n\
                 {\"text\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}, {\"text\": \"last\"}]\n";
    let bytes: Vec<&str> = vec![
        "{\"id\": 1,\"text\": \"許功蓋, \\\"a\\\" ]}\"}",
        "{\"text\": \"b\", \"n\": [1, [2]]}",
        "7",
        "{\"text\": null}",
        "{\"text\": \"last\"}",
    ];
    for (name, encoding, contents) in [
        ("a.json", "auto", array.as_bytes().to_vec()),
        ("a.jsonl", "auto", format!("\u{feff}\n {array}").into_bytes()),
        ("a.json.gz", "auto", gzip(array.as_bytes())),
        ("unknown", "auto", array.as_bytes().to_vec()),
        // In Big5, the second bytes of these characters are brackets and backslashes.
        ("a.json", "big5", encoding_rs::BIG5.encode(array).0.into_owned()),
        ("a.json", "utf-16le", array.encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ] {
        let path = folder.file(name, contents);
        let options = DocumentOptions { encoding: encoding.parse().unwrap(), ..options.clone() };
        let read: Vec<_> = records(std::slice::from_ref(&path), &options).collect();
        let found: Vec<&str> = read
            .iter()
            .flatten()
            .map(|record| std::str::from_utf8(record.bytes().unwrap()).unwrap())
            .collect();
        assert_eq!(found, bytes, "{name} {encoding}");
        let lines: Vec<u64> = read.iter().flatten().map(Record::line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 6]);
        assert_eq!(bad_line(&read[4]), Some(5));
        let read: Vec<_> = documents(&[path], &options).collect();
        let id = |at: usize| read[at].as_ref().unwrap().id.to_string();
        assert_eq!(id(0), "1");
        assert!(id(5).ends_with(":6"), "{}", id(5));
        assert_eq!(read[0].as_ref().unwrap().text, "許功蓋, \"a\" ]}");
        let message = read[2].as_ref().unwrap_err().to_string();
        assert!(message.contains(":3: ") && message.contains("expected a JSON object"), "{message}");
    }
    assert!(texts(&folder.file("a.json", " [ ]\n"), &options).is_empty());
}

#[test]
fn arrays_that_are_none() {
    let folder = TempFolder::new();
    for (array, line, reason) in [
        ("[", 1, "the file ends within the array"),
        ("[{\"text\": \"a\"}", 2, "the file ends within the array"),
        ("[{\"text\": \"a\"", 1, "the file ends within this element of the array"),
        ("[{\"text\": \"a\"},]", 2, "expected an element of the array"),
        (
            "[{\"text\": \"a\"} {\"text\": \"b\"}]",
            2,
            "expected a comma or `]` after the element before this one",
        ),
        ("[{\"text\": \"a\"}] {}", 2, "data after the end of the array"),
    ] {
        let path = folder.file("a.json", array);
        let read = texts(&path, &DocumentOptions::default());
        let last = read.last().unwrap().as_ref().unwrap_err();
        assert!(last.contains(&format!("a.json:{line}: {reason}")), "{last}");
        assert_eq!(read.iter().filter(|text| text.is_err()).count(), 1, "{array}");
    }
}
