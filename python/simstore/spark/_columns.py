"""Checks of DataFrame columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore.tasks.columns import check_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def type_of(df: DataFrame, name: str) -> T.DataType:
    """Returns the type of a column, which must exist."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a column, found {type(name).__name__}")
    check_column(name, df.columns)
    return df.schema[name].dataType


def column(name: str) -> Column:
    """Returns a column by its name, which may have any characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def width(df: DataFrame, fingerprint: str) -> int:
    """Returns the width of fingerprints by the type of their column: bigint for 64 bits, binary for 128 bits."""
    found = type_of(df, fingerprint)
    if isinstance(found, T.LongType):
        return 64
    if isinstance(found, T.BinaryType):
        return 128
    raise TypeError(f"column `{fingerprint}` is {found.simpleString()}: fingerprints are bigint, or binary of 16 bytes")


def ids(df: DataFrame, id: str) -> Column:
    """Returns the column of the ids. Its type must have an order, and a null is an error."""
    found = type_of(df, id)
    if not is_ordered(found):
        raise TypeError(f"column `{id}` is {found.simpleString()}, which has no order: ids have one")
    message = f"an id in column `{id}` is null: give each row one, or leave it out"
    return F.coalesce(column(id), F.raise_error(F.lit(message)).cast(found))


def is_ordered(found: T.DataType) -> bool:
    """Returns whether Spark can order values of this type."""
    if isinstance(found, T.StructType):
        return all(is_ordered(field.dataType) for field in found.fields)
    if isinstance(found, T.ArrayType):
        return is_ordered(found.elementType)
    return isinstance(found, T.AtomicType) and found.typeName() != "variant"


def distance(a: Column, b: Column, bits: int) -> Column:
    """Returns the distance of fingerprints, in bits: int."""
    if bits == 64:
        return F.bit_count(a.bitwiseXOR(b)).cast("int")

    def half(wide: Column, start: int) -> Column:
        return F.conv(F.hex(F.substring(wide, start, 8)), 16, -10).cast("long")

    halves = [F.bit_count(half(a, start).bitwiseXOR(half(b, start))) for start in (1, 9)]
    return (halves[0] + halves[1]).cast("int")
