#!/usr/bin/env python3
"""Finds all pairs of 64-bit fingerprints within a distance, with simstore and other tools from Python; prints a Markdown table.

    venv/bin/python benches/python/near.py FINGERPRINTS.u64 --distance 3 [--count N] [--tools NAME...]

Each tool is a separate process that reads the file and writes the pairs. The table has the wall-clock time of the process, and in brackets
the time without the start of Python and the imports of this script. The recall is relative to the pairs found by brute force with numpy,
or by the first tool if numpy is not among the tools.
"""

import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "similar"))
from measure import time_and_memory  # noqa: E402

BLOCK_FINGERPRINTS = 256


def numpy_pairs(fingerprints, distance):
    """Yields the near pairs, found by brute force with numpy."""
    for start in range(0, len(fingerprints), BLOCK_FINGERPRINTS):
        block = fingerprints[start : start + BLOCK_FINGERPRINTS, None]
        near = np.bitwise_count(block ^ fingerprints[None, start:]) <= distance
        a, b = np.nonzero(near)
        yield np.stack([a, b], axis=1)[a < b] + start


def simstore_join(fingerprints, distance):
    import simstore

    table = simstore.self_join(fingerprints, distance)
    yield np.stack([table["a"].to_numpy(), table["b"].to_numpy()], axis=1)


def simstore_store(fingerprints, distance):
    """Yields the near pairs, found by building a store on disk and querying it with all fingerprints."""
    import simstore

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        with simstore.Builder(path, distance=distance) as builder:
            builder.insert_many(fingerprints, np.arange(len(fingerprints), dtype=np.uint64))
        table = simstore.Snapshot(path).query_many(fingerprints, distance)
        pairs = np.stack([table["query"].to_numpy(), table["id"].to_numpy()], axis=1)
        yield pairs[pairs[:, 0] < pairs[:, 1]]


def pypi_simhash(fingerprints, distance):
    import logging

    from simhash import Simhash, SimhashIndex

    logging.disable(logging.WARNING)
    hashes = [Simhash(int(fingerprint)) for fingerprint in fingerprints]
    index = SimhashIndex(list(enumerate(hashes)), k=distance)
    for b, fingerprint in enumerate(hashes):
        yield np.array([(int(a), b) for a in index.get_near_dups(fingerprint) if int(a) < b], dtype=np.int64).reshape(-1, 2)


def faiss_pairs(index, fingerprints, distance):
    """Adds all fingerprints to a FAISS index and yields the near pairs. FAISS reports distances below its radius, here `distance` + 1."""
    vectors = fingerprints.view(np.uint8).reshape(-1, 8)
    index.add(vectors)
    for start in range(0, len(vectors), 10_000):
        limits, _, labels = index.range_search(vectors[start : start + 10_000], distance + 1)
        a = np.repeat(np.arange(start, start + len(limits) - 1), np.diff(limits).astype(np.int64))
        yield np.stack([a, labels], axis=1)[a < labels]


def faiss_hash(fingerprints, distance):
    import faiss

    index = faiss.IndexBinaryHash(64, 24)
    index.nflip = min(distance, 3)
    return faiss_pairs(index, fingerprints, distance)


def faiss_multihash(fingerprints, distance):
    """Yields the near pairs that FAISS finds with a hash table for each of four blocks of 16 bits.

    A query flips up to `distance // 4` bits of a block, which suffices to find all near pairs.
    """
    import faiss

    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.nflip = distance // 4
    return faiss_pairs(index, fingerprints, distance)


def faiss_flat(fingerprints, distance):
    import faiss

    return faiss_pairs(faiss.IndexBinaryFlat(64), fingerprints, distance)


def imagehash_pairs(fingerprints, distance):
    """Yields the near pairs by brute force with the package ImageHash. The difference of two `ImageHash` objects is their distance."""
    import imagehash

    hashes = [imagehash.hex_to_hash(f"{fingerprint:016x}") for fingerprint in fingerprints]
    for a, one in enumerate(hashes):
        yield np.array([(a, b) for b in range(a + 1, len(hashes)) if one - hashes[b] <= distance], dtype=np.int64).reshape(-1, 2)


TOOLS = {
    "numpy": ("numpy, each with each", numpy_pairs),
    "join": ("`simstore.self_join`", simstore_join),
    "store": ("`simstore.Builder`, then `query_many` of all", simstore_store),
    "simhash": ("simhash 2.1.2, `SimhashIndex`", pypi_simhash),
    "faiss-hash": ("faiss-cpu 1.15.1, `IndexBinaryHash`, 24 bits, 3 flips", faiss_hash),
    "faiss-multihash": ("faiss-cpu 1.15.1, `IndexBinaryMultiHash`, 4 of 16 bits", faiss_multihash),
    "faiss-flat": ("faiss-cpu 1.15.1, `IndexBinaryFlat`", faiss_flat),
    "imagehash": ("ImageHash 4.3.2, each minus each", imagehash_pairs),
}


def read_fingerprints(arguments):
    return np.unique(np.fromfile(arguments.file, dtype="<u8"))[: arguments.count]


def run(arguments):
    """Runs one tool in this process, and writes its time and its pairs. A pair (a, b) becomes a * N + b, for N fingerprints."""
    start = time.perf_counter()
    fingerprints = read_fingerprints(arguments)
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *TOOLS[arguments.run][1](fingerprints, arguments.distance)])
    np.save(arguments.output, pairs[:, 0].astype(np.int64) * len(fingerprints) + pairs[:, 1].astype(np.int64))
    with open(arguments.output + ".json", "w", encoding="utf-8") as file:
        json.dump(time.perf_counter() - start, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--count", type=int, help="number of distinct fingerprints to use [default: all]")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=[tool for tool in TOOLS if tool != "imagehash"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return
    count = len(read_fingerprints(arguments))
    print("| tool | s | s of the processor | peak MiB | pairs | recall |\n|---|---|---|---|---|---|", flush=True)
    truth = None
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "pairs.npy")
        # Brute force runs first: its result is the truth for the other tools.
        for tool in sorted(arguments.tools, key=lambda tool: tool != "numpy"):
            command = [sys.executable, __file__, arguments.file, "--distance", str(arguments.distance), "--count", str(count)]
            figures, inner_seconds = [], []
            for _ in range(arguments.runs):
                figures.append(time_and_memory([*command, "--run", tool, "--output", output]))
                with open(output + ".json", encoding="utf-8") as file:
                    inner_seconds.append(json.load(file))
            seconds, processor, memory = (float(np.median(column)) for column in zip(*figures))
            pairs = np.unique(np.load(output))
            truth = pairs if truth is None else truth
            wrong = len(np.setdiff1d(pairs, truth))
            recall = len(np.intersect1d(pairs, truth)) / len(truth) if len(truth) else 1
            recall_text = f"{recall:.4f}" + (f", {wrong} wrong" if wrong else "")
            print(
                f"| {TOOLS[tool][0]} | {seconds:.2f} ({np.median(inner_seconds):.2f}) | {processor:.2f} | "
                f"{memory / 2**20:.0f} | {len(pairs):,} | {recall_text} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
