"""All pairs of rows with near fingerprints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

import simstore
from simstore.spark import _columns, _partitioning
from simstore.spark._schemas import spark_schema
from simstore.spark.parts import choose_parts, parts_with_count
from simstore.tasks import joining, rows
from simstore.tasks.columns import checked_bits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Approximate number of fingerprints in a bucket.
BUCKET_FINGERPRINTS = 1_000_000
# With more buckets, tasks would send many small pieces.
MAX_BUCKETS = 10_000

SENT = spark_schema(joining.SENT)


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
    join_parts, buckets = choose_join(df, fingerprint, distance, parts, count)
    ids = _columns.column_type(df, id)
    named = df.select(_columns.id_column(df, id).alias("id"), _columns.column(fingerprint).alias("fingerprint"))
    packed = _partitioning.repartition_by_place(
        named,
        partial(rows.pack_rows, parts=join_parts, buckets=buckets),
        buckets,
        spark_schema(rows.rows_schema(pa.null()), null=ids),
    )
    # Keeps all columns, though the ids are not used here: the rows are sent once for all following steps.
    near = _join_at_places(packed, join_parts)
    pairs = _partitioning.repartition_by_place(near, partial(rows.pack_pairs, parts=join_parts, buckets=buckets), buckets, spark_schema(rows.PAIRS))
    keys = _partitioning.partition_keys(buckets)

    def of_a(here: pa.Table, there: pa.Table) -> pa.Table:
        return _partitioning.append_keys(rows.ids_of_a(here, there, join_parts, buckets), keys)

    def of_b(here: pa.Table, there: pa.Table) -> pa.Table:
        return rows.ids_of_b(here, there, join_parts)

    half = spark_schema(rows.half_schema(pa.null()).append(_partitioning.KEY), null=ids)
    both = spark_schema(rows.pair_schema(pa.null()), null=ids)
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


def near_fingerprints(values: DataFrame, distance: int, parts: int | None = None, count: int | None = None) -> DataFrame:
    """Returns the near pairs of the fingerprints in a DataFrame of one column.

    Returns
    -------
    DataFrame
        With columns a, b (a <= b as unsigned numbers) and distance (int): each pair once. A repeated fingerprint is paired with itself.
    """
    join_parts, buckets = choose_join(values, "fingerprint", distance, parts, count)
    return _join_at_places(pack_by_bucket(values, join_parts, buckets), join_parts)


def pack_by_bucket(values: DataFrame, join_parts: simstore.JoinParts, buckets: int) -> DataFrame:
    """Returns packed fingerprints of a DataFrame of one column, one partition a bucket. Equal fingerprints share a bucket."""
    return _partitioning.repartition_by_place(values, partial(joining.pack, parts=join_parts, buckets=buckets), buckets, SENT)


def scatter_to_places(packed: DataFrame, join_parts: simstore.JoinParts) -> DataFrame:
    """Sends packed fingerprints from buckets to the places of the join, one partition a place."""
    return _partitioning.repartition_by_place(packed, partial(joining.scatter, parts=join_parts), join_parts.tables * join_parts.parts, SENT)


def _join_at_places(packed: DataFrame, join_parts: simstore.JoinParts) -> DataFrame:
    return scatter_to_places(packed, join_parts).mapInArrow(partial(joining.near, parts=join_parts), spark_schema(joining.near_schema(join_parts.bits)))


def choose_join(
    df: DataFrame, fingerprint: str, distance: int, parts: int | None, count: int | None
) -> tuple[simstore.JoinParts, int]:
    """Chooses the parts of a join, and the number of buckets for collapsing equal fingerprints."""
    bits = checked_bits(_columns.fingerprint_bits(df, fingerprint))
    if parts is None:
        # Refuses invalid arguments before it counts rows.
        simstore.JoinParts(distance, bits=bits)
        count = df.select(_columns.column(fingerprint)).count() if count is None else count
        join_parts = choose_parts(df.sparkSession, count, distance, bits)
    else:
        join_parts = parts_with_count(distance, parts, bits)
    return join_parts, min(MAX_BUCKETS, max(join_parts.parts * join_parts.tables, -(-(count or 0) // BUCKET_FINGERPRINTS)))
