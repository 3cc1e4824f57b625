//! Writing rows of Parquet.

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

use crate::formats::parquet::Row;
use crate::writing::annotation::Annotation;
use simstore::{Error, Result};

/// A row group is written when it has about this many bytes.
const GROUP_BYTES: usize = 64 << 20;

/// Writes rows, of one schema, in groups.
pub(crate) struct RowWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    /// The types of the first row, without the annotation.
    types: SchemaRef,
    /// The schema that is written.
    written: SchemaRef,
    /// Rows of this batch are to be written, and their annotations.
    batch: Arc<RecordBatch>,
    rows: Vec<u64>,
    clusters: Vec<Option<u64>>,
}

impl<W: Write + Send> fmt::Debug for RowWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriter").field("types", &self.types).finish_non_exhaustive()
    }
}

impl<W: Write + Send> RowWriter<W> {
    /// A writer for rows like this one, with a column for annotations if that has a name.
    pub(crate) fn new(write: W, row: &Row, field: Option<&str>, path: &Path) -> Result<Self> {
        let schema = row.batch.schema();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.extend(field.map(|name| Arc::new(Field::new(name, DataType::UInt64, true))));
        let written = Arc::new(Schema::new(fields));
        let annotation = written.fields().get(schema.fields().len()).cloned();
        let types: Vec<_> = row.types.fields().iter().cloned().chain(annotation).collect();
        // Strings are bytes in the batches, and strings again in the file, as they were.
        let types = ArrowSchemaConverter::new().convert(&Schema::new(types)).map_err(failed(path))?;
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
        let writer =
            ArrowWriter::try_new_with_options(write, Arc::clone(&written), options).map_err(failed(path))?;
        let batch = Arc::clone(&row.batch);
        Ok(RowWriter {
            writer,
            types: Arc::clone(&row.types),
            written,
            batch,
            rows: Vec::new(),
            clusters: Vec::new(),
        })
    }

    /// Whether a row has the columns of the first one.
    pub(crate) fn fits(&self, row: &Row) -> bool {
        row.types.fields() == self.types.fields()
    }

    pub(crate) fn write(
        &mut self,
        row: &Row,
        annotation: Option<&Annotation<'_>>,
        path: &Path,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.batch, &row.batch) {
            self.write_batch().map_err(failed(path))?;
            self.batch = Arc::clone(&row.batch);
        }
        self.rows.push(row.at as u64);
        self.clusters.extend(annotation.map(|annotation| annotation.cluster));
        Ok(())
    }

    /// Writes the rows of the batch.
    fn write_batch(&mut self) -> Result<(), ParquetError> {
        let rows = UInt64Array::from(std::mem::take(&mut self.rows));
        let batch = take_record_batch(&self.batch, &rows).map_err(ParquetError::from)?;
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        if self.written.fields().len() > columns.len() {
            columns.push(Arc::new(UInt64Array::from(std::mem::take(&mut self.clusters))));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.written), columns)?;
        self.writer.write(&batch)?;
        if self.writer.memory_size() > GROUP_BYTES {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Writes what is left and hands the output back.
    pub(crate) fn finish(mut self, path: &Path) -> Result<W> {
        let mut write = self.write_batch().and_then(|()| self.writer.into_inner()).map_err(failed(path))?;
        write.flush().map_err(Error::io(path, "write"))?;
        Ok(write)
    }
}

pub(crate) fn failed(path: &Path) -> impl FnOnce(ParquetError) -> Error {
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
