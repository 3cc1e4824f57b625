"""`simstore.spark.build_store` and `query` on shards, compared with brute force."""

import functools
import os
import pathlib
import shutil

import pytest

import helpers
import simstore
from spark import faults, frames

NAMES = ["query", "id", "fingerprint", "distance"]


def answer_rows(frame):
    """Returns sorted rows (id of the query, distance, fingerprint, id)."""
    assert frame.columns == NAMES
    return sorted((row.query, row.distance, frames.to_int(row.fingerprint), row.id) for row in frame.collect())


def expected_answers(stored, queries, distance, bits=64):
    """Computes by brute force the rows that `answer_rows` should return. `queries` has pairs of id and fingerprint."""
    stored = [(fingerprint, id) for fingerprint, id in stored if fingerprint is not None]
    rows = []
    for id, fingerprint in set(queries):
        if fingerprint is not None:
            rows += [(id, *row) for _, *row in helpers.brute_force_matches(stored, [fingerprint], distance, bits)]
    return sorted(rows)


def adversarial_fingerprints(bits):
    """Returns fingerprints with a shared prefix, equal ones, the smallest and largest, and nulls."""
    base = 0x5A << bits - 8
    values = [base ^ 1 << at for at in range(60)] + [base] * 20 + [0, 2**bits - 1, 1 << bits - 1, None, None]
    return values + helpers.random_fingerprints(60, bits, seed=3)


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("count", [1, 5])
def test_shards_answer_as_brute_force(spark, tmp_path, bits, count):
    from simstore.spark import build_store, query

    values = adversarial_fingerprints(bits)
    # Each row occurs twice, but a pair is stored once.
    rows = frames.fingerprint_frame(spark, [*values, *values], [*range(len(values))] * 2, bits)
    shard_list = build_store(rows, tmp_path, count, codec="gap")
    stored = list(zip(values, range(len(values))))
    present = {pair for pair in stored if pair[0] is not None}
    assert shard_list.pairs == len(present) and shard_list.missing == 4 and len(shard_list.shards) == count and shard_list.bits == bits
    query_ids = [f"q{at}" for at in range(len(values))]
    queries = frames.fingerprint_frame(spark, [*values, *values], query_ids * 2, bits, id_type="string")
    for distance in (None, 0):
        found = query(queries, tmp_path, distance)
        assert answer_rows(found) == expected_answers(present, zip(query_ids, values), 3 if distance is None else 0, bits)
    with pytest.raises(ValueError, match="distance 4"):
        query(queries, tmp_path, 4)
    stores = [simstore.Snapshot(tmp_path / shard.folder) for shard in shard_list.shards]
    assert {store.codec for store in stores} == {"gap"} and all(store.verify() == [] for store in stores)


def test_queries_in_several_batches_and_partitions(spark, tmp_path, adaptive):
    from simstore.spark import build_store, query

    values = helpers.random_fingerprints(300, 64)
    build_store(frames.fingerprint_frame(spark, values, partitions=50), tmp_path, 3, distance=2, profile="words-2")
    expected = expected_answers(zip(values, range(300)), zip(range(300), values), 2)
    for partitions, batch_queries in ((1, 1), (50, 1 << 20)):
        queries = frames.fingerprint_frame(spark, values, partitions=partitions)
        assert answer_rows(query(queries, tmp_path, together=batch_queries)) == expected


def test_empty_and_tiny_stores(spark, tmp_path):
    from simstore.spark import build_store, query

    no_rows, two_rows = frames.fingerprint_frame(spark, []), frames.fingerprint_frame(spark, [5, None])
    shard_list = build_store(no_rows, tmp_path / "empty", 4)
    assert shard_list.shards == () and shard_list.pairs == 0
    assert answer_rows(query(two_rows, tmp_path / "empty")) == []
    assert len(build_store(two_rows, tmp_path / "little", 4).shards) == 1
    assert answer_rows(query(two_rows, tmp_path / "little")) == [(0, 0, 5, 0)]
    assert answer_rows(query(no_rows, tmp_path / "little")) == []
    struct = spark.createDataFrame([((1, "a"), 4)], "who struct<a: int, b: string>, hash long")
    (row,) = query(struct, tmp_path / "little", fingerprint="hash", id="who").collect()
    assert row["query"].asDict() == {"a": 1, "b": "a"} and row.distance == 1


def test_invalid_arguments_are_refused(spark, tmp_path):
    from simstore.spark import build_store, query

    rows = frames.fingerprint_frame(spark, [1, 2])
    string_ids = frames.fingerprint_frame(spark, [1], ["a"], id_type="string")
    build = functools.partial(build_store, path=tmp_path / "set", shards=2)
    for error, match, call in [
        (ValueError, "no column `hash`: the columns are id, fingerprint", lambda: build(rows, fingerprint="hash")),
        (ValueError, "no column `name`", lambda: build(rows, id="name")),
        (TypeError, "`id` is string: ids of a store are bigint", lambda: build(string_ids)),
        (TypeError, "`id` is int:", lambda: build(frames.fingerprint_frame(spark, [1], id_type="int"))),
        (TypeError, "`fingerprint` is string", lambda: build(rows.selectExpr("id", "string(fingerprint) as fingerprint"))),
        (ValueError, "shards is 0", lambda: build(rows, shards=0)),
        (TypeError, "shards is a number", lambda: build(rows, shards="2")),
        (ValueError, "distance 17 is too large", lambda: build(rows, distance=17)),
        (ValueError, "unknown codec `zip`", lambda: build(rows, codec="zip")),
        (ValueError, "128 bits", lambda: build(rows, profile=simstore.Profile(bits=128))),
        (FileNotFoundError, "shards.json", lambda: query(rows, tmp_path / "set")),
    ]:
        with pytest.raises(error, match=match):
            call()
        assert not (tmp_path / "set").exists()
    for match, invalid in [
        ("ids are 0 to", frames.fingerprint_frame(spark, [1, 2, 3], [1, -2, 3])),
        ("ids are null", frames.fingerprint_frame(spark, [1, 2, 3], [1, None, 3])),
        ("have 16 bytes", spark.createDataFrame([(1, b"short")], "id long, fingerprint binary")),
    ]:
        with pytest.raises(ValueError, match=match):
            build(invalid)
        assert not (tmp_path / "set" / "shards.json").exists()
    build(rows)
    with pytest.raises(ValueError, match="fingerprints of 128 bits"):
        query(frames.fingerprint_frame(spark, [1], bits=128), tmp_path / "set")
    with pytest.raises(TypeError, match="distance is a number"):
        query(rows, tmp_path / "set", "3")
    with pytest.raises(TypeError, match="has no order"):
        query(rows.selectExpr("map(id, id) as id", "fingerprint"), tmp_path / "set")
    with pytest.raises(Exception, match="an id in column `id` is null"):
        query(frames.fingerprint_frame(spark, [1], [None]), tmp_path / "set").collect()
    with pytest.raises(FileExistsError, match="replace"):
        build(rows)


def fail_until_mended(folder, batches):
    """Yields the batches, and raises an error after the first one until the file `mended` exists."""
    for batch in batches:
        yield batch
        if not (folder / "mended").exists():
            raise RuntimeError("a disk was lost")


def test_a_run_that_fails_leaves_no_set_and_the_next_one_removes_the_rest(spark, tmp_path):
    from simstore.spark import build_store, query

    values = helpers.random_fingerprints(200, 64)
    rows = frames.fingerprint_frame(spark, values)
    build_store(rows, tmp_path / "set", 2)
    failing_rows = rows.where("id < 100").mapInArrow(functools.partial(fail_until_mended, tmp_path), "id long, fingerprint long")
    answers_before = answer_rows(query(rows, tmp_path / "set"))
    with pytest.raises(Exception, match="a disk was lost"):
        build_store(failing_rows, tmp_path / "set", 2, replace=True)
    assert answers_before == answer_rows(query(rows, tmp_path / "set"))
    with pytest.raises(Exception, match="a disk was lost"):
        build_store(failing_rows, tmp_path / "new", 2)
    with pytest.raises(FileNotFoundError):
        query(rows, tmp_path / "new")
    # A leftover that a task of the failed run could have written.
    (tmp_path / "new" / f"shard-00001-{'0' * 16}").mkdir()
    (tmp_path / "mended").touch()
    shard_list = build_store(failing_rows, tmp_path / "new", 2)
    assert sorted(os.listdir(tmp_path / "new")) == sorted(["shards.json", *(shard.folder for shard in shard_list.shards)])
    shard_list = build_store(failing_rows, tmp_path / "set", 2, replace=True)
    assert shard_list.pairs == 100 and len(os.listdir(tmp_path / "set")) == 3
    assert answer_rows(query(rows, tmp_path / "set")) == expected_answers(zip(values[:100], range(100)), enumerate(values), 3)


def test_missing_shards_and_truncated_lists_are_reported(spark, tmp_path):
    from simstore.spark import build_store, query

    rows = frames.fingerprint_frame(spark, helpers.random_fingerprints(50, 64))
    shard_list = build_store(rows, tmp_path, 2)
    away = tmp_path.parent / f"{tmp_path.name}-away"
    (tmp_path / shard_list.shards[1].folder).rename(away)
    with pytest.raises(FileNotFoundError, match="a missing shard"):
        query(rows, tmp_path)
    away.rename(tmp_path / shard_list.shards[1].folder)
    found = query(rows, tmp_path)
    # The shard disappears after `query` checked it.
    (tmp_path / shard_list.shards[1].folder).rename(away)
    with pytest.raises(Exception, match="a missing shard"):
        found.collect()
    file = tmp_path / "shards.json"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(simstore.CorruptError, match="cut short"):
        query(rows, tmp_path)


def test_an_executor_killed_while_shards_are_written(spark, tmp_path, monkeypatch):
    from simstore.spark import build_store, query
    from simstore.spark import shards as module

    values = helpers.random_fingerprints(200, 64)
    rows = frames.fingerprint_frame(spark, values)
    build_shard = module.build_shard

    def paused_build(batches, *args, **settings):
        # The task pauses when it has begun its store, but not finished it.
        return build_shard(faults.pause_after(tmp_path, batches), *args, **settings)

    monkeypatch.setattr(module, "build_shard", paused_build)
    shard_list = faults.kill_during(tmp_path, lambda: build_store(rows, tmp_path / "set", 3))
    assert shard_list.pairs == 200 and len(os.listdir(tmp_path / "set")) == 4
    assert answer_rows(query(rows, tmp_path / "set")) == expected_answers(zip(values, range(200)), enumerate(values), 3)


@pytest.mark.parametrize("where", ["queries", "answers"])
def test_an_executor_killed_while_it_queries(spark, tmp_path, where):
    from simstore.spark import build_store, query

    values = helpers.random_fingerprints(200, 64)
    rows = frames.fingerprint_frame(spark, values)
    build_store(rows, tmp_path / "set", 3)
    pause = functools.partial(faults.pause_after, tmp_path)
    if where == "queries":
        found = query(rows.mapInArrow(pause, rows.schema), tmp_path / "set")
    else:
        found = query(rows, tmp_path / "set")
        found = found.mapInArrow(pause, found.schema)
    found = faults.kill_during(tmp_path, lambda: answer_rows(found))
    assert found == expected_answers(zip(values, range(200)), enumerate(values), 3)


def copying_fetch(local, path):
    """Hook for the option `fetch`: copies a path to a local folder for this executor. Fails if a shard is copied twice."""
    copy = local / f"{os.getppid()}-{pathlib.Path(path).name}"
    if path.endswith(".json"):
        shutil.copy(path, copy)
    else:
        shutil.copytree(path, copy)
    return copy


def test_shards_are_fetched_once_an_executor(spark, tmp_path):
    from simstore.spark import build_store, query

    local = tmp_path / "local"
    local.mkdir()
    values = helpers.random_fingerprints(200, 64)
    rows = frames.fingerprint_frame(spark, values)
    shard_list = build_store(rows, tmp_path / "set", 5)
    found = query(rows, tmp_path / "set", fetch=functools.partial(copying_fetch, local), together=50)
    for _ in range(2):
        assert answer_rows(found) == expected_answers(zip(values, range(200)), enumerate(values), 3)
    copies = [path.name.split("-", 1)[1] for path in local.iterdir()]
    assert {shard.folder for shard in shard_list.shards} | {"shards.json"} == set(copies)
    assert max(copies.count(name) for name in copies) <= 2
