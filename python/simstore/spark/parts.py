"""How many parts a join has: from how much there is to join, and what the executors have for it."""

from __future__ import annotations

import logging
import math
import re
from typing import TYPE_CHECKING, Literal

import simstore
from simstore.tasks.columns import width_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("simstore.spark")

MIB = 1 << 20
# What Spark gives an executor beside its heap if nothing else is said: this, or a tenth of the heap.
LEAST_OVERHEAD = 384 * MIB
# What a task has for a join at least: less would only make more parts.
LEAST_MEMORY = 64 * MIB
UNITS = {"b": 1, "k": 1 << 10, "m": MIB, "g": 1 << 30, "t": 1 << 40}


def choose_parts(spark: SparkSession, count: int, distance: int = 3, bits: Literal[64, 128] = 64) -> simstore.Parts:
    """The parts of a join of so many fingerprints: as few as fit the tasks' memory, and enough to keep all cores busy.

    A task joins one part. It has half of what an executor has for Python, shared by the tasks that it runs at once:
    ``spark.executor.pyspark.memory``, or else ``spark.executor.memoryOverhead``.

    Parameters
    ----------
    spark : SparkSession
    count : int
        Fingerprints, at most.
    distance : int
    bits : {64, 128}

    Returns
    -------
    Parts

    Raises
    ------
    simstore.errors.Error
        If no number of parts is enough: the executors need more memory.
    """
    memory = memory_of_a_task(spark)
    parts = simstore.Parts.choose(count, distance, memory=memory, bits=bits)
    # Two for each core, so that none waits for long at the end; few fingerprints need no second core.
    wanted = min(2 * spark.sparkContext.defaultParallelism, math.ceil(count / 10_000))
    while parts.parts * parts.tables < wanted and parts.parts < 4096:
        parts = simstore.Parts(distance, parts=parts.parts * 2, bits=bits)
    logger.info("%s fingerprints are joined as %r: %s MiB for a part", f"{count:,}", parts, memory // MIB)
    return parts


def of_number(distance: int, parts: int, bits: int) -> simstore.Parts:
    """So many parts of each table."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise TypeError(f"parts is a number, not {type(parts).__name__}")
    return simstore.Parts(distance, parts=parts, bits=width_of(bits))


def memory_of_a_task(spark: SparkSession) -> int:
    """The memory that a task may take in Python, in bytes."""
    conf = spark.sparkContext.getConf()
    python = _bytes(conf.get("spark.executor.pyspark.memory"), MIB)
    overhead = _bytes(conf.get("spark.executor.memoryOverhead"), MIB)
    if overhead is None:
        heap = _bytes(conf.get("spark.executor.memory", "1g"), MIB) or 0
        factor = float(conf.get("spark.executor.memoryOverheadFactor", "0.1") or "0.1")
        overhead = max(LEAST_OVERHEAD, int(heap * factor))
    cores = int(conf.get("spark.executor.cores", "1") or "1")
    at_once = max(1, cores // int(conf.get("spark.task.cpus", "1") or "1"))
    return max(LEAST_MEMORY, (python or overhead) // at_once // 2)


def _bytes(said: str | None, unit: int) -> int | None:
    """What a setting of Spark says of memory, as "512m"; numbers alone are of the unit."""
    if not said:
        return None
    amount = re.fullmatch(r"(\d+)([bkmgt]?)b?", said.strip().lower())
    if amount is None:
        raise ValueError(f"a setting of Spark says {said!r}: expected an amount of memory, as 512m")
    return int(amount[1]) * UNITS.get(amount[2], unit)
