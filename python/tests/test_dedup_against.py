"""`dedup` with `against`: removes near-duplicates of documents in stores, frames, lists and files."""

import numpy as np
import pytest

import helpers
import simstore
from corpora import SAMPLES, sample_rows

ROWS = sample_rows("en.jsonl")
TEXT = "it was the best of times it was the worst of times it was the age of wisdom it was the age of foolishness"
TRAIN = [TEXT, "something else altogether that nobody has copied from any test", TEXT + " indeed", "short", "short"]
TEST = ["an unrelated question about the weather and its changes over the years", TEXT]


def containers(rows, id=False):
    """Yields the rows in each supported kind of container."""
    pd, pl, pa = map(helpers.optional_module, ("pandas", "polars", "pyarrow"))
    yield pd.DataFrame({"text": rows})
    yield pl.DataFrame({"text": rows})
    yield pl.LazyFrame({"text": rows})
    yield pa.table({"text": rows})
    yield rows
    yield iter(rows)
    yield {"text": rows}
    yield [{"text": text} for text in rows]
    yield pd.Series(rows)


def test_the_train_set_without_what_is_in_the_test_set():
    for test in containers(TEST):
        result = simstore.dedup(TRAIN, against=test)
        assert result.is_kept.tolist() == [False, True, False, True, False]
        removed = result.removed.to_pylist()
        rows = [(row["document"], row["duplicate_of"], row["stored"]) for row in removed]
        assert rows == [(0, "1", True), (2, "1", True), (4, "3", False)]
        assert result.summary["stored"] == 2
    named_rows = [{"id": f"question {n}", "text": text} for n, text in enumerate(TEST)]
    result = simstore.dedup(TRAIN, against=named_rows)
    assert result.removed["duplicate_of"].to_pylist() == ["question 1", "question 1", "3"]
    assert result.unique(TRAIN) == [TRAIN[1], "short"]
    repeated = [{"id": 1, "text": text} for text in TEST]
    assert simstore.dedup(TRAIN, against=repeated).removed["duplicate_of"][0] == "1"


def test_removed_documents_match_brute_force_far_from_the_threshold():
    train, test = [row["text"] for row in ROWS[::2]], [row["text"] for row in ROWS[1::2]]
    result = simstore.dedup(train, against=test, recall=0.9999)
    removed = {row["document"] for row in result.removed if row["stored"]}
    for at, text in enumerate(train):
        best = max(simstore.similarity(text, other) for other in test)
        assert abs(best - 0.8) < 0.12 or (at in removed) == (best >= 0.8), best


IGNORE_SHORT = pytest.mark.filterwarnings("ignore:5 documents are too short")


@IGNORE_SHORT
@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_by_distance(bits):
    profile = simstore.Profile(bits=bits)
    result = simstore.dedup(TRAIN, against=TEST, distance=3, profile=profile)
    is_near_text = simstore.distance(profile.fingerprints(TRAIN), profile.fingerprint(TEXT)) <= 3
    assert [row["document"] for row in result.removed if row["stored"]] == np.flatnonzero(is_near_text).tolist()
    fingerprints = helpers.random_fingerprints(60, bits, seed=7)
    corpus, others = fingerprints[::2], fingerprints[1::2]
    for reference in (others, helpers.to_array(others, bits)):
        result = simstore.dedup(helpers.to_array(corpus, bits), against=reference, distance=4, bits=bits)
        is_near = (helpers.distance_matrix(corpus, others, bits) <= 4).any(axis=1)
        stored = {row["document"] for row in result.clusters if row["stored"]}
        assert set(np.flatnonzero(is_near)) <= stored


@IGNORE_SHORT
def test_files_and_stores(tmp_path):
    (tmp_path / "test.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in TEST))
    expected = simstore.dedup(TRAIN, against=TEST).is_kept.tolist()
    for path in (tmp_path / "test.jsonl", str(tmp_path / "test.jsonl"), [str(tmp_path / "test.jsonl")], f"{tmp_path}/*.jsonl"):
        assert simstore.dedup(TRAIN, against=path).is_kept.tolist() == expected
    (tmp_path / "temporary").mkdir()
    simstore.dedup(SAMPLES / "en.jsonl", against=TEST, temporary=tmp_path / "temporary", output=tmp_path / "kept.jsonl")
    assert list((tmp_path / "temporary").iterdir()) == [] and (tmp_path / "kept.jsonl").exists()
    with simstore.Store(tmp_path / "store", profile=simstore.Profile()) as store:
        store.insert_many(simstore.Profile().fingerprints(TEST), [7, 8])
    assert 8 in simstore.dedup(TRAIN, against=tmp_path / "store", distance=3).removed["duplicate_of"]


def test_invalid_arguments_are_refused(tmp_path):
    with pytest.raises(simstore.Error, match="no such store"):
        simstore.dedup(TRAIN, against=tmp_path / "none")
    with pytest.raises(ValueError, match="option `add` needs a store"):
        simstore.dedup(TRAIN, against=TEST, add=True)
    with pytest.raises(ValueError, match="no document has a field `text`"):
        simstore.dedup(TRAIN, against=[{"body": "x"}])
    with pytest.raises(simstore.BadInputError, match="document 2"):
        simstore.dedup(TRAIN, against=[TEST[0], "\ud800"])
    with pytest.warns(simstore.SimstoreWarning):
        assert simstore.dedup(TRAIN, against=[TEXT, "\ud800"], skip_bad=True).summary["stored"] == 2
    with simstore.Store(tmp_path / "store"):
        pass
    for options in ({}, {"add": True}):
        with pytest.raises(ValueError, match="give option `distance`"):
            simstore.dedup(TRAIN, against=tmp_path / "store", **options)
    # A store that the call creates has the settings of the call.
    new = simstore.dedup(TRAIN, against=tmp_path / "new", add=True)
    assert new.summary["similar"] == 0.8 and new.summary["added"] == new.summary["kept"]
    assert simstore.dedup(TRAIN, against=tmp_path / "new").summary["stored"] == new.summary["documents"]
