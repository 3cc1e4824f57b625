"""`SimilarStore`: a store of texts, queried by similarity."""

import json
import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpora
import simstore

TEXTS = [f"the quick brown fox number {number} jumps over the lazy dog, and sleeps at the river of page {number}" for number in range(5)]


@pytest.fixture
def path(tmp_path):
    input_file = tmp_path / "pages.jsonl"
    input_file.write_text("".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(TEXTS)))
    path = tmp_path / "similar"
    subprocess.run([corpora.cli_binary(), "add", path, input_file, "--similar", "0.8"], check=True, capture_output=True)
    return path


def test_no_fingerprints_are_written(path):
    def rows():
        return [row for table in simstore.Snapshot(path).iter_batches() for row in table.to_pylist()]

    rows_before = rows()
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
            with pytest.raises(simstore.errors.Error, match="a store of similar documents.*simstore.SimilarStore") as raised:
                write()
            assert raised.value.code == "refused"
        store.flush()
        store.compact()
    assert rows_before and rows() == rows_before and simstore.Snapshot(path).verify() == []


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
            with pytest.raises(simstore.errors.Error, match="a store of similar documents.*simstore.SimilarStore"):
                look_up()


def test_metadata_cannot_change_the_type_of_a_store(tmp_path):
    with simstore.Store(tmp_path / "store") as store, store.batch() as batch:
        with pytest.raises(ValueError, match="choose another key"):
            batch.set_metadata("similar", b"similar 0.8 recall 0.95 bands 4")


def similar_texts(count, seed=1):
    """Returns random texts with all degrees of similarity between them, some of them equal."""
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{number}" for number in range(500)]
    texts = []
    for at in range(count):
        if at % 3 == 0 or not texts:
            words = list(rng.choice(vocabulary, rng.integers(5, 80)))
        else:
            words = texts[rng.integers(len(texts))].split()
            for _ in range(rng.integers(0, 6)):
                words[rng.integers(len(words))] = str(rng.choice(vocabulary))
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("with_texts", [False, True])
def test_matches_are_those_of_brute_force(tmp_path, with_texts):
    texts = similar_texts(240)
    exact = {(a, b): simstore.similarity(text, other) for a, text in enumerate(texts) for b, other in enumerate(texts)}
    similar_pairs = {pair: similarity for pair, similarity in exact.items() if similarity >= 0.8}
    with simstore.SimilarStore(tmp_path / "store", 0.8, with_texts=with_texts) as store:
        assert store.add(texts).to_pylist() == list(range(240)) and len(store) == 240
        table = store.query_many(texts)
        found = {(row["query"], row["id"]): row for row in table}
        assert {pair for pair, similarity in similar_pairs.items() if similarity == 1.0} <= set(found)
        assert all(row["error"] == 0 for pair, row in found.items() if exact[pair] == 1.0)
        if with_texts:
            assert {pair: row["similarity"] for pair, row in found.items()}.items() <= similar_pairs.items()
            assert len(found) >= 0.97 * len(similar_pairs) > 240 and set(table["error"].to_pylist()) == {0.0}
        else:
            assert all(abs(row["similarity"] - exact[pair]) <= 5 * row["error"] for pair, row in found.items())
        order = [(row["query"], -row["similarity"], row["id"]) for row in table]
        assert order == sorted(order)
        for at in (0, 7, 239):
            matches = [(match.id, match.name, match.similarity, match.error) for match in store.query(texts[at])]
            assert matches == [(row["id"], row["name"], row["similarity"], row["error"]) for row in table if row["query"] == at]
            assert store.query(texts[at], limit=1) == store.query(texts[at])[:1]
        assert store.query_many(texts, 1)["query"].to_pylist() == sorted({query for query, _ in found})
        assert store.query(" ") == [] and len(store.query_many(["", None])) == 0


def test_add_if_new_adds_only_new_texts(tmp_path):
    texts = similar_texts(150)
    with simstore.SimilarStore(tmp_path / "store", 0.8, with_texts=True) as store:
        with pytest.warns(simstore.SimstoreWarning, match="2 of 152 texts"):
            rows = store.add_if_new([*texts, " \n", None], range(1000, 1152)).to_pylist()
        kept = [at for at in range(150) if rows[at]["added"]]
        for at, row in enumerate(rows[:150]):
            if row["added"]:
                assert row == {"added": True, "id": 1000 + at, "duplicate_of": None, "name": None, "similarity": None, "error": None}
            else:
                assert row["id"] is None and row["duplicate_of"] - 1000 in [other for other in kept if other < at]
                assert row["similarity"] == simstore.similarity(texts[at], texts[row["duplicate_of"] - 1000]) >= 0.8
        assert rows[150] == rows[151] == dict.fromkeys(rows[0], None) | {"added": False}
        second_rows = store.add_if_new(texts, range(1000, 1150))
        assert not any(second_rows["added"].to_pylist()) and len(store) == len(kept)
        # Brute force keeps about as many texts. The store misses a similar text with a small probability, so the counts may differ.
        brute_force_kept = []
        for text in texts:
            if all(simstore.similarity(text, other) < 0.8 for other in brute_force_kept):
                brute_force_kept.append(text)
        assert abs(len(brute_force_kept) - len(kept)) <= 3


@pytest.mark.parametrize("kind", [list, iter, np.array, lambda all: np.array(all, dtype=object), pd.Series, pl.Series, pa.array])
def test_arrays_of_all_kinds(tmp_path, kind):
    names = [f"https://example.org/{number}" for number in range(5)]
    with simstore.SimilarStore(tmp_path / "store", with_texts=True) as store:
        assert store.add(kind(TEXTS), kind(names)).to_pylist() == list(range(5))
        assert store.query_many(kind(TEXTS), 1)["name"].to_pylist() == names
        ids = kind([0, 3, 99])
        assert store.texts(ids).to_pylist() == [TEXTS[0], TEXTS[3], None]
    with simstore.SimilarStore(tmp_path / "numbers") as store:
        assert store.add(kind(TEXTS), kind([9, 7, 5, 3, 1])).to_pylist() == [9, 7, 5, 3, 1]
        assert store.delete(kind([7, 8, 7])).tolist() == [True, False, False] and len(store) == 4


def test_ids_and_names(tmp_path):
    with simstore.SimilarStore(tmp_path / "names") as store:
        assert store.add(TEXTS[0], "a").to_pylist() == store.add(TEXTS[0], "a").to_pylist() == [0]
        # A name belongs to one text; a text may have several names.
        for write in (store.add, store.add_if_new):
            with pytest.raises(ValueError, match="text 1: the name `a` already has another text"):
                write([TEXTS[0], TEXTS[1]], ["a", "a"])
        assert store.add([TEXTS[1], TEXTS[0]], ["d", "b"]).to_pylist() == [1, 2]
        assert store.add_if_new(TEXTS[0], "c").to_pylist()[0]["name"] == "a"
        assert [match.name for match in store.query(TEXTS[0]) if match.similarity == 1] == ["a", "b"]
    with simstore.SimilarStore(tmp_path / "numbers") as store:
        assert store.add(TEXTS[:2], [5, 6]).to_pylist() == store.add(TEXTS[:2], [5, 6]).to_pylist() == [5, 6]
        assert store.add(TEXTS[2]).to_pylist() == [7]
        for write in (store.add, store.add_if_new):
            with pytest.raises(ValueError, match="text 1: .*the id 6 already has another text"):
                write([TEXTS[0], "quite another text it is"], [5, 6])
        with pytest.raises(ValueError, match="the ids of the store are numbers"):
            store.add(TEXTS[3], "a name")
        with pytest.raises(ValueError, match="there are 2 texts, and 1 ids"):
            store.add(TEXTS[:2], [1])
        for frame in (pd.DataFrame({"text": TEXTS}), pl.DataFrame({"text": TEXTS}), {"text": TEXTS}):
            with pytest.raises(TypeError, match="give the column"):
                store.add(frame)
        store.add([TEXTS[3]], [2**64 - 1])
        with pytest.raises(ValueError, match="greatest id"):
            store.add(TEXTS[4])
        assert len(store) == 4


def test_names_are_accepted_as_ids(tmp_path):
    with simstore.SimilarStore(tmp_path / "names", with_texts=True) as store:
        store.add([*TEXTS[:3], TEXTS[0]], ["a", "b", "d", "c"])
        assert store.texts(["b", "none", "a"]).to_pylist() == [TEXTS[1], None, TEXTS[0]]
        assert store.texts("c").to_pylist() == store.texts(3).to_pylist() == [TEXTS[0]]
        assert store.delete(["a", "none", "a"]).tolist() == [True, False, False] and len(store) == 3
        assert store.texts(["a", "b"]).to_pylist() == [None, TEXTS[1]] and store.texts([0, 2]).to_pylist() == [None, TEXTS[2]]
        assert store.delete("b").tolist() == [True] and store.delete("b").tolist() == [False]
        assert store.add(TEXTS[4], "a").to_pylist() == [4] and store.texts("a")[0] == TEXTS[4]
    with simstore.SimilarStore(tmp_path / "numbers") as store:
        store.add(TEXTS[:2], [1, 2])
        assert store.delete(1).tolist() == [True] and store.delete(np.int64(1)).tolist() == [False]
        assert store.delete("2").tolist() == [False] and len(store) == 1
        for invalid in (1.5, None, True, [None], ["a", 1]):
            with pytest.raises((TypeError, ValueError)):
                store.delete(invalid)
        assert store.delete([]).tolist() == [] and len(store) == 1


@pytest.mark.parametrize("write", ["add", "add_if_new"])
def test_a_call_that_fails_has_added_the_texts_before(tmp_path, write):
    with simstore.SimilarStore(tmp_path / "store") as store:
        add = getattr(store, write)
        store.add(TEXTS[0], 2)

        def broken():
            yield TEXTS[1]
            raise RuntimeError("no more texts")

        # Texts and ids are read first: nothing is added.
        for texts, ids, raised in [(broken(), None, RuntimeError), ([TEXTS[1], 5], None, TypeError), (TEXTS[1:3], [7, None], TypeError)]:
            with pytest.raises(raised):
                add(texts, ids)
            assert len(store) == 1
        with pytest.raises(ValueError, match="text 2: the id 2 already has another text"):
            add([TEXTS[1], TEXTS[2], "quite another text it is", TEXTS[3]], [0, 1, 2, 3])
        assert sorted(match.id for text in TEXTS for match in store.query(text) if match.similarity == 1) == [0, 1, 2]

        def stop(progress):
            raise RuntimeError("enough")

        count_before = len(store)
        with pytest.raises(RuntimeError, match="enough"):
            add([f"text {number} {number * 7} of many {number * 13} others" for number in range(60_000)], progress=stop)
        assert count_before < len(store) < 60_000


def test_invalid_limits_are_refused_by_name(tmp_path):
    with simstore.SimilarStore(tmp_path / "store") as store:
        store.add(TEXTS)
        for limit in (-1, 2**64, -(10**30)):
            with pytest.raises(ValueError, match=r"limit is -?\d+: expected 0 to 2\*\*64 - 1"):
                store.query(TEXTS[0], limit)
            with pytest.raises(ValueError, match="limit is"):
                store.query_many(TEXTS, limit=limit)
        with pytest.raises(TypeError, match="limit"):
            store.query(TEXTS[0], limit=1.5)
        assert len(store.query(TEXTS[0], limit=None)) >= 1 and store.query(TEXTS[0], 0) == []


def test_stored_settings_are_used_at_reopening(tmp_path):
    path = tmp_path / "store"
    with pytest.raises(FileNotFoundError):
        simstore.SimilarStore(path, create=False)
    with simstore.SimilarStore(path, 0.7, 0.9, with_texts=True, profile="words-2") as store:
        store.add(TEXTS)
        with pytest.raises(simstore.LockedError):
            simstore.SimilarStore(path)
        assert repr(store) == f"SimilarStore('{path}', similar=0.7, with texts)"
    assert store.closed and store.path == str(path)
    for call in (store.flush, store.__enter__, lambda: len(store), lambda: store.add(TEXTS), lambda: store.query("a text")):
        with pytest.raises(ValueError, match="closed"):
            call()
    store.close()
    all_settings = {"similar": 0.7, "recall": 0.9, "with_texts": True, "profile": simstore.Profile("words-2")}
    for create, settings in [(True, {}), (False, all_settings)]:
        with simstore.SimilarStore(path, create=create, **settings) as store:
            assert (store.similar, store.recall, store.has_texts, store.profile, len(store)) == (0.7, 0.9, True, "words-2", 5)
            store.flush()
            assert len(store) == 5 and store.texts(range(5)).to_pylist() == TEXTS
    for different in ({"similar": 0.8}, {"recall": 0.95}, {"with_texts": False}, {"profile": "words-3"}):
        with pytest.raises(ValueError, match="has .* not|asked|expected") as raised:
            simstore.SimilarStore(path, **different)
        assert str(path) in str(raised.value)
    for invalid in ({"similar": 0}, {"recall": 1}, {"durability": "never"}, {"similar": 0.01}):
        with pytest.raises(ValueError):
            simstore.SimilarStore(tmp_path / "bad", **invalid)
    with simstore.Store(tmp_path / "fingerprints") as store:
        store.insert(1, 1)
    with pytest.raises(ValueError, match="has type `fingerprints`, not `similar documents`"):
        simstore.SimilarStore(tmp_path / "fingerprints")


def test_texts_come_back(tmp_path):
    texts = ["Ça va? 你好，世界 🦊", "a\x00b \r\n\t c", "!!!", "ü" * 100_000, " leading and trailing "]
    with simstore.SimilarStore(tmp_path / "store", with_texts=True, durability="sync") as store:
        with pytest.warns(simstore.SimstoreWarning, match="4 of 9 texts are None, or white space"):
            ids = store.add([*texts, "", " \u3000\n", None, float("nan")])
        assert ids.to_pylist() == [0, 1, 2, 3, 4, None, None, None, None]
        assert store.texts([4, 3, 2, 1, 0, 5]).to_pylist() == [*texts[::-1], None]
        assert store.delete([1]).tolist() == [True] and store.texts([1, 2]).to_pylist() == [None, "!!!"]
        assert [match.id for match in store.query("!!!")] == [2] and store.query(texts[1]) == []
        # After the deletion another text can get the id.
        assert store.add("another text altogether", 1).to_pylist() == [1] and store.texts([1])[0] == "another text altogether"
    with simstore.SimilarStore(tmp_path / "without") as store:
        with pytest.raises(ValueError, match="has no texts"):
            store.texts([1])


def test_threads_add_each_text_once(tmp_path):
    texts = similar_texts(300, seed=2)
    with simstore.SimilarStore(tmp_path / "store", with_texts=True) as store:
        with ThreadPoolExecutor(2) as threads:
            added_flags = list(threads.map(lambda at: store.add_if_new(texts[at], f"page {at}")["added"][0], range(300)))
        added = [at for at in range(300) if added_flags[at]]
        ids = {store.query(texts[at], 1)[0].name: store.query(texts[at], 1)[0].id for at in added}
        assert set(ids) == {f"page {at}" for at in added} and sorted(ids.values()) == list(range(len(store)))
    with simstore.SimilarStore(tmp_path / "numbers") as store:

        def add(at):
            try:
                return store.add(texts[at], at // 2)[0] is not None
            except ValueError:
                return False

        with ThreadPoolExecutor(2) as threads:
            added = list(threads.map(add, range(300)))
        # Each id has one text: the one that was added first.
        assert all(any(pair) for pair in zip(added[::2], added[1::2])) and len(store) == 150


def test_calls_from_a_progress_callable(tmp_path):
    store, updates = simstore.SimilarStore(tmp_path / "store"), []

    def inside(update):
        with pytest.raises(RuntimeError, match="SimilarStore.close was called in the middle"):
            store.close()
        updates.append((update.step, update.count, update.total, len(store.query(TEXTS[0]))))

    store.add(TEXTS, progress=inside)
    assert updates[-1][:3] == ("texts", 5, 5) and updates[-1][3] >= 1
    store.close()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(store)


def test_matches():
    match = simstore.SimilarMatch(1, "it's", 0.75, 0.02)
    assert repr(match) == """SimilarMatch(id=1, name="it's", similarity=0.75, error=0.02)"""
    assert pickle.loads(pickle.dumps(match)) == match != simstore.SimilarMatch(1, None, 0.75, 0.02)
    assert len({match, simstore.SimilarMatch(1, "it's", 0.75, 0.02)}) == 1


def test_the_command_line_reads_the_store(tmp_path):
    with simstore.SimilarStore(tmp_path / "store", with_texts=True) as store:
        store.add(TEXTS, [f"page {number}" for number in range(5)])
    command = [corpora.cli_binary(), "query", tmp_path / "store", "--text", TEXTS[3], "--show"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "page 3" in output and TEXTS[3] in output


def test_dedup_makes_a_store_with_texts(tmp_path):
    documents = [{"text": text} for text in [*TEXTS, TEXTS[0]]]
    simstore.dedup(documents, against=tmp_path / "store", add=True, with_texts=True)
    with simstore.SimilarStore(tmp_path / "store") as store:
        assert store.has_texts and TEXTS[0] in store.texts(range(len(store))).to_pylist()
    with pytest.raises(ValueError, match="with_texts"):
        simstore.dedup(documents, with_texts=True)
