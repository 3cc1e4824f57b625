"""Connected components of graphs with too many edges for one task.

Each round is a large-star step and a small-star step (R. Kiveris, S. Lattanzi, V. Mirrokni, V. Rastogi, S. Vassilvitskii, "Connected
components in MapReduce and beyond", SoCC 2014). Large-star connects the larger neighbours of each node to its smallest neighbour.
Small-star connects the node and its smaller neighbours to its smallest neighbour. When a round changes no edge, each component is a star:
its smallest node, the root, is connected to all other nodes.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from simstore.spark._schemas import spark_schema
from simstore.tasks import joining

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("simstore.spark")


def members_by_star_rounds(forests: DataFrame, bits: int) -> DataFrame:
    """Returns the members of each connected component with their root, including the root itself.

    Repeats rounds of large-star and small-star until the edges no longer change. The edges of each round are written to the checkpoint
    directory. Otherwise the query plan would grow with every round, and after the loss of an executor Spark would repeat all rounds.

    Parameters
    ----------
    forests : DataFrame
        With the column ``edges``: packed edges (pairs of nodes), as `joining.connect` yields them.
    bits : {64, 128}
        Width of a node.

    Returns
    -------
    DataFrame
        With columns ``member`` and ``root``. The root is the smallest member in Spark's order.
    """
    session = forests.sparkSession
    if session.sparkContext.getCheckpointDir() is None:
        raise ValueError(
            "there are more edges than one task holds: set a checkpoint directory that all executors see "
            "(spark.sparkContext.setCheckpointDir), or more memory (spark.executor.memoryOverhead), or the option `edges`"
        )
    unpacked = forests.mapInArrow(partial(joining.unpack, bits=bits), spark_schema(joining.nodes_schema(bits)))
    edges = unpacked.checkpoint()
    rounds = 0
    while True:
        stars = small_star(large_star(edges)).checkpoint()
        rounds += 1
        if has_same_edges(edges, stars):
            break
        edges = stars
    logger.info("large-star and small-star took %s rounds", rounds)
    root = F.col("other").alias("root")
    members = stars.select(F.col("node").alias("member"), root)
    self_loops = unpacked.where(F.col("node") == F.col("other")).select(F.col("node").alias("member"), root)
    roots = stars.select(F.col("other").alias("member"), root)
    # Adds the roots, and nodes whose only edge is a self-loop.
    return members.union(roots.union(self_loops).distinct().join(members.select("member"), "member", "left_anti"))


def large_star(edges: DataFrame) -> DataFrame:
    """Connects the larger neighbours of each node to the smallest of its neighbours, or to the node itself if no neighbour is smaller."""
    directed = edges.union(edges.select(F.col("other").alias("node"), F.col("node").alias("other")))
    directed = directed.where(F.col("node") != F.col("other"))
    smallest = directed.groupBy("node").agg(F.min(F.least("node", "other")).alias("smallest"))
    larger = directed.where(F.col("other") > F.col("node")).join(smallest, "node")
    return larger.select(F.col("other").alias("node"), F.col("smallest").alias("other")).distinct()


def small_star(edges: DataFrame) -> DataFrame:
    """Connects each node and its smaller neighbours to the smallest of these neighbours."""
    to_smaller = edges.select(F.greatest("node", "other").alias("node"), F.least("node", "other").alias("other"))
    smallest = to_smaller.groupBy("node").agg(F.min("other").alias("smallest"))
    neighbours = to_smaller.join(smallest, "node").where(F.col("other") != F.col("smallest"))
    neighbours = neighbours.select(F.col("other").alias("node"), F.col("smallest").alias("other"))
    return neighbours.union(smallest.select("node", F.col("smallest").alias("other"))).distinct()


def has_same_edges(edges: DataFrame, others: DataFrame) -> bool:
    """Whether two sets of edges are equal."""
    return others.join(edges, ["node", "other"], "left_anti").isEmpty() and edges.join(
        others, ["node", "other"], "left_anti"
    ).isEmpty()
