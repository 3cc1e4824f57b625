"""The functions of `simstore.spark` start few jobs and tasks with Spark's default settings, which shuffle into 200 partitions."""

import pytest

import corpora
from spark import frames

# Default settings of Spark, which the session of the tests changes.
SPARK_DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.enabled": "true",
}
SETTING = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


def count_jobs_and_tasks(spark, name, work):
    """Runs `work` in a Spark job group called `name`. Returns the result, the number of jobs and the number of tasks."""
    spark.sparkContext.setJobGroup(name, name)
    try:
        result = work()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    status = spark.sparkContext.statusTracker()
    jobs = status.getJobIdsForGroup(name)
    stages = {stage for job in jobs for stage in status.getJobInfo(job).stageIds}
    infos = [info for info in map(status.getStageInfo, stages) if info is not None]
    return result, len(jobs), sum(info.numCompletedTasks for info in infos)


def sample_frame(spark, count=None):
    rows = [(row["id"], row["text"]) for row in corpora.sample_rows("en.jsonl")[:count]]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), "id string, text string")


def dedup_by_similarity(df):
    from simstore.spark import dedup

    return dedup(df).where("not is_kept").count()


def dedup_by_distance(df):
    from simstore.spark import dedup

    return dedup(df, distance=3).where("not is_kept").count()


def count_clustered(df):
    from simstore.spark import clusters, fingerprint

    return clusters(fingerprint(df)).count()


def count_similar_pairs(df):
    from simstore.spark import similar_pairs

    return similar_pairs(df).count()


@pytest.mark.parametrize(
    ("work", "found", "most_jobs", "most_tasks"),
    [(dedup_by_similarity, 7, 60, 150), (dedup_by_distance, 2, 30, 80), (count_clustered, 4, 20, 60), (count_similar_pairs, 9, 60, 150)],
)
def test_few_rows_take_few_tasks(spark, work, found, most_jobs, most_tasks):
    from simstore.spark import release

    with frames.changed_settings(spark, SPARK_DEFAULTS):
        result, jobs, tasks = count_jobs_and_tasks(spark, work.__name__, lambda: work(sample_frame(spark)))
        assert spark.conf.get(SETTING, None) is None
    release()
    assert result == found
    assert jobs <= most_jobs and tasks <= most_tasks


@pytest.mark.parametrize("before", ["true", "false"])
def test_the_setting_of_the_session_is_put_back(spark, before):
    from simstore.spark import release

    with frames.changed_settings(spark, {SETTING: before}):
        assert count_similar_pairs(sample_frame(spark, 3)) == 0
        assert spark.conf.get(SETTING) == before
    release()


def test_a_session_with_settings_that_cannot_be_changed(spark, monkeypatch, caplog):
    """If the session refuses to change a setting, the result is the same, but the jobs may have more tasks."""
    from pyspark.errors import AnalysisException

    from simstore.spark import release

    def refused(self, name, value):
        raise AnalysisException(f"{name} is not to be set")

    monkeypatch.setattr(type(spark.conf), "set", refused)
    with caplog.at_level("INFO", logger="simstore.spark"):
        assert dedup_by_similarity(sample_frame(spark)) == 7
    release()
    assert "so there may be more tasks than are needed" in caplog.text
