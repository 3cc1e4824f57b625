"""The option `keep` of `simstore.spark.dedup`: the rule that chooses the kept row of a cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore.spark import _columns
from simstore.spark._schemas import spark_schema
from simstore.tasks import similarity

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EXPECTED_RULES = 'expected "smallest-id", "longest", "newest:COLUMN", "largest:COLUMN", "smallest:COLUMN" or "none"'


def check_rule(keep: str, df: DataFrame) -> None:
    """Raises an error if the rule is unknown, or if its column is missing or has an unsuitable type."""
    if not isinstance(keep, str):
        raise TypeError(f"option `keep` is {type(keep).__name__}: {EXPECTED_RULES}")
    if keep == "first":
        raise ValueError(f'option `keep` is "first", but rows of a DataFrame have no order: {EXPECTED_RULES}')
    rule, column = _parse_column_rule(keep)
    if rule:
        data_type = _columns.column_type(df, column)
        if not isinstance(data_type, T.AtomicType) or isinstance(data_type, T.BinaryType):
            raise TypeError(f"option `keep`: column `{column}` is {data_type.simpleString()}, which has no order here")
        if rule != "newest" and not isinstance(data_type, (T.NumericType, T.StringType, T.BooleanType)):
            raise TypeError(
                f'option `keep`: column `{column}` is {data_type.simpleString()}: "{rule}" compares numbers, "newest:{column}" dates'
            )
    elif keep not in ("smallest-id", "longest", "none"):
        raise ValueError(f"option `keep` is {keep!r}: {EXPECTED_RULES}")


def _parse_column_rule(keep: str) -> tuple[str, str]:
    """Splits a rule such as "newest:date" into its name and its column. Returns two empty strings if `keep` is another rule."""
    rule, _, column = keep.partition(":")
    return (rule, column) if rule in ("newest", "largest", "smallest") and column else ("", "")


def with_ranks(df: DataFrame, text: str, id: str, keep: str) -> DataFrame:
    """Returns the columns ``id``, ``text`` and ``rank`` of the rows. The rank follows from the rule `keep`.

    A row with a smaller rank is preferred; among rows with the same rank, the row with the smallest id.
    """
    rank = F.lit(0)
    if keep == "longest":
        rank = -F.octet_length(_columns.column(text))
    rule, column = _parse_column_rule(keep)
    if rule:
        rank = _columns.column(column).cast("string")
    rows = df.select(_columns.id_column(df, id).alias("id"), _columns.column(text).alias("text"), rank.alias("rank"))
    if not rule:
        return rows
    # The rank becomes bytes that sort by preference, so that the order is the same as on one machine.
    schema = spark_schema(pa.schema([("rank", similarity.SORT_KEY_TYPE)]), *rows.schema.fields[:2])
    return rows.mapInArrow(partial(similarity.moments, moment="rank", rule=rule), schema)


def most_preferred(*columns: str) -> Column:
    """Returns an aggregate: the row of a group with the smallest rank, as a struct of rank, id and the columns `columns`.

    `with_ranks` computes the ranks. Among rows with the same rank, the row with the smallest id is chosen.
    """
    return F.min(F.struct("rank", "id", *columns))
