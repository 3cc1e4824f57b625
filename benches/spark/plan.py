#!/usr/bin/env python3
"""Predicts the time that near_pairs takes on a cluster for a very large set of fingerprints. Prints Markdown tables.

The prediction uses rates that are measured on this machine.

    venv/bin/python benches/spark/join.py 50M --what near_pairs --log LOG
    venv/bin/python benches/spark/plan.py --log LOG --rows 50M [--processor SECONDS]    store the rates of the stages in plan.tsv
    venv/bin/python benches/spark/plan.py --measure 8000M:256     store the rate of the join: one part of each table
    venv/bin/python benches/spark/plan.py                         print the plan from plan.tsv
    venv/bin/python benches/spark/plan.py --count 1000M --executors 10 20

near_pairs splits a set into parts, once for each of four tables, and joins each part on its own. The fingerprints of a part are equal in
some bits. One part of a large set fits on this machine, so `--measure` generates the random fingerprints of one part and joins them. The
rate of the join is thus measured at the real size, not extrapolated from smaller sets.

The cost of each Spark stage is linear in the rows, except that the stage `joined` includes the native join. For this stage, the plan takes
the cost in LOG, subtracts the cost of the native join for the rows of LOG, and adds its cost for the planned rows. So measure the join also
for the rows of LOG, for example with `--measure 50M:16`. The time of a stage is the run time of its tasks, which is correct if nothing else
runs on the machine. `--processor` gives the CPU seconds that join.py prints; they are divided among the stages in proportion to their run
times.
"""

import argparse
import math
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import events
import inputs

MILLION, GB = 1e6, 1e9


# Measured rates, one a line:
# - `rate`, name of a stage, core microseconds a row (run time of its tasks, in JVM and Python), shuffle bytes read and written a row
# - `join`, COUNT:PARTS, core microseconds and bytes of memory a fingerprint
# - `rows`, `log`, number of input rows of the event log
RATES_PATH = Path(__file__).with_suffix(".tsv")
STAGE_NAMES = ["rows packed", "sent to tables", "joined", "ids of the one", "ids of the other"]


@dataclass
class StageRates:
    """Cost of a stage for each input row: microseconds of one core, and bytes that shuffles read and write."""

    name: str
    microseconds: float
    read_bytes: float
    written_bytes: float


def read_rates():
    """Reads the measured rates from plan.tsv. Returns {(kind, name): values}. A comment at RATES_PATH describes the kinds."""
    rows = [line.split("\t") for line in RATES_PATH.read_text(encoding="utf-8").splitlines()] if RATES_PATH.exists() else []
    return {(kind, name): [float(value) for value in values] for kind, name, *values in rows}


def add_rates(new_rates):
    """Adds rates to plan.tsv. A new rate replaces a stored rate with the same key (kind, name)."""
    rates = read_rates() | new_rates
    lines = ["\t".join([*key, *(f"{value:.4g}" for value in values)]) for key, values in rates.items()]
    RATES_PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


def store_log_rates(log, rows, processor):
    """Reads the costs of the stages of `near_pairs` from an event log, and stores them in plan.tsv as rates for each input row.

    `rows` is the number of input rows of the run, and `processor` its CPU seconds, or None. Stages without an operator that passes Arrow
    batches to Python are not from `near_pairs`, and are ignored.
    """
    stages = events.read_groups(log)["join"].stages
    python_stages = [stage for stage in stages if "InArrow" in stage.name]
    if len(python_stages) != len(STAGE_NAMES):
        raise SystemExit(f"{len(python_stages)} stages hand batches to Python: expected {len(STAGE_NAMES)}, those of near_pairs")
    rates = {}
    run_seconds = sum(stage.sums["run_ms"] for stage in python_stages) / 1000
    scale = (processor / run_seconds if processor else 1) / rows
    for name, stage in zip(STAGE_NAMES, sorted(python_stages, key=lambda stage: stage.number)):
        read = stage.sums["read_local"] + stage.sums["read_remote"]
        rates["rate", name] = [stage.sums["run_ms"] * 1000 * scale, read / rows, stage.sums["written"] / rows]
    add_rates(rates | {("rows", "log"): [float(rows)]})


# Memory of a task for each fingerprint of its part, in bytes: two copies while Spark passes the fingerprint to Python, and 16 bytes for the
# join (measured by `--measure`).
FINGERPRINT_BYTES = 32
# Rows of a task that packs fingerprints: Spark splits files into 128 MiB, and a row has 16 bytes.
PACK_TASK_ROWS = (128 << 20) / 16


# Assumed resources of an executor.
EXECUTOR_CORES = 8
PYTHON_MEMORY = 16 * GB  # of 32 GB
NETWORK_RATE = 0.75 * GB  # bytes a second in each direction: 60% of 10 Gbit/s
DISK_RATE = 1 * GB  # bytes a second, reading and writing together
INPUT_RATE, INPUT_ROW_BYTES = 0.5 * GB, 16  # bytes a second from object storage, bytes of a row


def choose_parts(count, executors):
    """Returns the number of parts into which near_pairs splits each of its four tables, as `simstore.spark.choose_parts` chooses it.

    A part fits in half the memory of a task. All tables together have at least two parts for each core.
    """
    parts = 1
    while parts < 4096 and (count * 32 / parts > PYTHON_MEMORY / EXECUTOR_CORES / 2 or 4 * parts < 2 * EXECUTOR_CORES * executors):
        parts *= 2
    return parts


def nearest_join_rate(rates, count, parts):
    """Returns the cost of the join per fingerprint, in microseconds of one core.

    `rates` has costs that were measured for several numbers of fingerprints and parts. The result is the one for the numbers nearest to
    `count` and `parts`.
    """
    sizes = {tuple(map(inputs.parse_number, name.split(":"))): values[0] for (kind, name), values in rates.items() if kind == "join"}
    if not sizes:
        raise SystemExit(f"the rate of the join is not known: --measure {count}:{parts}")
    nearest = min(sizes, key=lambda size: (abs(math.log(size[0] / count)), abs(math.log(size[1] / parts))))
    return sizes[nearest]


def stage_rates(rates):
    return [StageRates(name, *rates["rate", name]) for name in STAGE_NAMES]


def plan_stages(rates, count, executors):
    """Predicts the time of each Spark stage of `near_pairs` of `count` fingerprints. `rates` is the result of `read_rates`.

    Returns (number of parts, [(stage, seconds by resource, limiting resource)], total seconds, bytes over the network).
    """
    cores, parts = EXECUTOR_CORES * executors, choose_parts(count, executors)
    (measured_rows,) = rates["rows", "log"]
    extra_microseconds = nearest_join_rate(rates, count, parts) - nearest_join_rate(rates, measured_rows, 1)
    total_seconds = moved_bytes = 0.0
    rows = []
    for stage in stage_rates(rates):
        microseconds = stage.microseconds + (extra_microseconds if stage.name == "joined" else 0)
        remote_bytes = stage.read_bytes * count * (executors - 1) / executors
        bounds = {
            "processor": count * microseconds / MILLION / cores,
            "network": remote_bytes / executors / NETWORK_RATE,
            "disk": count * (stage.read_bytes + stage.written_bytes) / executors / DISK_RATE,
            "input": count * INPUT_ROW_BYTES / executors / INPUT_RATE if stage.name == STAGE_NAMES[0] else 0,
        }
        bound = max(bounds, key=bounds.get)
        total_seconds += bounds[bound]
        moved_bytes += remote_bytes
        rows.append((stage.name, bounds, bound))
    return parts, rows, total_seconds, moved_bytes


def print_plan(count, executor_counts):
    rates = read_rates()
    print("| stage | " + " | ".join(f"{executors} executors, s" for executors in executor_counts) + " |")
    print("|---|" + "---|" * len(executor_counts))
    plans = [plan_stages(rates, count, executors) for executors in executor_counts]
    for number, stage in enumerate(STAGE_NAMES):
        cells = [f"{bounds[bound]:,.0f} ({bound})" for _, bounds, bound in (rows[number] for _, rows, _, _ in plans)]
        print(f"| {stage} | {' | '.join(cells)} |")
    print("| all | " + " | ".join(f"**{total:,.0f}**, {total / 60:,.1f} minutes" for _, _, total, _ in plans) + " |")
    buckets = min(10_000, math.ceil(count / MILLION))
    written = sum(stage.written_bytes for stage in stage_rates(rates))
    figures = {
        "over the network, GB": lambda parts, executors, moved: f"{moved / GB:,.0f}",
        "on the disk of an executor, GB": lambda parts, executors, moved: f"{written * count / executors / GB:,.0f}",
        "parts of a table": lambda parts, executors, moved: f"{parts:,}",
        "fingerprints of a part": lambda parts, executors, moved: f"{count // parts:,}",
        "memory of a part's task, MB": lambda parts, executors, moved: f"{count / parts * FINGERPRINT_BYTES / MILLION:,.0f}",
        "pieces that tasks send to one another, million": lambda parts, executors, moved: (
            f"{(buckets * math.ceil(count / PACK_TASK_ROWS) + buckets * 4 * parts) / MILLION:,.0f}"
        ),
        "bytes of such a piece, to the tables": lambda parts, executors, moved: f"{8 * count / buckets / parts:,.0f}",
    }
    for name, compute in figures.items():
        cells = [compute(parts, executors, moved) for executors, (parts, _, _, moved) in zip(executor_counts, plans)]
        print(f"| {name} | {' | '.join(cells)} |")


def random_part(parts, table, count, seed=16):
    """Returns `count` random fingerprints that all belong to the first part of a table of a join.

    `parts` is the `simstore.JoinParts` of the join. It splits each table into parts, by some bits of the fingerprints. `table` is the index
    of the table. The result is an Arrow array with one binary value: the fingerprints, of 8 bytes each.
    """
    import pyarrow

    random = np.random.default_rng(seed)
    packed = parts.pack(random.integers(0, 1 << 64, 4000 * parts.parts, dtype=np.uint64))
    scattered = parts.scatter(packed["fingerprints"], packed["repeated"])
    scattered = pyarrow.table(scattered)
    row = scattered["place"].to_pylist().index(table * parts.parts)
    part_fingerprints = np.frombuffer(scattered["fingerprints"][row].as_buffer(), dtype="<u8")
    # Bits that are zero in all fingerprints of this part select the part.
    fingerprints = random.integers(0, 1 << 64, count, dtype=np.uint64) & np.bitwise_or.reduce(part_fingerprints)
    offsets = pyarrow.array([0, fingerprints.nbytes], pyarrow.int64())
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), 1, [None, offsets.buffers()[1], pyarrow.py_buffer(fingerprints)])


def read_memory(name):
    """Returns a memory value of this process in bytes: `VmRSS` is the current resident memory, `VmHWM` its peak."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024


def join_part(parts, table, count):
    """Finds the near pairs among `count` random fingerprints of one part. `table` is the index of its table, which has `parts` parts.

    Returns (CPU seconds a million fingerprints, bytes of memory a fingerprint, number of pairs). The caller runs this in a separate
    process, so that the join alone makes the peak memory.
    """
    import pyarrow

    import simstore

    join_parts = simstore.JoinParts(3, parts=parts)
    fingerprints = random_part(join_parts, table, count)
    no_repeats = pyarrow.array([b""], pyarrow.large_binary())
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        # Resets the peak memory of this process.
        file.write("5")
    before, start = read_memory("VmRSS"), time.process_time()
    pairs = sum(map(len, join_parts.pairs(table * parts, fingerprints, no_repeats)))
    seconds = time.process_time() - start
    return seconds / count * MILLION, (read_memory("VmHWM") - before) / count, pairs


def measure_join(size):
    count, parts = map(inputs.parse_number, size.split(":"))
    print(f"| table, of {count:,} in {parts} parts | fingerprints of a part | processor, s a million | more memory, bytes each | pairs |")
    print("|---|---|---|---|---|")
    measurements = []
    for table in range(4):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, memory, pairs = pool.apply(join_part, (parts, table, count // parts))
        print(f"| {table} | {count // parts:,} | {seconds:.3f} | {memory:.1f} | {pairs:,} |", flush=True)
        measurements.append((seconds, memory))
    add_rates({("join", size): [sum(seconds for seconds, _ in measurements), max(memory for _, memory in measurements)]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=inputs.parse_number, default=8_000_000_000)
    parser.add_argument("--executors", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--measure", metavar="COUNT:PARTS", help="measure and store the rate of the join at this size")
    parser.add_argument("--log", help="event log of near_pairs; stores the rates of its stages")
    parser.add_argument("--rows", type=inputs.parse_number, help="number of input rows of the run in --log")
    parser.add_argument("--processor", type=float, help="CPU seconds of the run in --log, as join.py prints them")
    arguments = parser.parse_args()
    if arguments.measure:
        measure_join(arguments.measure)
    elif arguments.log:
        store_log_rates(arguments.log, arguments.rows, arguments.processor)
    else:
        print_plan(arguments.count, arguments.executors)


if __name__ == "__main__":
    main()
