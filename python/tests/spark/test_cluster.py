"""The Spark of the tests is what they take it for."""

import functools
import os

import pyarrow as pa
import pytest

from spark import faults, frames


def where(batches):
    """The process that a task runs in, and where it has simstore from."""
    import simstore

    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [os.getppid()], "simstore": [simstore.__file__]})


SCHEMA = "rows long, executor long, simstore string"


def test_two_executors_share_the_work_and_have_the_wheel(spark):
    import simstore

    rows = spark.range(1000, numPartitions=8).mapInArrow(where, SCHEMA).collect()
    assert sum(row.rows for row in rows) == 1000 and {row.simstore for row in rows} == {simstore.__file__}
    assert len(faults.executors()) == 2


def test_all_that_is_written_is_in_a_scratch_folder(spark, spark_environment):
    folder, _ = spark_environment
    spark.range(100, numPartitions=2).mapInArrow(where, SCHEMA).count()
    assert list((folder / "home" / "work").iterdir()) and list((folder / "local").iterdir())
    assert not os.path.exists("spark-warehouse") and not os.path.exists("metastore_db")


def test_a_job_survives_an_executor_that_is_killed(spark, tmp_path):
    frame = spark.range(1000, numPartitions=4).mapInArrow(functools.partial(faults.held, tmp_path), "id long")
    before = faults.executors()
    assert faults.kill_while(tmp_path, frame.count) == 1000
    assert sum(executor.is_running() for executor in before) == 1
    faults.kill_executor()
    assert frame.count() == 1000


def test_columns_are_as_written(spark):
    values = [0, 2**63, 2**64 - 1, None]
    rows = frames.frame(spark, values).orderBy("id").collect()
    assert [frames.number(row.fingerprint) for row in rows] == values
    wide = frames.frame(spark, [1 << 127, None], bits=128).orderBy("id").collect()
    assert [frames.number(row.fingerprint) for row in wide] == [1 << 127, None]


@pytest.mark.parametrize("name", ["spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"])
def test_settings_are_put_back(spark, name):
    before = spark.conf.get(name)
    with frames.settings(spark, {name: "1" if before.isdigit() else "false"}):
        assert spark.conf.get(name) != before
    assert spark.conf.get(name) == before
