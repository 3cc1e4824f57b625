"""Writes fingerprints and request bodies for the benchmark of the service. Everything is a function of the arguments.

- `bodies.py fingerprints COUNT FILE.u64`: random 64-bit fingerprints, little-endian.
- `bodies.py queries COUNT STORED FILE`: one query a line. Half of them are within 3 bits of one of the first STORED fingerprints.
- `bodies.py arrays COUNT STORED FILE`: 1,000 queries a line.
- `bodies.py documents FILE INPUT.jsonl.gz...`: one document a line, with its text and its line number as id.
"""

import gzip
import json
import sys

import numpy as np


def fingerprints(first, count):
    """Returns outputs of SplitMix64."""
    with np.errstate(over="ignore"):
        z = (np.arange(first + 1, first + count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def queries(count, stored):
    random = np.random.default_rng(1)
    values = fingerprints(1 << 40, count)
    planted = fingerprints(0, stored)[random.integers(0, stored, count // 2)]
    for _ in range(3):
        planted ^= np.uint64(1) << random.integers(0, 64, count // 2).astype(np.uint64)
    values[::2][: count // 2] = planted
    return [{"fingerprint": f"{value:016x}", "distance": 3} for value in values]


def documents(inputs):
    for name in inputs:
        with gzip.open(name, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def main(kind, *arguments):
    if kind == "fingerprints":
        count, path = arguments
        fingerprints(0, int(count)).astype("<u8").tofile(path)
        return
    if kind == "documents":
        path, *inputs = arguments
        bodies = ({"id": number, "text": text} for number, text in enumerate(documents(inputs)))
    else:
        count, stored, path = int(arguments[0]), int(arguments[1]), arguments[2]
        if kind == "arrays":
            items = queries(count * 1000, stored)
            bodies = [items[at : at + 1000] for at in range(0, len(items), 1000)]
        else:
            bodies = queries(count, stored)
    with open(path, "w", encoding="utf-8") as lines:
        for body in bodies:
            lines.write(json.dumps(body, ensure_ascii=False) + "\n")


main(*sys.argv[1:])
