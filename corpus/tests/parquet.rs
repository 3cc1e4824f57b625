//! Tests of reading and writing documents in Parquet files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;
use simstore::{Error, Result};
use simstore_corpus::fingerprint_documents;
use simstore_io::{
    ClusterAnnotation, Document, DocumentFormat, DocumentId, DocumentOptions, DocumentWriter, ReadProgress,
    documents, records,
};
use simstore_text::Profile;

use crate::{Random, TWO_LINES, TempFolder, bad_line};

/// Returns the bytes of a Parquet file with these columns, in row groups of `group` rows.
fn parquet(columns: &[(&str, ArrayRef)], group: usize) -> Vec<u8> {
    let batch =
        RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, Arc::clone(array)))).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn read(path: &Path, options: &DocumentOptions) -> Vec<Result<Document>> {
    documents(&[path.to_path_buf()], options).collect()
}

fn ids_and_texts(path: &Path) -> Vec<(String, String)> {
    let read = read(path, &DocumentOptions::default());
    read.into_iter().map(Result::unwrap).map(|d| (d.id.to_string(), d.text)).collect()
}

#[test]
fn columns_of_every_kind() {
    let folder = TempFolder::new();
    let texts = ["one", "two \u{4e2d}"];
    let expected =
        |ids: [&str; 2]| [(ids[0].to_owned(), texts[0].to_owned()), (ids[1].to_owned(), texts[1].to_owned())];
    let dictionary: arrow_array::DictionaryArray<arrow_array::types::Int32Type> = texts.into_iter().collect();
    let text_columns: [ArrayRef; 4] = [
        strings(&texts),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(BinaryArray::from(vec![texts[0].as_bytes(), texts[1].as_bytes()])),
        Arc::new(dictionary),
    ];
    for text in text_columns {
        let id: ArrayRef = Arc::new(Int64Array::from(vec![7, i64::MAX]));
        let path = folder.file("a.parquet", parquet(&[("text", text), ("id", id)], 1));
        assert_eq!(ids_and_texts(&path), expected(["7", "9223372036854775807"]));
    }
    let path = folder.file("named", parquet(&[("id", strings(&["a", "7"])), ("text", strings(&texts))], 10));
    assert_eq!(ids_and_texts(&path), expected(["a", "7"]));
    let path = folder.file("b.parquet", parquet(&[("text", strings(&texts))], 10));
    let name = |row: u64| format!("{}:{row}", path.display());
    assert_eq!(ids_and_texts(&path), expected([&name(1), &name(2)]));
    let record = records(&[path], &DocumentOptions::default()).nth(1).unwrap().unwrap();
    assert_eq!((record.format(), record.line(), record.bytes()), (DocumentFormat::Parquet, 2, None));
}

/// Asserts that documents are read with empty texts, in each format with named fields, if no text field is requested.
#[test]
fn no_text_fields() {
    let folder = TempFolder::new();
    let options = DocumentOptions { text_fields: Vec::new(), ..DocumentOptions::default() };
    let read_all = |path: &Path| -> Vec<(String, String)> {
        read(path, &options).into_iter().map(Result::unwrap).map(|d| (d.id.to_string(), d.text)).collect()
    };
    let columns = [("id", strings(&["a", "b"])), ("text", strings(&["one", "two"]))];
    for path in [
        folder.file("a.jsonl", "{\"id\":\"a\",\"text\":\"one\"}\n{\"id\":\"b\"}\n"),
        folder.file("a.csv", "id,text\na,one\nb,two\n"),
        folder.file("a.parquet", parquet(&columns, 10)),
    ] {
        assert_eq!(
            read_all(&path),
            ["a", "b"].map(|id| (id.to_owned(), String::new())),
            "{}",
            path.display()
        );
    }
    for (path, lines) in [
        (folder.file("b.jsonl", TWO_LINES), [1, 2]),
        (folder.file("b.csv", "text\none\ntwo\n"), [2, 3]),
        (folder.file("b.parquet", parquet(&columns[1..], 10)), [1, 2]),
    ] {
        let texts: Vec<_> =
            read(&path, &options).into_iter().map(Result::unwrap).map(|d| (d.line, d.text)).collect();
        assert_eq!(texts, lines.map(|line| (line, String::new())), "{}", path.display());
    }
}

#[test]
fn extra_values() {
    let folder = TempFolder::new();
    let extra: [(&str, ArrayRef, &str); 6] = [
        ("s", strings(&["x"]), "x"),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX])), "18446744073709551615"),
        ("f", Arc::new(Float64Array::from(vec![0.5])), "0.5"),
        ("b", Arc::new(BooleanArray::from(vec![true])), "true"),
        ("d", Arc::new(Date32Array::from(vec![19_844])), "2024-05-01"),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from(vec![1_714_521_600_000_001])),
            "2024-05-01 00:00:00.000001",
        ),
    ];
    let mut columns =
        vec![("text", strings(&["t"])), ("none", Arc::new(Int32Array::from(vec![None])) as ArrayRef)];
    columns.extend(extra.iter().map(|(name, array, _)| (*name, Arc::clone(array))));
    let path = folder.file("a.parquet", parquet(&columns, 10));
    let extra_of = |name: &str| {
        let options = DocumentOptions { extra_field: Some(name.to_owned()), ..DocumentOptions::default() };
        read(&path, &options).remove(0).unwrap().extra
    };
    for (name, _, expected) in &extra {
        assert_eq!(extra_of(name).as_deref(), Some(*expected), "{name}");
    }
    assert_eq!(extra_of("none"), None);
    assert_eq!(extra_of("missing"), None);
}

#[test]
fn rows_that_are_no_documents() {
    let folder = TempFolder::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c"), Some("a long text")]));
    let id: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(-3), Some(4)]));
    let path = folder.file("a.parquet", parquet(&[("id", id), ("text", text)], 10));
    let options = DocumentOptions { max_bytes: 10, ..DocumentOptions::default() };
    let read = read(&path, &options);
    assert_eq!(read.iter().map(bad_line).collect::<Vec<_>>(), [None, None, Some(3), Some(4)]);
    let message = |at: usize| read[at].as_ref().unwrap_err().to_string();
    assert_eq!(read[1].as_ref().unwrap().text, "");
    assert!(
        message(2).ends_with("the id column `id` is not an integer from 0 to 2^64 - 1"),
        "{}",
        message(2)
    );
    let too_long = "longer than the limit of 10 bytes; raise option `max_document`";
    assert!(message(3).ends_with(too_long), "{}", message(3));
}

#[test]
fn files_without_the_columns() {
    let folder = TempFolder::new();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let bytes = parquet(&[("id", Arc::clone(&numbers)), ("body", numbers)], 10);
    let good = "{\"url\": \"u\", \"text\": \"a\", \"body\": \"b\"}\n".repeat(2);
    let paths = [folder.file("a.parquet", &bytes), folder.file("good.jsonl", good)];
    let with = |text: &str, id: Option<&str>, extra: Option<&str>| DocumentOptions {
        text_fields: vec![text.to_owned()],
        id_field: id.map(str::to_owned),
        extra_field: extra.map(str::to_owned),
        ..DocumentOptions::default()
    };
    for (options, reason) in [
        (with("text", None, None), "no text column `text`; the columns are `id`, `body`"),
        (with("body", Some("url"), None), "no id column `url`; the columns are `id`, `body`"),
        (with("body", None, None), "the text column `body` holds Int32, expected strings"),
    ] {
        let read: Vec<_> = documents(&paths, &options).collect();
        let message = read[0].as_ref().unwrap_err().to_string();
        assert_eq!(message, format!("{}: {reason}", paths[0].display()));
        assert_eq!(read.len(), 3);
    }
}

/// Returns the bytes of a Parquet file of `count` documents, in row groups of `group` rows.
fn rows(count: u64, group: usize) -> Vec<u8> {
    let mut random = Random(5);
    let texts: Vec<String> = (0..count).map(|i| format!("text {i} {}", random.next())).collect();
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..count));
    parquet(&[("id", ids), ("text", Arc::new(StringArray::from(texts)))], group)
}

/// Returns the bytes of a Parquet file that is so large that it is read in several batches.
fn large() -> Vec<u8> {
    rows(30_000, 7000)
}

#[test]
fn damaged_files() {
    let folder = TempFolder::new();
    let bytes = rows(6000, 1400);
    let options = DocumentOptions::default();
    let good = folder.file("good.jsonl", TWO_LINES);
    for (name, bytes) in [
        ("cut.parquet", &bytes[..bytes.len() / 2]),
        ("empty.parquet", &b""[..]),
        ("false.parquet", TWO_LINES.as_bytes()),
        ("magic.parquet", b"PAR1PAR1"),
    ] {
        let bad = folder.file(name, bytes);
        let read: Vec<_> = documents(&[bad.clone(), good.clone()], &options).collect();
        let message = read[0].as_ref().unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("{}: not a Parquet file, or damaged: ", bad.display())),
            "{message}"
        );
        assert_eq!(read.len(), 3);
    }
    // Flips random bits: no panic, and at most one error for each of the five row groups.
    let footer = bytes.len() - 3000;
    (0..400).into_par_iter().for_each(|round| {
        let (mut random, mut bytes) = (Random(round), bytes.clone());
        let at = if round % 2 == 0 { footer + random.index(3000) } else { random.index(bytes.len()) };
        bytes[at] ^= 1 << random.below(8);
        let bad = folder.file(&format!("{round}.parquet"), bytes);
        let read: Vec<_> = documents(&[bad, good.clone()], &options).collect();
        let rows = &read[..read.len() - 2];
        assert!(read[rows.len()..].iter().all(Result::is_ok));
        assert!(rows.len() <= 6001, "{at}");
    });
}

#[test]
fn damage_stays_in_its_row_group() {
    let folder = TempFolder::new();
    let whole = large();
    let options = DocumentOptions::default();
    let file = folder.file("whole.parquet", &whole);
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file).unwrap()).unwrap();
    for group in 0..5 {
        let mut bytes = whole.clone();
        // Damages the first page of the column `text`.
        let at = builder.metadata().row_group(group).column(1).byte_range().0 as usize;
        bytes[at..at + 20].fill(0xff);
        let paths = [folder.file("a.parquet", bytes)];
        let (first, last) = (group as u64 * 7000 + 1, (group as u64 * 7000 + 7000).min(30_000));
        let expected: Vec<u64> = (1..=30_000).filter(|row| !(first..=last).contains(row)).collect();
        let check = |read: Vec<Result<u64>>| {
            let (rows, errors): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
            assert!(rows.into_iter().map(Result::unwrap).eq(expected.iter().copied()), "{errors:?}");
            assert_eq!(errors.iter().map(bad_line).collect::<Vec<_>>(), [Some(first)]);
            let message = errors[0].as_ref().unwrap_err().to_string();
            let start = format!("{}:{first}: rows {first} to {last} cannot be read: ", paths[0].display());
            assert!(message.starts_with(&start), "{message}");
        };
        let number = |id: &DocumentId| id.to_string().parse::<u64>().unwrap() + 1;
        let all = records(&paths, &options).map(|record| {
            let record = record?;
            let line = record.line();
            assert_eq!(number(&record.into_document(&options)?.id), line);
            Ok(line)
        });
        check(all.collect());
        let projected = fingerprint_documents::<u64>(&paths, &options, &Profile::default());
        let progress = projected.progress();
        check(projected.map(|document| Ok(number(&document?.id))).collect());
        assert_eq!(progress.bytes(), paths[0].metadata().unwrap().len());
    }
}

#[test]
fn batches_keep_the_order() {
    let folder = TempFolder::new();
    let path = folder.file("a.parquet", large());
    let options = DocumentOptions::default();
    let check = |progress: Arc<ReadProgress>, ids: &mut dyn Iterator<Item = DocumentId>| {
        let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
        assert!(ids.iter().enumerate().all(|(at, id)| *id == at.to_string()) && ids.len() == 30_000);
        assert_eq!((progress.bytes(), progress.files()), (path.metadata().unwrap().len(), 1));
    };
    let paths = std::slice::from_ref(&path);
    let projected = fingerprint_documents::<u64>(paths, &options, &Profile::default());
    check(projected.progress(), &mut projected.map(|document| document.unwrap().id));
    let whole = records(paths, &options);
    check(whole.progress(), &mut whole.map(|record| record.unwrap().into_document(&options).unwrap().id));
}

/// Writes the rows of files whose indexes `keep` accepts to a new Parquet file, with all columns. Then reads the new file
/// as one batch. With `annotated`, the new file also has a cluster for each row.
fn kept(paths: &[PathBuf], annotated: bool, keep: impl Fn(usize) -> bool) -> Result<RecordBatch> {
    let mut writer = DocumentWriter::new(Vec::new());
    for (at, record) in records(paths, &DocumentOptions::default()).enumerate() {
        if keep(at) {
            let annotation = ClusterAnnotation {
                cluster: (at % 2 == 0).then_some(at as u64),
                ..ClusterAnnotation::default()
            };
            writer.write(&record?, annotated.then_some(&annotation))?;
        }
    }
    let bytes = writer.finish()?;
    let folder = TempFolder::new();
    let file = std::fs::File::open(folder.file("written.parquet", bytes)).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(std::result::Result::unwrap).collect();
    Ok(arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap())
}

#[test]
fn rows_are_written_with_all_columns() {
    let folder = TempFolder::new();
    let path = folder.file("a.parquet", large());
    let written = kept(std::slice::from_ref(&path), false, |at| at % 3 == 1).unwrap();
    assert_eq!(written.num_rows(), 10_000);
    let all = kept(std::slice::from_ref(&path), false, |_| true).unwrap();
    let ids = all.column(0).as_primitive::<UInt64Type>();
    assert!((0..30_000).all(|at| ids.value(at as usize) == at));
    let copy = folder.file("b.parquet", large());
    let annotated = kept(&[path.clone(), copy], true, |_| true).unwrap();
    assert_eq!((annotated.num_columns(), annotated.num_rows()), (3, 60_000));
    let clusters = annotated.column_by_name("cluster").unwrap().as_primitive::<UInt64Type>();
    assert!((0..60_000).all(|at| clusters.is_null(at) == (at % 2 == 1)));
    assert!((0..60_000).step_by(2).all(|at| clusters.value(at) == at as u64));

    let columns = [
        ("text", strings(&["a", "b"])),
        ("when", Arc::new(TimestampMicrosecondArray::from(vec![Some(5), None])) as ArrayRef),
        ("flag", Arc::new(BooleanArray::from(vec![true, false]))),
    ];
    let other = folder.file("b.parquet", parquet(&columns, 10));
    let written = kept(std::slice::from_ref(&other), false, |at| at == 1).unwrap();
    let expected = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| (*name, array.slice(1, 1), *name == "when")),
    );
    assert_eq!(written, expected.unwrap());

    assert!(
        matches!(kept(&[path, other], false, |_| true), Err(Error::BadArgument(message)) if message.contains("other columns"))
    );
    let with_cluster =
        folder.file("c.parquet", parquet(&[("text", strings(&["a"])), ("cluster", strings(&["x"]))], 10));
    assert!(
        matches!(kept(&[with_cluster], true, |_| true), Err(Error::BadArgument(message)) if message.contains("`cluster` already"))
    );
}

#[test]
fn checksums_cover_the_requested_columns() {
    let folder = TempFolder::new();
    let options = DocumentOptions::default();
    let checksums = |other: &[&str], texts: &[&str]| -> Vec<u64> {
        let path =
            [folder.file("a.parquet", parquet(&[("other", strings(other)), ("text", strings(texts))], 1))];
        let plain: Vec<u64> =
            records(&path, &options).map(|record| record.unwrap().checksum(&options)).collect();
        let made = fingerprint_documents::<u64>(&path, &options, &Profile::default());
        assert_eq!(made.map(|document| document.unwrap().checksum).collect::<Vec<_>>(), plain);
        plain
    };
    let (before, after) = (checksums(&["x", "y"], &["a", "b"]), checksums(&["x", "z"], &["a", "c"]));
    assert!(before[0] == after[0] && before[1] != after[1]);
    assert_eq!(before, checksums(&["", ""], &["a", "b"]));
}

#[test]
fn columns_in_structs() {
    let folder = TempFolder::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("hidden"), Some("d")]));
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let field = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let inner = Fields::from(vec![field("n", &other), field("text", &text)]);
    // The third row has no `body`.
    let valid = Some(vec![true, true, false, true].into());
    let body: ArrayRef = Arc::new(StructArray::new(inner, vec![Arc::clone(&other), text], valid));
    let own: ArrayRef = Arc::new(StringArray::from(vec!["1", "2", "3", "4"]));
    let options = DocumentOptions { text_fields: vec!["body.text".to_owned()], ..DocumentOptions::default() };
    let with_id = DocumentOptions { id_field: Some("body.n".to_owned()), ..options.clone() };
    let path =
        folder.file("a.parquet", parquet(&[("id", Arc::clone(&own)), ("body", Arc::clone(&body))], 10));
    let texts = |path: &Path, options: &DocumentOptions| -> Vec<(String, String)> {
        let read = read(path, options).into_iter().map(Result::unwrap);
        read.map(|document| (document.id.to_string(), document.text)).collect()
    };
    let expected =
        [("1", "a"), ("2", ""), ("3", ""), ("4", "d")].map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(texts(&path, &options), expected);
    let message = read(&path, &with_id)[2].as_ref().unwrap_err().to_string();
    assert!(message.ends_with("the id column `body.n` is null"), "{message}");
    // Reading all columns gives the same documents as reading only the needed columns.
    let whole = records(std::slice::from_ref(&path), &options)
        .map(|record| record.unwrap().into_document(&options).unwrap());
    assert_eq!(whole.map(|document| (document.id.to_string(), document.text)).collect::<Vec<_>>(), expected);
    // A top-level column with this name has priority over the nested field.
    let path = folder.file("b.parquet", parquet(&[("body", body), ("body.text", own)], 10));
    let found: Vec<String> = texts(&path, &options).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["1", "2", "3", "4"]);
    let message = read(&path, &DocumentOptions::default())[0].as_ref().unwrap_err().to_string();
    assert!(
        message.ends_with("no text column `text`; the columns are `body.n`, `body.text`, `body.text`"),
        "{message}"
    );
}

#[test]
fn pages_that_contradict_one_another() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/contradictory.parquet");
    let read = read(&path, &DocumentOptions::default());
    assert!(read.iter().any(Result::is_err), "{read:?}");
    let fingerprinted =
        fingerprint_documents::<u64>(&[path], &DocumentOptions::default(), &Profile::default());
    assert!(fingerprinted.into_iter().any(|document| document.is_err()));
}

#[test]
fn columns_of_one_name_are_refused() {
    let folder = TempFolder::new();
    let columns = |names: [&str; 3]| {
        let fields = names.map(|name| Field::new(name, arrow_schema::DataType::Utf8, false));
        let schema = Arc::new(arrow_schema::Schema::new(fields.to_vec()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![strings(&["a"]); 3]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    };
    for names in [["text", "id", "text"], ["id", "id", "text"]] {
        let path = folder.file("a.parquet", columns(names));
        let message = read(&path, &DocumentOptions::default()).remove(0).unwrap_err().to_string();
        assert!(
            message.contains("two columns are named") && message.contains("; rename one of them"),
            "{message}"
        );
    }
    let path = folder.file("a.parquet", columns(["x", "x", "text"]));
    assert_eq!(read(&path, &DocumentOptions::default()).remove(0).unwrap().text, "a");
}

#[test]
fn a_column_of_nulls_is_null() {
    let folder = TempFolder::new();
    let nulls: ArrayRef = Arc::new(arrow_array::NullArray::new(2));
    let path = folder.file("a.parquet", parquet(&[("text", Arc::clone(&nulls)), ("x", nulls)], 10));
    let options = DocumentOptions { extra_field: Some("x".to_owned()), ..DocumentOptions::default() };
    for document in read(&path, &options) {
        let document = document.unwrap();
        assert_eq!((&*document.text, document.extra), ("", None));
    }
    assert_eq!(read(&path, &options).len(), 2);
}
