#!/usr/bin/env python3
"""simstore and other tools deduplicate one file of JSON Lines, and list the ids of kept documents: a table in Markdown.

    cargo build --release
    cargo build --release --manifest-path benches/similar/peers/Cargo.toml --target-dir target/peers
    target/similar/venv/bin/python benches/similar/peers.py --documents 1M --runs 3

The environment is that of run.sh. The documents are those of `benches/synth`, which says of each copy how similar it
is to its original; copies of one original are compared here. README.md says what the columns mean.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys

from compare import read, removed_by_stars, rounded
from measure import taken_by
from planted import planted
from rivals import cut

HERE = os.path.dirname(os.path.abspath(__file__))
# What it writes (ids of kept documents, or pairs), and where it runs (a program of `peers/`, or Python).
PEERS = {
    "rensa-kept": ("rensa 0.5.0, its deduplicator, 256", "kept", "rivals.py"),
    "rensa-kept-bands": ("rensa 0.5.0, its deduplicator, 256, 32 bands", "kept", "rivals.py"),
    "rensa-texts": ("rensa 0.5.0, index of 32 bands, 256: pairs", "pairs", "rivals.py"),
    "datasketch-kept": ("datasketch 2.0.0, 256", "kept", "rivals.py"),
    "gaoya": ("gaoya 0.2.2, 256 hashes", "kept", "peers"),
    "find-simdoc": ("find-simdoc 0.1.1, 512 bits", "kept", "peers"),
}
OUTPUTS = ["keep-list", "pairs"]
GIB = 1 << 30


class Truth:
    """Which documents of a planted corpus are how similar: nothing else is similar to anything."""

    def __init__(self, corpus, similarity):
        copies = planted(corpus)
        self.planted = [pair for pair, similar in copies.items() if similar >= similarity]
        self.similar = {}
        for a, b in itertools.chain(self.planted, siblings(corpus, copies, similarity)):
            self.similar.setdefault(a, set()).add(b)
            self.similar.setdefault(b, set()).add(a)
        with open(corpus, "rb") as lines:
            self.count = sum(1 for _ in lines)

    def removed(self, kind, path):
        """The documents that a tool removes, by what it has written."""
        if kind == "kept":
            kept = bytearray(self.count)
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    kept[int(line)] = 1
            return {document for document in range(self.count) if not kept[document]}
        near = {}
        for pair in read(path, header=kind == "table", columns=2):
            a, b = sorted(map(int, pair))
            near.setdefault(b, set()).add(a)
        return removed_by_stars(self.count, near)

    def score(self, removed):
        """The share of planted pairs of which not both are left, how many documents are left, how many are gone that are like
        none at all, and like none that is left."""
        found = sum(1 for a, b in self.planted if a in removed or b in removed)
        alone = sum(1 for document in removed if document not in self.similar)
        lost = sum(1 for document in removed if not self.similar.get(document, set()) - removed)
        return found / max(len(self.planted), 1), self.count - len(removed), alone, lost


def siblings(corpus, pairs, similarity):
    """Pairs of copies of one original that are similar enough."""
    families = {}
    for original, copy in pairs:
        families.setdefault(original, []).append(copy)
    families = [copies for copies in families.values() if len(copies) > 1]
    texts = dict.fromkeys(itertools.chain.from_iterable(families))
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            if '"of":' in line:
                document = json.loads(line)
                if document["id"] in texts:
                    texts[document["id"]] = document["text"]
    for copies in families:
        sets = {copy: set(cut(texts[copy])) for copy in copies}
        for a, b in itertools.combinations(copies, 2):
            shared = len(sets[a] & sets[b])
            if shared / (len(sets[a]) + len(sets[b]) - shared) >= similarity:
                yield a, b


def row(title, kind, output, command, truth, count, temporary):
    """Runs a command some times, and prints its medians and what it has found; what has failed, as failed."""
    runs = []
    for _ in range(count):
        runs.append(taken_by(command, temporary, may_fail=True))
        if runs[-1] is None:
            print(f"| {title} | failed | | | | | | | |", flush=True)
            return
    seconds, processor, memory, disk = (
        statistics.median(run[figure] for run in runs) for figure in ("seconds", "processor", "memory", "disk")
    )
    recall, left, alone, lost = truth.score(truth.removed(kind, output))
    os.remove(output)
    figures = f"{processor:.1f} | {seconds:.1f} | {memory / 2**20:,.0f} | {disk / 2**20:,.0f}"
    print(f"| {title} | {rounded(recall)} | {left:,} | {alone:,} | {lost:,} | {figures} |", flush=True)


def commands(arguments, corpus, temporary):
    """Title, kind of output, its file, command."""
    kept, pairs = (os.path.join(arguments.folder, name) for name in ("kept.txt", "pairs.tsv"))
    dedup = [arguments.simstore, "dedup", "--quiet", "--similar", str(arguments.similar), "--temporary", temporary]
    for memory in arguments.memory or [None]:
        command, title = dedup, f"`simstore dedup --similar {arguments.similar}"
        if memory:
            command, title = [*dedup, "--memory", memory], f"{title} --memory {memory}"
        for name, kind, output in ("keep-list", "kept", kept), ("pairs", "table", pairs):
            if name in arguments.outputs:
                yield f"{title} --{name}`", kind, output, [*command, f"--{name}", output, corpus]
    for peer in arguments.peers:
        title, kind, place = PEERS[peer]
        output = kept if kind == "kept" else pairs
        command = ["prlimit", f"--as={int(arguments.limit * GIB)}"]
        if place == "peers":
            command += [os.path.join(arguments.programs, peer), corpus, output, str(arguments.similar)]
        else:
            command += [sys.executable, os.path.join(HERE, place), peer, corpus]
            command += ["--similarity", str(arguments.similar), "--output", output]
        yield title, kind, output, command


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--synth", default="target/release/synth")
    parser.add_argument("--programs", default="target/peers/release", help="the folder of the programs of peers/")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--corpus", help="the documents; they are made there if nothing is, and stay [default: in the folder]")
    parser.add_argument("--documents", default="1M")
    parser.add_argument("--words", default="60")
    parser.add_argument("--seed", default="7")
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--memory", nargs="*", help="budgets of simstore, like 4GiB")
    parser.add_argument("--outputs", nargs="*", choices=OUTPUTS, default=OUTPUTS, help="what simstore writes, a row each")
    parser.add_argument("--limit", type=float, default=16, help="GiB of address space that a peer may take; then it fails")
    parser.add_argument("--runs", type=int, default=1, help="of which the medians are taken")
    parser.add_argument("--folder", default="target/similar", help="for documents, ids and temporary files")
    arguments = parser.parse_args()
    temporary = os.path.join(arguments.folder, "temporary")
    os.makedirs(temporary, exist_ok=True)
    name = f"planted-{arguments.documents}-{arguments.words}-{arguments.seed}.jsonl"
    corpus = arguments.corpus or os.path.join(arguments.folder, name)
    if not os.path.exists(corpus):
        synth = [arguments.synth, "documents", corpus, "--count", arguments.documents]
        subprocess.run([*synth, "--words", arguments.words, "--seed", arguments.seed], check=True)
    truth = Truth(corpus, arguments.similar)
    size = os.path.getsize(corpus) / 2**20
    print(f"\n{truth.count:,} documents, {size:,.0f} MiB, {len(truth.planted):,} planted pairs of at least {arguments.similar}.\n")
    print("| tool | recall | documents left | removed, and like none | and like none that is left |", end="")
    print(" s of the processor | s | MiB | MiB of temporary files |")
    print("|---|---|---|---|---|---|---|---|---|")
    stars = removed_by_stars(truth.count, truth.similar)
    print(f"| the truth, stars | 1 | {truth.count - len(stars):,} | 0 | 0 | | | | |", flush=True)
    for command in commands(arguments, corpus, temporary):
        row(*command, truth, arguments.runs, temporary)


if __name__ == "__main__":
    main()
