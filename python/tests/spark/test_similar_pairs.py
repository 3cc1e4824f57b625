"""`simstore.spark.similar_pairs` finds the same pairs as `dedup`, with exactly the same similarities."""

import random
from functools import partial

import pytest

import corpora
import simstore
from spark import faults


def text_frame(spark, rows, partitions=3, id_type="long"):
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), f"id {id_type}, text string")


def enumerate_texts(texts):
    return list(enumerate(texts))


def dedup_on_one_machine(rows, profile=None, similar=0.8, recall=0.95):
    documents = [{"id": id, "text": text or ""} for id, text in rows]
    pairs = simstore.dedup(documents, pairs=True, similar=similar, recall=recall, verify_profile=profile).pairs
    return sorted((*sorted((row["a"], row["b"])), row["similarity"]) for row in pairs.to_pylist())


def similar_pairs(df, **options):
    from simstore.spark import release, similar_pairs

    found = similar_pairs(df, **options)
    assert found.dtypes[2] == ("similarity", "double")
    triples = sorted(map(tuple, found.collect()))
    release()
    return triples


def mixed_rows():
    """Returns rows with real texts, random texts of all sizes, Chinese texts, chains of similar texts, equal and empty texts, and nulls."""
    rng = random.Random(7)
    texts = [row["text"] for name in ("en.jsonl", "zh.jsonl") for row in corpora.sample_rows(name)]
    for words in (3, 6, 12, 24, 42, 80, 300):
        texts += corpora.random_texts(words, 40, words=words)
    words_of_chain = [f"w{at}" for at in range(150)]
    texts += [" ".join(words_of_chain[at : at + 60]) for at in range(0, 80, 4)]
    texts += [" ".join(words_of_chain[at : at + size]) for size in (5, 9, 18, 42) for at in range(4)]
    texts += ["the same few words"] * 12 + ["", None, "?!", None, "", "?!", "!"]
    characters = [chr(0x4E00 + rng.randrange(3000)) for _ in range(90)]
    for size in (5, 20, 60):
        for _ in range(6):
            text = characters[:size]
            text[rng.randrange(size)] = "新"
            texts.append("".join(text))
    rng.shuffle(texts)
    return enumerate_texts(texts)


@pytest.fixture(scope="module")
def corpus():
    rows = mixed_rows()
    return rows, dedup_on_one_machine(rows)


@pytest.mark.parametrize("partitions", [1, 2, 50])
def test_the_same_pairs_as_on_one_machine(spark, corpus, partitions):
    rows, expected = corpus
    assert len(expected) > 300
    assert similar_pairs(text_frame(spark, rows, partitions)) == expected


def test_any_similarity_and_recall(spark, adaptive):
    rows = enumerate_texts(corpora.random_texts(3, 60, words=34) + corpora.random_texts(4, 60, words=70))
    options = {"similar": 0.6, "recall": 0.99} if adaptive else {"similar": 0.95, "recall": 0.7}
    assert similar_pairs(text_frame(spark, rows), **options) == dedup_on_one_machine(rows, **options)


@pytest.mark.parametrize("seed", range(3))
def test_a_similarity_is_the_one_that_was_compared(spark, seed):
    """Similarities are exactly the floats that `simstore.similarity` returns, so a filter by the same threshold keeps all pairs."""
    from simstore.spark import release, similar_pairs

    texts = corpora.random_texts(seed, 60, words=[12, 24, 60][seed])
    similarities = sorted({simstore.similarity(a, b) for a in texts for b in texts})
    threshold = [similarity for similarity in similarities if 0.6 <= similarity < 1][0]
    found = similar_pairs(text_frame(spark, enumerate_texts(texts)), similar=threshold)
    rows = found.collect()
    assert min(row.similarity for row in rows) == threshold
    assert all(row.similarity == simstore.similarity(texts[row.id_a], texts[row.id_b]) for row in rows)
    assert found.where(f"similarity >= {threshold!r}D").count() == len(rows)
    release()


def test_other_profiles(spark):
    rows = enumerate_texts(corpora.random_texts(5, 60, words=40))
    found = similar_pairs(text_frame(spark, rows), profile="chars-4")
    assert found == dedup_on_one_machine(rows, profile="chars-4") != dedup_on_one_machine(rows)


@pytest.mark.parametrize("id_type", ["string", "struct<page:int,part:string>"])
def test_ids_of_any_type(spark, id_type):
    texts = corpora.random_texts(6, 40, words=40) + ["?!", None]
    expected = dedup_on_one_machine(enumerate_texts(texts))
    ids = [f"page {at:03}" if id_type == "string" else (at // 4, "abcd"[at % 4]) for at in range(len(texts))]
    df = text_frame(spark, list(zip(ids, texts)), id_type=id_type)
    df = df.withColumnsRenamed({"id": "some.id", "text": "some text"})
    found = similar_pairs(df, text="some text", id="some.id")
    assert found == [(ids[a], ids[b], share) for a, b, share in expected]


def test_no_pairs(spark):
    assert similar_pairs(text_frame(spark, [])) == []
    assert similar_pairs(text_frame(spark, [(1, None), (2, ""), (3, "?!"), (4, " "), (5, "!")])) == []
    assert similar_pairs(text_frame(spark, [(1, "!"), (2, ""), (3, "?!"), (4, "!\n")])) == [(1, 4, 1.0)]


def test_invalid_arguments_are_refused(spark):
    from simstore.spark import similar_pairs

    df = text_frame(spark, [(1, "a")])
    with pytest.raises(ValueError, match=r"no column `txt` \(did you mean `text`\?\): the columns are id, text"):
        similar_pairs(df, "txt")
    with pytest.raises(ValueError, match="no column `page`"):
        similar_pairs(df, id="page")
    with pytest.raises(TypeError, match="column `id` is bigint: texts are string"):
        similar_pairs(df, "id")
    with pytest.raises(TypeError, match="has no order"):
        similar_pairs(df.selectExpr("map(1, id) as id", "text"))
    with pytest.raises(ValueError, match="option `similar`"):
        similar_pairs(df, similar=1.5)
    with pytest.raises(ValueError, match="option `similar` 0."):
        similar_pairs(df, similar=0.1)
    with pytest.raises(ValueError, match="option `recall`"):
        similar_pairs(df, recall=1.0)
    with pytest.raises(ValueError, match="unknown"):
        similar_pairs(df, profile="unknown")
    with pytest.raises(Exception, match="an id in column `id` is null"):
        similar_pairs(text_frame(spark, [(None, "a b c")]))


def test_an_executor_that_is_killed_changes_nothing(spark, tmp_path):
    from simstore.spark import release, similar_pairs

    rows = enumerate_texts(corpora.random_texts(8, 60, words=40))
    expected = dedup_on_one_machine(rows)
    df = text_frame(spark, rows)
    paused = df.mapInArrow(partial(faults.pause_after, str(tmp_path)), df.schema)
    result = faults.kill_during(str(tmp_path), lambda: similar_pairs(paused))
    # A second executor is killed after the signatures were computed.
    faults.kill_executor()
    assert sorted(map(tuple, result.collect())) == expected
    release()
