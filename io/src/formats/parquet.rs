//! Rows of Parquet files.

mod row;
mod schema;
mod sections;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::errors::ParquetError;

pub(crate) use self::row::Row;
use self::schema::{
    check_columns, check_names, check_ranges, count_rows, names_to, row_bytes, rows_of,
    with_bytes_for_strings, with_views,
};
use crate::DocumentOptions;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::pipes::is_read_once;
use crate::progress::ReadProgress;
use simstore::{Error, Result};

/// A batch has about this many bytes, or this many rows.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8192;

/// The rows of a file, one after the other. Row groups are read each by itself, so that damage stays in its group.
pub(crate) struct Rows {
    path: Arc<Path>,
    file: File,
    footer: ArrowReaderMetadata,
    /// The types of all columns. In batches, strings are bytes.
    types: SchemaRef,
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
    /// Bytes of memory of one row of the batch.
    row_bytes: usize,
    /// Rows handed out or lost, and of how many.
    row: u64,
    rows: u64,
    /// Rows before the first one, of a section.
    before: u64,
    /// Key-value metadata of other programs.
    metadata: HashMap<String, String>,
    progress: Arc<ReadProgress>,
    bytes: u64,
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
                "{}: Parquet cannot be read from a pipe; save it as a file first",
                path.display()
            )));
        }
        let bad = |reason: String| Error::BadInput { path: path.to_path_buf(), line: 0, reason };
        let damaged = |error: &dyn fmt::Display| bad(format!("not a Parquet file, or damaged: {error}"));
        let file = File::open(path).map_err(cannot_open(path))?;
        let bytes = file.metadata().map_err(cannot_open(path))?.len();
        // The types of Parquet itself; those that Arrow keeps beside them would only be more ways to say the same.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let failed = |error: ParquetError| no_more_files(&file, path).unwrap_or_else(|| damaged(&error));
        let footer = ArrowReaderMetadata::load(&file, plain.clone()).map_err(failed)?;
        let types = Arc::new(Schema::new(with_views(footer.schema().fields())));
        let bytes_for_strings = with_bytes_for_strings(footer.metadata()).map(Arc::new);
        let footer = bytes_for_strings
            .and_then(|metadata| ArrowReaderMetadata::try_new(metadata, plain.clone()))
            .and_then(|footer| {
                let views = Arc::new(Schema::new(with_views(footer.schema().fields())));
                ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), plain.with_schema(views))
            })
            .map_err(|error| damaged(&error))?;
        check_ranges(footer.metadata(), bytes).map_err(|reason| damaged(&reason))?;
        let rows = count_rows(footer.metadata()).map_err(|reason| damaged(&reason))?;
        check_columns(&types, options).map_err(bad)?;
        check_names(&types, options).map_err(bad)?;
        let mask = if is_projected {
            let wanted = options.text_fields.iter().map(|name| &**name).chain([options.id_name()]);
            let wanted = wanted.chain(options.extra_field.as_deref());
            let wanted: Vec<Vec<&str>> =
                wanted.filter_map(|name| Some(names_to(types.fields(), name)?.0)).collect();
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
            types,
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
        let (batch, types) = (Arc::clone(&self.batch), Arc::clone(&self.types));
        Ok(Some((self.row, Row { batch, at, bytes: self.row_bytes, types })))
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
        let batch = batch
            .ok_or_else(|| ParquetError::General("the number of rows differs from the footer".to_owned()))?;
        let schema = Schema::clone(&batch.schema()).with_metadata(self.metadata.clone());
        Ok(batch.with_schema(Arc::new(schema))?)
    }

    /// Counts the bytes up to a row. Columns are read from several places at a time: the share of the rows tells more.
    fn add_progress(&self, to: u64) {
        let bytes_to = |row: u64| u128::from(row) * u128::from(self.bytes) / u128::from(self.rows.max(1));
        self.progress.add_bytes((bytes_to(to) - bytes_to(self.row)) as u64);
    }
}

/// The error of a process that may open no more files. The Parquet reader opens files, and then a failure is no damage.
fn no_more_files(file: &File, path: &Path) -> Option<Error> {
    file.try_clone().err().map(cannot_open(path))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, DictionaryArray, Int32Array, StringArray, types};
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
