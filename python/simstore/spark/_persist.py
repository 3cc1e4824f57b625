"""Intermediate DataFrames that simstore persists, because it reads them several times."""

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

# Spark setting. If it is "true", Spark chooses the number of partitions of persisted data by their size. Otherwise the number is
# `spark.sql.shuffle.partitions`.
PARTITIONS_BY_SIZE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"

_persisted: list[DataFrame] = []
# Held while the setting is changed: each caller restores the earlier value.
_setting_lock = threading.Lock()


def persist(df: DataFrame) -> DataFrame:
    """Persists a DataFrame until `release`. Spark computes lost partitions again.

    Spark chooses the number of partitions by their size. Many small partitions would be slow: each step needs a task for each partition,
    and a Python task takes a tenth of a second to start.
    """
    with _partitions_by_size(df.sparkSession):
        df = df.persist(StorageLevel.MEMORY_AND_DISK)
    _persisted.append(df)
    return df


@contextlib.contextmanager
def _partitions_by_size(session: SparkSession) -> Iterator[None]:
    """Context manager. For a DataFrame that is persisted in its `with` block, Spark chooses the number of partitions by the data's size.

    Sets the Spark setting `PARTITIONS_BY_SIZE`, and restores it afterwards. If the session refuses the change, the setting stays as it was.
    """
    with _setting_lock:
        before = session.conf.get(PARTITIONS_BY_SIZE, None)
        try:
            session.conf.set(PARTITIONS_BY_SIZE, "true")
        except PySparkException as refused:
            logger.info("%s cannot be set, so there may be more tasks than are needed: %s", PARTITIONS_BY_SIZE, refused)
            yield
            return
        try:
            yield
        finally:
            if before is None:
                session.conf.unset(PARTITIONS_BY_SIZE)
            else:
                session.conf.set(PARTITIONS_BY_SIZE, before)


def release() -> None:
    """Unpersists the intermediate data of simstore, such as edges of clusters and bands of texts.

    Earlier results can still be used: Spark computes the intermediate data again.
    """
    while _persisted:
        _persisted.pop().unpersist()
