"""The Spark session of the tests has two executors, scratch folders and settings that can be restored."""

import functools
import os

import pyarrow as pa
import pytest

from spark import faults, frames


def describe_task(batches):
    """Yields the number of rows of a task, the id of its executor's process, and the path of the imported simstore."""
    import simstore

    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [os.getppid()], "simstore": [simstore.__file__]})


TASK_SCHEMA = "rows long, executor long, simstore string"


def test_two_executors_share_the_work_and_have_the_wheel(spark):
    import simstore

    rows = spark.range(1000, numPartitions=8).mapInArrow(describe_task, TASK_SCHEMA).collect()
    assert sum(row.rows for row in rows) == 1000 and {row.simstore for row in rows} == {simstore.__file__}
    assert len(faults.executors()) == 2


def test_all_files_are_in_a_scratch_folder(spark, spark_environment):
    folder, _ = spark_environment
    spark.range(100, numPartitions=2).mapInArrow(describe_task, TASK_SCHEMA).count()
    assert list((folder / "home" / "work").iterdir()) and list((folder / "local").iterdir())
    assert not os.path.exists("spark-warehouse") and not os.path.exists("metastore_db")


def test_a_job_survives_an_executor_that_is_killed(spark, tmp_path):
    frame = spark.range(1000, numPartitions=4).mapInArrow(functools.partial(faults.pause_after, tmp_path), "id long")
    executors_before = faults.executors()
    assert faults.kill_during(tmp_path, frame.count) == 1000
    assert sum(executor.is_running() for executor in executors_before) == 1
    faults.kill_executor()
    assert frame.count() == 1000


def test_fingerprint_columns_round_trip(spark):
    values = [0, 2**63, 2**64 - 1, None]
    rows = frames.fingerprint_frame(spark, values).orderBy("id").collect()
    assert [frames.to_int(row.fingerprint) for row in rows] == values
    wide = frames.fingerprint_frame(spark, [1 << 127, None], bits=128).orderBy("id").collect()
    assert [frames.to_int(row.fingerprint) for row in wide] == [1 << 127, None]


@pytest.mark.parametrize("name", ["spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"])
def test_settings_are_put_back(spark, name):
    before = spark.conf.get(name)
    with frames.changed_settings(spark, {name: "1" if before.isdigit() else "false"}):
        assert spark.conf.get(name) != before
    assert spark.conf.get(name) == before
