"""`simstore.spark.clusters` finds the same clusters as `simstore.clusters`."""

import collections

import networkx
import numpy as np
import pytest

import helpers
import simstore
from simstore import spark as on_spark
from simstore.spark.clusters import components
from spark import frames


def expected_clusters(fingerprints, distance, bits=64):
    """Returns sorted rows (id, cluster, distance to the first member) of all members of clusters. Ids are positions."""
    present = [at for at, fingerprint in enumerate(fingerprints) if fingerprint is not None]
    labels = simstore.clusters(helpers.to_array([fingerprints[at] for at in present], bits), distance, bits=bits)
    clusters = collections.defaultdict(list)
    for at, label in zip(present, labels):
        clusters[label].append(at)
    shared = [cluster for cluster in clusters.values() if len(cluster) > 1]

    def distance_to(at, first):
        return (fingerprints[at] ^ fingerprints[first]).bit_count()

    return sorted((at, cluster[0], distance_to(at, cluster[0])) for cluster in shared for at in cluster)


def collect_clusters(df):
    rows = df.collect()
    assert all(row.cluster == row.representative for row in rows)
    return sorted((row.id, row.cluster, row.distance) for row in rows)


@pytest.fixture
def checkpoint_directory(spark, tmp_path):
    """Sets a checkpoint directory, where Spark writes edges that exceed the limit of a task."""
    context = spark.sparkContext
    context.setCheckpointDir(str(tmp_path))
    yield
    # Unsets the directory, which pyspark cannot do.
    context._jsc.sc().setCheckpointDir(None)


@pytest.fixture(autouse=True)
def release_after_test():
    yield
    on_spark.release()


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("distance", [0, 3, 5])
def test_random_fingerprints(spark, bits, distance, random_fingerprints):
    fingerprints = [*random_fingerprints(2000, bits, seed=distance), 0, 0, 2**bits - 1, 1, None, None]
    df = frames.fingerprint_frame(spark, fingerprints, bits=bits)
    found = collect_clusters(on_spark.clusters(df, distance=distance))
    assert found == expected_clusters(fingerprints, distance, bits) and found


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_more_edges_than_a_task_holds(spark, checkpoint_directory, bits, random_fingerprints):
    # Neighbours in this chain are near, but its ends are far from each other.
    chain = [sum(1 << at for at in range(length)) for length in range(0, 40)]
    fingerprints = [*random_fingerprints(500, bits), *chain, 0, 2**bits - 1]
    df = frames.fingerprint_frame(spark, fingerprints, bits=bits)
    assert collect_clusters(on_spark.clusters(df, distance=1, parts=8, edges=10)) == expected_clusters(fingerprints, 1, bits)


def test_more_edges_than_a_task_holds_need_a_checkpoint_directory(spark, random_fingerprints):
    df = frames.fingerprint_frame(spark, random_fingerprints(100, 64))
    with pytest.raises(ValueError, match="setCheckpointDir"):
        on_spark.clusters(df, edges=1)


def test_a_dense_group(spark):
    # All numbers of 14 bits: each differs from 14 others in one bit, so all are connected.
    dense_group = np.arange(1 << 14, dtype=np.int64)
    df = spark.createDataFrame(__import__("pandas").DataFrame({"id": dense_group + 5, "fingerprint": dense_group}))
    found = on_spark.clusters(df.repartition(5))
    assert found.where("cluster = 5").count() == found.count() == 1 << 14


@pytest.mark.parametrize("fingerprints", [[], [None], [5], [5, None], [0, 2**64 - 1]])
def test_no_clusters(spark, fingerprints):
    assert on_spark.clusters(frames.fingerprint_frame(spark, fingerprints)).count() == 0


def test_all_equal(spark):
    ids = [f"d{at:04}" for at in range(1000)]
    found = on_spark.clusters(frames.fingerprint_frame(spark, [2**63] * 1000, ids, id_type="string"))
    assert collect_clusters(found) == [(id, "d0000", 0) for id in ids]


@pytest.mark.parametrize("edges", [None, 1])
def test_components_are_those_of_a_graph(spark, checkpoint_directory, edges):
    rng = np.random.default_rng(3)
    # Negative numbers are fingerprints of 2**63 or more.
    pairs = [(int(a), int(b)) for a, b in rng.integers(-300, 300, (250, 2))] + [(1000, 1000), (1000, 1000), (7, 7)]
    found = collections.defaultdict(set)
    rows = components(spark.createDataFrame(pairs, "a long, b long").repartition(5), edges).collect()
    for row in rows:
        found[row.root].add(row.member)
    graph = networkx.Graph(pairs)
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, networkx.connected_components(graph)))
    assert len(rows) == graph.number_of_nodes() and all(root in members for root, members in found.items())
