"""All pairs of rows with near fingerprints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

import simstore
from simstore.spark import _columns, _places
from simstore.spark._schemas import schema_of
from simstore.spark.parts import choose_parts, of_number
from simstore.tasks import joining, rows
from simstore.tasks.columns import width_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Approximate number of fingerprints in a bucket.
OF_A_BUCKET = 1_000_000
# With more buckets, tasks would send many small pieces.
MOST_BUCKETS = 10_000

SENT = schema_of(joining.SENT)


def near_pairs(
    df: DataFrame,
    fingerprint: str = "fingerprint",
    id: str = "id",
    distance: int = 3,
    *,
    parts: int | None = None,
    count: int | None = None,
) -> DataFrame:
    """Returns all pairs of rows with fingerprints that differ in at most `distance` bits, including equal fingerprints.

    Rows are packed, thousands in one value, and sent once, by a hash of the fingerprint. The receiving task collapses equal fingerprints.
    Each distinct fingerprint goes once to every table of the join, as eight bytes, to the task that joins its part of the table. The
    pairs go back to the tasks that have the ids. Nothing is collected to the driver.

    `df` is read twice, or once if `count` is given. Persist or write it if it takes long to compute.

    Parameters
    ----------
    df : DataFrame
    fingerprint : str
        The column: bigint for 64 bits, binary of 16 bytes (the most significant first) for 128. A null has no pairs.
    id : str
        The column of the ids: of any type with an order, unique, without nulls.
    distance : int
        In bits: up to 16 for fingerprints of 64 bits, up to 32 for 128 bits.
    parts : int, optional
        Number of parts of each table. By default `choose_parts` chooses it, and the logger ``simstore.spark`` reports it.
    count : int, optional
        Maximum number of rows; counted by default.

    Returns
    -------
    DataFrame
        With columns id_a, id_b (id_a < id_b) and distance (int), in no order.

    Raises
    ------
    ValueError, TypeError
        If columns are missing or of another type, or the distance is too large. A null id, or a binary fingerprint that does not have
        16 bytes, ends the job.
    """
    of, buckets = chosen(df, fingerprint, distance, parts, count)
    ids = _columns.type_of(df, id)
    named = df.select(_columns.ids(df, id).alias("id"), _columns.column(fingerprint).alias("fingerprint"))
    packed = _places.sent(
        named,
        partial(rows.pack_rows, parts=of, buckets=buckets),
        buckets,
        schema_of(rows.rows_schema(pa.null()), null=ids),
    )
    # Keeps all columns, though the ids are not used here: the rows are sent once for all following steps.
    found = _found(packed, of)
    pairs = _places.sent(found, partial(rows.pack_pairs, parts=of, buckets=buckets), buckets, schema_of(rows.PAIRS))
    keys = _places.keys(buckets)

    def of_a(here: pa.Table, there: pa.Table) -> pa.Table:
        return _places.with_keys(rows.ids_of_a(here, there, of, buckets), keys)

    def of_b(here: pa.Table, there: pa.Table) -> pa.Table:
        return rows.ids_of_b(here, there, of)

    half = schema_of(rows.half_schema(pa.null()).append(_places.KEY), null=ids)
    both = schema_of(rows.pair_schema(pa.null()), null=ids)
    by_place = packed.groupBy("key")
    halves = by_place.cogroup(pairs.groupBy("key")).applyInArrow(of_a, half).repartition(buckets, "key")
    named_pairs = by_place.cogroup(halves.groupBy("key")).applyInArrow(of_b, both)
    one = named_pairs.select(F.explode("ids_a").alias("one"), "ids_b", "distance")
    ordered = one.select("one", F.explode("ids_b").alias("other"), "distance")
    is_ordered = F.col("one") < F.col("other")
    # Rows with equal fingerprints are paired in both orders, other rows in one order.
    ordered = ordered.where(is_ordered | (F.col("distance") > 0) & (F.col("one") != F.col("other")))
    return ordered.select(
        F.when(is_ordered, F.col("one")).otherwise(F.col("other")).alias("id_a"),
        F.when(is_ordered, F.col("other")).otherwise(F.col("one")).alias("id_b"),
        "distance",
    )


def near_values(values: DataFrame, distance: int, parts: int | None = None, count: int | None = None) -> DataFrame:
    """Returns the near pairs of the fingerprints in a DataFrame of one column.

    Returns
    -------
    DataFrame
        With columns a, b (a <= b as unsigned numbers) and distance (int): each pair once. A repeated fingerprint is paired with itself.
    """
    of, buckets = chosen(values, "fingerprint", distance, parts, count)
    return _found(collapsed(values, of, buckets), of)


def collapsed(values: DataFrame, of: simstore.Parts, buckets: int) -> DataFrame:
    """Returns packed fingerprints of a DataFrame of one column, one partition a bucket. Equal fingerprints share a bucket."""
    return _places.sent(values, partial(joining.pack, parts=of, buckets=buckets), buckets, SENT)


def at_places(packed: DataFrame, of: simstore.Parts) -> DataFrame:
    """Sends packed fingerprints from buckets to the places of the join, one partition a place."""
    return _places.sent(packed, partial(joining.scatter, parts=of), of.tables * of.parts, SENT)


def _found(packed: DataFrame, of: simstore.Parts) -> DataFrame:
    return at_places(packed, of).mapInArrow(partial(joining.near, parts=of), schema_of(joining.near_schema(of.bits)))


def chosen(
    df: DataFrame, fingerprint: str, distance: int, parts: int | None, count: int | None
) -> tuple[simstore.Parts, int]:
    """Chooses the parts of a join, and the number of buckets for collapsing equal fingerprints."""
    bits = width_of(_columns.width(df, fingerprint))
    if parts is None:
        # Refuses invalid arguments before it counts rows.
        simstore.Parts(distance, bits=bits)
        count = df.select(_columns.column(fingerprint)).count() if count is None else count
        of = choose_parts(df.sparkSession, count, distance, bits)
    else:
        of = of_number(distance, parts, bits)
    return of, min(MOST_BUCKETS, max(of.parts * of.tables, -(-(count or 0) // OF_A_BUCKET)))
