"""Clusters of rows whose fingerprints chains of near ones connect."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from simstore.spark import _columns
from simstore.spark._schemas import schema_of
from simstore.spark._stars import members_by_stars
from simstore.spark.kept import keep
from simstore.spark.pairs import at_places, chosen, collapsed
from simstore.spark.parts import memory_of_a_task
from simstore.tasks import joining

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("simstore.spark")

EDGES = schema_of(joining.EDGES)
# Memory for an edge while forests are merged, in bytes, for 64 bits.
OF_AN_EDGE = 64
# Edges that a task merges on the way, where there are many.
TOGETHER = 1 << 20


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
    """The rows that chains of near fingerprints connect, with the cluster of each.

    The parts of the join hand on what they connect (one edge fewer than members), and tasks put that together until one has it all;
    where that is more than a task can hold, large-star and small-star rounds do it, on all tasks. Nothing is collected, and the
    result is the same however the rows are partitioned.

    The join runs before the call returns, and what it has connected is persisted (16 bytes an edge; `release` lets go of it); what is
    left to do is to join that with `df`, which is read four times in all (once less if `count` is given).

    Parameters
    ----------
    df, fingerprint, id, distance, parts, count
        As for `near_pairs`.
    edges : int, optional
        How many edges a task can hold; by default as many as the memory lets (`choose_parts` says what a task has). Beyond that, set a
        checkpoint directory (``spark.sparkContext.setCheckpointDir``) that all executors see.

    Returns
    -------
    DataFrame
        With columns id, cluster, representative (types of the ids) and distance (int), in no order. Rows that are near no other are
        left out. A cluster is named by the smallest of its ids, which is its representative, too; the distance is that to the
        representative, which chains may make larger than what was asked for.
    """
    bits = _columns.width(df, fingerprint)
    rows = df.select(_columns.ids(df, id).alias("id"), _columns.column(fingerprint).alias("fingerprint"))
    of, buckets = chosen(df, fingerprint, distance, parts, count)
    places = at_places(collapsed(rows.select("fingerprint"), of, buckets), of)
    forests = places.mapInArrow(partial(joining.connect, parts=of), EDGES)
    # Rows are streamed past the members, not sorted.
    members = merged(forests, bits, edges).hint("shuffle_hash")
    in_clusters = rows.join(members, F.col("fingerprint") == F.col("member")).drop("member")
    first = F.min(F.struct("id", "fingerprint")).alias("first")
    named = in_clusters.join(in_clusters.groupBy("root").agg(first), "root")
    return named.select(
        "id",
        F.col("first.id").alias("cluster"),
        F.col("first.id").alias("representative"),
        _columns.distance(F.col("fingerprint"), F.col("first.fingerprint"), bits).alias("distance"),
    )


def components(pairs: DataFrame, edges: int | None = None) -> DataFrame:
    """What pairs connect.

    Parameters
    ----------
    pairs : DataFrame
        With columns a and b: bigint, or binary of 16 bytes. What is paired with itself is a member, of a cluster of its own if need be.
    edges : int, optional
        As for `clusters`.

    Returns
    -------
    DataFrame
        With columns member and root: each that is in a pair, once, and which of its cluster stands for all of it.
    """
    bits = _columns.width(pairs, "a")
    return merged(pairs.select("a", "b").mapInArrow(partial(joining.connect_pairs, bits=bits), EDGES), bits, edges)


def merged(forests: DataFrame, bits: int, edges: int | None) -> DataFrame:
    """The members of clusters, with their roots, by packed edges."""
    if edges is None:
        edges = memory_of_a_task(forests.sparkSession) // (OF_AN_EDGE * bits // 64)
    forests = keep(forests)
    found = forests.agg(F.sum(F.length("edges"))).first()
    count = (found[0] or 0) * 8 // (2 * bits) if found else 0
    logger.info("%s edges connect what is near; a task holds %s", f"{count:,}", f"{edges:,}")
    if count > edges:
        return members_by_stars(forests, bits)
    tasks = -(-count // TOGETHER)
    while tasks > 1:
        of_some = forests.withColumn("task", F.spark_partition_id() % tasks).repartition(tasks, "task").select("edges")
        forests = of_some.mapInArrow(partial(joining.merge, bits=bits), EDGES)
        tasks //= 8
    members = partial(joining.members, bits=bits)
    return forests.repartition(1).mapInArrow(members, schema_of(joining.members_schema(bits)))
