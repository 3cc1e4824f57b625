"""Choice of the number of parts of a join, from the number of fingerprints and the memory of the executors."""

from __future__ import annotations

import logging
import math
import re
from typing import TYPE_CHECKING, Literal

import simstore
from simstore.tasks.columns import checked_bits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("simstore.spark")

MIB = 1 << 20
# Smallest default of Spark for the memory overhead of an executor, in bytes. The default is otherwise a tenth of the heap.
MIN_OVERHEAD_BYTES = 384 * MIB
# Smallest memory of a task, in bytes, that `choose_parts` assumes. With less memory there would only be more parts.
MIN_TASK_MEMORY_BYTES = 64 * MIB
UNIT_BYTES = {"b": 1, "k": 1 << 10, "m": MIB, "g": 1 << 30, "t": 1 << 40}


def choose_parts(spark: SparkSession, count: int, distance: int = 3, bits: Literal[64, 128] = 64) -> simstore.JoinParts:
    """Chooses the number of parts of a join of `count` fingerprints.

    A join has several tables of the fingerprints, each split into the same number of parts. A task joins one part of one table. There are
    enough parts that each fits in the memory of a task, and that all cores are busy. The tasks that an executor runs at once share half of
    its memory for Python. This memory is ``spark.executor.pyspark.memory``, or else ``spark.executor.memoryOverhead``.

    Parameters
    ----------
    spark : SparkSession
    count : int
        Maximum number of fingerprints.
    distance : int
        Distance of the join, in bits.
    bits : {64, 128}
        Width of the fingerprints.

    Returns
    -------
    JoinParts

    Raises
    ------
    simstore.errors.Error
        If the memory of the executors is too small for any number of parts.
    """
    memory = task_memory_bytes(spark)
    parts = simstore.JoinParts.choose(count, distance, memory=memory, bits=bits)
    # Two tasks for each core, so that all cores finish at about the same time. Few fingerprints need fewer tasks: one for each 10,000.
    min_tasks = min(2 * spark.sparkContext.defaultParallelism, math.ceil(count / 10_000))
    while parts.parts * parts.tables < min_tasks and parts.parts < 4096:
        parts = simstore.JoinParts(distance, parts=parts.parts * 2, bits=bits)
    logger.info("%s fingerprints are joined as %r: %s MiB for a part", f"{count:,}", parts, memory // MIB)
    return parts


def parts_with_count(distance: int, parts: int, bits: int) -> simstore.JoinParts:
    """Returns a join of fingerprints up to `distance` that divides each of its tables into `parts` parts."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise TypeError(f"parts is a number, not {type(parts).__name__}")
    return simstore.JoinParts(distance, parts=parts, bits=checked_bits(bits))


def task_memory_bytes(spark: SparkSession) -> int:
    """Returns the memory of one Python task of a join, in bytes.

    This is half of an executor's memory for Python, divided by the number of tasks that the executor runs at once, but at least
    `MIN_TASK_MEMORY_BYTES`.
    """
    conf = spark.sparkContext.getConf()
    python = _parse_bytes(conf.get("spark.executor.pyspark.memory"), MIB)
    overhead = _parse_bytes(conf.get("spark.executor.memoryOverhead"), MIB)
    if overhead is None:
        heap = _parse_bytes(conf.get("spark.executor.memory", "1g"), MIB) or 0
        factor = float(conf.get("spark.executor.memoryOverheadFactor", "0.1") or "0.1")
        overhead = max(MIN_OVERHEAD_BYTES, int(heap * factor))
    cores = int(conf.get("spark.executor.cores", "1") or "1")
    concurrent_tasks = max(1, cores // int(conf.get("spark.task.cpus", "1") or "1"))
    return max(MIN_TASK_MEMORY_BYTES, (python or overhead) // concurrent_tasks // 2)


def _parse_bytes(setting: str | None, unit: int) -> int | None:
    """Returns the bytes of a Spark setting such as "512m", or None if it is not set. A number without a suffix is a multiple of `unit`."""
    if not setting:
        return None
    amount = re.fullmatch(r"(\d+)([bkmgt]?)b?", setting.strip().lower())
    if amount is None:
        raise ValueError(f"a setting of Spark says {setting!r}: expected an amount of memory, as 512m")
    return int(amount[1]) * UNIT_BYTES.get(amount[2], unit)
