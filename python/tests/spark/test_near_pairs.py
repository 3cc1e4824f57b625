"""`simstore.spark.near_pairs` finds the same pairs as `simstore.self_join`."""

import numpy as np
import pytest
from pyspark.sql import functions as F

import helpers
import simstore
from simstore import spark as on_spark
from simstore.spark import _partitioning, parts
from spark import frames


def expected_pairs(fingerprints, ids, distance, bits=64):
    """Returns sorted rows (id, id, distance), the smaller id first. Nulls are in no pair."""
    present = [at for at, fingerprint in enumerate(fingerprints) if fingerprint is not None]
    values = helpers.to_array([fingerprints[at] for at in present], bits)
    pairs = simstore.self_join(values, distance, bits=bits).to_pylist()
    return sorted((*sorted((ids[present[row["a"]]], ids[present[row["b"]]])), row["distance"]) for row in pairs)


def collect_pairs(df):
    return sorted((row.id_a, row.id_b, row.distance) for row in df.collect())


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("distance", [0, 3, 6])
def test_random_fingerprints(spark, bits, distance, random_fingerprints):
    fingerprints = [*random_fingerprints(2000, bits, seed=distance), 0, 0, 2**bits - 1, 1, None, None]
    df = frames.fingerprint_frame(spark, fingerprints, bits=bits)
    found = collect_pairs(on_spark.near_pairs(df, distance=distance))
    assert found == expected_pairs(fingerprints, range(len(fingerprints)), distance, bits) and found


@pytest.mark.parametrize(
    ("id_type", "make_id"),
    [("string", lambda at: f"d{at:03}"), ("struct<a int, b string>", lambda at: (at // 7, str(at))), ("binary", str.encode)],
    ids=["string", "struct", "binary"],
)
def test_ids_of_other_types(spark, id_type, make_id, random_fingerprints):
    fingerprints = random_fingerprints(300, 64)
    ids = [make_id(str(at) if id_type == "binary" else at) for at in range(300)]
    df = frames.fingerprint_frame(spark, fingerprints, ids, id_type=id_type)
    found = on_spark.near_pairs(df)
    assert dict(found.dtypes)["id_a"] == df.schema["id"].dataType.simpleString()
    plain_ids = {tuple(value) if id_type.startswith("struct") else value: value for value in ids}
    rows = sorted((plain_ids.get(row.id_a, row.id_a), row.id_b, row.distance) for row in found.collect())
    assert [tuple(row) for row in rows] == expected_pairs(fingerprints, ids, 3)


def test_a_prefix_shared_by_very_many(spark):
    rng = np.random.default_rng(1)
    # 200,000 fingerprints with equal upper halves and random lower halves.
    values = (np.uint64(0xABCDEF01) << np.uint64(32)) | rng.integers(0, 2**32, 200_000, dtype=np.uint64)
    df = spark.createDataFrame(__import__("pandas").DataFrame({"id": np.arange(200_000), "fingerprint": values.view(np.int64)}))
    pairs = on_spark.near_pairs(df.repartition(4)).toPandas()
    join = simstore.self_join(values).to_pandas()
    ordered = [frame.sort_values(list(frame.columns)).to_numpy(dtype=np.int64) for frame in (pairs, join)]
    assert len(join) > 1000 and np.array_equal(*ordered)


def test_all_equal(spark):
    found = on_spark.near_pairs(frames.fingerprint_frame(spark, [7] * 200), parts=16)
    assert found.where("id_a >= id_b or distance != 0").count() == 0
    assert found.distinct().count() == found.count() == 200 * 199 // 2


@pytest.mark.parametrize("fingerprints", [[], [None], [5], [5, None]])
def test_no_pairs(spark, fingerprints):
    assert on_spark.near_pairs(frames.fingerprint_frame(spark, fingerprints)).count() == 0


def test_columns_of_any_name(spark):
    df = frames.fingerprint_frame(spark, [1, 3]).toDF("key.of `it", "a")
    assert collect_pairs(on_spark.near_pairs(df, "a", "key.of `it")) == [(0, 1, 1)]


def test_other_columns_are_refused(spark):
    df = frames.fingerprint_frame(spark, [1, 3])
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
    df = frames.fingerprint_frame(spark, [1, 3], [1, None])
    with pytest.raises(Exception, match="id in column `id` is null"):
        on_spark.near_pairs(df).collect()


def test_a_fingerprint_of_other_bytes_ends_the_job(spark):
    df = frames.fingerprint_frame(spark, [1, 3], bits=128).withColumn("fingerprint", F.lit(b"123"))
    with pytest.raises(Exception, match="3 bytes: expected 16"):
        on_spark.near_pairs(df).collect()


@pytest.mark.parametrize("places", [1, 2, 7, 64, 1000])
def test_places_are_partitions(spark, places):
    keys = _partitioning.partition_keys(places)
    key_frame = spark.createDataFrame([(int(key),) for key in keys], "key int")
    found = key_frame.select(F.hash("key").alias("hash"), F.pmod(F.hash("key"), F.lit(places)).alias("place")).toPandas()
    assert found["place"].tolist() == list(range(places))
    assert np.array_equal(_partitioning.spark_hash(keys), found["hash"])


def test_parts_follow_from_count_and_memory(spark):
    chosen = [on_spark.choose_parts(spark, count).parts for count in (0, 1000, 10**6, 10**8, 10**9)]
    assert chosen[0] == 1 and chosen == sorted(chosen) and chosen[-1] > 100
    with pytest.raises(simstore.Error, match="memory"):
        on_spark.choose_parts(spark, 10**12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", None), ("3", 3 << 20), ("7b", 7), ("2k", 2048), ("512m", 512 << 20), ("512MB", 512 << 20), ("1g", 1 << 30)],
)
def test_amounts_of_memory(text, expected):
    assert parts._parse_bytes(text, 1 << 20) == expected


def test_invalid_amounts_of_memory_are_refused():
    with pytest.raises(ValueError, match="'much'"):
        parts._parse_bytes("much", 1)
