#!/usr/bin/env python3
"""Measures `simstore dedup --similar` on random documents with planted copies: its recall for ranges of similarity, its time and memory.

    cargo build --release -p simstore-cli -p simstore-synth && python3 benches/similar/planted.py --documents 1M 10M
    target/similar/venv/bin/python benches/similar/planted.py --documents 10M --memory 4GiB --rivals rensa-texts

The documents are from `benches/synth`, which records the similarity of each copy to its original. The output also has the peak size of the
temporary files, and the 95% Wilson interval of the recall. Copies below the threshold must not be found. `--rivals` also measures other
tools, and needs the environment of run.sh. If one of these tools fails, for example because memory is exhausted, the output says so.
"""

import argparse
import json
import math
import os
import subprocess
import sys

from compare import format_share
from measure import resource_usage

SIMILARITY_EDGES = [0.8, 0.82, 0.85, 0.9, 0.95, 1.0]


def wilson_interval(found, count):
    """Returns the 95% Wilson score interval of `found` successes in `count` trials."""
    z = 1.96
    middle = (found + z * z / 2) / (count + z * z)
    half = z / (count + z * z) * math.sqrt(found * (count - found) / count + z * z / 4)
    return max(middle - half, 0), min(middle + half, 1)


def read_planted_pairs(path):
    """Reads a corpus of `benches/synth`. Returns {(original, copy): similarity}, with the ids of the documents."""
    copies = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if '"of":' in line:
                document = json.loads(line)
                copies[document["of"], document["id"]] = document["similarity"]
    return copies


def similarity_bins(threshold):
    """Returns ranges of similarity as (start, end): one below the threshold, the others from the threshold to 1."""
    edges = [threshold, *(edge for edge in SIMILARITY_EDGES if edge > threshold)]
    return [(0, threshold), *zip(edges, edges[1:])]


def find_planted_pairs(path, copies, header):
    """Reads the pairs of ids that a tool found. Returns the set of those pairs that are in `copies`, and the number of all found pairs.

    `copies` are the pairs of an original and a copy in the corpus.
    `header` says whether the file begins with a header line.
    """
    found, total = set(), 0
    with open(path, encoding="utf-8") as lines:
        if header:
            next(lines)
        for line in lines:
            total += 1
            a, b = map(int, line.split("\t", 2)[:2])
            pair = (min(a, b), max(a, b))
            if pair in copies:
                found.add(pair)
    return found, total


def print_table(copies, found, similar):
    """Prints the share of planted pairs that were found, for each range of similarity. `similar` is the threshold."""
    print("| similarity | copies | found | recall | 95% |")
    print("|---|---|---|---|---|")
    for lower, upper in [(similar, 1.0), *similarity_bins(similar)]:
        inside = [pair for pair, similarity in copies.items() if lower <= similarity < upper or similarity == upper == 1]
        count, found_count = len(inside), sum(pair in found for pair in inside)
        if not count:
            continue
        low, high = wilson_interval(found_count, count)
        print(f"| {lower} to {upper} | {count:,} | {found_count:,} | {format_share(found_count / count)} | {low:.4f} to {high:.4f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--synth", default="target/release/synth")
    parser.add_argument("--documents", nargs="+", default=["1M"])
    parser.add_argument("--words", default="60")
    parser.add_argument("--copies", default="0.1")
    parser.add_argument("--range", default="0.7..1", help="range of the similarities of copies")
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--memory", help="memory budget, like 4GiB")
    parser.add_argument("--rivals", nargs="*", choices=["rensa-texts"], default=[], help="other tools to run")
    parser.add_argument("--folder", default="target/similar", help="folder for documents, pairs and temporary files")
    parser.add_argument("others", nargs="*", help="other options of `dedup`, after `--`")
    arguments = parser.parse_args()
    corpus = os.path.join(arguments.folder, "planted.jsonl")
    pairs = os.path.join(arguments.folder, "planted.tsv")
    temporary = os.path.join(arguments.folder, "temporary")
    os.makedirs(temporary, exist_ok=True)
    for documents in arguments.documents:
        synth = [arguments.synth, "documents", corpus, "--count", documents, "--words", arguments.words]
        synth += ["--copies", arguments.copies, "--similarity", arguments.range, "--seed", arguments.seed]
        subprocess.run(synth, check=True)
        copies = read_planted_pairs(corpus)
        size = os.path.getsize(corpus) / 2**20
        print(f"\n{documents} documents, some {arguments.words} words, {size:.0f} MiB, {len(copies):,} copies")
        dedup = [arguments.simstore, "dedup", "--quiet", "--similar", str(arguments.similar), "--temporary", temporary]
        if arguments.memory:
            dedup += ["--memory", arguments.memory]
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals.py")
        commands = {"simstore": [*dedup, *arguments.others, "--pairs", pairs, corpus]}
        for rival in arguments.rivals:
            similarity = ["--similarity", str(arguments.similar)]
            commands[rival] = [sys.executable, script, rival, corpus, *similarity, "--output", pairs]
        for tool, command in commands.items():
            usage = resource_usage(command, temporary, may_fail=tool != "simstore")
            if usage is None:
                print(f"\n{tool}: failed\n")
                continue
            found, total = find_planted_pairs(pairs, copies, tool == "simstore")
            figures = f"{usage['seconds']:.1f} s, {usage['processor']:.1f} s of the processor, {usage['memory'] / 2**20:.0f} MiB"
            print(f"\n{tool}: {figures}, {usage['disk'] / 2**20:.0f} MiB of temporary files, {total:,} pairs\n")
            print_table(copies, found, arguments.similar)
            sys.stdout.flush()
            os.remove(pairs)
        os.remove(corpus)


if __name__ == "__main__":
    main()
