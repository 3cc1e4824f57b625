"""Calls of each part of the API with their static types. mypy checks this file, and test_types.py runs it."""

import tempfile
from pathlib import Path
from typing import assert_type

import numpy as np

import simstore


def use_texts() -> None:
    profile = simstore.Profile("chars-4", bits=128)
    assert_type(profile.fingerprint("near duplicates"), int | bytes | None)
    fingerprints = simstore.Profile().fingerprints(["near duplicates", None])
    assert_type(fingerprints, simstore.Array)
    assert_type(fingerprints[:1], simstore.Array)
    assert np.asarray(fingerprints[:1]).dtype == np.uint64
    assert len(fingerprints.to_numpy(fill=0)) == 2
    assert_type(simstore.similarity("to be", "or not"), float)
    assert simstore.bands(np.array(["to be or not"]), count=2).to_numpy().shape == (1, 2)
    hash(profile)


def use_jobs() -> None:
    rows = [{"text": "to be or not to be"}, {"text": "to be or not to be"}]
    result = simstore.dedup(rows, pairs=True, progress=lambda update: None)
    assert_type(result.summary, simstore.Summary)
    assert_type(result.pairs, simstore.Table)
    assert result.is_kept.sum() == result.summary["kept"] == 1
    evaluation = simstore.evaluate([("to be or not", "to be or not", True)], profiles=["words-1"], documents=2)
    assert_type(evaluation.recommended, dict[str, int | None])
    assert_type(simstore.compression([1, 2, 3]).floor, float)


def use_stores() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with simstore.Store(f"{folder}/live", distance=4, durability="sync") as store:
            store.insert_many(np.arange(3, dtype=np.uint64), range(3), ["a", None, "c"])
            assert_type(store.insert_if_new(5, 1, "five"), list[simstore.Match])
            assert store.delete_many([1], [1]).all()
            with store.batch() as batch:
                batch.insert(7, 7)
            snapshot = store.snapshot()
        assert_type(snapshot.query(5)[0].id, int | None)
        table = snapshot.query_many(np.zeros(1, dtype=np.uint64), 0)
        assert_type(table["fingerprint"], simstore.Array)
        for rows in snapshot.iter_batches():
            assert_type(rows, simstore.Table)
        with simstore.Builder(Path(folder) / "built", bits=128, codec="gap") as builder:
            builder.insert(5, 1)
        assert_type(simstore.Snapshot(builder.path).verify(), list[Exception])


def use_similar_stores() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with simstore.SimilarStore(Path(folder) / "pages", 0.8, with_texts=True, durability="sync") as store:
            assert_type(store.add(["to be or not to be", "or not"], [1, 2]), simstore.Array)
            assert_type(store.add_if_new("to be or not to be", 3), simstore.Table)
            assert_type(store.query("to be or not to be")[0], simstore.SimilarMatch)
            assert_type(store.texts(np.arange(3)), simstore.Array)
            assert store.delete([1]).all()


def use_arrays() -> None:
    assert_type(simstore.distance(1, 2), int)
    assert simstore.distance([1, 2], 3).dtype == simstore.distance([1], [2]).dtype
    assert simstore.clusters([1, None, 3]).tolist() == [1, 2, 1]
    assert_type(simstore.self_join([1, 2], distance=1), simstore.Table)


def use_errors() -> None:
    try:
        simstore.Profile("nothing")
    except ValueError:
        pass
    assert_type(simstore.CorruptError("no", "corrupt", "file", 3).offset, int)
