"""Clusters of rows with near fingerprints: the connected components of all near pairs."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from simstore.spark import _columns
from simstore.spark._connected_components import members_by_star_rounds
from simstore.spark._persist import persist
from simstore.spark._schemas import spark_schema
from simstore.spark.pairs import choose_join, pack_by_bucket, scatter_to_places
from simstore.spark.parts import task_memory_bytes
from simstore.tasks import joining

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("simstore.spark")

EDGES = spark_schema(joining.EDGES)
# Memory for an edge of 64-bit fingerprints while forests are merged, in bytes.
EDGE_BYTES = 64
# Average number of edges that a task receives in the first round of merging forests.
MERGE_EDGES = 1 << 20


def clusters(
    df: DataFrame,
    fingerprint: str = "fingerprint",
    id: str = "id",
    distance: int = 3,
    *,
    parts: int | None = None,
    count: int | None = None,
    edges: int | None = None,
) -> DataFrame:
    """Returns the rows that are connected by chains of near fingerprints, each with its cluster.

    Each part of the join produces a forest: for each cluster, one edge fewer than members. Tasks merge these forests until one task has
    all edges. If there are too many edges for one task, large-star and small-star rounds on all tasks finish the work. No rows are
    collected to the driver. Partitioning does not change the result.

    The join runs before the call returns. Its edges are persisted (16 bytes an edge) until `release`. Computing the result joins the
    clusters with `df`. In total `df` is read four times, or three times if `count` is given.

    Parameters
    ----------
    df, fingerprint, id, distance, parts, count
        See `near_pairs`.
    edges : int, optional
        Maximum number of edges in one task. The default depends on the memory of a task (see `choose_parts`). If there are more edges,
        the rounds need a checkpoint directory (``spark.sparkContext.setCheckpointDir``) that all executors can access.

    Returns
    -------
    DataFrame
        With columns ``id``, ``cluster`` and ``representative`` (all with the type of the ids), and ``distance`` (int), in no order. Rows
        without a near row are left out. ``cluster`` and ``representative`` are the smallest id of the cluster. ``distance`` is the distance
        to the representative, in bits. It may exceed the argument `distance`, because a chain may connect a row to the representative.
    """
    bits = _columns.fingerprint_bits(df, fingerprint)
    rows = df.select(_columns.id_column(df, id).alias("id"), _columns.column(fingerprint).alias("fingerprint"))
    join_parts, buckets = choose_join(df, fingerprint, distance, parts, count)
    places = scatter_to_places(pack_by_bucket(rows.select("fingerprint"), join_parts, buckets), join_parts)
    forests = places.mapInArrow(partial(joining.connect, parts=join_parts), EDGES)
    # With this hint, Spark keeps the members in a hash table. Otherwise it would sort the rows.
    members = merge_forests(forests, bits, edges).hint("shuffle_hash")
    clustered = rows.join(members, F.col("fingerprint") == F.col("member")).drop("member")
    first = F.min(F.struct("id", "fingerprint")).alias("first")
    with_first = clustered.join(clustered.groupBy("root").agg(first), "root")
    return with_first.select(
        "id",
        F.col("first.id").alias("cluster"),
        F.col("first.id").alias("representative"),
        _columns.hamming_distance(F.col("fingerprint"), F.col("first.fingerprint"), bits).alias("distance"),
    )


def components(pairs: DataFrame, edges: int | None = None) -> DataFrame:
    """Returns the connected components of a graph. The edges of the graph are the rows of `pairs`.

    Parameters
    ----------
    pairs : DataFrame
        With columns ``a`` and ``b``: bigint, or binary of 16 bytes. A value that is paired only with itself is a component with one member.
    edges : int, optional
        See `clusters`.

    Returns
    -------
    DataFrame
        With columns ``member`` and ``root``: each value once, with the root of its component. The root is one of the members.
    """
    bits = _columns.fingerprint_bits(pairs, "a")
    return merge_forests(pairs.select("a", "b").mapInArrow(partial(joining.connect_pairs, bits=bits), EDGES), bits, edges)


def merge_forests(forests: DataFrame, bits: int, edges: int | None) -> DataFrame:
    """Merges several forests (lists of edges that connect the members of each cluster) into one.

    Returns a row for each member of a cluster, with columns ``member`` and ``root``.

    `edges` is the maximum number of edges in one task. The default depends on the memory of a task.
    """
    if edges is None:
        edges = task_memory_bytes(forests.sparkSession) // (EDGE_BYTES * bits // 64)
    forests = persist(forests)
    total_bytes = forests.agg(F.sum(F.length("edges"))).first()
    # An edge is two fingerprints.
    count = (total_bytes[0] or 0) * 8 // (2 * bits) if total_bytes else 0
    logger.info("%s edges connect what is near; a task holds %s", f"{count:,}", f"{edges:,}")
    if count > edges:
        return members_by_star_rounds(forests, bits)
    tasks = -(-count // MERGE_EDGES)
    while tasks > 1:
        regrouped = forests.withColumn("task", F.spark_partition_id() % tasks).repartition(tasks, "task").select("edges")
        forests = regrouped.mapInArrow(partial(joining.merge, bits=bits), EDGES)
        tasks //= 8
    members = partial(joining.members, bits=bits)
    return forests.repartition(1).mapInArrow(members, spark_schema(joining.members_schema(bits)))
