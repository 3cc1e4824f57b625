"""The tasks that write and query shards, and the list of the shards, tested without Spark."""

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

import helpers
import simstore

pa = pytest.importorskip("pyarrow")

from simstore.tasks import queries, shards  # noqa: E402

PAGE = helpers.ROOT / "format-spec" / "shards.md"
READER = helpers.ROOT / "format-spec" / "reader.py"


def batch(fingerprints, ids, bits=64):
    """Returns a record batch like Spark's: fingerprints are signed longs (64 bits) or binary (128 bits)."""
    if bits == 64:
        values = pa.array([None if value is None else value - (value >> 63 << 64) for value in fingerprints], pa.int64())
    else:
        values = pa.array([None if value is None else value.to_bytes(16, "big") for value in fingerprints], pa.binary())
    return pa.record_batch({"fingerprint": values, "id": pa.array(ids, pa.int64())})


def build_shards(folder, fingerprints, ids, count=3, bits=64, run=None, **settings):
    """Writes a set of shards, and returns the list of shards. Rows are assigned to shards round-robin."""
    run = run or shards.begin(folder, settings.pop("replace", False))
    distance = settings.pop("distance", 3)
    rows = []
    for number in range(count):
        rows_of_shard = batch(fingerprints[number::count], ids[number::count], bits)
        batches = [rows_of_shard[:5], rows_of_shard[5:]]
        for written in shards.build_shard(batches, folder, run, number, bits=bits, distance=distance, **settings):
            rows += written.to_pylist()
    shard_list = shards.merged(rows, run, bits=bits, distance=distance)
    shard_list.write(folder)
    return shard_list


def answer_rows(shard_list, path, query_values, distance=None, batch_queries=1 << 20, **settings):
    """Queries all shards. Returns sorted rows (query, distance, fingerprint, id)."""
    query_batch = batch(query_values, range(len(query_values)), shard_list.bits)
    packed = [row for table in queries.pack([query_batch[:7], query_batch[7:]], bits=shard_list.bits) for row in table.to_pylist()]
    rows = [{"shard": shard, **row} for shard in range(len(shard_list.shards)) for row in packed]
    sent = pa.RecordBatch.from_pylist(rows, pa.schema([("shard", pa.int32()), *queries.PACKED]))
    found = queries.query_shards([sent], shard_list, os.fspath(path), distance, together=batch_queries, **settings)
    rows = [row for table in found for row in table.to_pylist()]

    def to_int(value):
        return value % 2**64 if shard_list.bits == 64 else int.from_bytes(value, "big")

    return sorted((to_int(row["asked"]), row["distance"], to_int(row["fingerprint"]), row["id"]) for row in rows)


def expected_answers(stored, query_values, distance, bits):
    """Computes by brute force the rows that `answer_rows` should return."""
    query_values = sorted({fingerprint for fingerprint in query_values if fingerprint is not None})
    stored = [(fingerprint, id) for fingerprint, id in stored if fingerprint is not None]
    return sorted((query_values[at], *row) for at, *row in helpers.brute_force_matches(stored, query_values, distance, bits))


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(deadline=None, max_examples=40)
@given(data=st.data(), count=st.integers(1, 5), distance=st.integers(0, 5))
def test_shards_answer_as_brute_force(bits, data, count, distance, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    missing = st.none() | st.integers(0, 2**bits - 1)
    values = data.draw(helpers.fingerprint_lists(bits, 30)) + data.draw(st.lists(missing, max_size=3))
    ids = data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=len(values), max_size=len(values)))
    shard_list = build_shards(folder, values, ids, count, bits, distance=distance)
    assert shard_list.missing == values.count(None) and len(shard_list.shards) <= count
    # Equal pairs may be in several shards, because the rows are not grouped.
    pairs = {(fingerprint, id) for fingerprint, id in zip(values, ids) if fingerprint is not None}
    query_values = data.draw(helpers.fingerprint_lists(bits, 20)) + [None]
    for max_distance in {0, distance}:
        found = answer_rows(shard_list, folder, query_values, max_distance)
        assert sorted(set(found)) == expected_answers(pairs, query_values, max_distance, bits)
    assert shards.Shards.read(folder / "shards.json") == shard_list


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_a_shard_answers_queries_in_batches(tmp_path, bits):
    values = helpers.random_fingerprints(600, bits)
    shard_list = build_shards(tmp_path / "set", values, range(600), 2, bits)
    expected = expected_answers(list(zip(values, range(600))), values, 3, bits)
    assert len(expected) > 600
    for batch_queries in (1, 100, 1 << 20):
        assert answer_rows(shard_list, tmp_path / "set", values, batch_queries=batch_queries) == expected


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(deadline=None)
@given(data=st.data())
def test_packed_queries_are_unpacked(bits, data):
    values = data.draw(helpers.fingerprint_lists(bits))
    (packed,) = queries.pack([batch([*values, None, 0], [0] * (len(values) + 2), bits)], bits=bits)
    unpacked = queries._unpack_block(packed["count"][0].as_py(), packed["queries"][0].as_py(), bits)
    assert np.array_equal(unpacked, helpers.to_array(sorted({*values, 0}), bits))
    assert list(queries.pack([batch([None], [1], bits)], bits=bits)) == list(queries.pack([], bits=bits)) == []


def test_packed_queries_are_smaller(tmp_path):
    values = np.random.default_rng(1).integers(0, 2**63, 1 << 18)
    packed = list(queries.pack([pa.record_batch({"fingerprint": values, "id": values})]))
    assert sum(row.num_rows for row in packed) == 1
    assert sum(len(table["queries"][0].as_py()) for table in packed) < 6.5 * len(values)


def test_of_several_attempts_one_counts(tmp_path):
    values = helpers.random_fingerprints(3000, 64)
    run = shards.begin(tmp_path)
    ready = threading.Barrier(4)
    reports = []

    def attempt():
        def batches():
            yield batch(values, range(3000))
            # No attempt ends before all attempts have read their rows.
            ready.wait()

        reports.extend(row for table in shards.build_shard(batches(), tmp_path, run, 0) for row in table.to_pylist())

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 4 and all(row == reports[0] for row in reports)
    assert os.listdir(tmp_path) == [shards.shard_folder_name(0, run)]
    shard_list = shards.merged(reports[:1], run, bits=64, distance=3)
    shard_list.write(tmp_path)
    assert answer_rows(shard_list, tmp_path, values[:50]) == expected_answers(list(zip(values, range(3000))), values[:50], 3, 64)


def test_an_attempt_that_fails_leaves_nothing(tmp_path):
    run = shards.begin(tmp_path)

    def batches():
        yield batch([1, 2], [1, 2])
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        list(shards.build_shard(batches(), tmp_path, run, 0))
    assert os.listdir(tmp_path) == []


def test_files_of_failed_runs_are_removed_and_not_used(tmp_path):
    first = build_shards(tmp_path, [1, 2, 3], [1, 2, 3], 1)
    failed_run = shards.begin(tmp_path, replace=True)
    list(shards.build_shard([batch([9], [9])], tmp_path, failed_run, 0))
    (tmp_path / f".{shards.shard_folder_name(1, failed_run)}.{'0' * 16}").mkdir()
    (tmp_path / ".shards.json.tmp").write_text("half")
    # The old set is valid until the list of shards is replaced.
    assert answer_rows(first, tmp_path, [1], 0) == [(1, 0, 1, 1)]
    second = build_shards(tmp_path, [5, 6], [5, 6], 1, replace=True)
    assert {path.name for path in tmp_path.iterdir()} == {"shards.json", second.shards[0].folder}
    assert answer_rows(second, tmp_path, [1, 5], 0) == [(5, 0, 5, 5)]


def test_folders_with_other_files_are_left_alone(tmp_path):
    build_shards(tmp_path / "set", [1], [1], 1)
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
def test_invalid_rows_are_reported(tmp_path, fingerprints, ids, bits, problem):
    run = shards.begin(tmp_path)
    valid = batch([1], [1], bits)
    schema = valid.schema
    invalid = pa.record_batch([pa.array(fingerprints, schema[0].type), pa.array(ids, pa.int64())], schema=schema)
    rows = iter([valid, invalid, valid])
    (row,) = [row for table in shards.build_shard(rows, tmp_path, run, 0, bits=bits) for row in table.to_pylist()]
    assert problem in row["problem"] and row["folder"] is None and list(rows) == [] and os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match=problem):
        shards.merged([row], run, bits=bits, distance=3)


def test_missing_and_wrong_shards_are_reported(tmp_path):
    values = helpers.random_fingerprints(100, 64)
    shard_list = build_shards(tmp_path / "set", values, range(100), 2)
    other = build_shards(tmp_path / "other", values, range(100), 2)
    first, second = (tmp_path / "set" / shard.folder for shard in shard_list.shards)
    second.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError, match="a missing shard") as missing:
        answer_rows(shard_list, tmp_path / "set", values)
    assert missing.value.filename == str(second)
    shutil.copytree(first, second)
    with pytest.raises(simstore.CorruptError, match="checksum"):
        answer_rows(shard_list, tmp_path / "set", values)
    shutil.rmtree(second)
    # The equal shard of another run, renamed to this run's name, has the expected contents and is accepted.
    shutil.copytree(tmp_path / "other" / other.shards[1].folder, second)
    assert answer_rows(shard_list, tmp_path / "set", values) == expected_answers(list(zip(values, range(100))), values, 3, 64)
    with simstore.Store(second) as store:
        store.insert(1, 1)
        store.flush()
    with pytest.raises(simstore.CorruptError, match="checksum"):
        answer_rows(shard_list, tmp_path / "set", values)


def run_reader(path):
    return subprocess.run([sys.executable, READER, "--shards", path], capture_output=True, text=True)


def test_a_list_that_was_cut_or_changed_is_refused(tmp_path):
    build_shards(tmp_path, [1, 2, 3], [1, 2, 3], 2)
    file = tmp_path / "shards.json"
    contents = file.read_bytes()
    for data in [contents[:length] for length in range(len(contents))] + [contents + b"\n"]:
        file.write_bytes(data)
        with pytest.raises(simstore.CorruptError):
            shards.Shards.read(file)
    for at in range(len(contents)):
        file.write_bytes(contents[:at] + bytes([contents[at] ^ 1]) + contents[at + 1 :])
        with pytest.raises(simstore.CorruptError):
            shards.Shards.read(file)
        if at % 40 == 0:
            assert run_reader(tmp_path).returncode == 1


def write_forged_list(folder, **members):
    """Rewrites the JSON file of the list of shards: changes its members to `members`, and adds a matching checksum.

    The value "left out" removes a member."""
    old = json.loads((folder / "shards.json").read_bytes())
    del old["checksum"]
    text = json.dumps({key: value for key, value in (old | members).items() if value != "left out"}).encode()[:-1]
    (folder / "shards.json").write_bytes(text + f', "checksum": "{zlib.crc32(text):08x}"}}\n'.encode())


RUN_ID = "0123456789abcdef"
VALID_SHARD = {"folder": f"shard-00000-{RUN_ID}", "fingerprints": 1, "pairs": 1, "checksum": "00000000"}


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
        {"shards": [VALID_SHARD | {"folder": "../outside"}]},
        {"shards": [VALID_SHARD | {"folder": f"shard-000-{RUN_ID}"}]},
        {"shards": [VALID_SHARD | {"folder": f"shard-000000-{RUN_ID}"}]},
        {"shards": [VALID_SHARD | {"folder": f"shard-00000-{'0' * 16}"}]},
        {"shards": [VALID_SHARD, VALID_SHARD]},
        {"shards": [VALID_SHARD | {"fingerprints": 0}]},
        {"shards": [VALID_SHARD | {"fingerprints": 2}]},
        {"shards": [VALID_SHARD | {"checksum": 5}]},
    ],
)
def test_invalid_lists_are_refused(tmp_path, members):
    build_shards(tmp_path, [1, 2, 3], [1, 2, 3], 2, run=RUN_ID)
    write_forged_list(tmp_path)
    assert shards.Shards.read(tmp_path / "shards.json").pairs == 3
    write_forged_list(tmp_path, **members)
    with pytest.raises(simstore.CorruptError):
        shards.Shards.read(tmp_path / "shards.json")
    assert run_reader(tmp_path).returncode == 1


@pytest.mark.parametrize("members, message", [({"version": 2}, "version 2"), ({"format": "parts"}, "not a list of shards")])
def test_lists_of_other_versions_are_refused_as_such(tmp_path, members, message):
    build_shards(tmp_path, [1], [1], 1)
    write_forged_list(tmp_path, **members, bits=7)
    with pytest.raises(simstore.NotAStoreError, match=message):
        shards.Shards.read(tmp_path / "shards.json")
    assert run_reader(tmp_path).returncode == 1


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_the_reader_of_the_format_reads_shards(tmp_path, bits):
    values = helpers.random_fingerprints(200, bits)
    shard_list = build_shards(tmp_path, values, range(200), 3, bits, codec="gap")
    completed = run_reader(tmp_path)
    assert completed.returncode == 0, completed.stderr
    expected = [f"{value:0{bits // 4}x}\t{id}" for value, id in sorted(zip(values, range(200)))]
    assert completed.stdout.splitlines() == expected
    shutil.rmtree(tmp_path / shard_list.shards[1].folder)
    assert run_reader(tmp_path).returncode == 1
    empty = build_shards(tmp_path, [], [], 2, bits, replace=True)
    assert run_reader(tmp_path).stdout == "" and run_reader(tmp_path).returncode == 0 and answer_rows(empty, tmp_path, values) == []


def test_the_example_on_the_page_is_written(tmp_path):
    # The example on the page has pairs in shards 0 and 2 only.
    rows = [([0x10, 0x10], [1, 300]), ([], []), ([0x21], [7])]
    reports = []
    for number, (values, ids) in enumerate(rows):
        tables = shards.build_shard([batch(values, ids)], tmp_path, "00112233445566ff", number)
        reports += [row for table in tables for row in table.to_pylist()]
    shards.merged(reports, "00112233445566ff", bits=64, distance=3).write(tmp_path)
    shown = re.search(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    assert shown.rstrip("\n").replace("\n", "") + "\n" == (tmp_path / "shards.json").read_text()


def copying_fetch(local, calls):
    """Returns a `fetch` hook that copies a shard to the folder `local`, and appends the path of the original to `calls`."""

    def fetch(path):
        calls.append(path)
        copy = local / pathlib.Path(path).name
        shutil.copytree(path, copy)
        return copy

    return fetch


def test_a_shard_is_fetched_once_by_all_that_share_a_folder(tmp_path):
    values = helpers.random_fingerprints(300, 64)
    shard_list = build_shards(tmp_path / "set", values, range(300), 2)
    local, calls, found = tmp_path / "local", [], []
    local.mkdir()
    fetch = copying_fetch(local, calls)
    threads = [
        threading.Thread(target=lambda: found.append(answer_rows(shard_list, tmp_path / "set", values, fetch=fetch, folder=lambda: local)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = expected_answers(list(zip(values, range(300))), values, 3, 64)
    assert found == [expected] * 4
    assert sorted(calls) == sorted(f"{tmp_path / 'set'}/{shard.folder}" for shard in shard_list.shards)
    # A deleted copy is fetched again, and a failed fetch is repeated in the next call.
    shutil.rmtree(local / shard_list.shards[0].folder)

    def fail(path):
        raise ConnectionError("no store")

    with pytest.raises(ConnectionError, match="no store"):
        answer_rows(shard_list, tmp_path / "set", values, fetch=fail, folder=local)
    assert answer_rows(shard_list, tmp_path / "set", values, fetch=fetch, folder=local) == expected and len(calls) == 3
