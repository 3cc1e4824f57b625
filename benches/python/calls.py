#!/usr/bin/env python3
"""Compares the time of calls from Python with the same calls in Rust and on the command line; prints a Markdown table.

    venv/bin/python benches/python/calls.py target/release/simstore CORPUS.jsonl.gz [--count N]

`Profile.fingerprints` is compared with `simstore fingerprint`, and queries of a store with the same queries in Rust. Runs in Python
alternate with runs outside of it, and the last column has the median of the ratios (for single queries, of the differences) of two
successive runs. The store has `--count` random fingerprints in the default plan. Half of the queries are stored fingerprints with up to 3
flipped bits.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import pyarrow

import simstore

# Size of a batch of documents, as on the command line.
BATCH_BYTES = 8 << 20
RUNS = 7
QUERIES = 100_000
SINGLE_QUERIES = 20_000


def elapsed(work):
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def split_into_batches(texts):
    """Yields lists of texts with at least BATCH_BYTES bytes, and one smaller list at the end."""
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text.encode())
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def compare_fingerprints(binary, corpus):
    """Prints the rates of fingerprinting in megabytes of text a second."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    profile = simstore.Profile()
    lists = list(split_into_batches(texts))
    arrays = [pyarrow.array(batch) for batch in lists]
    ratios = {"list": [], "Arrow": []}
    rates = {"command line": [], "list": [], "Arrow": []}
    with tempfile.TemporaryDirectory() as folder:
        # The file is not compressed, so that both do nearly the same work; the command line also parses JSON.
        plain = os.path.join(folder, "corpus.jsonl")
        with open(plain, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
        command = [binary, "fingerprint", "--quiet", plain]
        for _ in range(RUNS):
            command_seconds = elapsed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
            rates["command line"].append(megabytes / command_seconds)
            for name, batches in (("list", lists), ("Arrow", arrays)):
                call_seconds = elapsed(lambda batches=batches: [profile.fingerprints(batch) for batch in batches])
                rates[name].append(megabytes / call_seconds)
                ratios[name].append(command_seconds / call_seconds)
    for name in ("list", "Arrow"):
        print(
            f"| `Profile.fingerprints`, 8 MiB at a time, {name} | {statistics.median(rates[name]):.0f} MB/s | "
            f"{statistics.median(rates['command line']):.0f} MB/s, `simstore fingerprint` | "
            f"{statistics.median(ratios[name]):.2f} of its rate |"
        )


def compare_queries(root, count):
    """Prints the times of queries, one by one and in a batch, against a store of `count` fingerprints."""
    random = np.random.default_rng(1)
    stored = random.integers(0, 1 << 64, count, dtype=np.uint64)
    queries = random.integers(0, 1 << 64, QUERIES, dtype=np.uint64)
    half = QUERIES // 2
    queries[:half] = stored[random.integers(0, count, half)]
    for _ in range(3):
        queries[:half] ^= np.left_shift(np.uint64(1), random.integers(0, 64, half, dtype=np.uint64))
    random.shuffle(queries)
    with tempfile.TemporaryDirectory() as folder:
        store, file = os.path.join(folder, "store"), os.path.join(folder, "queries.u64")
        with simstore.Builder(store) as builder:
            builder.insert_many(stored, np.arange(count, dtype=np.uint64))
        queries.tofile(file)
        snapshot = simstore.Snapshot(store)
        single = [int(query) for query in queries[:SINGLE_QUERIES]]
        command = ["cargo", "bench", "--quiet", "--bench", "calls", "--", store, file, "3"]
        snapshot.query_many(queries, 3)
        batch_times, single_times, batch_ratios, single_differences = [], [], [], []
        for _ in range(RUNS):
            output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
            rust = json.loads(output.splitlines()[-1])
            batch_seconds = statistics.median(elapsed(lambda: snapshot.query_many(queries, 3)) for _ in range(RUNS))
            assert len(snapshot.query_many(queries, 3)) == rust["matches"]
            all_seconds = statistics.median(elapsed(lambda: [snapshot.query(query, 3) for query in single]) for _ in range(RUNS))
            single_seconds = all_seconds / SINGLE_QUERIES
            batch_times.append((batch_seconds, rust["batch"]))
            single_times.append((single_seconds, rust["query"]))
            batch_ratios.append(batch_seconds / rust["batch"])
            single_differences.append(single_seconds - rust["query"])
        batch_seconds, rust_batch_seconds = map(statistics.median, zip(*batch_times))
        print(
            f"| `Snapshot.query_many`, {QUERIES:,} of {count:,} | {batch_seconds * 1e3:.1f} ms | {rust_batch_seconds * 1e3:.1f} ms | "
            f"{statistics.median(batch_ratios):.3f} of its time |"
        )
        single_seconds, rust_query_seconds = map(statistics.median, zip(*single_times))
        print(
            f"| `Snapshot.query`, one | {single_seconds * 1e6:.2f} us | {rust_query_seconds * 1e6:.2f} us | "
            f"{statistics.median(single_differences) * 1e6:.2f} us more |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simstore")
    parser.add_argument("corpus")
    parser.add_argument("--count", type=int, default=10_000_000, help="number of fingerprints in the store")
    arguments = parser.parse_args()
    print("| call | Python | Rust | |\n|---|---|---|---|", flush=True)
    compare_fingerprints(arguments.simstore, arguments.corpus)
    compare_queries(os.path.join(os.path.dirname(__file__), "..", ".."), arguments.count)


if __name__ == "__main__":
    main()
