//! Rows of results as Parquet.

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

use super::cell::{Cell, Column, Kind};
use crate::IdRef;
use crate::output::{Complete, Output};
use crate::writing::parquet::failed;

/// Rows that are handed on at once.
const BATCH: usize = 1 << 16;

pub(super) struct Writer {
    path: PathBuf,
    writer: ArrowWriter<Output>,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
}

/// The values of a column.
enum Builder {
    Numbers(UInt64Builder),
    Shares(Float64Builder),
    Texts(StringBuilder),
    Flags(BooleanBuilder),
}

impl Builder {
    fn new(kind: Kind) -> Builder {
        match kind {
            Kind::Ids { are_numbers: false } | Kind::Text => Builder::Texts(StringBuilder::new()),
            Kind::Ids { are_numbers: true } | Kind::Count => Builder::Numbers(UInt64Builder::new()),
            Kind::Share => Builder::Shares(Float64Builder::new()),
            Kind::Flag => Builder::Flags(BooleanBuilder::new()),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Builder::Numbers(_) => DataType::UInt64,
            Builder::Shares(_) => DataType::Float64,
            Builder::Texts(_) => DataType::Utf8,
            Builder::Flags(_) => DataType::Boolean,
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Numbers(builder) => Arc::new(builder.finish()),
            Builder::Shares(builder) => Arc::new(builder.finish()),
            Builder::Texts(builder) => Arc::new(builder.finish()),
            Builder::Flags(builder) => Arc::new(builder.finish()),
        }
    }
}

impl Writer {
    pub(super) fn new(path: &Path, output: Output, columns: &[Column]) -> Result<Writer> {
        let builders: Vec<Builder> = columns.iter().map(|&(_, kind)| Builder::new(kind)).collect();
        let fields: Vec<Field> = columns
            .iter()
            .zip(&builders)
            .map(|(&(name, _), builder)| Field::new(name, builder.data_type(), false))
            .collect();
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let schema = Arc::new(Schema::new(fields));
        let writer =
            ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties)).map_err(failed(path))?;
        Ok(Writer { path: path.to_path_buf(), writer, schema, builders, rows: 0 })
    }

    pub(super) fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (Builder::Texts(builder), cell) => builder.append_value(cell.text()),
                (Builder::Numbers(builder), Cell::Id(IdRef::Number(number)) | Cell::Count(number)) => {
                    builder.append_value(*number);
                }
                (Builder::Shares(builder), Cell::Share(share)) => builder.append_value(*share),
                (Builder::Flags(builder), Cell::Flag(flag)) => builder.append_value(*flag),
                (Builder::Numbers(_) | Builder::Shares(_) | Builder::Flags(_), _) => {
                    return Err(Error::BadArgument(format!(
                        "{}: a value has another type than its column",
                        self.path.display()
                    )));
                }
            }
        }
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(ParquetError::from)
            .and_then(|batch| self.writer.write(&batch));
        batch.map_err(failed(&self.path))
    }

    pub(super) fn complete(mut self) -> Result<Complete> {
        self.flush()?;
        self.writer.into_inner().map_err(failed(&self.path))?.complete()
    }
}
