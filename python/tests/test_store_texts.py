"""Stores compute fingerprints of texts with their profile, and accept names as ids."""

import json
import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import helpers
import simstore

PROFILE = simstore.Profile()
TEXTS = [f"page {number} is about the number {number * 7919} and what comes after {number * 104729}" for number in range(30)]
NAMES = [f"https://example.org/{number}" for number in range(30)]
FINGERPRINTS = [PROFILE.fingerprint(text) for text in TEXTS]


def stored_rows(store):
    snapshot = store.snapshot() if isinstance(store, simstore.Store) else store
    return sorted((row["id"], row["fingerprint"], row["name"]) for table in snapshot.iter_batches() for row in table.to_pylist())


@pytest.mark.parametrize(
    "method", ["insert", "insert_many", "insert_if_new", "insert_many_if_new", "batch", "batch_many", "build", "build_many"]
)
def test_texts_are_stored_as_their_fingerprints(tmp_path, method):
    if method.startswith("build"):
        with simstore.Builder(tmp_path / "store", distance=0, profile=PROFILE) as builder:
            if method == "build":
                for name, text in zip(NAMES, TEXTS):
                    builder.insert(text=text, id=name)
            else:
                builder.insert_many(texts=np.array(TEXTS), ids=NAMES)
        store = simstore.Snapshot(tmp_path / "store")
    else:
        store = simstore.Store(tmp_path / "store", distance=0, profile=PROFILE)
        if method.endswith("many") or method.endswith("many_if_new"):
            if method == "batch_many":
                with store.batch() as batch:
                    batch.insert_many(texts=iter(TEXTS), ids=iter(NAMES))
            else:
                getattr(store, method)(texts=TEXTS, ids=np.array(NAMES, dtype=object))
        else:
            for name, text in zip(NAMES, TEXTS):
                if method == "batch":
                    with store.batch() as batch:
                        batch.insert(text=text, id=name)
                else:
                    getattr(store, method)(text=text, id=name)
    assert stored_rows(store) == [(at, FINGERPRINTS[at], NAMES[at]) for at in range(30)]
    for at, text in enumerate(TEXTS):
        found = store.query(text=text)
        assert found == store.query(FINGERPRINTS[at]) == [simstore.Match(FINGERPRINTS[at], 0, at, NAMES[at])]
        assert (found[0].name, store.name(at)) == (NAMES[at], NAMES[at])
    found = store.query_many(texts=TEXTS + ["", None])
    assert found.to_pylist() == store.query_many(FINGERPRINTS).to_pylist() and found["name"].to_pylist() == NAMES
    assert store.names([1, 0, 99]).to_pylist() == [NAMES[1], NAMES[0], None]
    assert store.query(text="?!") == []


def test_names_are_numbered_as_by_the_command_line(tmp_path):
    path, pages = tmp_path / "store", tmp_path / "pages.jsonl"

    def add(indices):
        pages.write_text("".join(json.dumps({"id": NAMES[at], "text": TEXTS[at]}) + "\n" for at in indices))
        subprocess.run([helpers.cli_binary(), "add", path, pages], check=True, capture_output=True)

    add(range(5))
    with simstore.Store(path) as store:
        store.insert_many(texts=TEXTS[3:10], ids=NAMES[3:10])
        store.insert(FINGERPRINTS[3], NAMES[3])
        # The same name with another fingerprint is another document.
        store.insert(FINGERPRINTS[4], NAMES[3])
    add(range(8, 12))
    expected = [(at, FINGERPRINTS[at], NAMES[at]) for at in range(10)] + [(10, FINGERPRINTS[4], NAMES[3])]
    assert stored_rows(simstore.Snapshot(path)) == expected + [(at + 1, FINGERPRINTS[at], NAMES[at]) for at in (10, 11)]


def test_threads_give_each_name_a_number_of_its_own(tmp_path):
    with simstore.Store(tmp_path / "store") as store:
        store.insert(0, "the first")
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda at: store.insert(at << 40, f"name {at % 100}"), range(1, 400)))
        stored = stored_rows(store)
    assert [id for id, _, _ in stored] == list(range(400)) and len({name for _, _, name in stored}) == 101


def test_invalid_calls_are_refused(tmp_path):
    with simstore.Store(tmp_path / "numbers") as store:
        with pytest.raises(ValueError, match="has no profile.*give fingerprints"):
            store.insert(text="a text", id=1)
        with pytest.raises(ValueError, match="has no profile"):
            store.query(text="a text")
        store.insert(1, 1)
        with pytest.raises(ValueError, match="ids of the store are numbers"):
            store.insert(2, "a name")
        inserts = (lambda: store.insert(id=1), lambda: store.insert(1, 1, text="a"), lambda: store.insert_many(ids=[1]))
        for call in (store.query, store.query_many, *inserts):
            with pytest.raises(TypeError, match="found (both|neither)"):
                call()
        with pytest.raises(TypeError, match="expected an id"):
            store.insert(1)
        with pytest.raises(TypeError, match="leave the other name out"):
            store.insert(1, "a name", "another")
        with pytest.raises(ValueError, match="id 1 is missing"):
            store.insert_many([1, 2], ["a", None])
    with simstore.Store(tmp_path / "texts", profile=PROFILE) as store:
        for insert in (store.insert, store.insert_if_new):
            with pytest.raises(ValueError, match="no letter and no digit"):
                insert(text="?!", id=1)
        with pytest.warns(simstore.errors.SimstoreWarning, match="2 of 3 texts"):
            assert store.insert_many_if_new(texts=["a text", "", None], ids=[1, 2, 3]).tolist() == [True, False, False]
        with pytest.warns(simstore.errors.SimstoreWarning, match="1 of 1 texts"):
            store.insert_many(texts=[""], ids=[5])
        assert [id for id, _, _ in stored_rows(store)] == [1]
    with simstore.Builder(tmp_path / "built") as builder:
        builder.insert(1, "a name")
        with pytest.raises(ValueError, match="one kind"):
            builder.insert(2, 7)


def test_a_profile_with_files_is_given(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("数据库引擎\n")
    profile = simstore.Profile("jieba-20", dictionary=words)
    with simstore.Store(tmp_path / "store", profile=profile) as store:
        store.insert(text="数据库引擎是很快的软件", id=1)
    with pytest.raises(ValueError, match="open it with `profile`"):
        simstore.Snapshot(tmp_path / "store").query(text="数据库引擎是很快的软件")
    snapshot = pickle.loads(pickle.dumps(simstore.Snapshot(tmp_path / "store", profile=profile)))
    assert [match.id for match in snapshot.refresh().query(text="数据库引擎是很快的软件")] == [1]
    with pytest.raises(ValueError, match="the store has the profile"):
        simstore.Snapshot(tmp_path / "store", profile=PROFILE)


def test_matches_with_names():
    match = simstore.Match(15, 1, 2, "it's")
    assert repr(match) == """Match(fingerprint=0xf, distance=1, id=2, name="it's")""" and list(match) == [15, 1, 2]
    assert pickle.loads(pickle.dumps(match)) == match != simstore.Match(15, 1, 2)
