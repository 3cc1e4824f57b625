#!/usr/bin/env python3
"""Writes fingerprints for Spark: a folder of Parquet files with the 64-bit integer columns `id` and `fingerprint`.

    venv/bin/python benches/spark/inputs.py mixed 10M FOLDER     (random, mixed or clustered; files of a million rows)
    venv/bin/python benches/spark/inputs.py ../shared/data/fingerprints/win32-rev.u64 FOLDER

`random`: random fingerprints. `mixed`: 80% random fingerprints, 10% equal to one of them, and 10% within 3 bits of one of them.
`clustered`: groups of ten; each fingerprint is within 3 bits of the first in its group, as in `benches/join.rs`. The order is random, and
the set is the same each time. An id is the position of its fingerprint, from 0.
"""

import argparse
import os

import numpy as np
import pyarrow
import pyarrow.parquet

FILE_ROWS = 1_000_000


def flip_bits(fingerprints, flips, random):
    """Returns the fingerprints with random bits flipped.

    `flips` has the number of flips of each fingerprint. A flip can undo an earlier flip.
    """
    result = fingerprints.copy()
    for flip in range(int(flips.max(initial=0))):
        bits = random.integers(0, 64, len(result), dtype=np.uint64)
        result ^= np.where(flips > flip, np.uint64(1) << bits, np.uint64(0))
    return result


def generate(shape, count, seed=16):
    """Returns an array of `count` fingerprints in random order.

    `shape` is "random", "mixed" (a fifth are equal or near to another) or "clustered" (groups of 10 near fingerprints).
    """
    random = np.random.default_rng(seed)
    if shape == "random":
        return random.integers(0, 1 << 64, count, dtype=np.uint64)
    if shape == "clustered":
        centres = random.integers(0, 1 << 64, -(-count // 10), dtype=np.uint64)
        result = flip_bits(np.repeat(centres, 10)[:count], np.arange(count, dtype=np.uint8) % 10 % 4, random)
    else:
        originals = random.integers(0, 1 << 64, count - count // 5, dtype=np.uint64)
        copies = originals[random.integers(0, len(originals), count // 5)]
        flips = np.where(np.arange(len(copies)) % 2 == 0, 0, random.integers(1, 4, len(copies))).astype(np.uint8)
        result = np.concatenate([originals, flip_bits(copies, flips, random)])
    random.shuffle(result)
    return result


def write_parquet(fingerprints, folder):
    """Writes files of FILE_ROWS rows each to a new folder."""
    os.makedirs(folder)
    for start in range(0, len(fingerprints), FILE_ROWS):
        chunk = fingerprints[start : start + FILE_ROWS]
        columns = {"id": np.arange(start, start + len(chunk), dtype=np.int64), "fingerprint": chunk.view(np.int64)}
        path = os.path.join(folder, f"part-{start // FILE_ROWS:05}.parquet")
        # Spark's default compression. It does not make random fingerprints smaller.
        pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="snappy")


def parse_number(text):
    """Parses a count with an optional decimal unit: `10M` is 10 million."""
    scales = {"k": 10**3, "M": 10**6}
    return int(text[:-1]) * scales[text[-1]] if text[-1] in scales else int(text)


def read_fingerprints(folder):
    """Returns the fingerprints in a folder written by `write_parquet`: an array of u64, in the order of the ids."""
    return pyarrow.parquet.read_table(folder, columns=["fingerprint"])["fingerprint"].to_numpy().view(np.uint64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", help="random, mixed, clustered, or a file of raw little-endian values")
    parser.add_argument("count", type=parse_number, nargs="?")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    if arguments.shape in ("random", "mixed", "clustered"):
        fingerprints = generate(arguments.shape, arguments.count)
    else:
        fingerprints = np.fromfile(arguments.shape, dtype="<u8")[: arguments.count]
    write_parquet(fingerprints, arguments.folder)
    print(f"{len(fingerprints):,} fingerprints, {len(np.unique(fingerprints)):,} of them distinct")


if __name__ == "__main__":
    main()
