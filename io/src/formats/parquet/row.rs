//! A row of Parquet, and the document in it.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, types};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use simstore::error::excerpt;
use xxhash_rust::xxh3::Xxh3;

use super::schema::{check_columns, names_to};
use crate::bytes::encoding::{self, Decoded, Encoding};
use crate::formats::fields::{self, Parsed};
use crate::{DocumentId, DocumentOptions};

/// A row of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) batch: Arc<RecordBatch>,
    pub(crate) at: usize,
    /// Bytes of memory of the row.
    pub bytes: usize,
    /// The types of all columns of the file. In the batch, strings are bytes.
    pub(crate) types: SchemaRef,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.batch.slice(self.at, 1) == other.batch.slice(other.at, 1)
    }
}

/// A column in a batch, or in structs of it.
#[derive(Clone, Copy)]
struct Column<'a> {
    array: &'a dyn Array,
    /// Whether it has a value in this row.
    is_valid: bool,
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
                for part in [&*id.to_string(), text].into_iter().chain(extra.as_deref()) {
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

    /// Checks that a value is UTF-8 if its column is one of strings: they are read as bytes. A column of bytes may hold any.
    fn check_string(&self, name: &str, array: &dyn Array) -> Result<(), String> {
        let kind = names_to(self.types.fields(), name).map(|(_, kind)| kind);
        let bytes = match array.data_type() {
            DataType::BinaryView if kind == Some(&DataType::Utf8View) => {
                array.as_binary_view().value(self.at)
            }
            _ => return Ok(()),
        };
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "the column `{}` is not UTF-8 at byte {} of its value",
                excerpt(name),
                error.valid_up_to() + 1
            )),
        }
    }

    /// Parses the row; a reason if it is malformed. `position` names a document that has no id.
    pub(crate) fn parse(
        &self,
        options: &DocumentOptions,
        position: impl FnOnce() -> String,
    ) -> Result<Parsed<'_>, String> {
        check_columns(&self.types, options)?;
        let column = |name: &str| self.column(name);
        let array = |name: &str| column(name).filter(|column| column.is_valid).map(|column| column.array);
        let mut replaced = 0;
        let mut text = |name: &str| {
            let Some(array) = array(name) else { return Ok(None) };
            self.check_string(name, array)?;
            let Some((text, more)) = string(array, self.at) else { return Ok(None) };
            replaced += more;
            Ok::<_, String>(Some(text))
        };
        let id_name = options.id_name();
        let id = match array(id_name) {
            None if column(id_name).is_some() => {
                return Err(format!("the id column `{}` is null", excerpt(id_name)));
            }
            None => None,
            Some(array) if array.data_type().is_integer() => {
                let number = integer(array, self.at).and_then(|number| u64::try_from(number).ok());
                Some(number.map(DocumentId::Number).ok_or_else(|| {
                    format!("the id column `{}` is not an integer from 0 to 2^64 - 1", excerpt(id_name))
                })?)
            }
            Some(_) => text(id_name)?.map(|id| DocumentId::name(id.into_owned())).transpose()?,
        };
        let texts: Vec<Option<Cow<'_, str>>> =
            options.text_fields.iter().map(|name| text(name)).collect::<Result<_, _>>()?;
        let longest = options.longest();
        if texts.iter().flatten().any(|text| text.len() > longest.bytes) {
            return Err(longest.to_string());
        }
        let extra = match options.extra_field.as_deref().and_then(|name| Some((name, array(name)?))) {
            Some((name, array)) => {
                self.check_string(name, array)?;
                value(array, self.at)
            }
            None => None,
        };
        fields::Fields { id, texts, extra }.document(options, "column", replaced, position)
    }
}

fn string(array: &dyn Array, at: usize) -> Option<Decoded<'_>> {
    let valid = |text| (Cow::Borrowed(text), 0);
    let decoded = |bytes| encoding::decode_line(bytes, Encoding::AUTO);
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
            return number.or_else(|| string(array, at).map(|(text, _)| text.into_owned()));
        }
    };
    time.map(|time| time.to_string())
}
