"""The tasks of the similarity search, combined in one process, find the same pairs as one machine."""

import itertools
import random

import pytest

import corpora
import plain
import simstore

pa = plain.optional("pyarrow")
similarity = pytest.importorskip("simstore.tasks.similarity")


COMPARED = ["digest_a", "digest_b", "members_a", "members_b"]


def batches_of(rows, size):
    """Rows as record batches, an empty one among them."""
    ids = pa.array([id for id, _ in rows], pa.int64())
    table = pa.table({"id": ids, "text": pa.array([text for _, text in rows], pa.string())})
    return [pa.RecordBatch.from_pylist([], table.schema), *table.to_batches(max_chunksize=size)]


def rows_of(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def near(values, distance):
    """Pairs of different values that are near, each once, and each value that comes several times with itself."""
    different = sorted(set(values))
    found = simstore.self_join([value % 2**64 for value in different], distance).to_pylist() if different else []
    pairs = [(different[pair["a"]], different[pair["b"]]) for pair in found]
    return pairs + [(value, value) for value in different if values.count(value) > 1]


def similar_pairs(rows, similar=0.8, recall=0.95, profile=None, size=7):
    """Triples (id, id, similarity): the steps of `simstore.spark.similar_pairs` in plain Python."""
    batches = batches_of(rows, size)
    documents = rows_of(similarity.sketched(batches, "text", profile=profile))
    documents = [row for row in documents if row["digest"] is not None]
    sets = {row["digest"]: row for row in documents}
    chosen = simstore._simstore._choose_sketches(similar, recall, len(sets))
    candidates = []
    for sketch in range(chosen[0]):
        having = {}
        for row in sets.values():
            having.setdefault(row["sketches"][sketch], []).append(row)
        brought = [
            (x, y)
            for a, b in near([row["sketches"][sketch] for row in sets.values()], chosen[1])
            for x, y in itertools.product(having[a], having[b])
        ]
        names = ["digest", "features", "sketches"]
        columns = [
            pa.array([pair[side][name] for pair in brought], similarity.SKETCHED.field(name).type)
            for side in (0, 1)
            for name in names
        ]
        batch = pa.record_batch(columns, names=[f"{name}_{side}" for side in "ab" for name in names])
        candidates += rows_of(similarity.candidates([batch], similar=similar, chosen=chosen, sketch=sketch))
    pairs = [(row["digest_a"], row["digest_b"]) for row in candidates]
    assert len(pairs) == len(set(pairs)) and all(a < b for a, b in pairs)
    members = {
        row["digest"]: row["members"]
        for row in rows_of(similarity.feature_sets(batches, "text", profile=profile))
    }
    columns = [[a for a, _ in pairs], [b for _, b in pairs], [members[a] for a, _ in pairs], [members[b] for _, b in pairs]]
    batch = pa.record_batch([pa.array(column, pa.binary()) for column in columns], names=COMPARED)
    found = rows_of(similarity.compared([batch], similar=similar))
    pairs = {(row["digest_a"], row["digest_b"]): row["similarity"] for row in found}
    assert len(pairs) == len(found) and all(a < b for a, b in pairs)
    return of_documents(documents, pairs)


def of_documents(documents, pairs):
    having = {}
    for row in documents:
        having.setdefault(row["digest"], []).append(row["id"])
    found = [(*sorted(pair), 1.0) for ids in having.values() for pair in itertools.combinations(ids, 2)]
    for (a, b), share in pairs.items():
        found += [(*sorted(pair), share) for pair in itertools.product(having[a], having[b])]
    return sorted(found)


def one_machine(rows, **options):
    profile = options.pop("profile", None)
    told = [{"id": id, "text": text or ""} for id, text in rows]
    pairs = simstore.dedup(told, pairs=True, similar=options.pop("similar", 0.8), verify_profile=profile, **options).pairs
    return sorted((*sorted((row["a"], row["b"])), row["similarity"]) for row in pairs.to_pylist())


def check(rows, **options):
    expected = one_machine(rows, **options)
    for size in (3, 1000):
        assert similar_pairs(rows, size=size, **options) == expected
    return expected


def numbered(texts):
    return list(enumerate(texts))


@pytest.mark.parametrize("similar", [0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("words", [3, 6, 12, 24, 40, 80, 300])
def test_random_sets_of_all_sizes(words, similar):
    rows = numbered(corpora.texts(words, 120, words=words))
    assert check(rows, similar=similar) or similar >= 0.95


@pytest.mark.parametrize("recall", [0.5, 0.99])
def test_any_recall(recall):
    check(numbered(corpora.texts(3, 100, words=60)), recall=recall)


@pytest.mark.parametrize("most", [8, 16, 44])
def test_sets_of_any_size_that_are_parts_of_others(most):
    """Sets of one feature and more, each with some of the end of another cut off."""
    words = [f"w{at}" for at in range(most)]
    sizes = range(max(1, most - 13), most + 1)
    rows = numbered([" ".join(words[start : start + size]) for size in sizes for start in range(0, most - size + 1)])
    assert len(check(rows, similar=0.6)) > 20


def test_chinese():
    chance = random.Random(4)
    base = [chr(0x4E00 + chance.randrange(3000)) for _ in range(90)]
    texts = []
    for _ in range(60):
        text = list(base[: chance.choice([20, 33, 36, 60, 90])])
        for _ in range(chance.randrange(3)):
            text[chance.randrange(len(text))] = "新"
        texts.append("".join(text))
    assert len(check(numbered(texts))) > 50


def test_chains_and_many_that_are_equal():
    words = [f"w{at}" for at in range(150)]
    chain = [" ".join(words[at : at + 60]) for at in range(0, 80, 4)]
    assert len(check(numbered(chain * 3 + ["the same few words"] * 30))) > 500


def test_texts_without_words_are_near_equal_ones_alone():
    rows = numbered(["", None, "?!", "to be or not to be", None, "", "to be or not to be", "!!", " ?!"])
    assert check(rows) == [(2, 8, 1.0), (3, 6, 1.0)]
    assert similar_pairs([]) == [] and check([(1, None)]) == []


def test_other_features():
    texts = corpora.texts(7, 80, words=60)
    name = "chars-4"
    assert similar_pairs(numbered(texts), profile=simstore.Profile(name)) == one_machine(numbered(texts), profile=name)


def test_real_samples():
    rows = numbered([row["text"] for name in ("en.jsonl", "zh.jsonl") for row in corpora.rows_of(name)])
    assert len(check(rows)) > 10


def test_other_columns_are_handed_on():
    batch = pa.record_batch({"id": [3, 4], "text": ["a rose", None], "year": [1913, None]})
    (made,) = similarity.sketched([batch], "text")
    assert made.schema.names == ["id", "year", *similarity.SKETCHED.names]
    assert made.column("id") == batch.column("id") and made.column("digest").null_count == 1
    with pytest.raises(ValueError, match=r"no column `txt` \(did you mean `text`\?\): the columns are id"):
        list(similarity.sketched([batch], "txt"))


@pytest.mark.parametrize("similar", [0.0, 1.5, float("nan")])
def test_what_cannot_be_asked_for_is_refused(similar):
    with pytest.raises(ValueError, match="similar"):
        simstore._simstore._choose_sketches(similar, 0.95, 10)
    with pytest.raises(ValueError, match="similar"):
        list(similarity.compared([pa.record_batch([pa.array([], pa.binary())] * 4, names=COMPARED)], similar=similar))
    with pytest.raises(ValueError, match="recall"):
        simstore._simstore._choose_sketches(0.8, 1.0, 10)


def test_columns_that_no_task_has_made_are_refused():
    wrong = pa.record_batch({"digest_a": [b"x"], "digest_b": [b"y"], "members_a": [b"123"], "members_b": [b"12345678"]})
    with pytest.raises(ValueError, match="8 bytes"):
        list(similarity.compared([wrong], similar=0.8))
    sides = {"digest": [bytes(16)], "features": [3], "sketches": [[1, 2, 3]]}
    wrong = pa.record_batch({f"{name}_{side}": column for side in "ab" for name, column in sides.items()})
    with pytest.raises(ValueError, match="8 sketches"):
        list(similarity.candidates([wrong], similar=0.8, chosen=(4, 6, 80), sketch=0))


def stars(preferred, pairs, **options):
    """`led` over one component after the other, in batches of several sizes."""

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
        led = rows_of(similarity.led(table.to_batches(max_chunksize=size), **options))
        results.append(sorted((row["digest"][-1], row["leader"][-1], row["nearest"][-1], row["similarity"]) for row in led))
    assert results[0] == results[1] == results[2]
    return results[0]


def test_each_set_goes_to_the_most_preferred_that_stands_for_itself():
    # A chain: 0 prefers 1, but 1 belongs to 3. So 0 belongs to 2, which represents itself.
    assert stars({9: [3, 1, 2, 0]}, [(0, 1, 0.875), (1, 3, 0.75), (0, 2, 0.875)]) == [(0, 2, 2, 0.875), (1, 3, 3, 0.75)]
    two = stars({0: [1, 2], 5: [5, 7, 6]}, [(1, 2, 1.0), (5, 6, 0.5), (6, 7, 0.25), (7, 5, 0.75)])
    assert two == [(2, 1, 1, 1.0), (6, 5, 5, 0.5), (7, 5, 5, 0.75)]
    # A less preferred leader is more similar; of equally similar ones, the most preferred is the nearest.
    assert stars({0: [1, 2, 3]}, [(3, 1, 0.75), (3, 2, 0.875)]) == [(3, 1, 2, 0.875)]
    assert stars({0: [1, 2, 3]}, [(3, 2, 0.75), (3, 1, 0.75)]) == [(3, 1, 1, 0.75)]


def test_a_component_that_is_too_large_is_refused():
    with pytest.raises(simstore.Error, match="more than 2 similar pairs"):
        stars({0: [1, 2, 3]}, [(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)], most=2)


def test_moments_are_in_the_order_of_one_machine():
    moments = ["2026-01-01", "soon", None, "10", "9", "9.5", "-3", "", "1e3"]
    keys = pa.array(simstore._simstore._value_keys(moments, "newest")).to_pylist()
    batch = pa.record_batch({"id": range(len(moments)), "date": moments})
    (made,) = similarity.moments([batch], "date")
    assert made.column("date").to_pylist() == keys and made.column("id") == batch.column("id")
    newest = [moments[at] or "" for at in sorted(range(len(moments)), key=lambda at: keys[at])]
    assert newest == ["soon", "2026-01-01", "1e3", "10", "9.5", "9", "-3", "", ""]
    for rule, expected in [("largest", ["1e3", "10", "9.5", "9", "-3"]), ("smallest", ["-3", "9", "9.5", "10", "1e3"])]:
        (made,) = similarity.moments([batch], "date", rule)
        keys = made.column("date").to_pylist()
        ordered = [moments[at] for at in sorted(range(len(moments)), key=lambda at: keys[at])]
        assert ordered[:5] == expected and set(keys[at] for at in (0, 1, 2, 7)) == {b"\x01"}
    with pytest.raises(ValueError, match="expected newest, largest or smallest"):
        list(similarity.moments([batch], "date", "last"))
