//! Reads the rows of Parquet files.

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

pub(crate) use self::row::ParquetRow;
use self::schema::{
    check_columns, check_names, check_ranges, column_path, count_rows, group_rows, mean_row_bytes,
    with_bytes_for_strings, with_views,
};
use crate::DocumentOptions;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::read_once::is_read_once;
use crate::read_progress::ReadProgress;
use simstore::{Error, Result};

/// Approximate size in bytes of a batch, the Arrow record batch in which rows are read.
const BATCH_BYTES: u64 = 8 << 20;
/// Maximum number of rows in a batch.
const BATCH_ROWS: u64 = 8192;

/// Reader of the rows in a Parquet file. Each row group is read independently, so that damage in one does not affect
/// the others.
pub(crate) struct ParquetRows {
    path: Arc<Path>,
    file: File,
    footer: ArrowReaderMetadata,
    /// Schema of the file: the types of all columns. It says which columns are strings; the rows that are read do not,
    /// because strings are read as byte arrays.
    column_types: SchemaRef,
    mask: ProjectionMask,
    batch_rows: usize,
    /// Reader of the current row group; `None` until its first batch is read.
    reader: Option<ParquetRecordBatchReader>,
    /// Number of rows from the start of the section (or file) to the end of the current row group.
    group_end: u64,
    /// Index of the next row group.
    next_group: usize,
    /// Index of the row group at which reading ends: it is not read. `usize::MAX` for the end of the file.
    end_group: usize,
    /// Current batch.
    batch: Arc<RecordBatch>,
    /// Index in `batch` of the next row.
    next: usize,
    /// Mean size in memory of the rows in `batch`, in bytes.
    row_bytes: usize,
    /// Number of rows that were returned or skipped.
    row: u64,
    /// Number of rows in the file.
    rows: u64,
    /// Number of rows in the file before the section that is read; 0 for a whole file.
    rows_before: u64,
    /// Key-value metadata of the file. An output with rows of this file gets a copy of the metadata.
    metadata: HashMap<String, String>,
    progress: Arc<ReadProgress>,
    /// Size of the file in bytes.
    bytes: u64,
}

impl fmt::Debug for ParquetRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetRows")
            .field("path", &self.path)
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

impl ParquetRows {
    /// Opens a Parquet file. If `is_projected` is set, only the columns that the options name are read.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is damaged or not Parquet, or that lacks the requested columns;
    /// [`Error::BadArgument`] for a pipe.
    pub(crate) fn open(
        path: &Path,
        options: &DocumentOptions,
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<ParquetRows> {
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
        // Use the types of Parquet. The Arrow types in the metadata only add equivalent variants.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let failed = |error: ParquetError| out_of_files_error(&file, path).unwrap_or_else(|| damaged(&error));
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
                wanted.filter_map(|name| Some(column_path(types.fields(), name)?.0)).collect();
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
        let batch_rows = (BATCH_BYTES / mean_row_bytes(footer.metadata(), &mask)).clamp(1, BATCH_ROWS);
        Ok(ParquetRows {
            path: path.into(),
            file,
            footer,
            column_types: types,
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
            rows_before: 0,
            metadata,
            progress: Arc::clone(progress),
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Returns the next row with its number, from 1; `None` at the end of the file or section.
    ///
    /// # Errors
    /// [`Error::BadInput`] for the rest of a damaged row group. The next call continues with the next row group.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, ParquetRow)>> {
        while self.next == self.batch.num_rows() {
            if self.row == self.group_end {
                let groups = self.footer.metadata().row_groups();
                let groups = &groups[..groups.len().min(self.end_group)];
                let Some(group) = groups.get(self.next_group) else { return Ok(None) };
                self.group_end += group_rows(group);
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
                    if let Some(error) = out_of_files_error(&self.file, &self.path) {
                        return Err(error);
                    }
                    let (first, last) = (self.row + 1, self.group_end);
                    let (from, to) = (self.rows_before + first, self.rows_before + last);
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
        let (batch, column_types) = (Arc::clone(&self.batch), Arc::clone(&self.column_types));
        Ok(Some((self.row, ParquetRow { batch, at, bytes: self.row_bytes, column_types })))
    }

    /// Reads the next batch of the current row group.
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
        // Inconsistent pages can make the crate panic. The reader is not used after a panic.
        let batch = catch_unwind(AssertUnwindSafe(|| reader.next().transpose()))
            .map_err(|_| ParquetError::General("its pages contradict one another".to_owned()))??;
        let batch = batch.filter(|batch| (1..=left).contains(&(batch.num_rows() as u64)));
        let batch = batch
            .ok_or_else(|| ParquetError::General("the number of rows differs from the footer".to_owned()))?;
        let schema = Schema::clone(&batch.schema()).with_metadata(self.metadata.clone());
        Ok(batch.with_schema(Arc::new(schema))?)
    }

    /// Advances the progress, which counts bytes, to row number `to`. Each row counts as an equal share of the file's
    /// size. Offsets in the file would be less accurate, since columns are read from several places at a time.
    fn add_progress(&self, to: u64) {
        let bytes_to = |row: u64| u128::from(row) * u128::from(self.bytes) / u128::from(self.rows.max(1));
        self.progress.add_bytes((bytes_to(to) - bytes_to(self.row)) as u64);
    }
}

/// Returns an error if the process cannot open more files, otherwise `None`. The Parquet reader opens files itself. If
/// it fails because too many files are open, the file must not be reported as damaged.
fn out_of_files_error(file: &File, path: &Path) -> Option<Error> {
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
                ParquetRows::open(&path, &DocumentOptions::default(), is_projected, &Arc::default()).unwrap();
            let mut count = 0;
            while let Some((_, row)) = rows.read().unwrap() {
                count += 1;
                // The dictionary page, and a view of 16 bytes for each row.
                assert!(row.batch.get_array_memory_size() < 4 << 20, "{}", row.batch.get_array_memory_size());
            }
            assert_eq!(count, 5000);
        }
    }
}
