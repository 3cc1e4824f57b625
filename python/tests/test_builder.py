"""Stores that are built in one go. The command line and the reader of the format read them, too."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import plain
import simstore

GOLDEN = plain.ROOT / "format-spec" / "golden"
READER = plain.ROOT / "format-spec" / "reader.py"


def lines(snapshot):
    """The lines that `reader.py` prints for a store."""
    digits = snapshot.bits // 4
    rows = [row.values() for table in snapshot.iter_batches() for row in table.to_pylist()]
    return ["\t".join([f"{plain.number(value):0{digits}x}", *(str(one) for one in more if one is not None)]) for value, *more in rows]


def read(path):
    out = subprocess.run([sys.executable, READER, path], capture_output=True, check=True, text=True, encoding="utf-8")
    return out.stdout.split("\n")[:-1]


@pytest.mark.parametrize("bits", plain.WIDTHS)
@pytest.mark.parametrize("codec", ["first-difference", "gap", "elias-fano", "all-differences"])
def test_others_read_what_python_has_written(tmp_path, bits, codec):
    values = plain.random_fingerprints(400, bits)
    names = [f"文档 {at}" if at % 3 else None for at in range(len(values))]
    with simstore.Builder(tmp_path / "built", bits=bits, codec=codec) as builder:
        builder.insert_many(plain.array(values, bits), np.arange(len(values)), names)
    with simstore.Store(tmp_path / "live", bits=bits, codec=codec) as store:
        store.insert_many(values[:300], range(300), names[:300])
        store.flush()
        store.insert_many(values[300:], range(300, 400), names[300:])
        store.delete(values[0], 0)
    for path in (tmp_path / "built", tmp_path / "live"):
        snapshot = simstore.Snapshot(path)
        expected = lines(snapshot)
        assert len(expected) == 400 - (path.name == "live") and read(path) == expected
        subprocess.run([plain.binary(), "verify", path], check=True, capture_output=True)
        asked = f"{values[7]:0{bits // 4}x}"
        found = subprocess.run(
            [plain.binary(), "query", "--json", path, asked], capture_output=True, check=True, text=True
        )
        found = [json.loads(line) for line in found.stdout.splitlines()]
        ours = [(f"{plain.number(m.fingerprint):0{bits // 4}x}", m.distance, m.id) for m in snapshot.query(values[7])]
        assert [(m["fingerprint"], m["distance"], m["id"]) for m in found if "fingerprint" in m] == ours


@pytest.mark.parametrize("path", sorted(path for path in GOLDEN.iterdir() if path.is_dir() and not path.name.startswith("log")))
def test_golden_stores_are_read(path):
    snapshot = simstore.Snapshot(path)
    assert lines(snapshot) == read(path)
    assert snapshot.verify() == []
    if snapshot.mark("similar") is not None:
        # Its sketches are looked up by texts alone.
        return
    for table in snapshot.iter_batches(50):
        fingerprints = table["fingerprint"].to_pylist()
        assert snapshot.contains_many(table["fingerprint"]).all()
        found = snapshot.query_many(table["fingerprint"], 0)
        assert set(found["query"].to_pylist()) == set(range(len(fingerprints)))


def test_python_reads_what_the_command_line_has_written(tmp_path):
    values = plain.random_fingerprints(300, 64)
    file = tmp_path / "fingerprints.hex"
    file.write_text("".join(f"{value:016x}\n" for value in values))
    path = tmp_path / "store"
    subprocess.run([plain.binary(), "build", path, file], check=True, capture_output=True)
    snapshot = simstore.Snapshot(path)
    assert snapshot.contains_many(np.array(values, dtype=np.uint64)).all() and lines(snapshot) == read(path)


def test_single_ones_and_arrays(tmp_path):
    builder = simstore.Builder(tmp_path / "store", memory=1 << 24)
    builder.insert(np.uint64(7), 3, "seven")
    builder.insert_many([9, 2**64 - 1], range(4, 6), names=[None, "last"])
    told = []
    snapshot = builder.finish(progress=told.append)
    assert lines(snapshot) == ["0000000000000007\t3\tseven", "0000000000000009\t4", "ffffffffffffffff\t5\tlast"]
    assert told
    for call in (builder.finish, lambda: builder.insert(1, 1), lambda: builder.insert_many([1], [1]), builder.__enter__):
        with pytest.raises(ValueError, match="the builder has ended"):
            call()


def test_more_than_the_memory(tmp_path):
    """Sorted runs go to files."""
    values = np.random.default_rng(1).integers(0, 2**64, 1_500_000, dtype=np.uint64)
    with simstore.Builder(tmp_path / "store", memory=16 << 20, plan="scan", distance=1) as builder:
        for start in range(0, len(values), 300_000):
            builder.insert_many(values[start : start + 300_000], np.arange(start, start + 300_000))
    snapshot = simstore.Snapshot(tmp_path / "store")
    read = np.concatenate([table["fingerprint"].to_numpy() for table in snapshot.iter_batches(1 << 18)])
    assert (read == np.sort(values)).all()


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
    assert lines(simstore.Snapshot(path)) == ["0000000000000001\t1"]
    with simstore.Builder(path, replace=True, bits=128) as builder:
        builder.insert(2, 2)
    assert lines(simstore.Snapshot(path)) == [f"{2:032x}\t2"]


def test_what_makes_no_sense_is_refused(tmp_path):
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
