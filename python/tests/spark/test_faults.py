"""Pairs and clusters are the same whatever becomes of tasks and executors, and however rows are partitioned."""

import functools
import importlib

import pytest

import plain
from spark import faults, frames

DISTANCE = 3


def values(count=150):
    """Crowded, equal, near and random ones, and some that are missing."""
    base = 0x1234 << 48
    return [None, *(base ^ 1 << at for at in range(40)), *[base] * 5, 0, 2**64 - 1, None] + plain.random_fingerprints(count, 64)


def present(fingerprints):
    return [(id, one) for id, one in enumerate(fingerprints) if one is not None]


def expected_pairs(fingerprints):
    ids, there = zip(*present(fingerprints))
    return sorted((ids[a], ids[b], distance) for a, b, distance in plain.pairs(there, DISTANCE, 64))


def expected_clusters(fingerprints):
    """Rows (id, cluster, distance to its first member) of those that are near others."""
    ids, there = zip(*present(fingerprints))
    labels = plain.labels(there, DISTANCE, 64)
    first = {}
    for id, label in zip(ids, labels):
        first.setdefault(label, id)
    sizes = [labels.count(label) for label in labels]
    rows = zip(ids, labels, sizes)
    return sorted(
        (id, first[label], (fingerprints[id] ^ fingerprints[first[label]]).bit_count()) for id, label, size in rows if size > 1
    )


def pairs_of(frame, last=lambda batches: batches):
    """The pairs, through a last task."""
    from simstore.spark import near_pairs

    found = near_pairs(frame, distance=DISTANCE, parts=2).select("id_a", "id_b", "distance")
    return sorted(map(tuple, found.mapInArrow(last, found.schema).collect()))


def clusters_of(frame, last=lambda batches: batches):
    from simstore.spark import clusters, release

    found = clusters(frame, distance=DISTANCE, parts=2).select("id", "cluster", "distance")
    rows = found.mapInArrow(last, found.schema).collect()
    release()
    return sorted(map(tuple, rows))


def held_at(monkeypatch, step, folder):
    """Has the first task that makes this step, as "joining.near", wait in the middle of it."""
    module, name = step.split(".")
    module = importlib.import_module(f"simstore.tasks.{module}")
    task = getattr(module, name)

    def waits(batches, *args, **settings):
        return task(faults.held(folder, batches), *args, **settings)

    monkeypatch.setattr(module, name, waits)


@pytest.mark.parametrize("partitions", [1, 2, 50])
def test_partitions(spark, adaptive, partitions):
    all_of_them = values(60)
    frame = frames.frame(spark, all_of_them, partitions=partitions)
    assert pairs_of(frame) == expected_pairs(all_of_them)
    with frames.settings(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
        assert clusters_of(frame) == expected_clusters(all_of_them)


@pytest.mark.parametrize("step", ["rows.pack_rows", "joining.scatter", "joining.near", "rows.pack_pairs"])
def test_an_executor_killed_while_pairs_are_found(spark, tmp_path, monkeypatch, step):
    all_of_them = values()
    frame = frames.frame(spark, all_of_them)
    held_at(monkeypatch, step, tmp_path)
    assert faults.kill_while(tmp_path, lambda: pairs_of(frame)) == expected_pairs(all_of_them)


@pytest.mark.parametrize("step", ["joining.pack", "joining.connect", "joining.members"])
def test_an_executor_killed_while_clusters_are_made(spark, tmp_path, monkeypatch, step):
    all_of_them = values()
    frame = frames.frame(spark, all_of_them)
    held_at(monkeypatch, step, tmp_path)
    assert faults.kill_while(tmp_path, lambda: clusters_of(frame)) == expected_clusters(all_of_them)


@pytest.mark.parametrize("of, expected", [(pairs_of, expected_pairs), (clusters_of, expected_clusters)])
def test_an_executor_killed_while_results_are_read(spark, tmp_path, of, expected):
    all_of_them = values()
    frame = frames.frame(spark, all_of_them)
    held = functools.partial(faults.held, tmp_path)
    assert faults.kill_while(tmp_path, lambda: of(frame, held)) == expected(all_of_them)
