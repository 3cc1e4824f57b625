"""A store of similar documents takes no fingerprints, and is asked for none."""

import json
import subprocess

import pytest

import corpora
import simstore

TEXTS = [f"the quick brown fox number {number} jumps over the lazy dog, and sleeps at the river of page {number}" for number in range(5)]


@pytest.fixture
def path(tmp_path):
    pages = tmp_path / "pages.jsonl"
    pages.write_text("".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(TEXTS)))
    path = tmp_path / "similar"
    subprocess.run([corpora.binary(), "add", path, pages, "--similar", "0.8"], check=True, capture_output=True)
    return path


def test_no_fingerprints_are_written(path):
    rows = lambda: [row for table in simstore.Snapshot(path).iter_batches() for row in table.to_pylist()]
    before = rows()
    with simstore.Store(path) as store:
        writes = [
            lambda: store.insert(1, 100),
            lambda: store.insert_many([1], [100]),
            lambda: store.insert_if_new(1, 100),
            lambda: store.insert_many_if_new([1], [100]),
            lambda: store.delete(1, 100),
            lambda: store.delete_many([1], [100]),
            lambda: store.batch(),
        ]
        for write in writes:
            with pytest.raises(simstore.errors.Error, match="a store of similar documents.*simstore add") as raised:
                write()
            assert raised.value.code == "refused"
        store.flush()
        store.compact()
    assert before and rows() == before and simstore.Snapshot(path).verify() == []


def test_no_fingerprints_are_looked_up(path):
    snapshot = simstore.Snapshot(path)
    with simstore.Store(path) as store:
        lookups = [
            lambda: snapshot.query(1),
            lambda: snapshot.query_many([1]),
            lambda: snapshot.contains(1),
            lambda: snapshot.contains_many([1]),
            lambda: 1 in snapshot,
            lambda: store.query(1),
            lambda: 1 in store,
        ]
        for look_up in lookups:
            with pytest.raises(simstore.errors.Error, match="a store of similar documents.*against"):
                look_up()


def test_no_mark_makes_one(tmp_path):
    with simstore.Store(tmp_path / "store") as store, store.batch() as batch:
        with pytest.raises(ValueError, match="choose another key"):
            batch.mark("similar", b"similar 0.8 recall 0.95 sketches 4 sample 128")
