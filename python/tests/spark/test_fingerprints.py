"""`simstore.spark.fingerprint` computes the same fingerprints as `Profile`."""

import pytest

import simstore
from simstore import spark as on_spark
from spark import frames

TEXTS = ["To be, or not to be, that is the question", "", None, "你好，世界", "...", "the same", "the same"]


@pytest.mark.parametrize("bits", [64, 128])
def test_fingerprints_are_those_of_the_profile(spark, bits):
    profile = simstore.Profile("auto,plain-text", bits=bits)
    df = spark.createDataFrame(list(enumerate(TEXTS)), "id long, text string").repartition(3)
    result = on_spark.fingerprint(df, profile=profile)
    assert result.columns == ["id", "text", "fingerprint"]
    rows = result.orderBy("id").collect()
    expected = [None if text is None else frames.to_int(profile.fingerprint(text)) for text in TEXTS]
    assert [frames.to_int(row.fingerprint) for row in rows] == expected
    assert [row.text for row in rows] == TEXTS


def test_the_files_of_a_profile_go_with_it(spark, tmp_path):
    words = tmp_path / "words"
    words.write_text("be\nnot\n")
    profile = simstore.Profile("jieba-20", stop_words=words)
    df = spark.createDataFrame([(TEXTS[0],)], "text string")
    result = on_spark.fingerprint(df, profile=profile, into="text")
    words.unlink()
    assert [frames.to_int(row.text) for row in result.collect()] == [profile.fingerprint(TEXTS[0])]


def test_values_that_are_no_texts_are_refused(spark):
    df = spark.createDataFrame([(1,)], "text long")
    with pytest.raises(TypeError, match="column `text` is bigint"):
        on_spark.fingerprint(df)
    with pytest.raises(ValueError, match="no column `body`"):
        on_spark.fingerprint(df, "body")
