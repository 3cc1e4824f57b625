"""What is made once and read several times."""

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

# Whether what is persisted gets as many partitions as its size asks for; without it, `spark.sql.shuffle.partitions` of them.
BY_SIZE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"

_kept: list[DataFrame] = []
# Of two that change the setting at once, one would find what the other has set, and leave it so.
_setting = threading.Lock()


def keep(df: DataFrame) -> DataFrame:
    """Has a DataFrame made once: it is persisted, until `release`. What is lost with an executor is made again.

    It has as many partitions as its size asks for: each step over it takes a task for each, and one of Python takes a tenth of a
    second.
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
    """Lets go of what simstore persists for its results: edges of clusters, sketches of texts.

    Results that were made before can be used: what they need is made again.
    """
    while _kept:
        _kept.pop().unpersist()
