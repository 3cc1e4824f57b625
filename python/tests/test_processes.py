"""Snapshots and profiles can be used in other processes. A store that is open during a fork refuses calls in the child."""

import multiprocessing
import os
import pickle
import sys

import numpy as np
import pytest

import helpers
import simstore

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there is no fork"),
    # The tests fork a process that has threads on purpose.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

TEXTS = [f"to be or not to be, that is question {number}" for number in range(200)]


def read_everything(snapshot, profile, values):
    """Calls all functions that read the snapshot or use the profile. Returns their results, to compare them between processes."""
    found = snapshot.query_many(values, 3)
    single = [len(snapshot.query(value, 3)) for value in values[:50].tolist()] if snapshot.bits == 64 else []
    rows = sum(len(table) for table in snapshot.iter_batches(100))
    fingerprints = profile.fingerprints(TEXTS).to_pylist()
    labels = simstore.clusters(values, 3).tolist()
    return found.to_pylist(), single, rows, fingerprints, labels, snapshot.contains_many(values).all()


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_snapshots_and_profiles_are_sent_to_processes(tmp_path, method, bits):
    values = helpers.random_fingerprints(500, bits)
    with simstore.Builder(tmp_path / "store", bits=bits) as builder:
        builder.insert_many(values, range(500), [f"document {at}" for at in range(500)])
    snapshot, profile = simstore.Snapshot(tmp_path / "store"), simstore.Profile("words-2", bits=bits)
    values = helpers.to_array(values, bits)
    # The first call starts the threads of this process.
    expected = read_everything(snapshot, profile, values)
    with multiprocessing.get_context(method).Pool(2) as pool:
        arguments = [(snapshot, profile, values)] * 4
        assert pool.starmap_async(read_everything, arguments).get(timeout=100) == [expected] * 4
    assert read_everything(snapshot, profile, values) == expected


def run_in_child(work):
    """Runs `work` in a forked child, which inherits all objects, and returns the result or the text of the error."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = work()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(write, pickle.dumps(result))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return result


def test_a_snapshot_is_read_in_the_child(tmp_path):
    values = np.array(helpers.random_fingerprints(2000, 64), dtype=np.uint64)
    with simstore.Store(tmp_path / "store") as store:
        store.insert_many(values[:1000], range(1000))
        store.flush()
        store.insert_many(values[1000:], range(1000, 2000))
        snapshot, profile = store.snapshot(), simstore.Profile()
        expected = read_everything(snapshot, profile, values)
        assert run_in_child(lambda: read_everything(snapshot, profile, values)) == expected
        assert read_everything(store.snapshot(), profile, values) == expected


def test_a_forked_store_refuses_calls(tmp_path):
    path = tmp_path / "store"
    store = simstore.Store(path)
    store.insert(1, 1)

    def use():
        codes = []
        for call in (
            lambda: store.insert(2, 2), lambda: store.insert_many([2], [2]), lambda: store.insert_if_new(2, 2),
            lambda: store.insert_many_if_new([2], [2]), lambda: store.delete(1, 1), lambda: store.delete_many([1], [1]),
            lambda: store.query(1), lambda: store.query_many([1]), lambda: store.name(1), lambda: store.names([1]),
            store.flush, store.sync, store.compact,
        ):
            try:
                codes.append(call())
            except simstore.Error as error:
                codes.append(error.code)
        try:
            with store.batch() as batch:
                batch.insert(2, 2)
        except simstore.Error as error:
            codes.append(error.code)
        ids = [match.id for match in simstore.Snapshot(path).query(1)]
        store.close()
        return codes, ids

    assert run_in_child(use) == (["forked"] * 14, [1])
    store.insert(3, 3)
    store.close()
    snapshot = simstore.Snapshot(path)
    assert [row["id"] for table in snapshot.iter_batches() for row in table.to_pylist()] == [1, 3]
    assert snapshot.verify() == []


def test_a_store_is_opened_in_the_child(tmp_path):
    simstore.clusters(np.arange(1000, dtype=np.uint64))

    def use():
        with simstore.Store(tmp_path / "store") as store:
            store.insert_many(range(1000), range(1000))
            store.compact()
        with simstore.Builder(tmp_path / "built") as builder:
            builder.insert_many(range(1000), range(1000))
        return [len(simstore.Snapshot(tmp_path / name)) for name in ("store", "built")]

    assert run_in_child(use) == [1000, 1000]


def test_another_process_reads_while_this_one_writes(tmp_path):
    with simstore.Store(tmp_path / "store") as store, multiprocessing.get_context("spawn").Pool(1) as pool:
        for number in range(3):
            store.insert(number << 20, number)
            ids = pool.apply_async(read_ids, (str(tmp_path / "store"),)).get(timeout=100)
            assert ids == list(range(number + 1))


def read_ids(path):
    return [row["id"] for table in simstore.Snapshot(path).iter_batches() for row in table.to_pylist()]
