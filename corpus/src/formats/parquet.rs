//! Rows of Parquet files.

mod sections;

use simstore_text::did_you_mean;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, types};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use xxhash_rust::xxh3::Xxh3;

use crate::bytes::encoding::{self, Decoded, Encoding};
use crate::bytes::opening::cannot_open;
use crate::bytes::pipes::is_read_once;
use crate::formats::fields::{self, Parsed, below, listed};
use crate::progress::ReadProgress;
use crate::{DocumentId, DocumentOptions};
use simstore::{Error, Result};

/// A batch has about this many bytes, or this many rows.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8192;

/// The rows of a file, one after the other. Row groups are read each by itself, so that damage stays in its group.
pub(crate) struct Rows {
    path: Arc<Path>,
    file: File,
    footer: ArrowReaderMetadata,
    mask: ProjectionMask,
    batch_rows: usize,
    /// The group that is being read, once it is open, and the number of its last row.
    reader: Option<ParquetRecordBatchReader>,
    group_end: u64,
    /// The group after it, and the one that is not read any more.
    next_group: usize,
    end_group: usize,
    /// The batch that is being handed out, and how far.
    batch: Arc<RecordBatch>,
    next: usize,
    /// What a row of it takes in memory.
    row_bytes: usize,
    /// Rows handed out or lost, and of how many.
    row: u64,
    rows: u64,
    /// Rows before the first one, of a section.
    before: u64,
    /// What other programs keep beside the columns.
    metadata: HashMap<String, String>,
    progress: Arc<ReadProgress>,
    bytes: u64,
}

/// A row of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) batch: Arc<RecordBatch>,
    pub(crate) at: usize,
    pub(crate) bytes: usize,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.batch.slice(self.at, 1) == other.batch.slice(other.at, 1)
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).field("row", &self.row).finish_non_exhaustive()
    }
}

impl Rows {
    /// Opens a file; reads only the columns of the options if `is_projected` is set.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is damaged or no Parquet, or has not the columns that are asked for;
    /// [`Error::BadArgument`] for a pipe.
    pub(crate) fn open(
        path: &Path,
        options: &DocumentOptions,
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<Rows> {
        if is_read_once(path)? {
            return Err(Error::BadArgument(format!(
                "{}: Parquet is read from its end, which a pipe has not; save it as a file first",
                path.display()
            )));
        }
        let bad = |reason: String| Error::BadInput { path: path.to_path_buf(), line: 0, reason };
        let damaged = |error: &dyn fmt::Display| bad(format!("no Parquet file, or damaged: {error}"));
        let file = File::open(path).map_err(cannot_open(path))?;
        let bytes = file.metadata().map_err(cannot_open(path))?.len();
        // The types of Parquet itself; those that Arrow keeps beside them would only be more ways to say the same.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let failed = |error: ParquetError| no_more_files(&file, path).unwrap_or_else(|| damaged(&error));
        let footer = ArrowReaderMetadata::load(&file, plain.clone()).map_err(failed)?;
        let views = Arc::new(Schema::new(with_views(footer.schema().fields())));
        let footer = ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), plain.with_schema(views))
            .map_err(|error| damaged(&error))?;
        check_ranges(footer.metadata(), bytes).map_err(|reason| damaged(&reason))?;
        let rows = count_rows(footer.metadata()).map_err(|reason| damaged(&reason))?;
        let schema = Arc::clone(footer.schema());
        check_columns(&schema, options).map_err(bad)?;
        check_names(&schema, options).map_err(bad)?;
        let mask = if is_projected {
            let wanted = options.text_fields.iter().map(|name| &**name).chain([options.id_name()]);
            let wanted = wanted.chain(options.extra_field.as_deref());
            let wanted: Vec<Vec<&str>> =
                wanted.filter_map(|name| Some(names_to(schema.fields(), name)?.0)).collect();
            let columns = footer.parquet_schema().columns().iter().enumerate();
            let leaves = columns.filter(|(_, column)| {
                wanted.iter().any(|names| column.path().parts().iter().take(names.len()).eq(names))
            });
            ProjectionMask::leaves(footer.parquet_schema(), leaves.map(|(at, _)| at))
        } else {
            ProjectionMask::all()
        };
        let metadata = footer.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let metadata = metadata.filter(|pair| pair.key != ARROW_SCHEMA_META_KEY);
        let metadata = metadata.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect();
        let batch_rows = (BATCH_BYTES / row_bytes(footer.metadata(), &mask)).clamp(1, BATCH_ROWS);
        Ok(Rows {
            path: path.into(),
            file,
            footer,
            mask,
            batch_rows: batch_rows as usize,
            reader: None,
            group_end: 0,
            next_group: 0,
            end_group: usize::MAX,
            batch: Arc::new(RecordBatch::new_empty(Arc::new(Schema::empty()))),
            next: 0,
            row_bytes: 0,
            row: 0,
            rows,
            before: 0,
            metadata,
            progress: Arc::clone(progress),
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// The next row, with its number from 1.
    ///
    /// # Errors
    /// [`Error::BadInput`] for the rest of a row group that is damaged; the rows of the next one follow.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Row)>> {
        while self.next == self.batch.num_rows() {
            if self.row == self.group_end {
                let groups = self.footer.metadata().row_groups();
                let groups = &groups[..groups.len().min(self.end_group)];
                let Some(group) = groups.get(self.next_group) else { return Ok(None) };
                self.group_end += rows_of(group);
                self.next_group += 1;
                self.reader = None;
                continue;
            }
            match self.read_batch() {
                Ok(batch) => {
                    self.row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
                    self.add_progress(self.row + batch.num_rows() as u64);
                    self.batch = Arc::new(batch);
                    self.next = 0;
                }
                Err(error) => {
                    if let Some(error) = no_more_files(&self.file, &self.path) {
                        return Err(error);
                    }
                    let (first, last) = (self.row + 1, self.group_end);
                    let (from, to) = (self.before + first, self.before + last);
                    let reason = format!("rows {from} to {to} cannot be read: {error}");
                    self.add_progress(last);
                    self.row = last;
                    return Err(Error::BadInput { path: self.path.to_path_buf(), line: first, reason });
                }
            }
        }
        let at = self.next;
        self.next += 1;
        self.row += 1;
        Ok(Some((self.row, Row { batch: Arc::clone(&self.batch), at, bytes: self.row_bytes })))
    }

    /// The next batch of the group.
    fn read_batch(&mut self) -> Result<RecordBatch, ParquetError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let file = self.file.try_clone()?;
                let group = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.footer.clone())
                    .with_row_groups(vec![self.next_group - 1])
                    .with_projection(self.mask.clone())
                    .with_batch_size(self.batch_rows);
                none.insert(group.build()?)
            }
        };
        let left = self.group_end - self.row;
        // Pages that contradict one another can make the crate panic; the reader is not used after that.
        let batch = catch_unwind(AssertUnwindSafe(|| reader.next().transpose()))
            .map_err(|_| ParquetError::General("its pages contradict one another".to_owned()))??;
        let batch = batch.filter(|batch| (1..=left).contains(&(batch.num_rows() as u64)));
        let batch =
            batch.ok_or_else(|| ParquetError::General("more or fewer than the footer says".to_owned()))?;
        let schema = Schema::clone(&batch.schema()).with_metadata(self.metadata.clone());
        Ok(batch.with_schema(Arc::new(schema))?)
    }

    /// Counts the bytes up to a row. Columns are read from several places at a time: the share of the rows tells more.
    fn add_progress(&self, to: u64) {
        let bytes_to = |row: u64| u128::from(row) * u128::from(self.bytes) / u128::from(self.rows.max(1));
        self.progress.add_bytes((bytes_to(to) - bytes_to(self.row)) as u64);
    }
}

/// The error of a process that may open no more files, which Parquet does to read: what it cannot read is not damaged then.
fn no_more_files(file: &File, path: &Path) -> Option<Error> {
    file.try_clone().err().map(cannot_open(path))
}

/// The same columns, of which strings and bytes are views: a value that a dictionary has once, and very many rows refer to, is in memory
/// once too.
fn with_views(fields: &Fields) -> Fields {
    let of = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Struct(inner) => DataType::Struct(with_views(inner)),
            _ => return Arc::clone(field),
        };
        Arc::new(Field::clone(field).with_data_type(kind))
    };
    fields.iter().map(of).collect()
}

/// The rows of all groups; a reason if these are not those of the file.
fn count_rows(metadata: &ParquetMetaData) -> Result<u64, String> {
    let said = metadata.file_metadata().num_rows();
    let groups = metadata.row_groups().iter();
    let sum = groups.map(rows_of).try_fold(0_u64, u64::checked_add);
    let rows = sum.filter(|rows| i64::try_from(*rows) == Ok(said));
    rows.ok_or_else(|| format!("the row groups have not the {said} rows that the file is said to have"))
}

fn rows_of(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// Checks that the columns lie in the file: the reader trusts these lengths.
fn check_ranges(metadata: &ParquetMetaData, bytes: u64) -> Result<(), String> {
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end as u64 > bytes) {
            return Err(format!("column {} is said to lie beyond the end", column.column_path()));
        }
    }
    Ok(())
}

/// The mean size of a row in the columns of a mask, in bytes.
fn row_bytes(metadata: &ParquetMetaData, mask: &ProjectionMask) -> u64 {
    let (mut bytes, mut rows) = (0_u64, 0_u64);
    for group in metadata.row_groups() {
        rows = rows.saturating_add(rows_of(group));
        for (leaf, column) in group.columns().iter().enumerate() {
            if mask.leaf_included(leaf) {
                bytes = bytes.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or(0));
            }
        }
    }
    (bytes / rows.max(1)).max(1)
}

fn check_columns(schema: &SchemaRef, options: &DocumentOptions) -> Result<(), String> {
    let there = |name: &str| {
        let mut names = Vec::new();
        push_names(&mut names, "", schema.fields());
        format!("{}; the columns are {}", did_you_mean(name, &names), listed(&names))
    };
    let kind = |name: &str| names_to(schema.fields(), name).map(|(_, kind)| kind);
    if let Some(name) = options.id_field.as_ref().filter(|name| kind(name).is_none()) {
        return Err(format!("no id column `{name}`{}", there(name)));
    }
    if options.text_fields.iter().all(|name| kind(name).is_none()) {
        let names = &options.text_fields;
        return Err(format!("no text column `{}`{}", names.join("`, `"), there(&names[0])));
    }
    for name in &options.text_fields {
        if let Some(found) = kind(name).filter(|kind| !is_bytes(kind) && !kind.is_null()) {
            return Err(format!("the text column `{name}` holds {found}, expected strings"));
        }
    }
    let id = options.id_name();
    if let Some(found) = kind(id).filter(|kind| !is_bytes(kind) && !kind.is_integer() && !kind.is_null()) {
        return Err(format!("the id column `{id}` holds {found}, expected strings or integers"));
    }
    if let Some(name) = &options.extra_field
        && let Some(found) = kind(name).filter(|kind| !is_value(kind) && !kind.is_null())
    {
        return Err(format!("the column `{name}` holds {found}, expected strings, numbers or times"));
    }
    Ok(())
}

/// Checks that each column that is asked for is there once.
fn check_names(schema: &SchemaRef, options: &DocumentOptions) -> Result<(), String> {
    let names = options.text_fields.iter().map(|name| &**name).chain([options.id_name()]);
    for name in names.chain(options.extra_field.as_deref()) {
        let Some((path, _)) = names_to(schema.fields(), name) else { continue };
        let mut fields = schema.fields();
        for part in path {
            let mut of_name = fields.iter().filter(|field| field.name() == part);
            let first = of_name.next();
            if of_name.next().is_some() {
                return Err(format!("the column `{part}` comes twice; give one of them another name"));
            }
            if let Some(DataType::Struct(inner)) = first.map(|field| field.data_type()) {
                fields = inner;
            }
        }
    }
    Ok(())
}

/// The names of the columns, for a message: those of structs too, `a.b`.
fn push_names(names: &mut Vec<String>, before: &str, fields: &Fields) {
    for field in fields {
        let name = format!("{before}{}", field.name());
        match field.data_type() {
            DataType::Struct(inner) => push_names(names, &format!("{name}."), inner),
            _ => names.push(name),
        }
    }
}

/// The names that lead to a column, through structs or of this very name, which comes first; with what it holds.
fn names_to<'f>(fields: &'f Fields, name: &str) -> Option<(Vec<&'f str>, &'f DataType)> {
    if let Some((_, field)) = fields.find(name) {
        return Some((vec![field.name()], field.data_type()));
    }
    fields.iter().find_map(|field| {
        let DataType::Struct(inner) = field.data_type() else { return None };
        let (mut names, kind) = names_to(inner, below(name, field.name())?)?;
        names.insert(0, field.name());
        Some((names, kind))
    })
}

/// A column in a batch, or in structs of it.
#[derive(Clone, Copy)]
struct Column<'a> {
    array: &'a dyn Array,
    /// Whether it has a value in this row.
    is_valid: bool,
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

fn is_value(kind: &DataType) -> bool {
    let is_time = matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    let is_float = matches!(kind, DataType::Float32 | DataType::Float64);
    is_bytes(kind) || kind.is_integer() || is_float || is_time || *kind == DataType::Boolean
}

/// How long the strings and bytes of a row are.
fn lengths(arrays: &[Arc<dyn Array>], at: usize) -> usize {
    let length = |array: &Arc<dyn Array>| match array.data_type() {
        DataType::Utf8View => array.as_string_view().value(at).len(),
        DataType::BinaryView => array.as_binary_view().value(at).len(),
        DataType::Struct(_) => lengths(array.as_struct().columns(), at),
        _ => 0,
    };
    arrays.iter().map(length).sum()
}

impl Row {
    /// Bytes that it takes in memory when it is parsed, more or less.
    pub(crate) fn size(&self) -> usize {
        self.bytes.max(lengths(self.batch.columns(), self.at))
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// xxh3 of the columns that are asked for.
    pub(crate) fn checksum(&self, options: &DocumentOptions) -> u64 {
        let parsed = self.parse(options, String::new);
        let mut hasher = Xxh3::new();
        match &parsed {
            Ok(Parsed { id, text, extra, .. }) => {
                for part in [&id.to_string(), text].into_iter().chain(extra) {
                    hasher.update(&(part.len() as u64).to_le_bytes());
                    hasher.update(part.as_bytes());
                }
            }
            Err(reason) => hasher.update(reason.as_bytes()),
        }
        hasher.digest()
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let (names, _) = names_to(self.batch.schema_ref().fields(), name)?;
        let (first, rest) = names.split_first()?;
        let mut array: &dyn Array = self.batch.column_by_name(first)?;
        let mut is_valid = array.is_valid(self.at);
        for name in rest {
            array = array.as_struct().column_by_name(name)?;
            is_valid &= array.is_valid(self.at);
        }
        // A column of type Null says of no value that it is null.
        Some(Column { array, is_valid: is_valid && !array.data_type().is_null() })
    }

    /// Parses the row; a reason if it is malformed. `position` names a document that has no id.
    pub(crate) fn parse(
        &self,
        options: &DocumentOptions,
        position: impl FnOnce() -> String,
    ) -> Result<Parsed, String> {
        check_columns(self.batch.schema_ref(), options)?;
        let column = |name: &str| self.column(name);
        let array = |name: &str| column(name).filter(|column| column.is_valid).map(|column| column.array);
        let mut replaced = 0;
        let mut text = |name: &str| {
            let (text, more) = string(array(name)?, self.at)?;
            replaced += more;
            Some(text)
        };
        let id_name = options.id_name();
        let id = match array(id_name) {
            None if column(id_name).is_some() => {
                return Err(format!("the id column `{id_name}` is null"));
            }
            None => None,
            Some(array) if array.data_type().is_integer() => {
                let number = integer(array, self.at).and_then(|number| u64::try_from(number).ok());
                Some(number.map(DocumentId::Number).ok_or_else(|| {
                    format!("the id column `{id_name}` is not an integer from 0 to 2^64 - 1")
                })?)
            }
            Some(_) => text(id_name).map(DocumentId::name).transpose()?,
        };
        let texts: Vec<Option<String>> = options.text_fields.iter().map(|name| text(name)).collect();
        let longest = options.longest();
        if texts.iter().flatten().any(|text| text.len() > longest.bytes) {
            return Err(longest.to_string());
        }
        let extra = options.extra_field.as_deref().and_then(|name| value(array(name)?, self.at));
        fields::Fields { id, texts, extra }.document(options, "column", replaced, position)
    }
}

fn string(array: &dyn Array, at: usize) -> Option<Decoded> {
    let valid = |text: &str| (text.to_owned(), 0);
    let decoded = |bytes: &[u8]| encoding::decode_line(bytes.to_vec(), Encoding::AUTO);
    Some(match array.data_type() {
        DataType::Utf8 => valid(array.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => valid(array.as_string::<i64>().value(at)),
        DataType::Utf8View => valid(array.as_string_view().value(at)),
        DataType::Binary => decoded(array.as_binary::<i32>().value(at)),
        DataType::LargeBinary => decoded(array.as_binary::<i64>().value(at)),
        DataType::BinaryView => decoded(array.as_binary_view().value(at)),
        _ => return None,
    })
}

fn integer(array: &dyn Array, at: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<types::Int8Type>().value(at).into(),
        DataType::Int16 => array.as_primitive::<types::Int16Type>().value(at).into(),
        DataType::Int32 => array.as_primitive::<types::Int32Type>().value(at).into(),
        DataType::Int64 => array.as_primitive::<types::Int64Type>().value(at).into(),
        DataType::UInt8 => array.as_primitive::<types::UInt8Type>().value(at).into(),
        DataType::UInt16 => array.as_primitive::<types::UInt16Type>().value(at).into(),
        DataType::UInt32 => array.as_primitive::<types::UInt32Type>().value(at).into(),
        DataType::UInt64 => array.as_primitive::<types::UInt64Type>().value(at).into(),
        _ => return None,
    })
}

/// A value as text: numbers in decimal, times so that the later one is the larger string.
fn value(array: &dyn Array, at: usize) -> Option<String> {
    let time = match array.data_type() {
        DataType::Float32 => return Some(array.as_primitive::<types::Float32Type>().value(at).to_string()),
        DataType::Float64 => return Some(array.as_primitive::<types::Float64Type>().value(at).to_string()),
        DataType::Boolean => return Some(array.as_boolean().value(at).to_string()),
        DataType::Date32 => {
            return array.as_primitive::<types::Date32Type>().value_as_date(at).map(|date| date.to_string());
        }
        DataType::Date64 => array.as_primitive::<types::Date64Type>().value_as_datetime(at),
        DataType::Timestamp(TimeUnit::Second, _) => {
            array.as_primitive::<types::TimestampSecondType>().value_as_datetime(at)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            array.as_primitive::<types::TimestampMillisecondType>().value_as_datetime(at)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive::<types::TimestampMicrosecondType>().value_as_datetime(at)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<types::TimestampNanosecondType>().value_as_datetime(at)
        }
        _ => {
            let number = integer(array, at).map(|number| number.to_string());
            return number.or_else(|| string(array, at).map(|(text, _)| text));
        }
    };
    time.map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, Int32Array, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    #[test]
    fn a_value_that_many_rows_have_is_in_memory_once() {
        let text: Arc<dyn Array> = Arc::new(StringArray::from(vec!["x".repeat(900_000)]));
        let keys = Int32Array::from(vec![0; 5000]);
        let texts: Arc<dyn Array> =
            Arc::new(DictionaryArray::<types::Int32Type>::try_new(keys, text).unwrap());
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for is_projected in [false, true] {
            let mut rows =
                Rows::open(&path, &DocumentOptions::default(), is_projected, &Arc::default()).unwrap();
            let mut count = 0;
            while let Some((_, row)) = rows.read().unwrap() {
                count += 1;
                // The page of the dictionary, and a view of 16 bytes for each row.
                assert!(row.batch.get_array_memory_size() < 4 << 20, "{}", row.batch.get_array_memory_size());
            }
            assert_eq!(count, 5000);
        }
    }
}
