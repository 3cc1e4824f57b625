"""All pairs of rows with near fingerprints, by a join in parts (`simstore.tasks.joining`)."""

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
# Maximum number of buckets. With more buckets, each task would send very small pieces to each bucket.
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

    Each row is sent once, to the task that the hash of its fingerprint selects, packed with thousands of other rows in one value. The
    receiving task collapses equal fingerprints. The join has several tables of fingerprints, each split into parts (see
    `simstore.JoinParts`). The receiving task sends each distinct fingerprint once for each table, as 8 bytes (16 for 128 bits), to the
    task that joins its part of the table. The pairs go back to the tasks that have the ids. No rows are collected to the driver.

    `df` is read twice, or once if `count` is given. Persist or write it if it takes long to compute.

    Parameters
    ----------
    df : DataFrame
    fingerprint : str
        Column of the fingerprints: bigint for 64 bits, binary of 16 bytes (the most significant first) for 128 bits. A null has no pairs.
    id : str
        Column of the ids: unique, without nulls, of any type that Spark can order.
    distance : int
        Maximum distance of a pair, in bits: up to 16 for fingerprints of 64 bits, up to 32 for 128 bits.
    parts : int, optional
        Number of parts of each table. By default `choose_parts` chooses the number, and the logger ``simstore.spark`` reports it.
    count : int, optional
        Maximum number of rows. By default, the rows are counted.

    Returns
    -------
    DataFrame
        With columns ``id_a``, ``id_b`` (id_a < id_b) and ``distance`` (int, in bits), in no order.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, or the distance is too large. A null id, or a binary fingerprint that does not have
        16 bytes, ends the job with an error.
    """
    join_parts, buckets = choose_join(df, fingerprint, distance, parts, count)
    id_type = _columns.column_type(df, id)
    with_ids = df.select(_columns.id_column(df, id).alias("id"), _columns.column(fingerprint).alias("fingerprint"))
    packed = _partitioning.repartition_by_place(
        with_ids,
        partial(rows.pack_rows, parts=join_parts, buckets=buckets),
        buckets,
        spark_schema(rows.rows_schema(pa.null()), null_type=id_type),
    )
    # The join does not read the ids, but `packed` keeps their column: so Spark sends the same rows once for the join and for the look-ups.
    near = _join_at_places(packed, join_parts)
    pack_pairs = partial(rows.pack_pairs, parts=join_parts, buckets=buckets)
    pairs = _partitioning.repartition_by_place(near, pack_pairs, buckets, spark_schema(rows.PAIRS))
    keys = _partitioning.partition_keys(buckets)

    def look_up_ids_of_a(bucket_rows: pa.Table, bucket_pairs: pa.Table) -> pa.Table:
        return _partitioning.append_keys(rows.ids_of_a(bucket_rows, bucket_pairs, join_parts, buckets), keys)

    def look_up_ids_of_b(bucket_rows: pa.Table, bucket_pairs: pa.Table) -> pa.Table:
        return rows.ids_of_b(bucket_rows, bucket_pairs, join_parts)

    half_schema = spark_schema(rows.half_schema(pa.null()).append(_partitioning.KEY), null_type=id_type)
    pair_schema = spark_schema(rows.pair_schema(pa.null()), null_type=id_type)
    by_bucket = packed.groupBy("key")
    with_ids_a = by_bucket.cogroup(pairs.groupBy("key")).applyInArrow(look_up_ids_of_a, half_schema).repartition(buckets, "key")
    with_ids_ab = by_bucket.cogroup(with_ids_a.groupBy("key")).applyInArrow(look_up_ids_of_b, pair_schema)
    exploded = with_ids_ab.select(F.explode("ids_a").alias("a"), "ids_b", "distance")
    exploded = exploded.select("a", F.explode("ids_b").alias("b"), "distance")
    is_ordered = F.col("a") < F.col("b")
    # Rows with equal fingerprints are paired in both orders, other rows in one order.
    unique = exploded.where(is_ordered | (F.col("distance") > 0) & (F.col("a") != F.col("b")))
    return unique.select(
        F.when(is_ordered, F.col("a")).otherwise(F.col("b")).alias("id_a"),
        F.when(is_ordered, F.col("b")).otherwise(F.col("a")).alias("id_b"),
        "distance",
    )


def near_fingerprints(values: DataFrame, distance: int, parts: int | None = None, count: int | None = None) -> DataFrame:
    """Returns the near pairs of fingerprints, without ids.

    Parameters
    ----------
    values : DataFrame
        With the single column ``fingerprint``.
    distance, parts, count
        See `near_pairs`.

    Returns
    -------
    DataFrame
        With columns ``a``, ``b`` (a <= b as unsigned numbers) and ``distance`` (int): each pair once. A fingerprint that occurs several
        times is also paired with itself.
    """
    join_parts, buckets = choose_join(values, "fingerprint", distance, parts, count)
    return _join_at_places(pack_by_bucket(values, join_parts, buckets), join_parts)


def pack_by_bucket(values: DataFrame, join_parts: simstore.JoinParts, buckets: int) -> DataFrame:
    """Groups fingerprints, the only column of `values`, by a hash of each. Each group (bucket) gets its own partition.

    In the result, a row has many fingerprints of one bucket, concatenated in one binary value.
    """
    return _partitioning.repartition_by_place(values, partial(joining.pack, parts=join_parts, buckets=buckets), buckets, SENT)


def scatter_to_places(packed: DataFrame, join_parts: simstore.JoinParts) -> DataFrame:
    """Sends fingerprints, packed by `pack_by_bucket`, to the places of the join. A place is one part of one table.

    The result has one partition for each place.
    """
    places = join_parts.tables * join_parts.parts
    return _partitioning.repartition_by_place(packed, partial(joining.scatter, parts=join_parts), places, SENT)


def _join_at_places(packed: DataFrame, join_parts: simstore.JoinParts) -> DataFrame:
    schema = spark_schema(joining.near_schema(join_parts.bits))
    return scatter_to_places(packed, join_parts).mapInArrow(partial(joining.near, parts=join_parts), schema)


def choose_join(
    df: DataFrame, fingerprint: str, distance: int, parts: int | None, count: int | None
) -> tuple[simstore.JoinParts, int]:
    """Returns how a join is divided into parts, and into how many buckets `pack_by_bucket` groups the fingerprints by a hash.

    If `parts` is None, `choose_parts` chooses the number of parts of each table of the join.
    """
    bits = checked_bits(_columns.fingerprint_bits(df, fingerprint))
    if parts is None:
        # Raises an error for an invalid distance before the rows are counted.
        simstore.JoinParts(distance, bits=bits)
        count = df.select(_columns.column(fingerprint)).count() if count is None else count
        join_parts = choose_parts(df.sparkSession, count, distance, bits)
    else:
        join_parts = parts_with_count(distance, parts, bits)
    places = join_parts.parts * join_parts.tables
    return join_parts, min(MAX_BUCKETS, max(places, -(-(count or 0) // BUCKET_FINGERPRINTS)))
