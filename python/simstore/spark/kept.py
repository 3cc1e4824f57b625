"""What is made once and read several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_kept: list[DataFrame] = []


def keep(df: DataFrame) -> DataFrame:
    """Has a DataFrame made once: it is persisted, until `release`. What is lost with an executor is made again."""
    df = df.persist(StorageLevel.MEMORY_AND_DISK)
    _kept.append(df)
    return df


def release() -> None:
    """Lets go of what simstore persists for its results: edges of clusters, sketches of texts.

    Results that were made before can be used: what they need is made again.
    """
    while _kept:
        _kept.pop().unpersist()
