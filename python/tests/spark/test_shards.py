"""Shards that tasks of Spark write, and queries past them, against the plain loop."""

import functools
import os
import pathlib
import shutil

import pytest

import plain
import simstore
from spark import faults, frames

NAMES = ["query", "id", "fingerprint", "distance"]


def answers(frame):
    """Rows (id of the query, distance, fingerprint, id), sorted."""
    assert frame.columns == NAMES
    return sorted((row.query, row.distance, frames.number(row.fingerprint), row.id) for row in frame.collect())


def expected(stored, asked, distance, bits=64):
    """The same by the plain loop; `asked` has pairs of id and fingerprint."""
    stored = [(one, id) for one, id in stored if one is not None]
    rows = []
    for id, one in set(asked):
        if one is not None:
            rows += [(id, *row) for _, *row in plain.matches(stored, [one], distance, bits)]
    return sorted(rows)


def adversarial(bits):
    """A crowded prefix, equal ones, the extremes, nulls."""
    base = 0x5A << bits - 8
    values = [base ^ 1 << at for at in range(60)] + [base] * 20 + [0, 2**bits - 1, 1 << bits - 1, None, None]
    return values + plain.random_fingerprints(60, bits, seed=3)


@pytest.mark.parametrize("bits", plain.WIDTHS)
@pytest.mark.parametrize("count", [1, 5])
def test_shards_answer_as_the_plain_loop(spark, tmp_path, bits, count):
    from simstore.spark import build_store, query

    values = adversarial(bits)
    # Each row twice: a pair is stored once.
    made = build_store(frames.frame(spark, [*values, *values], [*range(len(values))] * 2, bits), tmp_path, count, codec="gap")
    stored = list(zip(values, range(len(values))))
    there = {pair for pair in stored if pair[0] is not None}
    assert made.pairs == len(there) and made.missing == 4 and len(made.shards) == count and made.bits == bits
    asked = [f"q{at}" for at in range(len(values))]
    questions = frames.frame(spark, [*values, *values], asked * 2, bits, id_type="string")
    for distance in (None, 0):
        found = query(questions, tmp_path, distance)
        assert answers(found) == expected(there, zip(asked, values), 3 if distance is None else 0, bits)
    with pytest.raises(ValueError, match="distance 4"):
        query(questions, tmp_path, 4)
    stores = [simstore.Snapshot(tmp_path / shard.folder) for shard in made.shards]
    assert {store.codec for store in stores} == {"gap"} and all(store.verify() == [] for store in stores)


def test_queries_in_several_batches_and_partitions(spark, tmp_path, adaptive):
    from simstore.spark import build_store, query

    values = plain.random_fingerprints(300, 64)
    build_store(frames.frame(spark, values, partitions=50), tmp_path, 3, distance=2, profile="words-2")
    want = expected(zip(values, range(300)), zip(range(300), values), 2)
    for partitions, together in ((1, 1), (50, 1 << 20)):
        questions = frames.frame(spark, values, partitions=partitions)
        assert answers(query(questions, tmp_path, together=together)) == want


def test_nothing_and_little(spark, tmp_path):
    from simstore.spark import build_store, query

    nothing, one = frames.frame(spark, []), frames.frame(spark, [5, None])
    made = build_store(nothing, tmp_path / "empty", 4)
    assert made.shards == () and made.pairs == 0
    assert answers(query(one, tmp_path / "empty")) == []
    assert len(build_store(one, tmp_path / "little", 4).shards) == 1
    assert answers(query(one, tmp_path / "little")) == [(0, 0, 5, 0)]
    assert answers(query(nothing, tmp_path / "little")) == []
    struct = spark.createDataFrame([((1, "a"), 4)], "who struct<a: int, b: string>, hash long")
    (row,) = query(struct, tmp_path / "little", fingerprint="hash", id="who").collect()
    assert row["query"].asDict() == {"a": 1, "b": "a"} and row.distance == 1


def test_what_makes_no_sense_is_refused(spark, tmp_path):
    from simstore.spark import build_store, query

    rows = frames.frame(spark, [1, 2])
    build = functools.partial(build_store, path=tmp_path / "set", shards=2)
    for error, match, refused in [
        (ValueError, "no column `hash`: the columns are id, fingerprint", lambda: build(rows, fingerprint="hash")),
        (ValueError, "no column `name`", lambda: build(rows, id="name")),
        (TypeError, "`id` is string: ids of a store are bigint", lambda: build(frames.frame(spark, [1], ["a"], id_type="string"))),
        (TypeError, "`id` is int:", lambda: build(frames.frame(spark, [1], id_type="int"))),
        (TypeError, "`fingerprint` is string", lambda: build(rows.selectExpr("id", "string(fingerprint) as fingerprint"))),
        (ValueError, "shards is 0", lambda: build(rows, shards=0)),
        (TypeError, "shards is a number", lambda: build(rows, shards="2")),
        (ValueError, "distance 17 is too large", lambda: build(rows, distance=17)),
        (ValueError, "unknown codec `zip`", lambda: build(rows, codec="zip")),
        (ValueError, "128 bits", lambda: build(rows, profile=simstore.Profile(bits=128))),
        (FileNotFoundError, "shards.json", lambda: query(rows, tmp_path / "set")),
    ]:
        with pytest.raises(error, match=match):
            refused()
        assert not (tmp_path / "set").exists()
    for match, wrong in [
        ("ids are 0 to", frames.frame(spark, [1, 2, 3], [1, -2, 3])),
        ("ids are null", frames.frame(spark, [1, 2, 3], [1, None, 3])),
        ("have 16 bytes", spark.createDataFrame([(1, b"short")], "id long, fingerprint binary")),
    ]:
        with pytest.raises(ValueError, match=match):
            build(wrong)
        assert not (tmp_path / "set" / "shards.json").exists()
    build(rows)
    with pytest.raises(ValueError, match="fingerprints of 128 bits"):
        query(frames.frame(spark, [1], bits=128), tmp_path / "set")
    with pytest.raises(TypeError, match="distance is a number"):
        query(rows, tmp_path / "set", "3")
    with pytest.raises(TypeError, match="has no order"):
        query(rows.selectExpr("map(id, id) as id", "fingerprint"), tmp_path / "set")
    with pytest.raises(Exception, match="an id in column `id` is null"):
        query(frames.frame(spark, [1], [None]), tmp_path / "set").collect()
    with pytest.raises(FileExistsError, match="replace"):
        build(rows)


def fails_at(folder, batches):
    """Fails in the middle, until the file says otherwise."""
    for batch in batches:
        yield batch
        if not (folder / "mended").exists():
            raise RuntimeError("a disk was lost")


def test_a_run_that_fails_leaves_no_set_and_the_next_one_removes_the_rest(spark, tmp_path):
    from simstore.spark import build_store, query

    values = plain.random_fingerprints(200, 64)
    rows = frames.frame(spark, values)
    build_store(rows, tmp_path / "set", 2)
    other = rows.where("id < 100").mapInArrow(functools.partial(fails_at, tmp_path), "id long, fingerprint long")
    before = answers(query(rows, tmp_path / "set"))
    with pytest.raises(Exception, match="a disk was lost"):
        build_store(other, tmp_path / "set", 2, replace=True)
    assert before == answers(query(rows, tmp_path / "set"))
    with pytest.raises(Exception, match="a disk was lost"):
        build_store(other, tmp_path / "new", 2)
    with pytest.raises(FileNotFoundError):
        query(rows, tmp_path / "new")
    # A leftover that a task of the failed run could have written.
    (tmp_path / "new" / f"shard-00001-{'0' * 16}").mkdir()
    (tmp_path / "mended").touch()
    made = build_store(other, tmp_path / "new", 2)
    assert sorted(os.listdir(tmp_path / "new")) == sorted(["shards.json", *(shard.folder for shard in made.shards)])
    made = build_store(other, tmp_path / "set", 2, replace=True)
    assert made.pairs == 100 and len(os.listdir(tmp_path / "set")) == 3
    assert answers(query(rows, tmp_path / "set")) == expected(zip(values[:100], range(100)), enumerate(values), 3)


def test_a_shard_that_is_missing_or_a_list_that_is_cut_is_told(spark, tmp_path):
    from simstore.spark import build_store, query

    rows = frames.frame(spark, plain.random_fingerprints(50, 64))
    made = build_store(rows, tmp_path, 2)
    away = tmp_path.parent / f"{tmp_path.name}-away"
    (tmp_path / made.shards[1].folder).rename(away)
    with pytest.raises(FileNotFoundError, match="a missing shard"):
        query(rows, tmp_path)
    away.rename(tmp_path / made.shards[1].folder)
    found = query(rows, tmp_path)
    # After it was looked at.
    (tmp_path / made.shards[1].folder).rename(away)
    with pytest.raises(Exception, match="a missing shard"):
        found.collect()
    file = tmp_path / "shards.json"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(simstore.CorruptError, match="cut short"):
        query(rows, tmp_path)


def test_an_executor_killed_while_shards_are_written(spark, tmp_path, monkeypatch):
    from simstore.spark import build_store, query
    from simstore.spark import shards as module

    values = plain.random_fingerprints(200, 64)
    rows = frames.frame(spark, values)
    build_shard = module.build_shard

    def slowly(batches, *args, **settings):
        # Its store is begun, and its rows are not all there.
        return build_shard(faults.held(tmp_path, batches), *args, **settings)

    monkeypatch.setattr(module, "build_shard", slowly)
    made = faults.kill_while(tmp_path, lambda: build_store(rows, tmp_path / "set", 3))
    assert made.pairs == 200 and len(os.listdir(tmp_path / "set")) == 4
    assert answers(query(rows, tmp_path / "set")) == expected(zip(values, range(200)), enumerate(values), 3)


@pytest.mark.parametrize("where", ["queries", "answers"])
def test_an_executor_killed_while_it_queries(spark, tmp_path, where):
    from simstore.spark import build_store, query

    values = plain.random_fingerprints(200, 64)
    rows = frames.frame(spark, values)
    build_store(rows, tmp_path / "set", 3)
    held = functools.partial(faults.held, tmp_path)
    if where == "queries":
        found = query(rows.mapInArrow(held, rows.schema), tmp_path / "set")
    else:
        found = query(rows, tmp_path / "set")
        found = found.mapInArrow(held, found.schema)
    found = faults.kill_while(tmp_path, lambda: answers(found))
    assert found == expected(zip(values, range(200)), enumerate(values), 3)


def copied(local, path):
    """A hook as users write it: copies a remote path to a local folder for this executor. Copying a shard twice fails."""
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
    values = plain.random_fingerprints(200, 64)
    rows = frames.frame(spark, values)
    made = build_store(rows, tmp_path / "set", 5)
    found = query(rows, tmp_path / "set", fetch=functools.partial(copied, local), together=50)
    for _ in range(2):
        assert answers(found) == expected(zip(values, range(200)), enumerate(values), 3)
    copies = [path.name.split("-", 1)[1] for path in local.iterdir()]
    assert {shard.folder for shard in made.shards} | {"shards.json"} == set(copies)
    assert max(copies.count(name) for name in copies) <= 2
