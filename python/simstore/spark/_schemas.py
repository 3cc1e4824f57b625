"""DataFrame schemas for the record batches of tasks."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema


def schema_of(batches: pa.Schema, *before: T.StructField, null: T.DataType | None = None) -> T.StructType:
    """Returns the DataFrame schema for batches, after the columns `before`.

    Some Spark types change when they go through Arrow. So fields of type null get the type `null` of the user's rows.
    """
    made = from_arrow_schema(batches)
    return T.StructType([*before, *(T.StructField(field.name, _filled(field.dataType, null)) for field in made.fields)])


def _filled(found: T.DataType, null: T.DataType | None) -> T.DataType:
    if isinstance(found, T.ArrayType):
        return T.ArrayType(_filled(found.elementType, null))
    if isinstance(found, T.StructType):
        return T.StructType([T.StructField(field.name, _filled(field.dataType, null)) for field in found.fields])
    return null if null is not None and isinstance(found, T.NullType) else found
