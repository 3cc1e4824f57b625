#!/usr/bin/env python3
"""How many planted copies `simstore dedup --similar` finds among random documents, by how similar they are; time and memory.

    cargo build --release -p simstore-cli -p simstore-synth && python3 benches/similar/planted.py --documents 1M 10M
    target/similar/venv/bin/python benches/similar/planted.py --documents 10M --memory 4GiB --rivals rensa-texts

With --memory, the most disk that is taken by temporary files is told too. A rival that fails, as for want of memory, is told to
have failed; its environment is that of run.sh.
The documents are those of `benches/synth`, which says of each copy how similar it is to its original. The interval
is Wilson's, 95%. A copy that is less similar than was asked for must not be found.
"""

import argparse
import json
import math
import os
import subprocess
import sys

from compare import rounded
from measure import taken_by

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


def pairs_of(path, copies, header):
    """The planted pairs among those of a file, and how many it has."""
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


def table(copies, found, similar):
    print("| similarity | copies | found | recall | 95% |")
    print("|---|---|---|---|---|")
    for least, most in [(similar, 1.0), *bins(similar)]:
        inside = [pair for pair, similarity in copies.items() if least <= similarity < most or similarity == most == 1]
        count, hits = len(inside), sum(pair in found for pair in inside)
        if not count:
            continue
        low, high = interval(hits, count)
        print(f"| {least} to {most} | {count:,} | {hits:,} | {rounded(hits / count)} | {low:.4f} to {high:.4f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--synth", default="target/release/synth")
    parser.add_argument("--documents", nargs="+", default=["1M"])
    parser.add_argument("--words", default="60")
    parser.add_argument("--copies", default="0.1")
    parser.add_argument("--range", default="0.7..1", help="how similar copies are")
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--memory", help="the budget, like 4GiB")
    parser.add_argument("--rivals", nargs="*", choices=["rensa-texts"], default=[], help="tools to run beside it")
    parser.add_argument("--folder", default="target/similar", help="for documents, pairs and temporary files")
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
        copies = planted(corpus)
        size = os.path.getsize(corpus) / 2**20
        print(f"\n{documents} documents, some {arguments.words} words, {size:.0f} MiB, {len(copies):,} copies")
        dedup = [arguments.simstore, "dedup", "--quiet", "--similar", str(arguments.similar), "--temporary", temporary]
        if arguments.memory:
            dedup += ["--memory", arguments.memory]
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals.py")
        commands = {"simstore": [*dedup, *arguments.others, "--pairs", pairs, corpus]}
        for rival in arguments.rivals:
            similarity = ["--similarity", str(arguments.similar)]
            commands[rival] = [sys.executable, here, rival, corpus, *similarity, "--output", pairs]
        for tool, command in commands.items():
            taken = taken_by(command, temporary, may_fail=tool != "simstore")
            if taken is None:
                print(f"\n{tool}: failed\n")
                continue
            found, total = pairs_of(pairs, copies, tool == "simstore")
            figures = f"{taken['seconds']:.1f} s, {taken['processor']:.1f} s of the processor, {taken['memory'] / 2**20:.0f} MiB"
            print(f"\n{tool}: {figures}, {taken['disk'] / 2**20:.0f} MiB of temporary files, {total:,} pairs\n")
            table(copies, found, arguments.similar)
            sys.stdout.flush()
            os.remove(pairs)
        os.remove(corpus)


if __name__ == "__main__":
    main()
