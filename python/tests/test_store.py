"""`Store`: inserts, deletes, batches, compaction and settings."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers
import simstore


def stored_pairs(store):
    snapshot = store.snapshot() if isinstance(store, simstore.Store) else store
    return [(helpers.to_int(row["fingerprint"]), row["id"]) for table in snapshot.iter_batches() for row in table.to_pylist()]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_writes_are_those_of_a_set(tmp_path_factory, bits, data):
    path = tmp_path_factory.mktemp("live") / "store"
    values = data.draw(helpers.fingerprint_lists(bits, max_size=20).filter(bool), "values")
    expected = set()

    def is_new(fingerprint):
        stored = [other for other, _ in expected]
        return not (helpers.distance_matrix([fingerprint], stored, bits) <= 3).any()

    store = simstore.Store(path, bits=bits)
    operations = st.sampled_from(["insert", "delete", "new", "many", "new_many", "delete_many", "flush"])
    for operation in data.draw(st.lists(operations, max_size=12)):
        entries = data.draw(st.lists(st.tuples(st.sampled_from(values), st.integers(0, 3)), min_size=1, max_size=8))
        fingerprint, id = entries[0]
        fingerprints, ids = helpers.to_array([f for f, _ in entries], bits), np.array([i for _, i in entries])
        if operation == "insert":
            store.insert(fingerprint, id)
            expected.add((fingerprint, id))
        elif operation == "delete":
            assert store.delete(fingerprint, id) == ((fingerprint, id) in expected)
            expected.discard((fingerprint, id))
        elif operation == "new":
            found = store.insert_if_new(fingerprint, id)
            matches = helpers.brute_force_matches(expected, [fingerprint], 3, bits)
            assert [(0, m.distance, helpers.to_int(m.fingerprint), m.id) for m in found] == matches
            if not matches:
                expected.add((fingerprint, id))
        elif operation == "many":
            store.insert_many(fingerprints, ids)
            expected.update(entries)
        elif operation == "new_many":
            inserted = store.insert_many_if_new(fingerprints, ids)
            for at, (fingerprint, id) in enumerate(entries):
                assert inserted[at] == is_new(fingerprint)
                if inserted[at]:
                    expected.add((fingerprint, id))
        elif operation == "delete_many":
            for (fingerprint, id), was_deleted in zip(entries, store.delete_many(fingerprints, ids)):
                assert was_deleted == ((fingerprint, id) in expected)
                expected.discard((fingerprint, id))
        else:
            store.flush()
        assert stored_pairs(store) == sorted(expected)
    store.close()
    assert stored_pairs(simstore.Snapshot(path)) == sorted(expected)


def test_arrays_of_every_kind(tmp_path):
    pyarrow, polars, pandas = map(helpers.optional_module, ("pyarrow", "polars", "pandas"))
    values = [3, 2**64 - 1, 1 << 40]
    for number, fingerprints in enumerate([
        values, tuple(values), np.array(values, dtype=np.uint64), np.array(values, dtype=object),
        pyarrow.array(values, pyarrow.uint64()), polars.Series(values, dtype=polars.UInt64),
        pandas.Series(values, dtype=np.uint64), simstore.Snapshot,
    ]):
        if fingerprints is simstore.Snapshot:
            fingerprints = simstore.Snapshot(tmp_path / "0").query_many(values, 0)["fingerprint"]
        for kind, ids in enumerate([
            range(3), np.arange(3), np.arange(3, dtype=np.uint32), pyarrow.array([0, 1, 2]),
            polars.Series([0, 1, 2]), pandas.Series([0, 1, 2]), iter([0, 1, 2]),
        ]):
            path = tmp_path / (str(number) if kind == 0 else f"{number}-{kind}")
            names = [["a", None, "c"], pyarrow.array(["a", None, "c"]), polars.Series(["a", None, "c"])][kind % 3]
            with simstore.Store(path) as store:
                store.insert_many(fingerprints, ids, names)
                assert stored_pairs(store) == sorted(zip(values, range(3)))
                assert store.snapshot().names([0, 1, 2]).to_pylist() == ["a", None, "c"]
        if number > 1:
            break


def test_names(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        store.insert(1, 1, "first")
        assert store.insert_if_new(0xFF << 30, 2, "second") == []
        assert store.insert_many_if_new([0xFF << 50, 0xFF << 50], [3, 4], ["third", "fourth"]).tolist() == [True, False]
        store.insert(1, 1, "renamed")
        assert store.snapshot().names(range(1, 5)).to_pylist() == ["renamed", "second", "third", None]


def test_a_batch_is_all_or_nothing(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        store.insert(1, 1)
        with store.batch() as batch:
            batch.insert(2, 2, "two")
            batch.insert_many([3, 4], [3, 4], ["three", None])
            batch.delete(1, 1)
            batch.delete_many([4, 9], [4, 9])
            batch.set_metadata("crawl", b"page 7")
            assert len(batch) == 5 and stored_pairs(store) == [(1, 1)]
        assert stored_pairs(store) == [(2, 2), (3, 3)]
        snapshot = store.snapshot()
        assert (snapshot.metadata("crawl"), snapshot.metadata("other"), snapshot.name(3)) == (b"page 7", None, "three")
        with pytest.raises(ValueError, match="the batch has ended"):
            batch.insert(5, 5)
        with pytest.raises(KeyError):
            with store.batch() as batch:
                batch.insert(6, 6)
                raise KeyError("on purpose")
        with pytest.raises(ValueError, match="a name of 70000 bytes"):
            with store.batch() as batch:
                batch.insert(6, 6)
                batch.insert(7, 7, "x" * 70_000)
        assert stored_pairs(store) == [(2, 2), (3, 3)]


@pytest.mark.parametrize("durability", ["os", "group", "sync"])
def test_writes_are_visible_at_once(tmp_path, durability):
    with simstore.Store(tmp_path / "store", durability=durability) as store:
        store.insert(1, 1)
        store.insert_many([2, 3], [2, 3])
        assert store.insert_many_if_new([0xFF << 40], [4]).all()
        assert store.insert_if_new(0xFF << 50, 5) == []
        assert store.delete(1, 1) and store.delete_many([2], [2]).all()
        with store.batch() as batch:
            batch.insert(6, 6)
        # A new snapshot reads the log, as another process would.
        assert stored_pairs(simstore.Snapshot(store.path)) == [(3, 3), (6, 6), (0xFF << 40, 4), (0xFF << 50, 5)]
        store.sync()


def test_it_is_closed_like_a_file(tmp_path):
    path = tmp_path / "store"
    with simstore.Store(path) as store:
        store.insert(5, 1)
        with pytest.raises(simstore.LockedError, match="this process already has the store open for writing") as raised:
            simstore.Store(path)
        program = "import simstore, sys; simstore.Store(sys.argv[1])"
        completed = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
        assert "LockedError" in completed.stderr and "another process is writing to this store" in completed.stderr
        assert raised.value.code == "locked" and not store.closed
    assert store.closed and "closed" in repr(store)
    store.close()
    for call in (lambda: store.insert(1, 1), lambda: store.query(1), lambda: len(store), store.snapshot, store.batch):
        with pytest.raises(ValueError, match="the store is closed"):
            call()
    with pytest.raises(ValueError, match="closed"), store:
        pass
    with simstore.Store(path) as store:
        assert 5 in store and 6 not in store and len(store) == 1
        assert (store.path, store.bits, store.distance) == (str(path), 64, 3)
        batch = store.batch()
    with pytest.raises(ValueError, match="closed"), batch:
        batch.insert(1, 1)
    # A store that was not closed is closed when its last reference is dropped.
    forgotten = simstore.Store(path)
    del forgotten
    simstore.Store(path).close()


def test_it_is_not_pickled(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        with pytest.raises(TypeError, match=r"one process at a time writes to a store; send the path, or Snapshot\('"):
            pickle.dumps(store)


def test_compaction(tmp_path):
    with simstore.Store(tmp_path / "store", distance=2) as store:
        for at in range(3):
            store.insert_many(helpers.random_fingerprints(500, 64, at), range(500))
            store.flush()
        store.delete_many(helpers.random_fingerprints(500, 64, 0), range(500))
        with pytest.raises(ValueError, match="distance 3"):
            store.query(0, 3)
        updates = []
        store.compact(5, progress=updates.append)
        assert store.distance == 5 and store.query(0, 5) is not None
        assert updates and all(isinstance(progress, simstore.Progress) for progress in updates)
        with pytest.raises(ValueError, match="it can be raised"):
            store.compact(distance=4)
        expected = set(zip(helpers.random_fingerprints(500, 64, 1), range(500)))
        expected |= set(zip(helpers.random_fingerprints(500, 64, 2), range(500)))
        assert stored_pairs(store) == sorted(expected) and store.snapshot().stats["tombstones"] == 0


def test_settings(tmp_path):
    path = tmp_path / "store"
    profile = simstore.Profile("words-2", bits=128)
    with simstore.Store(path, distance=4, codec="elias-fano", profile=profile, plan="probe-2") as store:
        store.insert(1 << 100, 1)
        store.flush()
        stats = store.snapshot().stats
    assert (stats["bits"], stats["distance"], stats["codec"], stats["profile"]) == (128, 4, "elias-fano", "words-2")
    for wrong in ({"distance": 3}, {"codec": "gap"}, {"bits": 64}, {"profile": "chars-4"}, {"ids": False}):
        with pytest.raises(ValueError, match="the store has|the store holds"):
            simstore.Store(path, **wrong)
    for wrong in (
        {"distance": 40}, {"codec": "zip"}, {"plan": "best"}, {"bits": 32}, {"durability": "never"}, {"profile": "nothing"},
    ):
        with pytest.raises(ValueError):
            simstore.Store(tmp_path / "other", **wrong)
        assert not (tmp_path / "other").exists()
    with simstore.Store(path) as store:
        assert store.bits == 128 and 1 << 100 in store


def test_missing_stores_are_not_created(tmp_path):
    with pytest.raises(FileNotFoundError):
        simstore.Store(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()
    with pytest.raises(FileNotFoundError):
        simstore.Store(tmp_path / "no folder" / "store")
    (tmp_path / "text").write_text("mine")
    with pytest.raises(simstore.NotAStoreError, match="choose another path"):
        simstore.Store(tmp_path)


def test_invalid_arguments_are_refused(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        for fingerprint in (-1, 2**64):
            with pytest.raises(ValueError, match="no fingerprint of 64 bits"):
                store.insert(fingerprint, 1)
        for id in (-1, 2**64):
            with pytest.raises(ValueError, match="no id"):
                store.insert(1, id)
            with pytest.raises(ValueError, match="no id"):
                store.insert_many([1], [id])
        with pytest.raises(ValueError, match="no id"):
            store.insert_many([1], np.array([-1]))
        with pytest.raises(TypeError):
            store.insert(1, b"one")
        with pytest.raises(TypeError, match="float64"):
            store.insert_many([1], np.array([1.0]))
        with pytest.raises(ValueError, match="there are 2 fingerprints, and 1 ids"):
            store.insert_many([1, 2], [1])
        with pytest.raises(ValueError, match="there are 2 fingerprints, and 3 names"):
            store.insert_many([1, 2], [1, 2], ["a", "b", "c"])
        with pytest.raises(ValueError, match="fingerprint 1 is null"):
            store.insert_many([1, None], [1, 2])
        with pytest.raises(TypeError, match="put it in a list"):
            store.insert_many([1, 2], [1, 2], "ab")
        assert len(store) == 0


def test_a_torn_log_is_reported(tmp_path):
    path = tmp_path / "store"
    store = simstore.Store(path)
    store.insert(1, 1)
    log = next(path.glob("*.log"))
    data = log.read_bytes()
    store.close()
    # A crash can leave a partial record at the end of the log.
    log.write_bytes(data + b"torn")
    problem, = simstore.Snapshot(path).verify()
    assert isinstance(problem, simstore.CorruptError) and problem.code == "torn-tail"
    assert (problem.path, problem.offset) == (str(log), len(data))
    with pytest.warns(simstore.SimstoreWarning, match="torn tail: the last 4 bytes"):
        simstore.Store(path).close()
    assert simstore.Snapshot(path).verify() == []
