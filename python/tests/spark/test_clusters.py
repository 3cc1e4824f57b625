"""Clusters on Spark are those of one machine."""

import collections

import networkx
import numpy as np
import pytest

import plain
import simstore
from simstore import spark as on_spark
from simstore.spark.clusters import components
from spark import frames


def expected(fingerprints, distance, bits=64):
    """Rows (id, cluster, distance) of those that are in clusters, by positions."""
    there = [at for at, one in enumerate(fingerprints) if one is not None]
    labels = simstore.clusters(plain.array([fingerprints[at] for at in there], bits), distance, bits=bits)
    clusters = collections.defaultdict(list)
    for at, label in zip(there, labels):
        clusters[label].append(at)
    several = [cluster for cluster in clusters.values() if len(cluster) > 1]

    def distance_to(at, first):
        return (fingerprints[at] ^ fingerprints[first]).bit_count()

    return sorted((at, cluster[0], distance_to(at, cluster[0])) for cluster in several for at in cluster)


def collected(df):
    rows = df.collect()
    assert all(row.cluster == row.representative for row in rows)
    return sorted((row.id, row.cluster, row.distance) for row in rows)


@pytest.fixture
def checkpoints(spark, tmp_path):
    """A checkpoint directory, where edges that are too many for a task go."""
    context = spark.sparkContext
    context.setCheckpointDir(str(tmp_path))
    yield
    # As it was: Python has no way to say so.
    context._jsc.sc().setCheckpointDir(None)


@pytest.fixture(autouse=True)
def released():
    yield
    on_spark.release()


@pytest.mark.parametrize("bits", plain.WIDTHS)
@pytest.mark.parametrize("distance", [0, 3, 5])
def test_random_ones(spark, bits, distance, random_fingerprints):
    fingerprints = [*random_fingerprints(2000, bits, seed=distance), 0, 0, 2**bits - 1, 1, None, None]
    df = frames.frame(spark, fingerprints, bits=bits)
    found = collected(on_spark.clusters(df, distance=distance))
    assert found == expected(fingerprints, distance, bits) and found


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_more_edges_than_a_task_holds(spark, checkpoints, bits, random_fingerprints):
    # Chains too, whose ends are far from each other.
    chain = [sum(1 << at for at in range(length)) for length in range(0, 40)]
    fingerprints = [*random_fingerprints(500, bits), *chain, 0, 2**bits - 1]
    df = frames.frame(spark, fingerprints, bits=bits)
    assert collected(on_spark.clusters(df, distance=1, parts=8, edges=10)) == expected(fingerprints, 1, bits)


def test_more_edges_than_a_task_holds_need_a_checkpoint_directory(spark, random_fingerprints):
    df = frames.frame(spark, random_fingerprints(100, 64))
    with pytest.raises(ValueError, match="setCheckpointDir"):
        on_spark.clusters(df, edges=1)


def test_a_crowd(spark):
    # Each is a bit from some others, and all are connected.
    crowd = np.arange(1 << 14, dtype=np.int64)
    df = spark.createDataFrame(__import__("pandas").DataFrame({"id": crowd + 5, "fingerprint": crowd}))
    found = on_spark.clusters(df.repartition(5))
    assert found.where("cluster = 5").count() == found.count() == 1 << 14


@pytest.mark.parametrize("fingerprints", [[], [None], [5], [5, None], [0, 2**64 - 1]])
def test_nothing_makes_no_cluster(spark, fingerprints):
    assert on_spark.clusters(frames.frame(spark, fingerprints)).count() == 0


def test_all_equal(spark):
    ids = [f"d{at:04}" for at in range(1000)]
    found = on_spark.clusters(frames.frame(spark, [2**63] * 1000, ids, id_type="string"))
    assert collected(found) == [(id, "d0000", 0) for id in ids]


@pytest.mark.parametrize("edges", [None, 1])
def test_components_are_those_of_a_graph(spark, checkpoints, edges):
    rng = np.random.default_rng(3)
    # Negative ones are large fingerprints.
    pairs = [(int(a), int(b)) for a, b in rng.integers(-300, 300, (250, 2))] + [(1000, 1000), (1000, 1000), (7, 7)]
    found = collections.defaultdict(set)
    rows = components(spark.createDataFrame(pairs, "a long, b long").repartition(5), edges).collect()
    for row in rows:
        found[row.root].add(row.member)
    graph = networkx.Graph(pairs)
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, networkx.connected_components(graph)))
    assert len(rows) == graph.number_of_nodes() and all(root in members for root, members in found.items())
