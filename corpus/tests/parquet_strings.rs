//! Tests of Parquet files with string columns whose bytes are not UTF-8.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use simstore_corpus::{Inputs, fingerprint_documents};
use simstore_io::{ClusterAnnotation, DocumentOptions, DocumentWriter, documents, records};
use simstore_text::Profile;

use crate::{TempFolder, bad_line};

fn bytes(values: &[&[u8]]) -> ArrayRef {
    Arc::new(BinaryArray::from(values.to_vec()))
}

/// Returns the bytes of a Parquet file whose schema declares all columns as strings or lists of strings. `columns` has
/// their bytes, which need not be UTF-8.
fn parquet(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let batch =
        RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, Arc::clone(array)))).unwrap();
    let as_string = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::List(item) => {
                DataType::List(Arc::new(Field::clone(item).with_data_type(DataType::Utf8)))
            }
            _ => DataType::Utf8,
        };
        Field::clone(field).with_data_type(kind)
    };
    let strings = Schema::new(batch.schema().fields().iter().map(as_string).collect::<Vec<_>>());
    let types = ArrowSchemaConverter::new().convert(&strings).unwrap();
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true).with_parquet_schema(types);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_text_that_is_not_utf8_is_one_malformed_row() {
    let folder = TempFolder::new();
    let texts: [&[u8]; 4] = [b"one text of some words", b"two \xff words", b"three", "v\u{ef}er".as_bytes()];
    let file = parquet(&[("id", bytes(&[b"a", b"b", b"c\xe9", b"d"])), ("text", bytes(&texts))]);
    let path = folder.file("a.parquet", file);
    let read: Vec<_> = documents(std::slice::from_ref(&path), &DocumentOptions::default()).collect();
    assert_eq!(read.iter().map(bad_line).collect::<Vec<_>>(), [None, Some(2), Some(3), None]);
    let message = |at: usize| read[at].as_ref().unwrap_err().to_string();
    assert!(message(1).ends_with("the column `text` is not UTF-8 at byte 5 of its value"), "{}", message(1));
    assert!(message(2).contains("the column `id` is not UTF-8 at byte 2"), "{}", message(2));
    assert_eq!(read[3].as_ref().unwrap().text, "v\u{ef}er");
    let inputs = Inputs::new(&[path], DocumentOptions::default()).unwrap().skip_malformed(true);
    let counts = inputs.visit::<u64>(&Profile::default(), &(), |_| Ok(())).unwrap();
    assert_eq!((counts.read, counts.malformed), (2, 2));
}

/// String columns that are neither id nor text are not checked for UTF-8, and are written unchanged.
#[test]
fn other_columns_are_written_byte_for_byte() {
    let folder = TempFolder::new();
    let mut tags = ListBuilder::new(BinaryBuilder::new());
    for tag in [&b"x"[..], b"\xfe\xff", b"y"] {
        tags.values().append_value(tag);
        tags.append(true);
    }
    let others: [&[u8]; 3] = [b"fine", b"bad \xff bytes, more than twelve", b"\xc3"];
    let columns = [
        ("text", bytes(&[b"one", b"two", b"three"])),
        ("other", bytes(&others)),
        ("tags", Arc::new(tags.finish()) as ArrayRef),
    ];
    let path = folder.file("a.parquet", parquet(&columns));
    let options = DocumentOptions::default();
    assert!(documents(std::slice::from_ref(&path), &options).all(|document| document.is_ok()));
    let fingerprints =
        fingerprint_documents::<u64>(std::slice::from_ref(&path), &options, &Profile::default());
    assert_eq!(fingerprints.filter(Result::is_ok).count(), 3);
    let rows = || -> Vec<_> { records(std::slice::from_ref(&path), &options).map(Result::unwrap).collect() };
    let (before, copy) = (rows(), written(&path, None));
    let annotation = ClusterAnnotation { cluster: Some(7), ..ClusterAnnotation::default() };
    let annotated = written(&path, Some(&annotation));
    folder.file("a.parquet", copy);
    assert_eq!(rows(), before);
    folder.file("a.parquet", annotated);
    assert_eq!(rows().len(), 3);
    // If all strings are valid, other programs read them as strings.
    let sound = folder.file("sound.parquet", parquet(&[("text", bytes(&[b"a", b"b"]))]));
    let copy = folder.file("copy.parquet", written(&sound, None));
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(copy).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches[0].column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
}

/// Reads all rows of a file, and returns the bytes of a new Parquet file with these rows. With `annotation`, each row also
/// gets the values of the annotation.
fn written(path: &Path, annotation: Option<&ClusterAnnotation<'_>>) -> Vec<u8> {
    let mut writer = DocumentWriter::new(Vec::new());
    for record in records(&[path.to_path_buf()], &DocumentOptions::default()) {
        writer.write(&record.unwrap(), annotation).unwrap();
    }
    writer.finish().unwrap()
}
