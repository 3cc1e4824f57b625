//! A row of a Parquet file, and the document in it.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, downcast_integer_array, downcast_temporal_array, types};
use arrow_schema::{DataType, SchemaRef};
use simstore::error::excerpt;
use xxhash_rust::xxh3::Xxh3;

use super::schema::{check_columns, column_path};
use crate::bytes::encoding::{self, DecodedText, Encoding};
use crate::formats::fields::{self, ParsedDocument};
use crate::{DocumentId, DocumentOptions};

/// A row of a Parquet file: the row with index `at` of an Arrow record batch.
#[derive(Clone, Debug)]
pub(crate) struct ParquetRow {
    pub(crate) batch: Arc<RecordBatch>,
    pub(crate) at: usize,
    /// Mean size in memory of the rows in `batch`, in bytes.
    pub bytes: usize,
    /// Schema of the file: the types of all columns. It says which columns are strings; `batch` does not, because
    /// strings are read into it as byte arrays.
    pub(crate) column_types: SchemaRef,
}

impl PartialEq for ParquetRow {
    fn eq(&self, other: &Self) -> bool {
        self.batch.slice(self.at, 1) == other.batch.slice(other.at, 1)
    }
}

/// A column of a batch, or of a struct in the batch, and what it has in one row.
#[derive(Clone, Copy)]
struct NestedColumn<'a> {
    array: &'a dyn Array,
    /// Whether the row has a value in this column: neither this value nor a struct around it is null.
    is_valid: bool,
}

/// Returns the total length in bytes of the strings and byte arrays in row `at` of the columns.
fn variable_bytes(arrays: &[Arc<dyn Array>], at: usize) -> usize {
    let length = |array: &Arc<dyn Array>| match array.data_type() {
        DataType::BinaryView => array.as_binary_view().value(at).len(),
        DataType::Struct(_) => variable_bytes(array.as_struct().columns(), at),
        _ => 0,
    };
    arrays.iter().map(length).sum()
}

impl ParquetRow {
    /// Approximate size of the row in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.max(variable_bytes(self.batch.columns(), self.at))
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// Returns the xxh3 of the document's id, text, and extra field. If the row is malformed, returns the xxh3 of the
    /// reason.
    pub(crate) fn checksum(&self, options: &DocumentOptions) -> u64 {
        let parsed = self.parse(options, String::new);
        let mut hasher = Xxh3::new();
        match &parsed {
            Ok(ParsedDocument { id, text, extra, .. }) => {
                for part in [&*id.to_string(), text].into_iter().chain(extra.as_deref()) {
                    hasher.update(&(part.len() as u64).to_le_bytes());
                    hasher.update(part.as_bytes());
                }
            }
            Err(reason) => hasher.update(reason.as_bytes()),
        }
        hasher.digest()
    }

    fn column(&self, name: &str) -> Option<NestedColumn<'_>> {
        let (names, _) = column_path(self.batch.schema_ref().fields(), name)?;
        let (first, rest) = names.split_first()?;
        let mut array: &dyn Array = self.batch.column_by_name(first)?;
        let mut is_valid = array.is_valid(self.at);
        for name in rest {
            array = array.as_struct().column_by_name(name)?;
            is_valid &= array.is_valid(self.at);
        }
        // A column of type Null does not mark its values as null.
        Some(NestedColumn { array, is_valid: is_valid && !array.data_type().is_null() })
    }

    /// Returns the reason if `name` is a string column whose value in this row is not UTF-8. The check is necessary
    /// because strings are read as bytes. Columns of byte arrays are not checked.
    fn check_string(&self, name: &str, array: &dyn Array) -> Result<(), String> {
        let kind = column_path(self.column_types.fields(), name).map(|(_, kind)| kind);
        let is_string = kind == Some(&DataType::Utf8View);
        let Some(bytes) = array.as_binary_view_opt().filter(|_| is_string) else { return Ok(()) };
        std::str::from_utf8(bytes.value(self.at)).map(drop).map_err(|error| {
            format!(
                "the column `{}` is not UTF-8 at byte {} of its value",
                excerpt(name),
                error.valid_up_to() + 1
            )
        })
    }

    /// Parses the row. Returns the reason if it is malformed. A document without an id gets the id that `position`
    /// returns.
    pub(crate) fn parse(
        &self,
        options: &DocumentOptions,
        position: impl FnOnce() -> String,
    ) -> Result<ParsedDocument<'_>, String> {
        check_columns(&self.column_types, options)?;
        let column = |name: &str| self.column(name);
        let array = |name: &str| column(name).filter(|column| column.is_valid).map(|column| column.array);
        let mut replaced = 0;
        let mut text = |name: &str| {
            let Some(array) = array(name) else { return Ok(None) };
            self.check_string(name, array)?;
            let Some((text, more)) = string_value(array, self.at) else { return Ok(None) };
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
                let number = integer_value(array, self.at).and_then(|number| u64::try_from(number).ok());
                Some(number.map(DocumentId::Number).ok_or_else(|| {
                    format!("the id column `{}` is not an integer from 0 to 2^64 - 1", excerpt(id_name))
                })?)
            }
            Some(_) => text(id_name)?.map(|id| DocumentId::from_name(id.into_owned())).transpose()?,
        };
        let texts: Vec<Option<Cow<'_, str>>> =
            options.text_fields.iter().map(|name| text(name)).collect::<Result<_, _>>()?;
        let limit = options.length_limit();
        if texts.iter().flatten().any(|text| text.len() > limit.bytes) {
            return Err(limit.to_string());
        }
        let extra = match options.extra_field.as_deref().and_then(|name| Some((name, array(name)?))) {
            Some((name, array)) => {
                self.check_string(name, array)?;
                value_to_text(array, self.at)
            }
            None => None,
        };
        fields::RequestedFields { id, texts, extra }.into_document(options, "column", replaced, position)
    }
}

/// Returns value `at` of a column of strings or byte arrays, decoded as UTF-8. Returns `None` for a column of another
/// type.
fn string_value(array: &dyn Array, at: usize) -> Option<DecodedText<'_>> {
    Some(encoding::decode_line(array.as_binary_view_opt()?.value(at), Encoding::AUTO))
}

fn integer_value(array: &dyn Array, at: usize) -> Option<i128> {
    downcast_integer_array!(array => Some(array.value(at).into()), _ => None)
}

/// Formats value `at` of a column as text: numbers in decimal, dates and times so that a later one is greater as a
/// string. Returns `None` for a column of another type.
fn value_to_text(array: &dyn Array, at: usize) -> Option<String> {
    match array.data_type() {
        DataType::Float32 => Some(array.as_primitive::<types::Float32Type>().value(at).to_string()),
        DataType::Float64 => Some(array.as_primitive::<types::Float64Type>().value(at).to_string()),
        DataType::Boolean => Some(array.as_boolean().value(at).to_string()),
        DataType::Date32 => Some(array.as_primitive::<types::Date32Type>().value_as_date(at)?.to_string()),
        DataType::Date64 | DataType::Timestamp(..) => {
            downcast_temporal_array!(array => Some(array.value_as_datetime(at)?.to_string()), _ => None)
        }
        _ => {
            let number = integer_value(array, at).map(|number| number.to_string());
            number.or_else(|| string_value(array, at).map(|(text, _)| text.into_owned()))
        }
    }
}
