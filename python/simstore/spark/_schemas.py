"""Conversion of the Arrow schemas of `simstore.tasks` to DataFrame schemas."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema


def spark_schema(batches: pa.Schema, *leading: T.StructField, null_type: T.DataType | None = None) -> T.StructType:
    """Returns a DataFrame schema: the columns `leading`, then the columns of `batches`.

    Arrow cannot express all Spark types that the values of the user's rows may have. In `batches`, the columns of such values have the
    Arrow type null. In the result, these columns have the Spark type `null_type`.
    """
    fields = (T.StructField(field.name, _replace_null_type(field.dataType, null_type)) for field in from_arrow_schema(batches).fields)
    return T.StructType([*leading, *fields])


def _replace_null_type(data_type: T.DataType, null_type: T.DataType | None) -> T.DataType:
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(_replace_null_type(data_type.elementType, null_type))
    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(field.name, _replace_null_type(field.dataType, null_type)) for field in data_type.fields])
    return null_type if null_type is not None and isinstance(data_type, T.NullType) else data_type
