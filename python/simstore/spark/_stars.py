"""Connected components with more edges than one task holds.

The rounds alternate large-star and small-star (R. Kiveris, S. Lattanzi, V. Mirrokni, V. Rastogi, S. Vassilvitskii, "Connected components in
MapReduce and beyond", SoCC 2014): large-star connects each node's larger neighbours to its smallest neighbour, small-star connects its
smaller neighbours and itself. When a round changes no edge, the edges are stars.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from simstore.spark._schemas import schema_of
from simstore.tasks import joining

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("simstore.spark")


def members_by_stars(forests: DataFrame, bits: int) -> DataFrame:
    """Returns the members of clusters with their roots, from packed edges.

    Each round is written to the checkpoint directory. Otherwise the plan would grow with every round, and after the loss of an executor
    all rounds would run again.
    """
    session = forests.sparkSession
    if session.sparkContext.getCheckpointDir() is None:
        raise ValueError(
            "there are more edges than one task holds: set a checkpoint directory that all executors see "
            "(spark.sparkContext.setCheckpointDir), or more memory (spark.executor.memoryOverhead), or the option `edges`"
        )
    unpacked = forests.mapInArrow(partial(joining.unpack, bits=bits), schema_of(joining.nodes_schema(bits)))
    edges = unpacked.checkpoint()
    rounds = 0
    while True:
        stars = small_star(large_star(edges)).checkpoint()
        rounds += 1
        if is_same(edges, stars):
            break
        edges = stars
    logger.info("large-star and small-star took %s rounds", rounds)
    root = F.col("other").alias("root")
    members = stars.select(F.col("node").alias("member"), root)
    alone = unpacked.where(F.col("node") == F.col("other")).select(F.col("node").alias("member"), root)
    roots = stars.select(F.col("other").alias("member"), root)
    # Adds the roots, and nodes whose only edge is a self-loop.
    return members.union(roots.union(alone).distinct().join(members.select("member"), "member", "left_anti"))


def large_star(edges: DataFrame) -> DataFrame:
    """Connects the larger neighbours of each node to the smallest of its neighbours and itself."""
    both = edges.union(edges.select(F.col("other").alias("node"), F.col("node").alias("other")))
    both = both.where(F.col("node") != F.col("other"))
    smallest = both.groupBy("node").agg(F.min(F.least("node", "other")).alias("smallest"))
    larger = both.where(F.col("other") > F.col("node")).join(smallest, "node")
    return larger.select(F.col("other").alias("node"), F.col("smallest").alias("other")).distinct()


def small_star(edges: DataFrame) -> DataFrame:
    """Connects the smaller neighbours of each node, and itself, to the smallest of them."""
    down = edges.select(F.greatest("node", "other").alias("node"), F.least("node", "other").alias("other"))
    smallest = down.groupBy("node").agg(F.min("other").alias("smallest"))
    moved = down.join(smallest, "node").where(F.col("other") != F.col("smallest"))
    moved = moved.select(F.col("other").alias("node"), F.col("smallest").alias("other"))
    return moved.union(smallest.select("node", F.col("smallest").alias("other"))).distinct()


def is_same(edges: DataFrame, others: DataFrame) -> bool:
    """Returns whether two sets of edges are equal."""
    return others.join(edges, ["node", "other"], "left_anti").isEmpty() and edges.join(
        others, ["node", "other"], "left_anti"
    ).isEmpty()
