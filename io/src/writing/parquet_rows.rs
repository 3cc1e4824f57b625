//! Writes rows that were read from Parquet files to a Parquet file.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::formats::parquet::ParquetRow;
use crate::writing::cluster_annotation::ClusterAnnotation;
use simstore::{Error, Result};

/// Size in memory, in bytes, at which a row group is written to the output.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Writer of Parquet rows that all have the same schema.
pub(crate) struct ParquetRowWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    /// Types of the first row's columns, without the column of the cluster annotation.
    column_types: SchemaRef,
    /// Schema of the written batches, including the column of the cluster annotation if there is one.
    written_schema: SchemaRef,
    /// Batch that contains the pending rows: rows that are not yet passed to `writer`.
    batch: Arc<RecordBatch>,
    /// Indexes of the pending rows in `batch`.
    rows: Vec<u64>,
    /// Cluster of each pending row; empty if no column with the cluster is added to the rows.
    clusters: Vec<Option<u64>>,
}

impl<W: Write + Send> fmt::Debug for ParquetRowWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetRowWriter").field("column_types", &self.column_types).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetRowWriter<W> {
    /// Creates a writer for rows with the columns of `row`. If `field` is given, adds a column of that name
    /// for the cluster.
    pub(crate) fn new(write: W, row: &ParquetRow, field: Option<&str>, path: &Path) -> Result<Self> {
        let schema = row.batch.schema();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.extend(field.map(|name| Arc::new(Field::new(name, DataType::UInt64, true))));
        let written_schema = Arc::new(Schema::new(fields));
        let annotation = written_schema.fields().get(schema.fields().len()).cloned();
        let types: Vec<_> = row.column_types.fields().iter().cloned().chain(annotation).collect();
        // Strings are read as bytes, and must be written as strings.
        let types = ArrowSchemaConverter::new().convert(&Schema::new(types)).map_err(write_error(path))?;
        let metadata = schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let mut metadata: Vec<KeyValue> = metadata.collect();
        metadata.sort_by(|a, b| a.key.cmp(&b.key));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(metadata))
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(types);
        let writer = ArrowWriter::try_new_with_options(write, Arc::clone(&written_schema), options)
            .map_err(write_error(path))?;
        let batch = Arc::clone(&row.batch);
        Ok(ParquetRowWriter {
            writer,
            column_types: Arc::clone(&row.column_types),
            written_schema,
            batch,
            rows: Vec::new(),
            clusters: Vec::new(),
        })
    }

    /// Whether the columns of `row` have the same names and types as those of the first row.
    pub(crate) fn has_same_columns(&self, row: &ParquetRow) -> bool {
        row.column_types.fields() == self.column_types.fields()
    }

    pub(crate) fn write(
        &mut self,
        row: &ParquetRow,
        annotation: Option<&ClusterAnnotation<'_>>,
        path: &Path,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.batch, &row.batch) {
            self.write_batch().map_err(write_error(path))?;
            self.batch = Arc::clone(&row.batch);
        }
        self.rows.push(row.at as u64);
        self.clusters.extend(annotation.map(|annotation| annotation.cluster));
        Ok(())
    }

    /// Passes the pending rows to `writer`.
    fn write_batch(&mut self) -> Result<(), ParquetError> {
        let rows = UInt64Array::from(std::mem::take(&mut self.rows));
        let batch = take_record_batch(&self.batch, &rows).map_err(ParquetError::from)?;
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        if self.written_schema.fields().len() > columns.len() {
            columns.push(Arc::new(UInt64Array::from(std::mem::take(&mut self.clusters))));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.written_schema), columns)?;
        self.writer.write(&batch)?;
        if self.writer.memory_size() > ROW_GROUP_BYTES {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Writes all pending and buffered rows, and returns the output. `path` is the name of the output in the error.
    pub(crate) fn finish(mut self, path: &Path) -> Result<W> {
        let mut write =
            self.write_batch().and_then(|()| self.writer.into_inner()).map_err(write_error(path))?;
        write.flush().map_err(Error::io(path, "write"))?;
        Ok(write)
    }
}

pub(crate) fn write_error(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_path_buf();
    move |error| {
        let source = match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(source) => io::Error::other(source),
            },
            error => io::Error::other(error),
        };
        Error::Io { path, action: "write", source }
    }
}
