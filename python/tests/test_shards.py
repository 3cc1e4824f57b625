"""Shards without Spark: shards that tasks write, the list of shards, and batches of queries against a shard."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain
import simstore

pa = pytest.importorskip("pyarrow")

from simstore.tasks import queries, shards  # noqa: E402

PAGE = plain.ROOT / "format-spec" / "shards.md"
READER = plain.ROOT / "format-spec" / "reader.py"


def batch(fingerprints, ids, bits=64):
    """A record batch as Spark makes it of a long, or of binary."""
    if bits == 64:
        values = pa.array([None if one is None else one - (one >> 63 << 64) for one in fingerprints], pa.int64())
    else:
        values = pa.array([None if one is None else one.to_bytes(16, "big") for one in fingerprints], pa.binary())
    return pa.record_batch({"fingerprint": values, "id": pa.array(ids, pa.int64())})


def build(folder, fingerprints, ids, count=3, bits=64, run=None, **settings):
    """A set in shards, by turns, as one process writes it."""
    run = run or shards.begin(folder, settings.pop("replace", False))
    distance = settings.pop("distance", 3)
    rows = []
    for number in range(count):
        of = batch(fingerprints[number::count], ids[number::count], bits)
        for written in shards.build_shard([of[:5], of[5:]], folder, run, number, bits=bits, distance=distance, **settings):
            rows += written.to_pylist()
    made = shards.merged(rows, run, bits=bits, distance=distance)
    made.write(folder)
    return made


def ask(made, path, asked, distance=None, together=1 << 20, **settings):
    """Rows (fingerprint asked for, distance, fingerprint, id), sorted."""
    of = batch(asked, range(len(asked)), made.bits)
    packed = [row for one in queries.pack([of[:7], of[7:]], bits=made.bits) for row in one.to_pylist()]
    rows = [{"shard": shard, **row} for shard in range(len(made.shards)) for row in packed]
    sent = pa.RecordBatch.from_pylist(rows, pa.schema([("shard", pa.int32()), *queries.PACKED]))
    found = queries.query_shards([sent], made, os.fspath(path), distance, together=together, **settings)
    rows = [row for one in found for row in one.to_pylist()]

    def number(value):
        return value % 2**64 if made.bits == 64 else int.from_bytes(value, "big")

    return sorted((number(row["asked"]), row["distance"], number(row["fingerprint"]), row["id"]) for row in rows)


def expected(stored, asked, distance, bits):
    """The same by the plain loop."""
    asked = sorted({one for one in asked if one is not None})
    stored = [(one, id) for one, id in stored if one is not None]
    return sorted((asked[at], *row) for at, *row in plain.matches(stored, asked, distance, bits))


@pytest.mark.parametrize("bits", plain.WIDTHS)
@settings(deadline=None, max_examples=40)
@given(data=st.data(), count=st.integers(1, 5), distance=st.integers(0, 5))
def test_shards_answer_as_the_plain_loop(bits, data, count, distance, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    missing = st.none() | st.integers(0, 2**bits - 1)
    values = data.draw(plain.fingerprints(bits, 30)) + data.draw(st.lists(missing, max_size=3))
    ids = data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=len(values), max_size=len(values)))
    made = build(folder, values, ids, count, bits, distance=distance)
    assert made.missing == values.count(None) and len(made.shards) <= count
    # Pairs that are equal may be in several shards here.
    pairs = {(one, id) for one, id in zip(values, ids) if one is not None}
    asked = data.draw(plain.fingerprints(bits, 20)) + [None]
    for within in {0, distance}:
        assert sorted(set(ask(made, folder, asked, within))) == expected(pairs, asked, within, bits)
    assert shards.Shards.read(folder / "shards.json") == made


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_queries_go_past_a_shard_in_batches(tmp_path, bits):
    values = plain.random_fingerprints(600, bits)
    made = build(tmp_path / "set", values, range(600), 2, bits)
    want = expected(list(zip(values, range(600))), values, 3, bits)
    assert len(want) > 600
    for together in (1, 100, 1 << 20):
        assert ask(made, tmp_path / "set", values, together=together) == want


@pytest.mark.parametrize("bits", plain.WIDTHS)
@settings(deadline=None)
@given(data=st.data())
def test_what_is_packed_is_unpacked(bits, data):
    values = data.draw(plain.fingerprints(bits))
    (packed,) = queries.pack([batch([*values, None, 0], [0] * (len(values) + 2), bits)], bits=bits)
    unpacked = queries._unpacked(packed["count"][0].as_py(), packed["queries"][0].as_py(), bits)
    assert np.array_equal(unpacked, plain.array(sorted({*values, 0}), bits))
    assert list(queries.pack([batch([None], [1], bits)], bits=bits)) == list(queries.pack([], bits=bits)) == []


def test_packed_queries_are_smaller(tmp_path):
    values = np.random.default_rng(1).integers(0, 2**63, 1 << 18)
    packed = list(queries.pack([pa.record_batch({"fingerprint": values, "id": values})]))
    assert sum(row.num_rows for row in packed) == 1
    assert sum(len(one["queries"][0].as_py()) for one in packed) < 6.5 * len(values)


def test_of_two_attempts_at_once_one_counts(tmp_path):
    values = plain.random_fingerprints(3000, 64)
    run = shards.begin(tmp_path)
    ready = threading.Barrier(4)
    told = []

    def attempt():
        def batches():
            yield batch(values, range(3000))
            # All of them have built before any is named.
            ready.wait()

        told.extend(row for one in shards.build_shard(batches(), tmp_path, run, 0) for row in one.to_pylist())

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 4 and all(row == told[0] for row in told)
    assert os.listdir(tmp_path) == [shards.folder_of(0, run)]
    made = shards.merged(told[:1], run, bits=64, distance=3)
    made.write(tmp_path)
    assert ask(made, tmp_path, values[:50]) == expected(list(zip(values, range(3000))), values[:50], 3, 64)


def test_an_attempt_that_fails_leaves_nothing(tmp_path):
    run = shards.begin(tmp_path)

    def batches():
        yield batch([1, 2], [1, 2])
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        list(shards.build_shard(batches(), tmp_path, run, 0))
    assert os.listdir(tmp_path) == []


def test_what_other_runs_left_is_removed_and_never_taken(tmp_path):
    first = build(tmp_path, [1, 2, 3], [1, 2, 3], 1)
    failed = shards.begin(tmp_path, replace=True)
    list(shards.build_shard([batch([9], [9])], tmp_path, failed, 0))
    (tmp_path / f".{shards.folder_of(1, failed)}.{'0' * 16}").mkdir()
    (tmp_path / ".shards.json.tmp").write_text("half")
    # The set is the old one as long as the list says so.
    assert ask(first, tmp_path, [1], 0) == [(1, 0, 1, 1)]
    second = build(tmp_path, [5, 6], [5, 6], 1, replace=True)
    assert {path.name for path in tmp_path.iterdir()} == {"shards.json", second.shards[0].folder}
    assert ask(second, tmp_path, [1, 5], 0) == [(5, 0, 5, 5)]


def test_folders_of_others_are_left_alone(tmp_path):
    build(tmp_path / "set", [1], [1], 1)
    with pytest.raises(FileExistsError, match="replace"):
        shards.begin(tmp_path / "set")
    (tmp_path / "set" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other files than shards"):
        shards.begin(tmp_path / "set", replace=True)
    with simstore.Builder(tmp_path / "store") as builder:
        builder.insert(1, 1)
    with pytest.raises(FileExistsError, match="other files than shards"):
        shards.begin(tmp_path / "store")
    assert simstore.Snapshot(tmp_path / "store").contains(1)


@pytest.mark.parametrize(
    "fingerprints, ids, bits, problem",
    [
        ([1, 2], [1, -1], 64, "ids are 0 to"),
        ([1, None], [1, None], 64, "column `id`: 1 ids are null"),
        ([b"short"], [1], 128, "16 bytes"),
    ],
)
def test_rows_that_make_no_sense_are_told(tmp_path, fingerprints, ids, bits, problem):
    run = shards.begin(tmp_path)
    of = batch([1], [1], bits)
    schema = of.schema
    wrong = pa.record_batch([pa.array(fingerprints, schema[0].type), pa.array(ids, pa.int64())], schema=schema)
    rows = iter([of, wrong, of])
    (row,) = [row for one in shards.build_shard(rows, tmp_path, run, 0, bits=bits) for row in one.to_pylist()]
    assert problem in row["problem"] and row["folder"] is None and list(rows) == [] and os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match=problem):
        shards.merged([row], run, bits=bits, distance=3)


def test_a_shard_that_is_missing_or_another_is_told(tmp_path):
    values = plain.random_fingerprints(100, 64)
    made = build(tmp_path / "set", values, range(100), 2)
    other = build(tmp_path / "other", values, range(100), 2)
    first, second = (tmp_path / "set" / shard.folder for shard in made.shards)
    second.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError, match="a missing shard") as missing:
        ask(made, tmp_path / "set", values)
    assert missing.value.filename == str(second)
    shutil.copytree(first, second)
    with pytest.raises(simstore.CorruptError, match="checksum"):
        ask(made, tmp_path / "set", values)
    shutil.rmtree(second)
    # The equal shard of another run, renamed to this run's name, has the expected contents and is accepted.
    shutil.copytree(tmp_path / "other" / other.shards[1].folder, second)
    assert ask(made, tmp_path / "set", values) == expected(list(zip(values, range(100))), values, 3, 64)
    with simstore.Store(second) as store:
        store.insert(1, 1)
        store.flush()
    with pytest.raises(simstore.CorruptError, match="checksum"):
        ask(made, tmp_path / "set", values)


def read(path):
    return subprocess.run([sys.executable, READER, "--shards", path], capture_output=True, text=True)


def test_a_list_that_was_cut_or_changed_is_refused(tmp_path):
    build(tmp_path, [1, 2, 3], [1, 2, 3], 2)
    file = tmp_path / "shards.json"
    whole = file.read_bytes()
    for data in [whole[:length] for length in range(len(whole))] + [whole + b"\n"]:
        file.write_bytes(data)
        with pytest.raises(simstore.CorruptError):
            shards.Shards.read(file)
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(simstore.CorruptError):
            shards.Shards.read(file)
        if at % 40 == 0:
            assert read(tmp_path).returncode == 1


def forged(folder, **members):
    """A list with other members and a checksum that is right."""
    old = json.loads((folder / "shards.json").read_bytes())
    del old["checksum"]
    text = json.dumps({key: value for key, value in (old | members).items() if value != "left out"}).encode()[:-1]
    (folder / "shards.json").write_bytes(text + f', "checksum": "{zlib.crc32(text):08x}"}}\n'.encode())


RUN = "0123456789abcdef"
SOUND = {"folder": f"shard-00000-{RUN}", "fingerprints": 1, "pairs": 1, "checksum": "00000000"}


@pytest.mark.parametrize(
    "members",
    [
        {"bits": 65},
        {"bits": True},
        {"bits": "64"},
        {"distance": 17},
        {"distance": -1},
        {"distance": 3.0},
        {"run": "short"},
        {"profile": 5},
        {"missing": -1},
        {"missing": None},
        {"more": 1},
        {"missing": "left out"},
        {"shards": {}},
        {"shards": [5]},
        {"shards": [{}]},
        {"shards": [SOUND | {"folder": "../outside"}]},
        {"shards": [SOUND | {"folder": f"shard-000-{RUN}"}]},
        {"shards": [SOUND | {"folder": f"shard-000000-{RUN}"}]},
        {"shards": [SOUND | {"folder": f"shard-00000-{'0' * 16}"}]},
        {"shards": [SOUND, SOUND]},
        {"shards": [SOUND | {"fingerprints": 0}]},
        {"shards": [SOUND | {"fingerprints": 2}]},
        {"shards": [SOUND | {"checksum": 5}]},
    ],
)
def test_a_list_that_makes_no_sense_is_refused(tmp_path, members):
    build(tmp_path, [1, 2, 3], [1, 2, 3], 2, run=RUN)
    forged(tmp_path)
    assert shards.Shards.read(tmp_path / "shards.json").pairs == 3
    forged(tmp_path, **members)
    with pytest.raises(simstore.CorruptError):
        shards.Shards.read(tmp_path / "shards.json")
    assert read(tmp_path).returncode == 1


@pytest.mark.parametrize("members, said", [({"version": 2}, "version 2"), ({"format": "parts"}, "not a list of shards")])
def test_lists_of_other_versions_are_refused_as_such(tmp_path, members, said):
    build(tmp_path, [1], [1], 1)
    forged(tmp_path, **members, bits=7)
    with pytest.raises(simstore.NotAStoreError, match=said):
        shards.Shards.read(tmp_path / "shards.json")
    assert read(tmp_path).returncode == 1


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_the_reader_of_the_format_reads_shards(tmp_path, bits):
    values = plain.random_fingerprints(200, bits)
    made = build(tmp_path, values, range(200), 3, bits, codec="gap")
    done = read(tmp_path)
    assert done.returncode == 0, done.stderr
    want = [f"{value:0{bits // 4}x}\t{id}" for value, id in sorted(zip(values, range(200)))]
    assert done.stdout.splitlines() == want
    shutil.rmtree(tmp_path / made.shards[1].folder)
    assert read(tmp_path).returncode == 1
    empty = build(tmp_path, [], [], 2, bits, replace=True)
    assert read(tmp_path).stdout == "" and read(tmp_path).returncode == 0 and ask(empty, tmp_path, values) == []


def test_the_page_shows_what_is_written(tmp_path):
    # One pair each in shards 0 and 2, as the page has it.
    rows = [([0x10, 0x10], [1, 300]), ([], []), ([0x21], [7])]
    told = []
    for number, (values, ids) in enumerate(rows):
        one = shards.build_shard([batch(values, ids)], tmp_path, "00112233445566ff", number)
        told += [row for of in one for row in of.to_pylist()]
    shards.merged(told, "00112233445566ff", bits=64, distance=3).write(tmp_path)
    shown = re.search(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    assert shown.rstrip("\n").replace("\n", "") + "\n" == (tmp_path / "shards.json").read_text()


def copy_to(local, calls, started=None):
    """A hook as users write it, which also counts."""

    def fetch(path):
        calls.append(path)
        copy = local / pathlib.Path(path).name
        shutil.copytree(path, copy)
        return copy

    return fetch


def test_a_shard_is_fetched_once_by_all_that_share_a_folder(tmp_path):
    values = plain.random_fingerprints(300, 64)
    made = build(tmp_path / "set", values, range(300), 2)
    local, calls, found = tmp_path / "local", [], []
    local.mkdir()
    fetch = copy_to(local, calls)
    threads = [
        threading.Thread(target=lambda: found.append(ask(made, tmp_path / "set", values, fetch=fetch, folder=lambda: local)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = expected(list(zip(values, range(300))), values, 3, 64)
    assert found == [want] * 4
    assert sorted(calls) == sorted(f"{tmp_path / 'set'}/{shard.folder}" for shard in made.shards)
    # A copy that is gone is fetched again, and a hook that fails is asked again.
    shutil.rmtree(local / made.shards[0].folder)

    def fail(path):
        raise ConnectionError("no store")

    with pytest.raises(ConnectionError, match="no store"):
        ask(made, tmp_path / "set", values, fetch=fail, folder=local)
    assert ask(made, tmp_path / "set", values, fetch=fetch, folder=local) == want and len(calls) == 3
