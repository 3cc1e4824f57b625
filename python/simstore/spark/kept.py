"""DataFrames that are persisted and read several times."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("simstore.spark")

# Setting: Spark chooses the partitions of persisted data by size. Otherwise there are `spark.sql.shuffle.partitions`.
BY_SIZE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"

_kept: list[DataFrame] = []
# Serializes changes of the setting: each caller restores the value that it found.
_setting = threading.Lock()


def keep(df: DataFrame) -> DataFrame:
    """Persists a DataFrame until `release`. Spark computes lost partitions again.

    Spark chooses the number of partitions by size: each step over the DataFrame needs one task a partition, and a Python task takes a
    tenth of a second to start.
    """
    with _by_size(df.sparkSession):
        df = df.persist(StorageLevel.MEMORY_AND_DISK)
    _kept.append(df)
    return df


@contextlib.contextmanager
def _by_size(session: SparkSession) -> Iterator[None]:
    """Lets Spark choose the partitions of DataFrames persisted in this block, if the session allows; restores the setting."""
    with _setting:
        before = session.conf.get(BY_SIZE, None)
        try:
            session.conf.set(BY_SIZE, "true")
        except PySparkException as refused:
            logger.info("%s cannot be set, so there may be more tasks than are needed: %s", BY_SIZE, refused)
            yield
            return
        try:
            yield
        finally:
            if before is None:
                session.conf.unset(BY_SIZE)
            else:
                session.conf.set(BY_SIZE, before)


def release() -> None:
    """Unpersists the intermediate data of simstore, such as edges of clusters and bands of texts.

    Earlier results can still be used: Spark computes their data again.
    """
    while _kept:
        _kept.pop().unpersist()
