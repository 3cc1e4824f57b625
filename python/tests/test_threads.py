"""Many threads on one store, one snapshot, one builder."""

import sys
import threading

import numpy as np
import pytest

import plain
import simstore

THREADS = 8


@pytest.fixture(autouse=True)
def often_switched():
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Runs all at the same time; what one raises is raised."""
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
    values = plain.random_fingerprints(THREADS * 400, 64)
    parts = [values[at::THREADS] for at in range(THREADS)]
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

        together(*[lambda at=at: write(at) for at in range(THREADS)], read, read, lambda: store.compact())
        expected = {(value, at) for at in range(THREADS) for value in parts[at]}
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

        before = plain.labels([(number << 32) * 0x10101 for number in range(100)] + [0xFFFF << 48], 3, 64)
        together(*[lambda at=at: insert(at) for at in range(THREADS)])
        assert len(inserted) == len(set(inserted)) and len(inserted) >= len(set(before))


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
            # Nobody has it any more.
            simstore.Store(store.path).close()

        together(use, use, close)
        assert simstore.Snapshot(store.path).verify() == []


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_a_snapshot(tmp_path, bits):
    values = plain.random_fingerprints(600, bits)
    with simstore.Builder(tmp_path / "store", bits=bits) as builder:
        builder.insert_many(values, range(600))
    snapshot = simstore.Snapshot(tmp_path / "store")
    batch = snapshot.query_many(plain.array(values, bits)).to_pylist()
    single = [snapshot.query(value) for value in values]
    whole = [table.to_pylist() for table in snapshot.iter_batches(100)]

    def read():
        assert [snapshot.query(value) for value in values] == single
        assert snapshot.query_many(plain.array(values, bits)).to_pylist() == batch
        assert [table.to_pylist() for table in snapshot.iter_batches(100)] == whole
        assert snapshot.verify() == []

    together(*[read] * THREADS)
    batches, rows = snapshot.iter_batches(7), []
    together(*[lambda: rows.extend(row["id"] for table in batches for row in table.to_pylist())] * THREADS)
    assert sorted(rows) == list(range(600))


def test_a_builder(tmp_path):
    builder = simstore.Builder(tmp_path / "store")

    def insert(at):
        for value in range(at, 4000, THREADS * 2):
            builder.insert(value, value)
        builder.insert_many(range(at + THREADS, 4000, THREADS * 2), range(at + THREADS, 4000, THREADS * 2))

    together(*[lambda at=at: insert(at) for at in range(THREADS)])
    snapshots = []

    def finish():
        try:
            snapshots.append(builder.finish())
        except ValueError as error:
            assert "has ended" in str(error)

    together(*[finish] * THREADS)
    snapshot, = snapshots
    assert [row["id"] for table in snapshot.iter_batches() for row in table.to_pylist()] == list(range(4000))
