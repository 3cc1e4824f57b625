#!/usr/bin/env python3
"""What the join of a set too large to try here would take on a cluster, by the rates that were measured: tables in Markdown.

    venv/bin/python benches/spark/join.py 50M --what near_pairs --log LOG
    venv/bin/python benches/spark/plan.py --log LOG --rows 50M [--processor SECONDS]    rates of the stages, kept in plan.tsv
    venv/bin/python benches/spark/plan.py --measure 8000M:256     rate of the join there: one part of each table, kept there too
    venv/bin/python benches/spark/plan.py                         the plan, by plan.tsv
    venv/bin/python benches/spark/plan.py --count 1000M --executors 10 20

A part of a large set can be made and joined here: as many random fingerprints that agree in the bits of the part. So the rate of the
join is that of the real size, not one that is drawn out from smaller sets. What is measured of the stages is linear in the rows, but
for the join; of that, what it takes besides the native join is kept (measure the size of LOG, too: `--measure 50M:16`). A stage takes
the time that its tasks ran, which is right where nothing else ran on the machine; with `--processor`, these seconds, as join.py tells
them, are shared out by it.
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


# What was measured: `rate` and name, then microseconds of a core for each row (JVM and Python together: the time that tasks ran), bytes of
# the shuffle read and written; `join` and the size, then microseconds of a core, bytes of memory for each.
KEPT = Path(__file__).with_suffix(".tsv")
STAGES = ["rows packed", "sent to tables", "joined", "ids of the one", "ids of the other"]


@dataclass
class Stage:
    """What a stage takes for each row: microseconds of a core, bytes of the shuffle."""

    name: str
    seconds: float
    read: float
    written: float


def read_kept():
    rows = [line.split("\t") for line in KEPT.read_text(encoding="utf-8").splitlines()] if KEPT.exists() else []
    return {(kind, name): [float(value) for value in values] for kind, name, *values in rows}


def keep(more):
    kept = read_kept() | more
    lines = ["\t".join([*key, *(f"{value:.4g}" for value in values)]) for key, values in kept.items()]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def keep_rates(log, rows, processor):
    """The rates of the stages of near_pairs, which are told from the others by what hands batches to Python."""
    stages = events.groups(log)["join"].stages
    native = [stage for stage in stages if "InArrow" in stage.name]
    if len(native) != len(STAGES):
        raise SystemExit(f"{len(native)} stages hand batches to Python: expected {len(STAGES)}, those of near_pairs")
    rates = {}
    ran = sum(stage.sums["run_ms"] for stage in native) / 1000
    scale = (processor / ran if processor else 1) / rows
    for name, stage in zip(STAGES, sorted(native, key=lambda stage: stage.number)):
        read = stage.sums["read_local"] + stage.sums["read_remote"]
        rates["rate", name] = [stage.sums["run_ms"] * 1000 * scale, read / rows, stage.sums["written"] / rows]
    keep(rates | {("rows", "log"): [float(rows)]})


# Bytes that a task takes to join a fingerprint: itself twice while it is handed over, and 16 for the join (`--measure`).
OF_A_FINGERPRINT = 32
# Rows of a task that packs, by the size of a file's piece that Spark reads at once.
OF_A_PIECE = (128 << 20) / 16


# What an executor is taken to have.
CORES = 8
PYTHON = 16 * GB  # of its 32 GB
NETWORK = 0.75 * GB  # bytes a second each way: 10 Gbit/s, of which 60% are had
DISK = 1 * GB  # bytes a second, written and read again
INPUT, INPUT_ROW = 0.5 * GB, 16  # bytes a second from a store of objects, bytes of a row


def parts_for(count, executors):
    """As `simstore.spark.choose_parts` has them: half of a task's memory is enough for one, and two for each core."""
    parts = 1
    while parts < 4096 and (count * 32 / parts > PYTHON / CORES / 2 or 4 * parts < 2 * CORES * executors):
        parts *= 2
    return parts


def join_rate(kept, count, parts):
    """Microseconds of a core for a fingerprint, of the size that was measured which is nearest."""
    sizes = {tuple(map(inputs.number, name.split(":"))): values[0] for (kind, name), values in kept.items() if kind == "join"}
    if not sizes:
        raise SystemExit(f"the rate of the join is not known: --measure {count}:{parts}")
    nearest = min(sizes, key=lambda size: (abs(math.log(size[0] / count)), abs(math.log(size[1] / parts))))
    return sizes[nearest]


def stages_of(kept):
    return [Stage(name, *kept["rate", name]) for name in STAGES]


def plan(kept, count, executors):
    """Rows of a table: what each stage takes, and what bounds it."""
    cores, parts = CORES * executors, parts_for(count, executors)
    (measured,) = kept["rows", "log"]
    more = join_rate(kept, count, parts) - join_rate(kept, measured, 1)
    total = moved = 0.0
    rows = []
    for stage in stages_of(kept):
        own = stage.seconds + (more if stage.name == "joined" else 0)
        remote = stage.read * count * (executors - 1) / executors
        bounds = {
            "processor": count * own / MILLION / cores,
            "network": remote / executors / NETWORK,
            "disk": count * (stage.read + stage.written) / executors / DISK,
            "input": count * INPUT_ROW / executors / INPUT if stage.name == STAGES[0] else 0,
        }
        bound = max(bounds, key=bounds.get)
        total += bounds[bound]
        moved += remote
        rows.append((stage.name, bounds, bound))
    return parts, rows, total, moved


def show(count, several):
    kept = read_kept()
    print("| stage | " + " | ".join(f"{executors} executors, s" for executors in several) + " |")
    print("|---|" + "---|" * len(several))
    plans = [plan(kept, count, executors) for executors in several]
    for number, stage in enumerate(STAGES):
        cells = [f"{bounds[bound]:,.0f} ({bound})" for _, bounds, bound in (rows[number] for _, rows, _, _ in plans)]
        print(f"| {stage} | {' | '.join(cells)} |")
    print("| all | " + " | ".join(f"**{total:,.0f}**, {total / 60:,.1f} minutes" for _, _, total, _ in plans) + " |")
    buckets = min(10_000, math.ceil(count / MILLION))
    written = sum(stage.written for stage in stages_of(kept))
    facts = {
        "over the network, GB": lambda parts, executors, moved: f"{moved / GB:,.0f}",
        "on the disk of an executor, GB": lambda parts, executors, moved: f"{written * count / executors / GB:,.0f}",
        "parts of a table": lambda parts, executors, moved: f"{parts:,}",
        "fingerprints of a part": lambda parts, executors, moved: f"{count // parts:,}",
        "memory of a part's task, MB": lambda parts, executors, moved: f"{count / parts * OF_A_FINGERPRINT / MILLION:,.0f}",
        "pieces that tasks send to one another, million": lambda parts, executors, moved: (
            f"{(buckets * math.ceil(count / OF_A_PIECE) + buckets * 4 * parts) / MILLION:,.0f}"
        ),
        "bytes of such a piece, to the tables": lambda parts, executors, moved: f"{8 * count / buckets / parts:,.0f}",
    }
    for name, fact in facts.items():
        cells = [fact(parts, executors, moved) for executors, (parts, _, _, moved) in zip(several, plans)]
        print(f"| {name} | {' | '.join(cells)} |")


def part_of(parts, table, count, seed=16):
    """So many random fingerprints of the first part of a table, as they are packed."""
    import pyarrow

    random = np.random.default_rng(seed)
    packed = parts.pack(random.integers(0, 1 << 64, 4000 * parts.parts, dtype=np.uint64))
    sent = parts.scatter(packed["fingerprints"], packed["repeated"])
    sent = pyarrow.table(sent)
    row = sent["place"].to_pylist().index(table * parts.parts)
    of_part = np.frombuffer(sent["fingerprints"][row].as_buffer(), dtype="<u8")
    # Bits that none of these has are those of the part.
    fingerprints = random.integers(0, 1 << 64, count, dtype=np.uint64) & np.bitwise_or.reduce(of_part)
    offsets = pyarrow.array([0, fingerprints.nbytes], pyarrow.int64())
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), 1, [None, offsets.buffers()[1], pyarrow.py_buffer(fingerprints)])


def resident(name):
    """Bytes that this process has, or has had at most."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024


def join_of_part(parts, table, count):
    """Seconds of the processor for a million, bytes of memory for each: a process of its own."""
    import pyarrow

    import simstore

    of = simstore.JoinParts(3, parts=parts)
    fingerprints = part_of(of, table, count)
    nothing = pyarrow.array([b""], pyarrow.large_binary())
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        # Forgets the most memory that this process has had.
        file.write("5")
    before, start = resident("VmRSS"), time.process_time()
    pairs = sum(map(len, of.pairs(table * parts, fingerprints, nothing)))
    seconds = time.process_time() - start
    return seconds / count * MILLION, (resident("VmHWM") - before) / count, pairs


def measure(size):
    count, parts = map(inputs.number, size.split(":"))
    print(f"| table, of {count:,} in {parts} parts | fingerprints of a part | processor, s a million | more memory, bytes each | pairs |")
    print("|---|---|---|---|---|")
    taken = []
    for table in range(4):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, memory, pairs = pool.apply(join_of_part, (parts, table, count // parts))
        print(f"| {table} | {count // parts:,} | {seconds:.3f} | {memory:.1f} | {pairs:,} |", flush=True)
        taken.append((seconds, memory))
    keep({("join", size): [sum(seconds for seconds, _ in taken), max(memory for _, memory in taken)]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=inputs.number, default=8_000_000_000)
    parser.add_argument("--executors", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--measure", metavar="COUNT:PARTS", help="the rate of the join there")
    parser.add_argument("--log", help="the event log of near_pairs")
    parser.add_argument("--rows", type=inputs.number, help="rows that it was of")
    parser.add_argument("--processor", type=float, help="seconds of the processor that these took")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
    elif arguments.log:
        keep_rates(arguments.log, arguments.rows, arguments.processor)
    else:
        show(arguments.count, arguments.executors)


if __name__ == "__main__":
    main()
