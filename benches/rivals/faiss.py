#!/usr/bin/env python3
"""The binary indexes of FAISS on the fingerprints and queries of simstore-rivals; prints the same Markdown.

    python3 -m venv venv && venv/bin/pip install faiss-cpu "numpy>=2"
    cargo run --release -p simstore-rivals -- --count 1000000 --write-data data
    venv/bin/python benches/rivals/faiss.py data --count 1000000

Indexes: flat (all fingerprints, one after the other), hash-BITS (IndexBinaryHash: one table by the first bits,
k of them flipped) and multihash-N (IndexBinaryMultiHash: N tables of 64 / N bits each, k / N of them flipped).
All are exact: with at most k bits different, one of N blocks has at most k / N of them.

The mean is that of one call with all queries, on one thread; p50 and p99 are of calls with one query each, and
count what Python adds to a call. The batch is one call on all cores. Each index has a process of its own.
"""

import os
import sys

# This file has the name of the module that it imports: its folder must not be searched.
sys.path = [folder for folder in sys.path if os.path.realpath(folder) != os.path.dirname(os.path.realpath(__file__))]

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy

import faiss

COLUMNS = ["index", "ids counted?", "build, s", "resident, bytes each", "on disk, bytes each", "mean, us", "p50, us",
           "p99, us", "batch, queries/s", "recall", "queries"]
# Fingerprints that are added at a time: what is copied for it is not the index's.
CHUNK = 1 << 20


def make(name, distance):
    """The empty index of a name."""
    kind, _, number = name.partition("-")
    if kind == "flat":
        return faiss.IndexBinaryFlat(64)
    if kind == "hash":
        index = faiss.IndexBinaryHash(64, int(number))
        index.nflip = distance
        return index
    if kind == "multihash":
        index = faiss.IndexBinaryMultiHash(64, int(number), 64 // int(number))
        index.nflip = distance // int(number)
        return index
    raise ValueError(f"there is no index `{name}`; expected flat, hash-BITS or multihash-N")


def vectors(fingerprints):
    """Fingerprints as FAISS takes them. Which bit comes first makes no difference to a distance."""
    return numpy.ascontiguousarray(fingerprints).view(numpy.uint8).reshape(-1, 8)


def resident():
    """Memory of this process that is no file's, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("memory is measured on Linux only")


def search(index, queries, distance):
    """Limits and positions of all matches. FAISS reports what is nearer than the radius, not what is as near."""
    limits, _, positions = index.range_search(vectors(queries), distance + 1)
    return limits, positions


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def serialized_bytes(index):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index")
        faiss.write_index_binary(index, path)
        return os.path.getsize(path)


def recall(index, fingerprints, queries, distance):
    """The part of the plain loop's matches that the index finds; it may find nothing else."""
    found = total = 0
    limits, positions = search(index, queries, distance)
    for i, query in enumerate(queries):
        truth = set(fingerprints[numpy.bitwise_count(fingerprints ^ query) <= distance].tolist())
        matches = set(fingerprints[positions[limits[i]:limits[i + 1]]].tolist())
        if not matches <= truth:
            raise ValueError(f"finds more than is there for {query:016x}")
        found += len(matches)
        total += len(truth)
    return found / total if total else 1.0


def measure(name, folder, count, distance, seconds, checked):
    """The cells of one row, after its name."""
    faiss.omp_set_num_threads(1)
    fingerprints = numpy.memmap(folder / f"fingerprints-{count}.u64", dtype="<u8", mode="r")
    warm_up, single, whole = (
        numpy.fromfile(folder / f"queries-{count}-{distance}-{part}.u64", dtype="<u8")
        for part in ["warm-up", "single", "whole"])

    before = resident()
    start = time.perf_counter()
    index = make(name, distance)
    for i in range(0, count, CHUNK):
        index.add(vectors(fingerprints[i:i + CHUNK]))
    build = time.perf_counter() - start
    memory = resident() - before
    disk = serialized_bytes(index)

    asked = 0
    start = time.perf_counter()
    while asked < len(warm_up) and time.perf_counter() - start < seconds / 4:
        search(index, warm_up[asked:asked + 1], distance)
        asked += 1
    asked = min(len(whole), max(1, int(seconds * asked / (time.perf_counter() - start))))
    times = [seconds_of(lambda i=i: search(index, single[i:i + 1], distance)) for i in range(asked)]
    mean = seconds_of(lambda: search(index, whole[:asked], distance)) / asked
    faiss.omp_set_num_threads(os.cpu_count())
    batch = asked / seconds_of(lambda: search(index, whole[:asked], distance))
    median, percentile_99 = numpy.percentile(times, [50, 99])
    part = recall(index, fingerprints, single[:checked], distance)
    return ["yes (position)", f"{build:.1f}", f"{memory / count:.2f}", f"{disk / count:.2f}", short(mean * 1e6),
            short(median * 1e6), short(percentile_99 * 1e6), f"{batch:,.0f}", f"{part:g}", f"{asked:,}"]


def short(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def child(pipe, arguments):
    try:
        pipe.send(measure(*arguments))
    except Exception as error:  # Whatever it was, it goes into the row.
        pipe.send(f"not run: {error}")


def in_a_process(arguments):
    """The cells of `measure`, or why there are none."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender, arguments))
    process.start()
    sender.close()
    try:
        cells = receiver.recv()
    except EOFError:
        process.join()
        cells = f"not run: its process ended with exit code {process.exitcode}"
    process.join()
    return cells if isinstance(cells, list) else [cells] + [""] * (len(COLUMNS) - 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder that simstore-rivals --write-data wrote")
    parser.add_argument("--index", default="flat,hash-24,multihash-2,multihash-3,multihash-4")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="the most for one set of queries")
    parser.add_argument("--checked", type=int, default=200, help="queries compared with the plain loop")
    options = parser.parse_args()
    print(f"### FAISS {faiss.__version__}: {options.count:,} fingerprints, k = {options.distance}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for name in options.index.split(","):
        cells = in_a_process(
            (name, options.data, options.count, options.distance, options.seconds, options.checked))
        print(f"| {' | '.join([f'faiss:{name}', *cells])} |", flush=True)


if __name__ == "__main__":
    main()
