"""Places of a join as partitions of Spark, one partition for each place.

Spark chooses the partition of a row by the hash of its key. If the keys were the numbers from 0, some partitions would be empty and others
would have two places. So each place has a key whose hash selects the partition with the number of the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as T

from simstore.spark._schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = pa.field("key", pa.int32())
Task = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def hash_of(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns Spark's `hash` of a column of int: 32-bit Murmur3 (A. Appleby, 2011) with seed 42."""
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
def keys(places: int) -> NDArray[np.int32]:
    """Returns a key for each place, so that `repartition(places, key)` sends each place to its own partition."""
    found = np.full(places, -1, np.int32)
    start = 0
    while (found < 0).any():
        numbers = np.arange(start, start + 16 * places, dtype=np.int32)
        of = hash_of(numbers) % np.int32(places)
        # The last assignment counts: the first number of each place.
        still = found[of] < 0
        found[of[still][::-1]] = numbers[still][::-1]
        start += len(numbers)
    return found


def sent(df: DataFrame, task: Task, places: int, fields: T.StructType) -> DataFrame:
    """Returns the batches of a task, with one partition for each place, and a column key for the place.

    The batches have these fields, including place: from 0 up to `places`, exclusively.
    """
    schema = schema_of(pa.schema([KEY]), *fields.fields)
    return df.mapInArrow(partial(keyed, task, keys(places)), schema).repartition(places, "key")


def keyed(
    task: Task, of_place: NDArray[np.int32], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs a task, and adds the keys of places to its batches."""
    for batch in task(batches):
        yield with_keys(batch, of_place)


def with_keys(rows: Any, of_place: NDArray[np.int32]) -> Any:
    """Adds the keys of places to a batch or a table."""
    return rows.append_column(KEY, pa.array(of_place[rows.column("place").to_numpy()], KEY.type))
