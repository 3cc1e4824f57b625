"""Spark finds the same pairs as one machine."""

import numpy as np
import pytest
from pyspark.sql import functions as F

import plain
import simstore
from simstore import spark as on_spark
from simstore.spark import _places, parts
from spark import frames


def expected(fingerprints, ids, distance, bits=64):
    """Rows (id, id, distance), the smaller id first; nulls are near nothing."""
    there = [at for at, one in enumerate(fingerprints) if one is not None]
    values = plain.array([fingerprints[at] for at in there], bits)
    pairs = simstore.self_join(values, distance, bits=bits).to_pylist()
    return sorted((*sorted((ids[there[row["a"]]], ids[there[row["b"]]])), row["distance"]) for row in pairs)


def collected(df):
    return sorted((row.id_a, row.id_b, row.distance) for row in df.collect())


@pytest.mark.parametrize("bits", plain.WIDTHS)
@pytest.mark.parametrize("distance", [0, 3, 6])
def test_random_ones(spark, bits, distance, random_fingerprints):
    fingerprints = [*random_fingerprints(2000, bits, seed=distance), 0, 0, 2**bits - 1, 1, None, None]
    df = frames.frame(spark, fingerprints, bits=bits)
    found = collected(on_spark.near_pairs(df, distance=distance))
    assert found == expected(fingerprints, range(len(fingerprints)), distance, bits) and found


@pytest.mark.parametrize(
    ("id_type", "id"),
    [("string", lambda at: f"d{at:03}"), ("struct<a int, b string>", lambda at: (at // 7, str(at))), ("binary", str.encode)],
    ids=["string", "struct", "binary"],
)
def test_ids_of_other_types(spark, id_type, id, random_fingerprints):
    fingerprints = random_fingerprints(300, 64)
    ids = [id(str(at) if id_type == "binary" else at) for at in range(300)]
    df = frames.frame(spark, fingerprints, ids, id_type=id_type)
    found = on_spark.near_pairs(df)
    assert dict(found.dtypes)["id_a"] == df.schema["id"].dataType.simpleString()
    plain_ids = {tuple(one) if id_type.startswith("struct") else one: one for one in ids}
    rows = sorted((plain_ids.get(row.id_a, row.id_a), row.id_b, row.distance) for row in found.collect())
    assert [tuple(row) for row in rows] == expected(fingerprints, ids, 3)


def test_a_prefix_shared_by_very_many(spark):
    rng = np.random.default_rng(1)
    # 200,000 that share 32 bits, and are otherwise random.
    values = (np.uint64(0xABCDEF01) << np.uint64(32)) | rng.integers(0, 2**32, 200_000, dtype=np.uint64)
    df = spark.createDataFrame(__import__("pandas").DataFrame({"id": np.arange(200_000), "fingerprint": values.view(np.int64)}))
    pairs = on_spark.near_pairs(df.repartition(4)).toPandas()
    join = simstore.self_join(values).to_pandas()
    ordered = [frame.sort_values(list(frame.columns)).to_numpy(dtype=np.int64) for frame in (pairs, join)]
    assert len(join) > 1000 and np.array_equal(*ordered)


def test_all_equal(spark):
    found = on_spark.near_pairs(frames.frame(spark, [7] * 200), parts=16)
    assert found.where("id_a >= id_b or distance != 0").count() == 0
    assert found.distinct().count() == found.count() == 200 * 199 // 2


@pytest.mark.parametrize("fingerprints", [[], [None], [5], [5, None]])
def test_nothing_is_near_nothing(spark, fingerprints):
    assert on_spark.near_pairs(frames.frame(spark, fingerprints)).count() == 0


def test_columns_of_any_name(spark):
    df = frames.frame(spark, [1, 3]).toDF("key.of `it", "a")
    assert collected(on_spark.near_pairs(df, "a", "key.of `it")) == [(0, 1, 1)]


def test_other_columns_are_refused(spark):
    df = frames.frame(spark, [1, 3])
    for call, error, message in [
        (lambda: on_spark.near_pairs(df, "hash"), ValueError, "no column `hash`: the columns are id, fingerprint"),
        (lambda: on_spark.near_pairs(df.withColumn("fingerprint", F.lit("x"))), TypeError, "string"),
        (lambda: on_spark.near_pairs(df, id="name"), ValueError, "no column `name`"),
        (lambda: on_spark.near_pairs(df.withColumn("id", F.create_map(F.lit(1), F.lit(2)))), TypeError, "no order"),
        (lambda: on_spark.near_pairs(df, distance=17), ValueError, "17"),
        (lambda: on_spark.near_pairs(df, parts=10**6), ValueError, "parts"),
        (lambda: on_spark.near_pairs(df, parts="2"), TypeError, "number"),
        (lambda: on_spark.near_pairs(df, 3), TypeError, "name of a column"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_a_null_id_ends_the_job(spark):
    df = frames.frame(spark, [1, 3], [1, None])
    with pytest.raises(Exception, match="id in column `id` is null"):
        on_spark.near_pairs(df).collect()


def test_a_fingerprint_of_other_bytes_ends_the_job(spark):
    df = frames.frame(spark, [1, 3], bits=128).withColumn("fingerprint", F.lit(b"123"))
    with pytest.raises(Exception, match="3 bytes: expected 16"):
        on_spark.near_pairs(df).collect()


@pytest.mark.parametrize("places", [1, 2, 7, 64, 1000])
def test_places_are_partitions(spark, places):
    keys = _places.keys(places)
    of_spark = spark.createDataFrame([(int(key),) for key in keys], "key int")
    found = of_spark.select(F.hash("key").alias("hash"), F.pmod(F.hash("key"), F.lit(places)).alias("place")).toPandas()
    assert found["place"].tolist() == list(range(places))
    assert np.array_equal(_places.hash_of(keys), found["hash"])


def test_parts_follow_from_count_and_memory(spark):
    chosen = [on_spark.choose_parts(spark, count).parts for count in (0, 1000, 10**6, 10**8, 10**9)]
    assert chosen[0] == 1 and chosen == sorted(chosen) and chosen[-1] > 100
    with pytest.raises(simstore.Error, match="memory"):
        on_spark.choose_parts(spark, 10**12)


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, None), ("", None), ("3", 3 << 20), ("7b", 7), ("2k", 2048), ("512m", 512 << 20), ("512MB", 512 << 20), ("1g", 1 << 30)],
)
def test_amounts_of_memory(said, expected):
    assert parts._bytes(said, 1 << 20) == expected


def test_what_is_no_amount_of_memory_is_told():
    with pytest.raises(ValueError, match="'much'"):
        parts._bytes("much", 1)
