"""Stores written by `Builder`, which the command-line program and `reader.py` also read."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import helpers
import simstore

GOLDEN = helpers.ROOT / "format-spec" / "golden"
READER = helpers.ROOT / "format-spec" / "reader.py"


def expected_lines(snapshot):
    """Returns the lines that `reader.py` should print for a store."""
    digits = snapshot.bits // 4
    rows = [row.values() for table in snapshot.iter_batches() for row in table.to_pylist()]
    return [
        "\t".join([f"{helpers.to_int(value):0{digits}x}", *(str(column) for column in columns if column is not None)])
        for value, *columns in rows
    ]


def run_reader(path):
    out = subprocess.run([sys.executable, READER, path], capture_output=True, check=True, text=True, encoding="utf-8")
    return out.stdout.split("\n")[:-1]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("codec", ["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"])
def test_reader_and_command_line_read_stores_of_python(tmp_path, bits, codec):
    values = helpers.random_fingerprints(400, bits)
    names = [f"文档 {at}" if at % 3 else None for at in range(len(values))]
    with simstore.Builder(tmp_path / "built", bits=bits, codec=codec) as builder:
        builder.insert_many(helpers.to_array(values, bits), np.arange(len(values)), names)
    with simstore.Store(tmp_path / "live", bits=bits, codec=codec) as store:
        store.insert_many(values[:300], range(300), names[:300])
        store.flush()
        store.insert_many(values[300:], range(300, 400), names[300:])
        store.delete(values[0], 0)
    for path in (tmp_path / "built", tmp_path / "live"):
        snapshot = simstore.Snapshot(path)
        expected = expected_lines(snapshot)
        assert len(expected) == 400 - (path.name == "live") and run_reader(path) == expected
        subprocess.run([helpers.cli_binary(), "verify", path], check=True, capture_output=True)
        query = f"{values[7]:0{bits // 4}x}"
        found = subprocess.run(
            [helpers.cli_binary(), "query", "--json", path, query], capture_output=True, check=True, text=True
        )
        found = [json.loads(line) for line in found.stdout.splitlines()]
        matches = [(f"{helpers.to_int(m.fingerprint):0{bits // 4}x}", m.distance, m.id) for m in snapshot.query(values[7])]
        assert [(m["fingerprint"], m["distance"], m["id"]) for m in found if "fingerprint" in m] == matches


@pytest.mark.parametrize("path", sorted(path for path in GOLDEN.iterdir() if path.is_dir() and not path.name.startswith("log")))
def test_golden_stores_are_read(path):
    snapshot = simstore.Snapshot(path)
    assert expected_lines(snapshot) == run_reader(path)
    assert snapshot.verify() == []
    if snapshot.metadata("similar") is not None:
        # The store has bands of signatures, and is queried by text only.
        return
    for table in snapshot.iter_batches(50):
        fingerprints = table["fingerprint"].to_pylist()
        assert snapshot.contains_many(table["fingerprint"]).all()
        found = snapshot.query_many(table["fingerprint"], 0)
        assert set(found["query"].to_pylist()) == set(range(len(fingerprints)))


def test_python_reads_stores_of_the_command_line(tmp_path):
    values = helpers.random_fingerprints(300, 64)
    file = tmp_path / "fingerprints.hex"
    file.write_text("".join(f"{value:016x}\n" for value in values))
    path = tmp_path / "store"
    subprocess.run([helpers.cli_binary(), "build", path, file], check=True, capture_output=True)
    snapshot = simstore.Snapshot(path)
    assert snapshot.contains_many(np.array(values, dtype=np.uint64)).all() and expected_lines(snapshot) == run_reader(path)


def test_insert_and_insert_many(tmp_path):
    builder = simstore.Builder(tmp_path / "store", memory=1 << 24)
    builder.insert(np.uint64(7), 3, "seven")
    builder.insert_many([9, 2**64 - 1], range(4, 6), names=[None, "last"])
    updates = []
    snapshot = builder.finish(progress=updates.append)
    assert expected_lines(snapshot) == ["0000000000000007\t3\tseven", "0000000000000009\t4", "ffffffffffffffff\t5\tlast"]
    assert updates
    for call in (builder.finish, lambda: builder.insert(1, 1), lambda: builder.insert_many([1], [1]), builder.__enter__):
        with pytest.raises(ValueError, match="the builder has ended"):
            call()


def test_input_larger_than_the_memory_limit(tmp_path):
    """A builder that exceeds its memory limit writes sorted runs to files."""
    values = np.random.default_rng(1).integers(0, 2**64, 1_500_000, dtype=np.uint64)
    with simstore.Builder(tmp_path / "store", memory=16 << 20, plan="scan", distance=1) as builder:
        for start in range(0, len(values), 300_000):
            builder.insert_many(values[start : start + 300_000], np.arange(start, start + 300_000))
    snapshot = simstore.Snapshot(tmp_path / "store")
    stored = np.concatenate([table["fingerprint"].to_numpy() for table in snapshot.iter_batches(1 << 18)])
    assert (stored == np.sort(values)).all()


def test_nothing_is_left_after_an_exception(tmp_path):
    path = tmp_path / "store"
    with pytest.raises(KeyError):
        with simstore.Builder(path) as builder:
            builder.insert(1, 1)
            raise KeyError("on purpose")
    assert not path.exists()
    builder = simstore.Builder(path)
    builder.insert(1, 1)
    with pytest.raises(simstore.LockedError, match="this process already has the store open for writing"):
        simstore.Builder(path)
    del builder
    assert not path.exists()


def test_a_store_is_replaced_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "store"
    with simstore.Builder(path) as builder:
        builder.insert(1, 1)
    with pytest.raises(FileExistsError, match="a store already exists") as raised:
        simstore.Builder(path)
    assert raised.value.filename == str(path)
    with pytest.raises(KeyError):
        with simstore.Builder(path, replace=True) as builder:
            builder.insert(2, 2)
            raise KeyError("on purpose")
    assert expected_lines(simstore.Snapshot(path)) == ["0000000000000001\t1"]
    with simstore.Builder(path, replace=True, bits=128) as builder:
        builder.insert(2, 2)
    assert expected_lines(simstore.Snapshot(path)) == [f"{2:032x}\t2"]


def test_invalid_arguments_are_refused(tmp_path):
    path = tmp_path / "store"
    for wrong in ({"distance": 17}, {"bits": 32}, {"codec": "zip"}, {"plan": "cover-5", "distance": 4}, {"profile": "nothing"}):
        with pytest.raises(ValueError):
            simstore.Builder(path, **wrong)
        assert not path.exists()
    with pytest.raises(TypeError, match="expected a Profile"):
        simstore.Builder(path, profile=7)
    with pytest.raises(FileNotFoundError):
        simstore.Builder(tmp_path / "no folder" / "store")
    builder = simstore.Builder(path)
    builder.insert(1, 5, "five")
    with pytest.raises(ValueError, match="ascending"):
        builder.insert(1, 4, "four")
    with pytest.raises(ValueError, match="there are 1 fingerprints, and 2 ids"):
        builder.insert_many([1], [1, 2])
    assert pathlib.Path(builder.path) == path and builder.bits == 64
