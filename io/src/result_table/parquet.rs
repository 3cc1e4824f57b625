//! Writes a table of results as Parquet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use simstore::{Error, Result};

use super::cell::{Cell, Column, ColumnKind};
use crate::IdRef;
use crate::output::{CompleteOutput, Output};
use crate::writing::parquet_rows::write_error;

/// Number of rows that are collected in a batch before the batch is passed to the Parquet writer.
const BATCH_ROWS: usize = 1 << 16;

pub(super) struct ParquetTableWriter {
    path: PathBuf,
    writer: ArrowWriter<Output>,
    schema: Arc<Schema>,
    builders: Vec<ColumnBuilder>,
    rows: usize,
}

/// Collects the values of one column of a batch.
enum ColumnBuilder {
    Numbers(UInt64Builder),
    Shares(Float64Builder),
    Texts(StringBuilder),
    Flags(BooleanBuilder),
}

impl ColumnBuilder {
    fn new(kind: ColumnKind) -> ColumnBuilder {
        match kind {
            ColumnKind::Ids { are_numbers: false } | ColumnKind::Text => {
                ColumnBuilder::Texts(StringBuilder::new())
            }
            ColumnKind::Ids { are_numbers: true } | ColumnKind::Count => {
                ColumnBuilder::Numbers(UInt64Builder::new())
            }
            ColumnKind::Share => ColumnBuilder::Shares(Float64Builder::new()),
            ColumnKind::Flag => ColumnBuilder::Flags(BooleanBuilder::new()),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            ColumnBuilder::Numbers(_) => DataType::UInt64,
            ColumnBuilder::Shares(_) => DataType::Float64,
            ColumnBuilder::Texts(_) => DataType::Utf8,
            ColumnBuilder::Flags(_) => DataType::Boolean,
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Numbers(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Shares(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Texts(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Flags(builder) => Arc::new(builder.finish()),
        }
    }
}

impl ParquetTableWriter {
    pub(super) fn new(path: &Path, output: Output, columns: &[Column]) -> Result<ParquetTableWriter> {
        let builders: Vec<ColumnBuilder> =
            columns.iter().map(|&(_, kind)| ColumnBuilder::new(kind)).collect();
        let fields: Vec<Field> = columns
            .iter()
            .zip(&builders)
            .map(|(&(name, _), builder)| Field::new(name, builder.data_type(), false))
            .collect();
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let schema = Arc::new(Schema::new(fields));
        let writer =
            ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties)).map_err(write_error(path))?;
        Ok(ParquetTableWriter { path: path.to_path_buf(), writer, schema, builders, rows: 0 })
    }

    pub(super) fn write_row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (ColumnBuilder::Texts(builder), cell) => builder.append_value(cell.text()),
                (ColumnBuilder::Numbers(builder), Cell::Id(IdRef::Number(number)) | Cell::Count(number)) => {
                    builder.append_value(*number);
                }
                (ColumnBuilder::Shares(builder), Cell::Share(share)) => builder.append_value(*share),
                (ColumnBuilder::Flags(builder), Cell::Flag(flag)) => builder.append_value(*flag),
                (ColumnBuilder::Numbers(_) | ColumnBuilder::Shares(_) | ColumnBuilder::Flags(_), _) => {
                    return Err(Error::BadArgument(format!(
                        "{}: a value has another type than its column",
                        self.path.display()
                    )));
                }
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(ParquetError::from)
            .and_then(|batch| self.writer.write(&batch));
        batch.map_err(write_error(&self.path))
    }

    pub(super) fn complete(mut self) -> Result<CompleteOutput> {
        self.flush()?;
        self.writer.into_inner().map_err(write_error(&self.path))?.complete()
    }
}
