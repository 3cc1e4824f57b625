"""The tasks of the distributed similarity search, run in one process, find the same pairs as `dedup`."""

import itertools
import random

import pytest

import corpora
import helpers
import simstore

pa = helpers.optional_module("pyarrow")
similarity = pytest.importorskip("simstore.tasks.similarity")


COMPARED_COLUMNS = ["digest_a", "digest_b", "members_a", "members_b"]


def text_batches(rows, size):
    """Returns rows of id and text as record batches, the first of them empty."""
    ids = pa.array([id for id, _ in rows], pa.int64())
    table = pa.table({"id": ids, "text": pa.array([text for _, text in rows], pa.string())})
    return [pa.RecordBatch.from_pylist([], table.schema), *table.to_batches(max_chunksize=size)]


def batch_rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def near_value_pairs(values, distance):
    """Returns pairs of different values within the distance, and (value, value) for each value that occurs several times."""
    different = sorted(set(values))
    found = simstore.self_join([value % 2**64 for value in different], distance).to_pylist() if different else []
    pairs = [(different[pair["a"]], different[pair["b"]]) for pair in found]
    return pairs + [(value, value) for value in different if values.count(value) > 1]


def similar_pairs(rows, similar=0.8, recall=0.95, profile=None, size=7):
    """Returns sorted triples (id, id, similarity). Runs the steps of `simstore.spark.similar_pairs` in one process."""
    batches = text_batches(rows, size)
    documents = batch_rows(similarity.sketched(batches, "text", profile=profile))
    documents = [row for row in documents if row["digest"] is not None]
    sets = {row["digest"]: row for row in documents}
    chosen = simstore._simstore._choose_bands(similar, recall, len(sets))
    candidates = []
    for sketch in range(chosen[0]):
        rows_by_sketch = {}
        for row in sets.values():
            rows_by_sketch.setdefault(row["sketches"][sketch], []).append(row)
        row_pairs = [
            (x, y)
            for a, b in near_value_pairs([row["sketches"][sketch] for row in sets.values()], chosen[1])
            for x, y in itertools.product(rows_by_sketch[a], rows_by_sketch[b])
        ]
        names = ["digest", "features", "sketches"]
        columns = [
            pa.array([pair[side][name] for pair in row_pairs], similarity.SKETCHED.field(name).type)
            for side in (0, 1)
            for name in names
        ]
        batch = pa.record_batch(columns, names=[f"{name}_{side}" for side in "ab" for name in names])
        candidates += batch_rows(similarity.candidates([batch], similar=similar, chosen=chosen, sketch=sketch))
    pairs = [(row["digest_a"], row["digest_b"]) for row in candidates]
    assert len(pairs) == len(set(pairs)) and all(a < b for a, b in pairs)
    members = {
        row["digest"]: row["members"]
        for row in batch_rows(similarity.feature_sets(batches, "text", profile=profile))
    }
    columns = [[a for a, _ in pairs], [b for _, b in pairs], [members[a] for a, _ in pairs], [members[b] for _, b in pairs]]
    batch = pa.record_batch([pa.array(column, pa.binary()) for column in columns], names=COMPARED_COLUMNS)
    found = batch_rows(similarity.compared([batch], similar=similar))
    pairs = {(row["digest_a"], row["digest_b"]): row["similarity"] for row in found}
    assert len(pairs) == len(found) and all(a < b for a, b in pairs)
    return document_pairs(documents, pairs)


def document_pairs(documents, pairs):
    ids_by_digest = {}
    for row in documents:
        ids_by_digest.setdefault(row["digest"], []).append(row["id"])
    found = [(*sorted(pair), 1.0) for ids in ids_by_digest.values() for pair in itertools.combinations(ids, 2)]
    for (a, b), similarity_value in pairs.items():
        found += [(*sorted(pair), similarity_value) for pair in itertools.product(ids_by_digest[a], ids_by_digest[b])]
    return sorted(found)


def dedup_on_one_machine(rows, **options):
    profile = options.pop("profile", None)
    documents = [{"id": id, "text": text or ""} for id, text in rows]
    pairs = simstore.dedup(documents, pairs=True, similar=options.pop("similar", 0.8), verify_profile=profile, **options).pairs
    return sorted((*sorted((row["a"], row["b"])), row["similarity"]) for row in pairs.to_pylist())


def check_similar_pairs(rows, **options):
    expected = dedup_on_one_machine(rows, **options)
    for size in (3, 1000):
        assert similar_pairs(rows, size=size, **options) == expected
    return expected


def enumerate_texts(texts):
    return list(enumerate(texts))


@pytest.mark.parametrize("similar", [0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("words", [3, 6, 12, 24, 40, 80, 300])
def test_random_sets_of_all_sizes(words, similar):
    rows = enumerate_texts(corpora.random_texts(words, 120, words=words))
    assert check_similar_pairs(rows, similar=similar) or similar >= 0.95


@pytest.mark.parametrize("recall", [0.5, 0.99])
def test_several_recalls(recall):
    check_similar_pairs(enumerate_texts(corpora.random_texts(3, 100, words=60)), recall=recall)


@pytest.mark.parametrize("max_words", [8, 16, 44])
def test_texts_that_are_parts_of_other_texts(max_words):
    """The tasks find similar texts if one text is a part of the other, for texts of all sizes up to `max_words`."""
    words = [f"w{at}" for at in range(max_words)]
    sizes = range(max(1, max_words - 13), max_words + 1)
    rows = enumerate_texts([" ".join(words[start : start + size]) for size in sizes for start in range(0, max_words - size + 1)])
    assert len(check_similar_pairs(rows, similar=0.6)) > 20


def test_chinese():
    rng = random.Random(4)
    base = [chr(0x4E00 + rng.randrange(3000)) for _ in range(90)]
    texts = []
    for _ in range(60):
        text = list(base[: rng.choice([20, 33, 36, 60, 90])])
        for _ in range(rng.randrange(3)):
            text[rng.randrange(len(text))] = "新"
        texts.append("".join(text))
    assert len(check_similar_pairs(enumerate_texts(texts))) > 50


def test_chains_and_many_that_are_equal():
    words = [f"w{at}" for at in range(150)]
    chain = [" ".join(words[at : at + 60]) for at in range(0, 80, 4)]
    assert len(check_similar_pairs(enumerate_texts(chain * 3 + ["the same few words"] * 30))) > 500


def test_texts_without_words_match_only_equal_texts():
    rows = enumerate_texts(["", None, "?!", "to be or not to be", None, "", "to be or not to be", "!!", " ?!"])
    assert check_similar_pairs(rows) == [(2, 8, 1.0), (3, 6, 1.0)]
    assert similar_pairs([]) == [] and check_similar_pairs([(1, None)]) == []


def test_other_profiles():
    rows = enumerate_texts(corpora.random_texts(7, 80, words=60))
    name = "chars-4"
    assert similar_pairs(rows, profile=simstore.Profile(name)) == dedup_on_one_machine(rows, profile=name)


def test_real_samples():
    rows = enumerate_texts([row["text"] for name in ("en.jsonl", "zh.jsonl") for row in corpora.sample_rows(name)])
    assert len(check_similar_pairs(rows)) > 10


def test_other_columns_are_handed_on():
    batch = pa.record_batch({"id": [3, 4], "text": ["a rose", None], "year": [1913, None]})
    (result,) = similarity.sketched([batch], "text")
    assert result.schema.names == ["id", "year", *similarity.SKETCHED.names]
    assert result.column("id") == batch.column("id") and result.column("digest").null_count == 1
    with pytest.raises(ValueError, match=r"no column `txt` \(did you mean `text`\?\): the columns are id"):
        list(similarity.sketched([batch], "txt"))


@pytest.mark.parametrize("similar", [0.0, 1.5, float("nan")])
def test_invalid_options_are_refused(similar):
    with pytest.raises(ValueError, match="similar"):
        simstore._simstore._choose_bands(similar, 0.95, 10)
    with pytest.raises(ValueError, match="similar"):
        list(similarity.compared([pa.record_batch([pa.array([], pa.binary())] * 4, names=COMPARED_COLUMNS)], similar=similar))
    with pytest.raises(ValueError, match="recall"):
        simstore._simstore._choose_bands(0.8, 1.0, 10)


def test_malformed_task_columns_are_refused():
    invalid = pa.record_batch({"digest_a": [b"x"], "digest_b": [b"y"], "members_a": [b"123"], "members_b": [b"12345678"]})
    with pytest.raises(ValueError, match="8 bytes"):
        list(similarity.compared([invalid], similar=0.8))
    sides = {"digest": [bytes(16)], "features": [3], "sketches": [[1, 2, 3]]}
    invalid = pa.record_batch({f"{name}_{side}": column for side in "ab" for name, column in sides.items()})
    with pytest.raises(ValueError, match="8 sketches"):
        list(similarity.candidates([invalid], similar=0.8, chosen=(4, 6, 80), sketch=0))


def component_stars(preferred, pairs, **options):
    """Runs `led`, and returns its rows (set, leader, nearest leader, similarity). Asserts that they do not depend on the batch size.

    `preferred` has the sets of each component in order of preference."""

    def key(number):
        return number.to_bytes(16, "big")

    rows = []
    for root, sets in preferred.items():
        rows += [(key(root), key(set), None, None) for set in sets]
        rows += [(key(root), key(a), key(b), share) for a, b, share in pairs if a in sets]
    columns = [pa.array(column, type) for column, type in zip(zip(*rows), [pa.binary()] * 3 + [pa.float64()])]
    table = pa.table(columns, names=["root", "digest", "other", "similarity"])
    results = []
    for size in (1, 2, 100):
        assignments = batch_rows(similarity.led(table.to_batches(max_chunksize=size), **options))
        results.append(sorted((row["digest"][-1], row["leader"][-1], row["nearest"][-1], row["similarity"]) for row in assignments))
    assert results[0] == results[1] == results[2]
    return results[0]


def test_each_document_goes_to_its_most_preferred_representative():
    # A chain: 0 prefers 1, but 1 belongs to 3. So 0 belongs to 2, which is its own representative.
    assert component_stars({9: [3, 1, 2, 0]}, [(0, 1, 0.875), (1, 3, 0.75), (0, 2, 0.875)]) == [(0, 2, 2, 0.875), (1, 3, 3, 0.75)]
    assignments = component_stars({0: [1, 2], 5: [5, 7, 6]}, [(1, 2, 1.0), (5, 6, 0.5), (6, 7, 0.25), (7, 5, 0.75)])
    assert assignments == [(2, 1, 1, 1.0), (6, 5, 5, 0.5), (7, 5, 5, 0.75)]
    # A less preferred representative is more similar. Among equally similar ones, the most preferred is the nearest.
    assert component_stars({0: [1, 2, 3]}, [(3, 1, 0.75), (3, 2, 0.875)]) == [(3, 1, 2, 0.875)]
    assert component_stars({0: [1, 2, 3]}, [(3, 2, 0.75), (3, 1, 0.75)]) == [(3, 1, 1, 0.75)]


def test_a_component_that_is_too_large_is_refused():
    with pytest.raises(simstore.Error, match="more than 2 similar pairs"):
        component_stars({0: [1, 2, 3]}, [(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)], most=2)


def test_dates_are_ordered_as_on_one_machine():
    dates = ["2026-01-01", "soon", None, "10", "9", "9.5", "-3", "", "1e3"]
    keys = pa.array(simstore._simstore._value_keys(dates, "newest")).to_pylist()
    batch = pa.record_batch({"id": range(len(dates)), "date": dates})
    (result,) = similarity.moments([batch], "date")
    assert result.column("date").to_pylist() == keys and result.column("id") == batch.column("id")
    newest = [dates[at] or "" for at in sorted(range(len(dates)), key=lambda at: keys[at])]
    assert newest == ["soon", "2026-01-01", "1e3", "10", "9.5", "9", "-3", "", ""]
    for rule, expected in [("largest", ["1e3", "10", "9.5", "9", "-3"]), ("smallest", ["-3", "9", "9.5", "10", "1e3"])]:
        (result,) = similarity.moments([batch], "date", rule)
        keys = result.column("date").to_pylist()
        ordered = [dates[at] for at in sorted(range(len(dates)), key=lambda at: keys[at])]
        assert ordered[:5] == expected and set(keys[at] for at in (0, 1, 2, 7)) == {b"\x01"}
    with pytest.raises(ValueError, match="expected newest, largest or smallest"):
        list(similarity.moments([batch], "date", "last"))
