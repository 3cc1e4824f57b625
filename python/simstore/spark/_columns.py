"""Columns of DataFrames: checks of their types, and expressions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore.tasks.columns import check_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def column_type(df: DataFrame, name: str) -> T.DataType:
    """Returns the type of a column. Raises an error if the column is missing."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a column, found {type(name).__name__}")
    check_column(name, df.columns)
    return df.schema[name].dataType


def column(name: str) -> Column:
    """Returns the column of this name. The name may have any characters, such as dots and backquotes."""
    return F.col("`" + name.replace("`", "``") + "`")


def fingerprint_bits(df: DataFrame, fingerprint: str) -> int:
    """Returns the width of the fingerprints in a column: 64 bits if its type is bigint, 128 bits if it is binary."""
    data_type = column_type(df, fingerprint)
    if isinstance(data_type, T.LongType):
        return 64
    if isinstance(data_type, T.BinaryType):
        return 128
    raise TypeError(f"column `{fingerprint}` is {data_type.simpleString()}: fingerprints are bigint, or binary of 16 bytes")


def id_column(df: DataFrame, id: str) -> Column:
    """Returns the column of the ids. Raises an error if Spark cannot order its values; a null id ends the job with an error."""
    data_type = column_type(df, id)
    if not is_orderable(data_type):
        raise TypeError(f"column `{id}` is {data_type.simpleString()}, which has no order: ids have one")
    message = f"an id in column `{id}` is null: give each row one, or leave it out"
    return F.coalesce(column(id), F.raise_error(F.lit(message)).cast(data_type))


def is_orderable(data_type: T.DataType) -> bool:
    """Returns whether Spark can order values of this type."""
    if isinstance(data_type, T.StructType):
        return all(is_orderable(field.dataType) for field in data_type.fields)
    if isinstance(data_type, T.ArrayType):
        return is_orderable(data_type.elementType)
    return isinstance(data_type, T.AtomicType) and data_type.typeName() != "variant"


def hamming_distance(a: Column, b: Column, bits: int) -> Column:
    """Returns the Hamming distance of two columns of fingerprints of `bits` bits, as a column of type int."""
    if bits == 64:
        return F.bit_count(a.bitwiseXOR(b)).cast("int")

    # Spark's bitwise functions take numbers of at most 64 bits.
    def half(fingerprint: Column, start: int) -> Column:
        return F.conv(F.hex(F.substring(fingerprint, start, 8)), 16, -10).cast("long")

    half_distances = [F.bit_count(half(a, start).bitwiseXOR(half(b, start))) for start in (1, 9)]
    return (half_distances[0] + half_distances[1]).cast("int")
