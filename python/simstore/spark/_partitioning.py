"""Partitioning of rows by the column ``place``: all rows with the same place go to one Spark partition, which has no other rows.

A place is a number. It identifies one part of one table of a join, or a bucket: the fingerprints with the same value of a hash (see
`simstore.JoinParts`).

Spark chooses the partition of a row by the hash of its key. If places were the keys, some partitions would be empty and others would have
two places. So each place has a key whose hash selects the partition with the number of the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as T

from simstore.spark._schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = pa.field("key", pa.int32())
# Function from the batches of one partition to new batches, as in `simstore.tasks`.
Task = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def spark_hash(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns the values of Spark's function `hash` for a column of type int: 32-bit Murmur3 (A. Appleby, 2011) with seed 42."""
    with np.errstate(over="ignore"):
        k = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15) | k >> np.uint32(17)) * np.uint32(0x1B873593)
        h = k ^ np.uint32(42)
        h = (h << np.uint32(13) | h >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        return (h ^ h >> np.uint32(16)).view(np.int32)


@cache
def partition_keys(places: int) -> NDArray[np.int32]:
    """Returns a key for each of `places` partitions: the smallest number that `repartition(places, "key")` sends to this partition."""
    keys = np.full(places, -1, np.int32)
    start = 0
    while (keys < 0).any():
        candidates = np.arange(start, start + 16 * places, dtype=np.int32)
        partitions = spark_hash(candidates) % np.int32(places)
        is_missing = keys[partitions] < 0
        # In reverse order, because NumPy keeps the last of several values assigned to one index.
        keys[partitions[is_missing][::-1]] = candidates[is_missing][::-1]
        start += len(candidates)
    return keys


def repartition_by_place(df: DataFrame, task: Task, places: int, fields: T.StructType) -> DataFrame:
    """Runs a task on each partition of `df`, and moves all resulting rows with the same ``place`` to a partition of their own.

    Parameters
    ----------
    df : DataFrame
    task : callable
        Takes and returns an iterator of record batches.
    places : int
        Number of values of ``place``, and number of partitions of the result.
    fields : StructType
        Columns of the batches that the task returns. The column ``place`` has numbers from 0 to `places` - 1.

    Returns
    -------
    DataFrame
        With the column ``key`` before `fields`: the key of the row's place, from `partition_keys`.
    """
    schema = spark_schema(pa.schema([KEY]), *fields.fields)
    return df.mapInArrow(partial(run_with_keys, task, partition_keys(places)), schema).repartition(places, "key")


def run_with_keys(
    task: Task, place_keys: NDArray[np.int32], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs a task, and adds the column ``key`` to the batches that the task yields. Spark partitions the rows by this column.

    `place_keys` has the key for each value of the column ``place``.
    """
    for batch in task(batches):
        yield append_keys(batch, place_keys)


def append_keys(rows: Any, place_keys: NDArray[np.int32]) -> Any:
    """Adds the column ``key``, which Spark uses to partition the rows. `place_keys` has the key for each value of ``place``."""
    return rows.append_column(KEY, pa.array(place_keys[rows.column("place").to_numpy()], KEY.type))
