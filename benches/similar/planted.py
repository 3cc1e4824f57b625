#!/usr/bin/env python3
"""How many planted copies `simstore dedup --similar` finds among random documents, by how similar they are; time and memory.

    cargo build --release && python3 benches/similar/planted.py --documents 1M 10M

The documents are those of `simstore synth --documents`, which says of each copy how similar it is to its original. The interval
is Wilson's, 95%. A copy that is less similar than was asked for must not be found.
"""

import argparse
import json
import math
import os
import subprocess

from compare import rounded
from measure import measured

EDGES = [0.8, 0.82, 0.85, 0.9, 0.95, 1.0]


def interval(found, count):
    """Wilson's score interval, 95%."""
    z = 1.96
    middle = (found + z * z / 2) / (count + z * z)
    half = z / (count + z * z) * math.sqrt(found * (count - found) / count + z * z / 4)
    return max(middle - half, 0), min(middle + half, 1)


def planted(path):
    """The similarity of each copy and its original, by their numbers."""
    copies = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if '"of":' in line:
                document = json.loads(line)
                copies[document["of"], document["id"]] = document["similarity"]
    return copies


def bins(least):
    edges = [least, *(edge for edge in EDGES if edge > least)]
    return [(0, least), *zip(edges, edges[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--documents", nargs="+", default=["1M"])
    parser.add_argument("--words", default="60")
    parser.add_argument("--copies", default="0.1")
    parser.add_argument("--range", default="0.7..1", help="how similar copies are")
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--folder", default="target/similar")
    parser.add_argument("others", nargs="*", help="other options of `dedup`, after `--`")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    corpus = os.path.join(arguments.folder, "planted.jsonl")
    pairs = os.path.join(arguments.folder, "planted.tsv")
    for documents in arguments.documents:
        synth = [arguments.simstore, "synth", corpus, "--quiet", "--documents", documents, "--words", arguments.words]
        synth += ["--copies", arguments.copies, "--similarity", arguments.range, "--seed", arguments.seed]
        subprocess.run(synth, check=True)
        dedup = [arguments.simstore, "dedup", "--quiet", "--similar", str(arguments.similar), *arguments.others]
        seconds, processor, memory = measured([*dedup, "--pairs", pairs, corpus])
        copies = planted(corpus)
        found = set()
        with open(pairs, encoding="utf-8") as lines:
            next(lines)
            total = 0
            for line in lines:
                total += 1
                a, b = map(int, line.split("\t", 2)[:2])
                pair = (min(a, b), max(a, b))
                if pair in copies:
                    found.add(pair)
        size = os.path.getsize(corpus) / 2**20
        print(f"\n{documents} documents, some {arguments.words} words, {size:.0f} MiB, {len(copies):,} copies: ", end="")
        print(f"{seconds:.1f} s, {processor:.1f} s of the processor, {memory / 2**20:.0f} MiB, {total:,} pairs\n")
        print("| similarity | copies | found | recall | 95% |")
        print("|---|---|---|---|---|")
        for least, most in [(arguments.similar, 1.0), *bins(arguments.similar)]:
            inside = [pair for pair, similarity in copies.items() if least <= similarity < most or similarity == most == 1]
            count, hits = len(inside), sum(pair in found for pair in inside)
            if not count:
                continue
            low, high = interval(hits, count)
            print(f"| {least} to {most} | {count:,} | {hits:,} | {rounded(hits / count)} | {low:.4f} to {high:.4f} |")
        os.remove(corpus)
        os.remove(pairs)


if __name__ == "__main__":
    main()
