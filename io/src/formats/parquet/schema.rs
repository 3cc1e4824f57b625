//! The columns of a Parquet file: their types and names, and checks of the requested ones.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use simstore::error::did_you_mean;
use simstore::error::excerpt;

use crate::DocumentOptions;
use crate::formats::fields::{format_names, strip_object_name};

/// Returns the metadata of a file with all string columns declared as byte arrays. With columns declared as strings,
/// the Parquet reader would refuse a whole row group for one string that is not UTF-8.
pub(super) fn with_bytes_for_strings(metadata: &ParquetMetaData) -> Result<ParquetMetaData, ParquetError> {
    let file = metadata.file_metadata();
    let root = with_bytes(&file.schema_descr().root_schema_ptr())?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaData::new(file, metadata.row_groups().to_vec()))
}

fn with_bytes(kind: &TypePtr) -> Result<TypePtr, ParquetError> {
    let info = kind.get_basic_info();
    match &**kind {
        Type::GroupType { basic_info, fields } => {
            let fields = fields.iter().map(with_bytes).collect::<Result<_, _>>()?;
            Ok(Arc::new(Type::GroupType { basic_info: basic_info.clone(), fields }))
        }
        Type::PrimitiveType { physical_type: PhysicalType::BYTE_ARRAY, .. }
            if matches!(info.logical_type_ref(), Some(LogicalType::String | LogicalType::Json))
                || matches!(info.converted_type(), ConvertedType::UTF8 | ConvertedType::JSON) =>
        {
            let bytes = Type::primitive_type_builder(info.name(), PhysicalType::BYTE_ARRAY)
                .with_repetition(info.repetition())
                .with_id(info.has_id().then(|| info.id()));
            Ok(Arc::new(bytes.build()?))
        }
        Type::PrimitiveType { .. } => Ok(Arc::clone(kind)),
    }
}

/// Returns the fields with Arrow's view types for strings and byte arrays. With views, a dictionary value is in memory
/// only once, however many rows refer to it.
pub(super) fn with_views(fields: &Fields) -> Fields {
    let convert = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Struct(inner) => DataType::Struct(with_views(inner)),
            _ => return Arc::clone(field),
        };
        Arc::new(Field::clone(field).with_data_type(kind))
    };
    fields.iter().map(convert).collect()
}

/// Returns the number of rows in all row groups. Returns the reason if the footer gives another number.
pub(super) fn count_rows(metadata: &ParquetMetaData) -> Result<u64, String> {
    let footer_rows = metadata.file_metadata().num_rows();
    let groups = metadata.row_groups().iter();
    let sum = groups.map(group_rows).try_fold(0_u64, u64::checked_add);
    let rows = sum.filter(|rows| i64::try_from(*rows) == Ok(footer_rows));
    rows.ok_or_else(|| format!("the row groups do not have the {footer_rows} rows that the footer gives"))
}

pub(super) fn group_rows(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// Returns the reason if the metadata place a column outside of the file, which has `bytes` bytes. The Parquet reader
/// does not check the offsets and lengths.
pub(super) fn check_ranges(metadata: &ParquetMetaData, bytes: u64) -> Result<(), String> {
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end as u64 > bytes) {
            return Err(format!(
                "column {} lies beyond the end of the file",
                excerpt(&column.column_path().string())
            ));
        }
    }
    Ok(())
}

/// Returns the mean uncompressed size of a row in bytes, counting only the columns in `mask`; at least 1.
pub(super) fn mean_row_bytes(metadata: &ParquetMetaData, mask: &ProjectionMask) -> u64 {
    let (mut bytes, mut rows) = (0_u64, 0_u64);
    for group in metadata.row_groups() {
        rows = rows.saturating_add(group_rows(group));
        for (leaf, column) in group.columns().iter().enumerate() {
            if mask.leaf_included(leaf) {
                bytes = bytes.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or(0));
            }
        }
    }
    (bytes / rows.max(1)).max(1)
}

pub(super) fn check_columns(schema: &SchemaRef, options: &DocumentOptions) -> Result<(), String> {
    let suggestion = |name: &str| {
        let mut names = Vec::new();
        push_names(&mut names, "", schema.fields());
        format!("{}; the columns are {}", did_you_mean(name, &names), format_names(&names))
    };
    let kind = |name: &str| column_path(schema.fields(), name).map(|(_, kind)| kind);
    if let Some(name) = options.id_field.as_ref().filter(|name| kind(name).is_none()) {
        return Err(format!("no id column `{}`{}", excerpt(name), suggestion(name)));
    }
    let names = &options.text_fields;
    if let Some(first) = names.first()
        && names.iter().all(|name| kind(name).is_none())
    {
        return Err(format!("no text column {}{}", format_names(names), suggestion(first)));
    }
    for name in &options.text_fields {
        if let Some(found) = kind(name).filter(|kind| !is_bytes(kind) && !kind.is_null()) {
            return Err(format!(
                "the text column `{}` holds {}, expected strings",
                excerpt(name),
                excerpt(&found.to_string())
            ));
        }
    }
    let id = options.id_name();
    if let Some(found) = kind(id).filter(|kind| !is_bytes(kind) && !kind.is_integer() && !kind.is_null()) {
        return Err(format!(
            "the id column `{}` holds {}, expected strings or integers",
            excerpt(id),
            excerpt(&found.to_string())
        ));
    }
    if let Some(name) = &options.extra_field
        && let Some(found) = kind(name).filter(|kind| !is_value(kind) && !kind.is_null())
    {
        return Err(format!(
            "the column `{}` holds {}, expected strings, numbers or times",
            excerpt(name),
            excerpt(&found.to_string())
        ));
    }
    Ok(())
}

/// Returns the reason if a requested column exists more than once.
pub(super) fn check_names(schema: &SchemaRef, options: &DocumentOptions) -> Result<(), String> {
    let names = options.text_fields.iter().map(|name| &**name).chain([options.id_name()]);
    for name in names.chain(options.extra_field.as_deref()) {
        let Some((path, _)) = column_path(schema.fields(), name) else { continue };
        let mut fields = schema.fields();
        for part in path {
            let mut of_name = fields.iter().filter(|field| field.name() == part);
            let first = of_name.next();
            if of_name.next().is_some() {
                return Err(format!("two columns are named `{}`; rename one of them", excerpt(part)));
            }
            if let Some(DataType::Struct(inner)) = first.map(|field| field.data_type()) {
                fields = inner;
            }
        }
    }
    Ok(())
}

/// Appends the names of all columns, for a message. `before` is put before each name. A column `b` in a struct `a` is
/// named `a.b`.
fn push_names(names: &mut Vec<String>, before: &str, fields: &Fields) {
    for field in fields {
        let name = format!("{before}{}", field.name());
        match field.data_type() {
            DataType::Struct(inner) => push_names(names, &format!("{name}."), inner),
            _ => names.push(name),
        }
    }
}

/// Returns the names of the structs that lead to the column `name`, with the column's own name at the end, and the
/// column's type. A column whose own name is `a.b` takes precedence over the column `b` in the struct `a`. Returns
/// `None` if there is no such column.
pub(super) fn column_path<'f>(fields: &'f Fields, name: &str) -> Option<(Vec<&'f str>, &'f DataType)> {
    if let Some((_, field)) = fields.find(name) {
        return Some((vec![field.name()], field.data_type()));
    }
    fields.iter().find_map(|field| {
        let DataType::Struct(inner) = field.data_type() else { return None };
        let (mut names, kind) = column_path(inner, strip_object_name(name, field.name())?)?;
        names.insert(0, field.name());
        Some((names, kind))
    })
}

/// Whether a column of this type holds strings or byte arrays. `kind` must be from fields that [`with_views`] has
/// returned, because only Arrow's view types are recognized.
fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8View | DataType::BinaryView)
}

fn is_value(kind: &DataType) -> bool {
    let is_time = matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    let is_float = matches!(kind, DataType::Float32 | DataType::Float64);
    is_bytes(kind) || kind.is_integer() || is_float || is_time || *kind == DataType::Boolean
}
