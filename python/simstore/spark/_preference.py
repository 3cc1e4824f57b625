"""The choice of the kept row of a cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore.spark import _columns
from simstore.spark._schemas import schema_of
from simstore.tasks import similarity

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RULES = 'expected "smallest-id", "longest", "newest:COLUMN", "largest:COLUMN", "smallest:COLUMN" or "none"'


def check(keep: str, df: DataFrame) -> None:
    """Refuses an unknown rule, or a rule for a missing column."""
    if not isinstance(keep, str):
        raise TypeError(f"option `keep` is {type(keep).__name__}: {RULES}")
    if keep == "first":
        raise ValueError(f'option `keep` is "first", but rows of a DataFrame have no order: {RULES}')
    rule, column = _of_column(keep)
    if rule:
        found = _columns.type_of(df, column)
        if not isinstance(found, T.AtomicType) or isinstance(found, T.BinaryType):
            raise TypeError(f"option `keep`: column `{column}` is {found.simpleString()}, which has no order here")
        if rule != "newest" and not isinstance(found, (T.NumericType, T.StringType, T.BooleanType)):
            raise TypeError(
                f'option `keep`: column `{column}` is {found.simpleString()}: "{rule}" compares numbers, "newest:{column}" dates'
            )
    elif keep not in ("smallest-id", "longest", "none"):
        raise ValueError(f"option `keep` is {keep!r}: {RULES}")


def _of_column(keep: str) -> tuple[str, str]:
    """Returns the rule and its column, if the rule has a column."""
    rule, _, column = keep.partition(":")
    return (rule, column) if rule in ("newest", "largest", "smallest") and column else ("", "")


def ranked(df: DataFrame, text: str, id: str, keep: str) -> DataFrame:
    """Returns the columns id, text and rank of the rows. A smaller rank is preferred; among equal ranks, a smaller id."""
    rank = F.lit(0)
    if keep == "longest":
        rank = -F.octet_length(_columns.column(text))
    rule, column = _of_column(keep)
    if rule:
        rank = _columns.column(column).cast("string")
    rows = df.select(_columns.ids(df, id).alias("id"), _columns.column(text).alias("text"), rank.alias("rank"))
    if not rule:
        return rows
    # Bytes that sort by preference, as on one machine.
    schema = schema_of(pa.schema([("rank", similarity.MOMENT)]), *rows.schema.fields[:2])
    return rows.mapInArrow(partial(similarity.moments, moment="rank", rule=rule), schema)


def best(*others: str) -> Column:
    """Returns the most preferred row of a group, with some of its columns."""
    return F.min(F.struct("rank", "id", *others))
