#!/usr/bin/env python3
"""Measures the binary indexes of FAISS with the fingerprints and queries of simstore-rivals; prints the same Markdown table.

    python3 -m venv venv && venv/bin/pip install faiss-cpu "numpy>=2"
    cargo run --release -p simstore-rivals -- --count 1000000 --write-data data
    venv/bin/python benches/rivals/faiss.py data --count 1000000

Indexes, for queries within k bits: flat (scans all fingerprints), hash-BITS (IndexBinaryHash: one table with the first
BITS bits as keys, up to k of them flipped in a query) and multihash-N (IndexBinaryMultiHash: N tables with blocks of
64 / N bits as keys, up to k / N of them flipped). All are exact: if at most k bits differ, at most k / N bits differ in
one of the N blocks.

The mean is the time of one call with all queries on one thread, divided by their number. p50 and p99 are of calls with
one query each, including the overhead of Python. The batch is one call on all cores. Each index is measured in a
separate process.
"""

import os
import sys

# This file has the same name as the package faiss, so its folder is removed from the search path.
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
# Fingerprints that one call adds. Chunks keep temporary copies small, which would count as memory of the index.
CHUNK_FINGERPRINTS = 1 << 20


def make_index(name, distance):
    """Returns an empty FAISS index. `name` is flat, hash-BITS or multihash-N."""
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


def as_vectors(fingerprints):
    """Returns fingerprints as FAISS wants them: one row of bytes for each. The order of the bytes does not change distances."""
    return numpy.ascontiguousarray(fingerprints).view(numpy.uint8).reshape(-1, 8)


def anonymous_memory():
    """Returns the resident memory of this process that is not mapped from a file, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("memory is measured on Linux only")


def search(index, queries, distance):
    """Returns (limits, positions): the matches of query i are positions[limits[i]:limits[i + 1]].

    FAISS reports distances below the radius, not equal to it, so the radius is `distance + 1`.
    """
    limits, _, positions = index.range_search(as_vectors(queries), distance + 1)
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
    """Returns the share of the true matches that the index finds. Raises ValueError if it finds a false match."""
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


def measure(name, folder, count, distance, seconds, checked_queries):
    """Measures an index. Returns the cells of its table row, without the first cell, which has the name."""
    faiss.omp_set_num_threads(1)
    fingerprints = numpy.memmap(folder / f"fingerprints-{count}.u64", dtype="<u8", mode="r")
    warm_up_queries, single_queries, batch_queries = (
        numpy.fromfile(folder / f"queries-{count}-{distance}-{query_set}.u64", dtype="<u8")
        for query_set in ["warm-up", "single", "whole"])

    before = anonymous_memory()
    start = time.perf_counter()
    index = make_index(name, distance)
    for i in range(0, count, CHUNK_FINGERPRINTS):
        index.add(as_vectors(fingerprints[i:i + CHUNK_FINGERPRINTS]))
    build = time.perf_counter() - start
    memory = anonymous_memory() - before
    disk = serialized_bytes(index)

    query_count = 0
    start = time.perf_counter()
    while query_count < len(warm_up_queries) and time.perf_counter() - start < seconds / 4:
        search(index, warm_up_queries[query_count:query_count + 1], distance)
        query_count += 1
    query_count = min(len(batch_queries), max(1, int(seconds * query_count / (time.perf_counter() - start))))
    times = [seconds_of(lambda i=i: search(index, single_queries[i:i + 1], distance)) for i in range(query_count)]
    mean = seconds_of(lambda: search(index, batch_queries[:query_count], distance)) / query_count
    faiss.omp_set_num_threads(os.cpu_count())
    batch = query_count / seconds_of(lambda: search(index, batch_queries[:query_count], distance))
    median, percentile_99 = numpy.percentile(times, [50, 99])
    recall_share = recall(index, fingerprints, single_queries[:checked_queries], distance)
    return ["yes (position)", f"{build:.1f}", f"{memory / count:.2f}", f"{disk / count:.2f}", format_short(mean * 1e6),
            format_short(median * 1e6), format_short(percentile_99 * 1e6), f"{batch:,.0f}", f"{recall_share:g}", f"{query_count:,}"]


def format_short(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def child_main(pipe, arguments):
    try:
        pipe.send(measure(*arguments))
    except Exception as error:  # The row shows any error.
        pipe.send(f"not run: {error}")


def measure_in_process(arguments):
    """Runs `measure` in a separate process, and returns its cells. If it fails, the first cell has the error, and the others are empty."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child_main, args=(sender, arguments))
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
    parser.add_argument("data", type=Path, help="folder written by simstore-rivals --write-data")
    parser.add_argument("--index", default="flat,hash-24,multihash-2,multihash-3,multihash-4")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="approximate time limit of one set of queries")
    parser.add_argument("--checked", type=int, default=200, help="number of queries compared with a plain loop")
    options = parser.parse_args()
    print(f"### FAISS {faiss.__version__}: {options.count:,} fingerprints, k = {options.distance}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for name in options.index.split(","):
        cells = measure_in_process(
            (name, options.data, options.count, options.distance, options.seconds, options.checked))
        print(f"| {' | '.join([f'faiss:{name}', *cells])} |", flush=True)


if __name__ == "__main__":
    main()
