#!/usr/bin/env python3
"""What calls from Python take beside the same ones of Rust and of the command line: a table in Markdown.

    venv/bin/python benches/python/calls.py target/release/simstore CORPUS.jsonl.gz [--count N]

Pairs of runs one after the other, medians of their ratios. The store has `--count` random fingerprints in the default plan; half
of the queries are stored ones with up to 3 bits flipped.
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

# A batch of documents, as the command line reads them.
BATCH_BYTES = 8 << 20
RUNS = 7
QUERIES = 100_000
SINGLE = 20_000


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def batches(texts):
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text.encode())
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def fingerprints(binary, corpus):
    """Megabytes of text a second."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    profile = simstore.Profile()
    lists = list(batches(texts))
    arrays = [pyarrow.array(batch) for batch in lists]
    ratios = {"list": [], "Arrow": []}
    rates = {"command line": [], "list": [], "Arrow": []}
    with tempfile.TemporaryDirectory() as folder:
        # Not compressed, so that both have the same to do as nearly as can be: the command line parses JSON, too.
        plain = os.path.join(folder, "corpus.jsonl")
        with open(plain, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
        command = [binary, "fingerprint", "--quiet", plain]
        for _ in range(RUNS):
            line = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
            rates["command line"].append(megabytes / line)
            for name, given in (("list", lists), ("Arrow", arrays)):
                taken = seconds(lambda given=given: [profile.fingerprints(batch) for batch in given])
                rates[name].append(megabytes / taken)
                ratios[name].append(line / taken)
    for name in ("list", "Arrow"):
        print(
            f"| `Profile.fingerprints`, 8 MiB at a time, {name} | {statistics.median(rates[name]):.0f} MB/s | "
            f"{statistics.median(rates['command line']):.0f} MB/s, `simstore fingerprint` | "
            f"{statistics.median(ratios[name]):.2f} of its rate |"
        )


def queries(root, count):
    random = np.random.default_rng(1)
    stored = random.integers(0, 1 << 64, count, dtype=np.uint64)
    asked = random.integers(0, 1 << 64, QUERIES, dtype=np.uint64)
    half = QUERIES // 2
    asked[:half] = stored[random.integers(0, count, half)]
    for _ in range(3):
        asked[:half] ^= np.left_shift(np.uint64(1), random.integers(0, 64, half, dtype=np.uint64))
    random.shuffle(asked)
    with tempfile.TemporaryDirectory() as folder:
        store, file = os.path.join(folder, "store"), os.path.join(folder, "queries.u64")
        with simstore.Builder(store) as builder:
            builder.insert_many(stored, np.arange(count, dtype=np.uint64))
        asked.tofile(file)
        snapshot = simstore.Snapshot(store)
        single = [int(query) for query in asked[:SINGLE]]
        command = ["cargo", "bench", "--quiet", "--bench", "calls", "--", store, file, "3"]
        snapshot.query_many(asked, 3)
        many, ones, of_many, of_ones = [], [], [], []
        for _ in range(RUNS):
            line = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
            rust = json.loads(line.splitlines()[-1])
            taken = statistics.median(seconds(lambda: snapshot.query_many(asked, 3)) for _ in range(RUNS))
            assert len(snapshot.query_many(asked, 3)) == rust["matches"]
            one = statistics.median(seconds(lambda: [snapshot.query(query, 3) for query in single]) for _ in range(RUNS)) / SINGLE
            many.append((taken, rust["batch"]))
            ones.append((one, rust["query"]))
            of_many.append(taken / rust["batch"])
            of_ones.append(one - rust["query"])
        taken, batch = map(statistics.median, zip(*many))
        print(
            f"| `Snapshot.query_many`, {QUERIES:,} of {count:,} | {taken * 1e3:.1f} ms | {batch * 1e3:.1f} ms | "
            f"{statistics.median(of_many):.3f} of its time |"
        )
        one, query = map(statistics.median, zip(*ones))
        print(
            f"| `Snapshot.query`, one | {one * 1e6:.2f} us | {query * 1e6:.2f} us | {statistics.median(of_ones) * 1e6:.2f} us more |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simstore")
    parser.add_argument("corpus")
    parser.add_argument("--count", type=int, default=10_000_000, help="fingerprints of the store")
    arguments = parser.parse_args()
    print("| call | Python | Rust | |\n|---|---|---|---|", flush=True)
    fingerprints(arguments.simstore, arguments.corpus)
    queries(os.path.join(os.path.dirname(__file__), "..", ".."), arguments.count)


if __name__ == "__main__":
    main()
