"""Many threads share a store, a snapshot or a builder."""

import sys
import threading

import numpy as np
import pytest

import helpers
import simstore

THREAD_COUNT = 8


@pytest.fixture(autouse=True)
def short_switch_interval():
    """Makes the interpreter switch threads far more often than by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_at_once(*works):
    """Runs each function on its own thread, all at the same time, and raises the first exception."""
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait()
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread waits without end"
    if errors:
        raise errors[0]


def test_a_store(tmp_path):
    values = helpers.random_fingerprints(THREAD_COUNT * 400, 64)
    parts = [values[at::THREAD_COUNT] for at in range(THREAD_COUNT)]
    with simstore.Store(tmp_path / "store") as store:
        def write(at):
            for number, value in enumerate(parts[at][:200]):
                store.insert(value, at, f"thread {at}")
                assert store.query(value, 0)
                if number % 50 == 0:
                    store.flush()
            store.insert_many(parts[at][200:], [at] * 200)
            assert store.delete_many(parts[at][:10], [at] * 10).any()
            store.insert_many(parts[at][:10], [at] * 10)

        def read():
            for _ in range(20):
                snapshot = store.snapshot()
                found = snapshot.query_many(np.array(values[:100], dtype=np.uint64), 3)
                assert len(found) == sum(len(snapshot.query(value)) for value in values[:100])

        run_at_once(*[lambda at=at: write(at) for at in range(THREAD_COUNT)], read, read, lambda: store.compact())
        expected = {(value, at) for at in range(THREAD_COUNT) for value in parts[at]}
        rows = {(r["fingerprint"], r["id"]) for t in store.snapshot().iter_batches() for r in t.to_pylist()}
        assert rows == expected


def test_only_one_is_new(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        inserted = []

        def insert(at):
            for number in range(100):
                if not store.insert_if_new((number << 32) * 0x10101, at):
                    inserted.append(number)
            inserted.extend(1000 + np.flatnonzero(store.insert_many_if_new([0xFFFF << 48], [at])))

        labels = helpers.brute_force_labels([(number << 32) * 0x10101 for number in range(100)] + [0xFFFF << 48], 3, 64)
        run_at_once(*[lambda at=at: insert(at) for at in range(THREAD_COUNT)])
        assert len(inserted) == len(set(inserted)) and len(inserted) >= len(set(labels))


def test_a_store_is_closed_while_it_is_used(tmp_path):
    for number in range(5):
        store = simstore.Store(tmp_path / str(number))

        def use(store=store):
            try:
                for value in range(1_000_000):
                    store.insert(value << 20, 1)
                    store.insert_many(np.arange(100, dtype=np.uint64), np.arange(100))
            except ValueError as error:
                assert "closed" in str(error)

        def close(store=store):
            while len(store) < 200:
                pass
            store.close()
            # The lock is released, so the store can be opened again.
            simstore.Store(store.path).close()

        run_at_once(use, use, close)
        assert simstore.Snapshot(store.path).verify() == []


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_a_snapshot(tmp_path, bits):
    values = helpers.random_fingerprints(600, bits)
    with simstore.Builder(tmp_path / "store", bits=bits) as builder:
        builder.insert_many(values, range(600))
    snapshot = simstore.Snapshot(tmp_path / "store")
    batch = snapshot.query_many(helpers.to_array(values, bits)).to_pylist()
    single = [snapshot.query(value) for value in values]
    whole = [table.to_pylist() for table in snapshot.iter_batches(100)]

    def read():
        assert [snapshot.query(value) for value in values] == single
        assert snapshot.query_many(helpers.to_array(values, bits)).to_pylist() == batch
        assert [table.to_pylist() for table in snapshot.iter_batches(100)] == whole
        assert snapshot.verify() == []

    run_at_once(*[read] * THREAD_COUNT)
    batches, rows = snapshot.iter_batches(7), []
    run_at_once(*[lambda: rows.extend(row["id"] for table in batches for row in table.to_pylist())] * THREAD_COUNT)
    assert sorted(rows) == list(range(600))


def test_a_builder(tmp_path):
    builder = simstore.Builder(tmp_path / "store")

    def insert(at):
        for value in range(at, 4000, THREAD_COUNT * 2):
            builder.insert(value, value)
        builder.insert_many(range(at + THREAD_COUNT, 4000, THREAD_COUNT * 2), range(at + THREAD_COUNT, 4000, THREAD_COUNT * 2))

    run_at_once(*[lambda at=at: insert(at) for at in range(THREAD_COUNT)])
    snapshots = []

    def finish():
        try:
            snapshots.append(builder.finish())
        except ValueError as error:
            assert "has ended" in str(error)

    run_at_once(*[finish] * THREAD_COUNT)
    snapshot, = snapshots
    assert [row["id"] for table in snapshot.iter_batches() for row in table.to_pylist()] == list(range(4000))
