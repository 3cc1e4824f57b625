"""Calls leak no memory: the second half of a million calls does not make the process grow."""

import gc
import os
import sys

import numpy as np
import pytest

import helpers
import simstore

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc/self/statm")

# If each call leaked one object, half of the calls would leak 30 MB or more.
MAX_GROWTH_BYTES = 10 << 20
ROUNDS = 60_000


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_growth(calls, rounds):
    """Returns the growth of the process in bytes during the second half of the rounds. Each round runs all calls."""
    for call in calls:
        call()
    gc.collect()
    shared_objects = (None, True, simstore.Match, simstore.Snapshot)
    references_before = [sys.getrefcount(value) for value in shared_objects]
    sizes = []
    for _ in range(2):
        for _ in range(rounds // 2):
            for call in calls:
                call()
        sizes.append(resident_bytes())
    references_after = [sys.getrefcount(value) for value in shared_objects]
    counts = list(zip(references_before, references_after))
    assert all(after - before < 1000 for before, after in counts), counts
    return sizes[1] - sizes[0]


def assert_refused(call, *arguments):
    try:
        call(*arguments)
    except ValueError:
        return
    raise AssertionError("it was not refused")


def test_single_calls(tmp_path):
    wide = 1 << 100
    with simstore.Builder(tmp_path / "store", bits=128) as builder:
        builder.insert_many([wide, wide + 1, 7], [1, 2, 3], ["one", None, "three"])
    snapshot = simstore.Snapshot(tmp_path / "store")
    profile = simstore.Profile()
    with simstore.Store(tmp_path / "live") as store:
        store.insert(5, 1)
        calls = [
            lambda: snapshot.query(wide),
            lambda: [match.fingerprint for match in snapshot.query(7)],
            lambda: tuple(snapshot.query(wide, 0)[0]),
            lambda: repr(snapshot.query(wide, 0)[0]),
            lambda: snapshot.name(1),
            lambda: snapshot.contains(wide, 2),
            lambda: wide in snapshot,
            lambda: (snapshot.path, snapshot.profile, snapshot.codec),
            lambda: assert_refused(snapshot.query, -1),
            lambda: assert_refused(snapshot.query, 1, 99),
            lambda: simstore.distance(wide, 3),
            lambda: profile.fingerprint("to be or not to be"),
            lambda: store.query(4),
            lambda: store.insert_if_new(4, 2),
            lambda: store.delete(9, 9),
            lambda: store.snapshot(),
            lambda: (len(store), 5 in store),
        ]
        assert len(calls) * ROUNDS > 1_000_000
        assert memory_growth(calls, ROUNDS) < MAX_GROWTH_BYTES


def test_arrays(tmp_path):
    values = np.array(helpers.random_fingerprints(200, 64), dtype=np.uint64)
    objects, names = values.tolist(), [f"document {at}" for at in range(200)]
    ids = np.arange(200)
    with simstore.Builder(tmp_path / "store") as builder:
        builder.insert_many(values, ids, names)
    snapshot = simstore.Snapshot(tmp_path / "store")
    with simstore.Store(tmp_path / "live") as store:
        store.insert_many(values, ids)
        calls = [
            lambda: snapshot.query_many(values)["name"].to_pylist(),
            lambda: snapshot.query_many(objects).to_pylist(),
            lambda: [table["id"].to_numpy() for table in snapshot.iter_batches(64)],
            lambda: snapshot.__arrow_c_stream__(),
            lambda: (snapshot.contains_many(values), snapshot.names(ids), snapshot.stats),
            lambda: (simstore.self_join(values), simstore.clusters(objects), simstore.distance(values, values)),
            lambda: store.insert_many_if_new(values, ids, names),
            lambda: assert_refused(store.insert_many, values, ids[:3]),
        ]
        assert memory_growth(calls, 600) < MAX_GROWTH_BYTES
