#!/usr/bin/env python3
"""Sets of fingerprints as Parquet, for Spark: a folder of files with the columns `id` and `fingerprint`, both long.

    venv/bin/python benches/spark/inputs.py mixed 10M FOLDER     (random, mixed or clustered; files of a million rows)
    venv/bin/python benches/spark/inputs.py ../shared/data/fingerprints/win32-rev.u64 FOLDER

`random`: all random. `mixed`: of ten, eight random, one equal to another of these eight tenths, one within 1 to 3 bits of another.
`clustered`: groups of ten, each 0 to 3 bits from its first, as `benches/join.rs` has them. All in random order; the same set each
time. The ids are the places.
"""

import argparse
import os

import numpy as np
import pyarrow
import pyarrow.parquet

ROWS = 1_000_000


def flipped(fingerprints, flips, random):
    """Each with so many bits flipped, drawn one by one, so that a bit may be flipped back."""
    result = fingerprints.copy()
    for flip in range(int(flips.max(initial=0))):
        bits = random.integers(0, 64, len(result), dtype=np.uint64)
        result ^= np.where(flips > flip, np.uint64(1) << bits, np.uint64(0))
    return result


def made(shape, count, seed=16):
    """So many fingerprints, as u64."""
    random = np.random.default_rng(seed)
    if shape == "random":
        return random.integers(0, 1 << 64, count, dtype=np.uint64)
    if shape == "clustered":
        centres = random.integers(0, 1 << 64, -(-count // 10), dtype=np.uint64)
        result = flipped(np.repeat(centres, 10)[:count], np.arange(count, dtype=np.uint8) % 10 % 4, random)
    else:
        originals = random.integers(0, 1 << 64, count - count // 5, dtype=np.uint64)
        copied = originals[random.integers(0, len(originals), count // 5)]
        flips = np.where(np.arange(len(copied)) % 2 == 0, 0, random.integers(1, 4, len(copied))).astype(np.uint8)
        result = np.concatenate([originals, flipped(copied, flips, random)])
    random.shuffle(result)
    return result


def write(fingerprints, folder):
    os.makedirs(folder)
    for start in range(0, len(fingerprints), ROWS):
        some = fingerprints[start : start + ROWS]
        columns = {"id": np.arange(start, start + len(some), dtype=np.int64), "fingerprint": some.view(np.int64)}
        path = os.path.join(folder, f"part-{start // ROWS:05}.parquet")
        # Spark's own choice; random fingerprints get no smaller by it.
        pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="snappy")


def number(text):
    """`10M` is 10 million."""
    scales = {"k": 10**3, "M": 10**6}
    return int(text[:-1]) * scales[text[-1]] if text[-1] in scales else int(text)


def read(folder):
    """The fingerprints of such a folder, as u64, in the order of the ids."""
    return pyarrow.parquet.read_table(folder, columns=["fingerprint"])["fingerprint"].to_numpy().view(np.uint64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", help="random, mixed, clustered, or a file of raw little-endian values")
    parser.add_argument("count", type=number, nargs="?")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    if arguments.shape in ("random", "mixed", "clustered"):
        fingerprints = made(arguments.shape, arguments.count)
    else:
        fingerprints = np.fromfile(arguments.shape, dtype="<u8")[: arguments.count]
    write(fingerprints, arguments.folder)
    print(f"{len(fingerprints):,} fingerprints, {len(np.unique(fingerprints)):,} of them distinct")


if __name__ == "__main__":
    main()
