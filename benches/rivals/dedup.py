#!/usr/bin/env python3
"""simstore dedup and tools in Python on one corpus: time, memory, pairs found.

    python3 -m venv venv && venv/bin/pip install simhash==2.1.2 "numpy<2" rensa==0.5.0
    venv/bin/python benches/rivals/dedup.py target/release/simstore CORPUS.jsonl.gz [--limit N]

The simhash of PyPI and simstore with the preset `pypi-simhash` have the same fingerprints, so their pairs are compared
with all that brute force finds among these. rensa estimates another similarity, the Jaccard of words: it finds other
duplicates, and only their number stands beside the others'. Each tool is a process of its own, from the compressed file
to the pairs; memory is the largest resident set of the process.
"""

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time


def documents(path, limit):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as lines:
        for line in itertools.islice(lines, limit):
            document = json.loads(line)
            yield document["id"], document["text"]


def write_pairs(path, pairs):
    with open(path, "w", encoding="utf-8") as file:
        file.write("a\tb\n")
        file.writelines(f"{a}\t{b}\n" for a, b in pairs)


def run_pypi(corpus, distance, output):
    """As its documentation shows: fingerprints, the index, a query for each."""
    import logging

    from simhash import Simhash, SimhashIndex

    logging.disable(logging.WARNING)
    start = time.perf_counter()
    fingerprints = [(name, Simhash(text)) for name, text in documents(corpus, None)]
    made = time.perf_counter()
    index = SimhashIndex(fingerprints, k=distance)
    pairs = set()
    for name, fingerprint in fingerprints:
        pairs.update((min(name, near), max(name, near)) for near in index.get_near_dups(fingerprint) if near != name)
    print(f"  fingerprints {made - start:.1f} s, index and queries {time.perf_counter() - made:.1f} s", file=sys.stderr)
    write_pairs(output, pairs)


def run_rensa(corpus, _distance, output):
    """As its documentation shows: what is kept at a Jaccard similarity of 0.8, of words."""
    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    names, kept = [], []
    texts = documents(corpus, None)
    while batch := list(itertools.islice(texts, 1000)):
        names += [name for name, _ in batch]
        kept += deduplicator.add_pairs((name, text.split()) for name, text in batch)
    write_pairs(output, ((name, "") for name, keep in zip(names, kept) if not keep))


def measured(command):
    """Seconds, seconds of the processor, and the largest resident set in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def read_pairs(path):
    with open(path, encoding="utf-8") as lines:
        next(lines)
        fields = (line.rstrip("\n").split("\t") for line in lines)
        return {(min(a, b), max(a, b)) for a, b, *_ in fields}


def exact_pairs(simstore, corpus, distance):
    """All pairs of the fingerprints within the distance, by comparing each with each."""
    import numpy

    command = [simstore, "fingerprint", "--json", "--profile", "pypi-simhash", corpus]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    names = [document["id"] for document in found]
    words = numpy.array([int(document["fingerprint"], 16) for document in found], dtype=numpy.uint64)
    ones = numpy.array([bin(i).count("1") for i in range(1 << 16)], dtype=numpy.uint8)
    pairs = set()
    for row, word in enumerate(words):
        different = (words[row + 1 :] ^ word).view(numpy.uint16).reshape(-1, 4)
        for other in numpy.flatnonzero(ones[different].sum(axis=1) <= distance):
            a, b = names[row], names[row + 1 + other]
            pairs.add((min(a, b), max(a, b)))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simstore")
    parser.add_argument("corpus")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--limit", type=int, help="take this many documents")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        {"pypi": run_pypi, "rensa": run_rensa}[arguments.run](arguments.corpus, arguments.distance, arguments.output)
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus.jsonl.gz")
        if arguments.limit:
            with gzip.open(corpus, "wt", encoding="utf-8") as file:
                for name, text in documents(arguments.corpus, arguments.limit):
                    file.write(json.dumps({"id": name, "text": text}) + "\n")
        else:
            os.symlink(os.path.abspath(arguments.corpus), corpus)
        compare(arguments.simstore, corpus, arguments.distance, os.path.join(folder, "pairs.tsv"))


def compare(simstore, corpus, distance, output):
    exact = exact_pairs(simstore, corpus, distance)
    print(f"{sum(1 for _ in documents(corpus, None))} documents, {len(exact)} pairs within {distance} bits by brute force")
    print("| tool | time, s | time of the processor, s | memory, MiB | pairs | of the exact ones | wrong |")
    print("|---|---|---|---|---|---|---|")
    dedup = [simstore, "dedup", "--quiet", "--distance", str(distance), "--pairs", output]
    itself = [sys.executable, __file__, simstore, corpus, "--distance", str(distance), "--output", output, "--run"]
    for name, command in (
        ("simstore, preset pypi-simhash", [*dedup, "--profile", "pypi-simhash", corpus]),
        ("simhash 2.1.2 of PyPI", [*itself, "pypi"]),
        ("simstore, its default profile", [*dedup, corpus]),
        ("rensa 0.5.0", [*itself, "rensa"]),
    ):
        seconds, processor, memory = measured(command)
        pairs = read_pairs(output)
        if "pypi" in name.lower():
            share = f"{len(pairs)} | {100 * len(pairs & exact) / max(len(exact), 1):.2f}% | {len(pairs - exact)}"
        elif "rensa" in name:
            share = f"{len(pairs)} documents removed | another similarity | "
        else:
            share = f"{len(pairs)} | other fingerprints | "
        print(f"| {name} | {seconds:.1f} | {processor:.1f} | {memory / 2**20:.0f} | {share} |")


if __name__ == "__main__":
    main()
