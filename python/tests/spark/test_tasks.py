"""How many jobs and tasks a result takes where Spark's settings are its own: 200 partitions of all that is shuffled."""

import pytest

import corpora
from spark import frames

# As Spark has them, whatever the other tests set.
DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.enabled": "true",
}
BY_SIZE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


def counted(spark, name, work):
    """What the work gives, and how many jobs and tasks it took."""
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


def pages(spark, count=None):
    rows = [(row["id"], row["text"]) for row in corpora.rows_of("en.jsonl")[:count]]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), "id string, text string")


def by_similarity(df):
    from simstore.spark import dedup

    return dedup(df).where("not is_kept").count()


def by_distance(df):
    from simstore.spark import dedup

    return dedup(df, distance=3).where("not is_kept").count()


def in_clusters(df):
    from simstore.spark import clusters, fingerprint

    return clusters(fingerprint(df)).count()


def pairs(df):
    from simstore.spark import similar_pairs

    return similar_pairs(df).count()


@pytest.mark.parametrize(
    ("work", "found", "most_jobs", "most_tasks"),
    [(by_similarity, 7, 60, 150), (by_distance, 2, 30, 80), (in_clusters, 4, 20, 60), (pairs, 9, 60, 150)],
)
def test_few_rows_take_few_tasks(spark, work, found, most_jobs, most_tasks):
    from simstore.spark import release

    with frames.settings(spark, DEFAULTS):
        result, jobs, tasks = counted(spark, work.__name__, lambda: work(pages(spark)))
        assert spark.conf.get(BY_SIZE, None) is None
    release()
    assert result == found
    assert jobs <= most_jobs and tasks <= most_tasks


@pytest.mark.parametrize("before", ["true", "false"])
def test_the_setting_of_the_session_is_put_back(spark, before):
    from simstore.spark import release

    with frames.settings(spark, {BY_SIZE: before}):
        assert pairs(pages(spark, 3)) == 0
        assert spark.conf.get(BY_SIZE) == before
    release()


def test_a_session_that_keeps_its_settings(spark, monkeypatch, caplog):
    """It takes more tasks, and gives the same."""
    from pyspark.errors import AnalysisException

    from simstore.spark import release

    def refused(self, name, value):
        raise AnalysisException(f"{name} is not to be set")

    monkeypatch.setattr(type(spark.conf), "set", refused)
    with caplog.at_level("INFO", logger="simstore.spark"):
        assert by_similarity(pages(spark)) == 7
    release()
    assert "so there may be more tasks than are needed" in caplog.text
