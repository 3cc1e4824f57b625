"""Pairs and clusters do not depend on the partitions, or on executors that are killed."""

import functools
import importlib

import pytest

import helpers
from spark import faults, frames

DISTANCE = 3


def mixed_fingerprints(count=150):
    """Returns 5 equal fingerprints, 40 that each differ from these in one bit, `count` random ones, and a few others, also nulls."""
    base = 0x1234 << 48
    return [None, *(base ^ 1 << at for at in range(40)), *[base] * 5, 0, 2**64 - 1, None] + helpers.random_fingerprints(count, 64)


def without_nulls(fingerprints):
    return [(id, fingerprint) for id, fingerprint in enumerate(fingerprints) if fingerprint is not None]


def expected_pairs(fingerprints):
    ids, values = zip(*without_nulls(fingerprints))
    return sorted((ids[a], ids[b], distance) for a, b, distance in helpers.brute_force_pairs(values, DISTANCE, 64))


def expected_clusters(fingerprints):
    """Returns sorted rows (id, cluster, distance to the first member) of all members of clusters."""
    ids, values = zip(*without_nulls(fingerprints))
    labels = helpers.brute_force_labels(values, DISTANCE, 64)
    first = {}
    for id, label in zip(ids, labels):
        first.setdefault(label, id)
    sizes = [labels.count(label) for label in labels]
    rows = zip(ids, labels, sizes)
    return sorted(
        (id, first[label], (fingerprints[id] ^ fingerprints[first[label]]).bit_count()) for id, label, size in rows if size > 1
    )


def collect_pairs(frame, last_task=lambda batches: batches):
    """Returns the sorted near pairs of a frame. The function `last_task` maps the batches of pairs in a last step of the job."""
    from simstore.spark import near_pairs

    found = near_pairs(frame, distance=DISTANCE, parts=2).select("id_a", "id_b", "distance")
    return sorted(map(tuple, found.mapInArrow(last_task, found.schema).collect()))


def collect_clusters(frame, last_task=lambda batches: batches):
    from simstore.spark import clusters, release

    found = clusters(frame, distance=DISTANCE, parts=2).select("id", "cluster", "distance")
    rows = found.mapInArrow(last_task, found.schema).collect()
    release()
    return sorted(map(tuple, rows))


def pause_in_step(monkeypatch, step, folder):
    """Makes the first task of a step, such as "joining.near", pause at the end of its input."""
    module, name = step.split(".")
    module = importlib.import_module(f"simstore.tasks.{module}")
    task = getattr(module, name)

    def paused_task(batches, *args, **settings):
        return task(faults.pause_after(folder, batches), *args, **settings)

    monkeypatch.setattr(module, name, paused_task)


@pytest.mark.parametrize("partitions", [1, 2, 50])
def test_partitions(spark, adaptive, partitions):
    fingerprints = mixed_fingerprints(60)
    frame = frames.fingerprint_frame(spark, fingerprints, partitions=partitions)
    assert collect_pairs(frame) == expected_pairs(fingerprints)
    with frames.changed_settings(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
        assert collect_clusters(frame) == expected_clusters(fingerprints)


@pytest.mark.parametrize("step", ["rows.pack_rows", "joining.scatter", "joining.near", "rows.pack_pairs"])
def test_an_executor_killed_while_pairs_are_found(spark, tmp_path, monkeypatch, step):
    fingerprints = mixed_fingerprints()
    frame = frames.fingerprint_frame(spark, fingerprints)
    pause_in_step(monkeypatch, step, tmp_path)
    assert faults.kill_during(tmp_path, lambda: collect_pairs(frame)) == expected_pairs(fingerprints)


@pytest.mark.parametrize("step", ["joining.pack", "joining.connect", "joining.members"])
def test_an_executor_killed_while_clusters_are_made(spark, tmp_path, monkeypatch, step):
    fingerprints = mixed_fingerprints()
    frame = frames.fingerprint_frame(spark, fingerprints)
    pause_in_step(monkeypatch, step, tmp_path)
    assert faults.kill_during(tmp_path, lambda: collect_clusters(frame)) == expected_clusters(fingerprints)


@pytest.mark.parametrize("collect, expected", [(collect_pairs, expected_pairs), (collect_clusters, expected_clusters)])
def test_an_executor_killed_while_results_are_read(spark, tmp_path, collect, expected):
    fingerprints = mixed_fingerprints()
    frame = frames.fingerprint_frame(spark, fingerprints)
    pause = functools.partial(faults.pause_after, tmp_path)
    assert faults.kill_during(tmp_path, lambda: collect(frame, pause)) == expected(fingerprints)
