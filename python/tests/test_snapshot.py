"""Queries and scans of `Snapshot`, compared with brute force."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers
import simstore


def build(path, stored, bits=64, **options):
    with simstore.Builder(path, bits=bits, **options) as builder:
        fingerprints, ids = zip(*stored) if stored else ([], [])
        builder.insert_many(helpers.to_array(fingerprints, bits), list(ids))
    return simstore.Snapshot(path)


def match_rows(table):
    return [(row["query"], row["distance"], helpers.to_int(row["fingerprint"]), row["id"]) for row in table]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_queries_are_those_of_brute_force(tmp_path_factory, bits, data):
    distance = data.draw(st.integers(0, 6), "distance")
    stored = [(f, i % 17) for i, f in enumerate(data.draw(helpers.fingerprint_lists(bits), "stored"))]
    queries = data.draw(helpers.fingerprint_lists(bits, max_size=30), "asked")
    path = tmp_path_factory.mktemp("built") / "store"
    codec = data.draw(st.sampled_from(["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"]), "codec")
    built = build(path, stored, bits, distance=distance, codec=codec)
    with simstore.Store(path.parent / "live", bits=bits, distance=distance) as store:
        half = len(stored) // 2
        store.insert_many([f for f, _ in stored[:half]], [i for _, i in stored[:half]])
        store.flush()
        for fingerprint, id in stored[half:]:
            store.insert(fingerprint, id)
        live = store.snapshot()
    for snapshot in (built, live):
        expected = helpers.brute_force_matches(stored, queries, distance, bits)
        assert match_rows(snapshot.query_many(helpers.to_array(queries, bits))) == expected
        single = [(q, *m) for q, query in enumerate(queries) for m in snapshot.query(query)]
        assert [(q, d, helpers.to_int(f), i) for q, f, d, i in single] == expected
        if distance > 0:
            nearer = helpers.brute_force_matches(stored, queries, distance - 1, bits)
            assert match_rows(snapshot.query_many(queries, distance - 1)) == nearer
        stored_fingerprints = {f for f, _ in stored}
        assert snapshot.contains_many(queries).tolist() == [f in stored_fingerprints for f in queries]
        assert all((f in snapshot) == (f in stored_fingerprints) for f in queries)
        read = [(helpers.to_int(r["fingerprint"]), r["id"]) for t in snapshot.iter_batches(7) for r in t.to_pylist()]
        assert read == sorted(set(stored))


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_many_queries_of_a_larger_store(tmp_path, bits):
    values = helpers.random_fingerprints(6000, bits)
    stored = [(f, i) for i, f in enumerate(values)]
    snapshot = build(tmp_path / "store", stored, bits)
    queries = [f ^ (1 << at % bits) for at, f in enumerate(values[::30])]
    assert match_rows(snapshot.query_many(queries)) == helpers.brute_force_matches(stored, queries, 3, bits)
    assert len(snapshot) == len(set(values)) == snapshot.stats["fingerprints"]


def test_match_is_a_tuple(tmp_path):
    snapshot = build(tmp_path / "store", [(0b1111, 7), (0b1101, 9)])
    nearest, other = snapshot.query(np.uint64(0b1110), 2)
    assert (nearest.fingerprint, nearest.distance, nearest.id) == (0b1111, 1, 7)
    assert repr(other) == "Match(fingerprint=0xd, distance=2, id=9)"
    fingerprint, distance, id = other
    assert simstore.Match(fingerprint, distance, id) == other != nearest
    assert len({nearest, other, simstore.Match(0b1111, 1, 7)}) == 2
    assert pickle.loads(pickle.dumps(nearest)) == nearest
    with pytest.raises(AttributeError):
        nearest.id = 3


def test_nulls_match_nothing(tmp_path):
    snapshot = build(tmp_path / "store", [(0, 1), (5, 2)])
    assert match_rows(snapshot.query_many([None, 5, None, 0], 0)) == [(1, 0, 5, 2), (3, 0, 0, 1)]
    assert snapshot.contains_many([None, 5]).tolist() == [False, True]
    fingerprints = simstore.Profile().fingerprints(["", "to be or not to be"])
    assert len(snapshot.query_many(fingerprints, 0)) == 0


def test_names_are_looked_up(tmp_path):
    with simstore.Builder(tmp_path / "store") as builder:
        builder.insert_many([8, 8, 9], [1, 2, 5], ["one", None, "近似"])
    snapshot = simstore.Snapshot(tmp_path / "store")
    assert snapshot.query_many([9, 8], 0)["name"].to_pylist() == ["近似", "one", None]
    assert (snapshot.name(5), snapshot.name(2), snapshot.name(77)) == ("近似", None, None)
    assert snapshot.names([5, 77, 1, 5]).to_pylist() == ["近似", None, "one", "近似"]
    assert [row["name"] for table in snapshot.iter_batches() for row in table.to_pylist()] == ["one", None, "近似"]
    assert snapshot.contains(8, 2) and not snapshot.contains(8, 5)


def test_a_store_without_ids(tmp_path):
    with simstore.Builder(tmp_path / "store", ids=False) as builder:
        builder.insert_many([3, 0xFF << 50], [0, 0])
    snapshot = simstore.Snapshot(tmp_path / "store")
    assert [tuple(match) for match in snapshot.query(3)] == [(3, 0, None)]
    assert snapshot.query_many([3]).to_pylist() == [
        {"query": 0, "fingerprint": 3, "distance": 0, "id": None, "name": None}
    ]


def test_an_empty_store(tmp_path):
    snapshot = build(tmp_path / "store", [])
    assert len(snapshot) == 0 and snapshot.query(0) == [] and 0 not in snapshot
    assert len(snapshot.query_many(np.arange(10, dtype=np.uint64))) == 0
    assert list(snapshot.iter_batches()) == [] and snapshot.verify() == []
    assert len(snapshot.query_many(np.zeros(0, dtype=np.uint64))) == 0


def test_a_snapshot_stays_as_it_is(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        store.insert(1, 1)
        old = store.snapshot()
        store.insert(1 << 20, 2)
        reader = simstore.Snapshot(tmp_path / "store")
        store.delete(1, 1)
        store.compact()
    assert [tuple(match) for match in old.query(1)] == [(1, 0, 1)]
    assert (1 << 20) not in old and 1 in old
    assert reader.contains_many([1, 1 << 20]).tolist() == [True, True]
    assert reader.refresh().contains_many([1, 1 << 20]).tolist() == [False, True]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_it_is_pickled_by_its_path(tmp_path, monkeypatch, bits):
    monkeypatch.chdir(tmp_path)
    snapshot = build("store", [(5, 1)], bits)
    sent = pickle.dumps(snapshot)
    monkeypatch.chdir("/")
    copy = pickle.loads(sent)
    assert copy.path == str(tmp_path / "store") and copy.bits == bits and 5 in copy
    with simstore.Store(tmp_path / "live", bits=bits) as store:
        store.insert(6, 1)
        copy = pickle.loads(pickle.dumps(store.snapshot()))
        assert 6 in copy


def test_attributes_and_stats_of_a_snapshot(tmp_path):
    profile = simstore.Profile("words-3")
    snapshot = build(tmp_path / "store", [(5, 1)], distance=4, codec="gap", profile=profile, plan="probe-2")
    stats = snapshot.stats
    assert (snapshot.distance, snapshot.bits, snapshot.codec, snapshot.profile) == (4, 64, "gap", "words-3")
    assert (stats["distance"], stats["bits"], stats["codec"], stats["profile"]) == (4, 64, "gap", "words-3")
    assert (stats["fingerprints"], stats["ids"], stats["segments"], stats["plan"]) == (1, 1, 1, "probe-2")
    assert snapshot.path == str(tmp_path / "store")
    assert repr(snapshot) == f"Snapshot('{tmp_path}/store', bits=64, distance=4)"
    completed = subprocess.run(
        [helpers.cli_binary(), "inspect", "--json", snapshot.path], capture_output=True, check=True, text=True
    )
    inspected = json.loads(completed.stdout.splitlines()[0])
    assert {key: inspected.pop(key) for key in stats} == stats
    # Settings that only stores of similar documents have.
    assert inspected == {"similar": None, "recall": None, "with_texts": None}
    assert build(tmp_path / "other", [(5, 1)]).profile is None


def test_invalid_calls_are_refused(tmp_path):
    snapshot = build(tmp_path / "store", [(5, 1)])
    with pytest.raises(ValueError, match="distance 4 is more than this store can answer"):
        snapshot.query(5, 4)
    with pytest.raises(ValueError, match="distance 4"):
        snapshot.query_many([5], 4)
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match="no fingerprint of 64 bits"):
            snapshot.query(wrong)
    with pytest.raises(TypeError, match="a fingerprint is an int, not str"):
        snapshot.query("5")
    with pytest.raises(ValueError, match="expected fingerprints of 64 bits"):
        snapshot.query_many(helpers.to_array([5], 128))
    with pytest.raises(TypeError, match="float64"):
        snapshot.query_many(np.array([5.0]))
    with pytest.raises(ValueError, match="size is 0"):
        snapshot.iter_batches(0)
    with pytest.raises(ValueError, match="no id"):
        snapshot.name(-1)


def test_paths_that_are_no_stores(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        simstore.Snapshot(tmp_path / "nothing")
    assert raised.value.filename == str(tmp_path / "nothing")
    with pytest.raises(simstore.NotAStoreError):
        simstore.Snapshot(tmp_path)
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(simstore.NotAStoreError, match="a store is a directory"):
        simstore.Snapshot(file)


def test_corruption_is_reported(tmp_path):
    path = tmp_path / "store"
    build(path, [(f, i) for i, f in enumerate(helpers.random_fingerprints(3000, 64))])
    table = next(file for file in sorted(path.iterdir()) if file.suffix == ".table")
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 4
    table.write_bytes(data)
    snapshot = simstore.Snapshot(path)
    problems = snapshot.verify()
    assert problems and all(isinstance(problem, simstore.CorruptError) for problem in problems)
    assert problems[0].path == str(table) and 0 < problems[0].offset < len(data)
    with pytest.raises(simstore.CorruptError) as raised:
        sum(len(batch) for batch in snapshot.iter_batches())
    assert (raised.value.path, raised.value.code) == (str(table), "corrupt")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.path, copy.offset, str(copy)) == (str(table), raised.value.offset, str(raised.value))
    (path / "MANIFEST").write_bytes(b"nothing of the kind")
    with pytest.raises(simstore.CorruptError):
        simstore.Snapshot(path)


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_libraries_read_a_table_and_a_store(tmp_path, bits):
    duckdb, pandas, polars, pyarrow = map(helpers.optional_module, ("duckdb", "pandas", "polars", "pyarrow"))
    values = sorted(set(helpers.random_fingerprints(300, bits)))
    with simstore.Builder(tmp_path / "store", bits=bits) as builder:
        builder.insert_many(values, range(len(values)), [f"document {i}" for i in range(len(values))])
    snapshot = simstore.Snapshot(tmp_path / "store")
    expected = values if bits == 64 else [value.to_bytes(16, "big") for value in values]

    frame = polars.DataFrame(snapshot)
    assert frame["fingerprint"].to_list() == expected and frame["name"][3] == "document 3"
    assert pyarrow.RecordBatchReader.from_stream(snapshot).read_all()["id"].to_pylist() == list(range(len(values)))
    assert duckdb.sql("select count(*), max(id), min(name) from snapshot").fetchall()[0] == (
        len(values), len(values) - 1, "document 0",
    )
    read = pandas.DataFrame.from_arrow(snapshot)
    assert read["name"].tolist() == [f"document {i}" for i in range(len(values))]

    found = snapshot.query_many(values, 0)
    ids = list(range(len(values)))
    assert polars.DataFrame(found)["id"].to_list() == ids
    assert pyarrow.table(found)["fingerprint"].to_pylist() == expected
    assert duckdb.sql("select sum(distance), count(distinct name) from found").fetchall()[0] == (0, len(values))
    assert found.to_pandas()["id"].tolist() == ids
    # Fingerprint columns of other libraries are valid queries.
    for queries in (frame["fingerprint"], pyarrow.table(found)["fingerprint"], found["fingerprint"]):
        assert snapshot.query_many(queries, 0)["id"].to_pylist() == ids


TRUNCATE_PROGRAM = """
import os, pickle, sys, numpy as np, simstore
path = sys.argv[1]
with simstore.Builder(path) as builder:
    builder.insert_many(np.arange(1_000_000, dtype=np.uint64) << np.uint64(40), np.arange(1_000_000))
snapshot = simstore.Snapshot(path, mmap=False)
tables = [os.path.join(path, name) for name in os.listdir(path) if os.path.getsize(os.path.join(path, name)) > 1 << 20]
assert tables
for table in tables:
    os.truncate(table, 4096)
print(len(snapshot.query(5 << 40)) > 0, snapshot.verify())
for opened in (lambda: simstore.Snapshot(path, mmap=False), lambda: pickle.loads(pickle.dumps(snapshot))):
    try:
        opened()
    except (OSError, simstore.errors.CorruptError) as error:
        print(type(error).__name__)
"""


def test_a_snapshot_in_memory_outlives_its_files(tmp_path):
    """A snapshot opened without mmap can be queried after its files are truncated, which would crash a mapped one."""
    completed = subprocess.run([sys.executable, "-c", TRUNCATE_PROGRAM, str(tmp_path / "store")], capture_output=True, text=True)
    assert (completed.returncode, completed.stdout) == (0, "True []\nCorruptError\nCorruptError\n"), completed.stderr
