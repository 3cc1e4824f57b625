#!/usr/bin/env python3
"""Compares simstore dedup with Python tools on one corpus: time, memory, and pairs found.

    python3 -m venv venv && venv/bin/pip install simhash==2.1.2 "numpy<2" rensa==0.5.0
    venv/bin/python benches/rivals/dedup.py target/release/simstore CORPUS.jsonl.gz [--limit N]

The package simhash of PyPI and simstore with the preset `pypi-simhash` have the same fingerprints. Their pairs are
compared with all pairs that brute force finds among these fingerprints. rensa estimates a different similarity, the
Jaccard similarity of words. It finds other duplicates, so the table has only their number. Each tool is a separate
process that reads the compressed file and writes the pairs. Memory is the peak resident memory of this process.
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


def read_documents(path, limit):
    """Yields (id, text) of at most `limit` documents."""
    lines_file = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with lines_file as lines:
        for line in itertools.islice(lines, limit):
            document = json.loads(line)
            yield document["id"], document["text"]


def write_pairs(path, pairs):
    """Writes pairs in the format of `simstore dedup --pairs`: a header, then two ids a line."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("a\tb\n")
        file.writelines(f"{a}\t{b}\n" for a, b in pairs)


def run_pypi(corpus, distance, output):
    """Finds the pairs with the PyPI package simhash, used as its documentation shows, and writes them to `output`.

    Makes the fingerprints, builds the package's index, and queries it with each fingerprint.
    """
    import logging

    from simhash import Simhash, SimhashIndex

    logging.disable(logging.WARNING)
    start = time.perf_counter()
    fingerprints = [(name, Simhash(text)) for name, text in read_documents(corpus, None)]
    hashed_at = time.perf_counter()
    index = SimhashIndex(fingerprints, k=distance)
    pairs = set()
    for name, fingerprint in fingerprints:
        pairs.update((min(name, other), max(name, other)) for other in index.get_near_dups(fingerprint) if other != name)
    print(f"  fingerprints {hashed_at - start:.1f} s, index and queries {time.perf_counter() - hashed_at:.1f} s", file=sys.stderr)
    write_pairs(output, pairs)


def run_rensa(corpus, _distance, output):
    """Calls rensa's deduplicator as its documentation shows. Writes the ids of the removed documents to `output`.

    A document is removed if the Jaccard similarity of its words to those of a kept document is at least 0.8.
    """
    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    names, kept = [], []
    texts = read_documents(corpus, None)
    while batch := list(itertools.islice(texts, 1000)):
        names += [name for name, _ in batch]
        kept += deduplicator.add_pairs((name, text.split()) for name, text in batch)
    write_pairs(output, ((name, "") for name, is_kept in zip(names, kept) if not is_kept))


def time_and_memory(command):
    """Returns the wall-clock seconds, the CPU seconds and the peak resident memory in bytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def read_pairs(path):
    """Returns the pairs of a file, each with the smaller id first."""
    with open(path, encoding="utf-8") as lines:
        next(lines)
        fields = (line.rstrip("\n").split("\t") for line in lines)
        return {(min(a, b), max(a, b)) for a, b, *_ in fields}


def exact_pairs(simstore, corpus, distance):
    """Returns all pairs of documents whose fingerprints are within the distance. Compares all pairs of fingerprints."""
    import numpy

    command = [simstore, "fingerprint", "--json", "--profile", "pypi-simhash", corpus]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    fingerprints = [json.loads(line) for line in lines]
    names = [document["id"] for document in fingerprints]
    values = numpy.array([int(document["fingerprint"], 16) for document in fingerprints], dtype=numpy.uint64)
    bit_counts = numpy.array([bin(i).count("1") for i in range(1 << 16)], dtype=numpy.uint8)
    pairs = set()
    for index, value in enumerate(values):
        differences = (values[index + 1 :] ^ value).view(numpy.uint16).reshape(-1, 4)
        for offset in numpy.flatnonzero(bit_counts[differences].sum(axis=1) <= distance):
            a, b = names[index], names[index + 1 + offset]
            pairs.add((min(a, b), max(a, b)))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simstore")
    parser.add_argument("corpus")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--limit", type=int, help="number of documents to use, from the start")
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
                for name, text in read_documents(arguments.corpus, arguments.limit):
                    file.write(json.dumps({"id": name, "text": text}) + "\n")
        else:
            os.symlink(os.path.abspath(arguments.corpus), corpus)
        print_comparison(arguments.simstore, corpus, arguments.distance, os.path.join(folder, "pairs.tsv"))


def print_comparison(simstore, corpus, distance, output):
    """Measures all tools on a corpus and prints the table."""
    exact = exact_pairs(simstore, corpus, distance)
    print(f"{sum(1 for _ in read_documents(corpus, None))} documents, {len(exact)} pairs within {distance} bits by brute force")
    print("| tool | time, s | time of the processor, s | memory, MiB | pairs | of the exact ones | wrong |")
    print("|---|---|---|---|---|---|---|")
    dedup = [simstore, "dedup", "--quiet", "--distance", str(distance), "--pairs", output]
    run_this_script = [sys.executable, __file__, simstore, corpus, "--distance", str(distance), "--output", output, "--run"]
    for name, command in (
        ("simstore, preset pypi-simhash", [*dedup, "--profile", "pypi-simhash", corpus]),
        ("simhash 2.1.2 of PyPI", [*run_this_script, "pypi"]),
        ("simstore, its default profile", [*dedup, corpus]),
        ("rensa 0.5.0", [*run_this_script, "rensa"]),
    ):
        seconds, processor, memory = time_and_memory(command)
        pairs = read_pairs(output)
        if "pypi" in name.lower():
            result_cells = f"{len(pairs)} | {100 * len(pairs & exact) / max(len(exact), 1):.2f}% | {len(pairs - exact)}"
        elif "rensa" in name:
            result_cells = f"{len(pairs)} documents removed | another similarity | "
        else:
            result_cells = f"{len(pairs)} | other fingerprints | "
        print(f"| {name} | {seconds:.1f} | {processor:.1f} | {memory / 2**20:.0f} | {result_cells} |")


if __name__ == "__main__":
    main()
