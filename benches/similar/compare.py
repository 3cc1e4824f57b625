#!/usr/bin/env python3
"""simstore and other tools on the same corpora, scored by the pairs that brute force finds: tables in Markdown.

    benches/similar/run.sh SHARED_DATA_FOLDER

sets all up and runs this; README.md says what the columns mean.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys

from measure import measured

CORPORA = {
    "en/win32": ["en/win32.jsonl.gz"],
    "zh/sql-docs": ["zh/sql-docs.jsonl.gz"],
    "zh/dotnet-docs": ["zh/dotnet-docs.jsonl.gz"],
    "all three": ["en/win32.jsonl.gz", "zh/sql-docs.jsonl.gz", "zh/dotnet-docs.jsonl.gz"],
}
# What it takes for similar it finds by the threshold; else by a distance of its own.
RIVALS = {
    "simstore-frame": ("`simstore.dedup(frame, similar=..., pairs=True)` of Python", "pairs"),
    "rensa": ("rensa 0.5.0, 256 permutations, 32 bands", "pairs"),
    "rensa-texts": ("the same, from the corpus as it stands", "pairs"),
    "rensa-stars": ("rensa 0.5.0, its deduplicator, 256", "removed"),
    "datasketch": ("datasketch 2.0.0, 256", "pairs"),
    "text-dedup-minhash": ("text-dedup 0.4.0, MinHash, 256", "clusters"),
    "text-dedup-simhash": ("text-dedup 0.4.0, SimHash, 3 bits", "clusters"),
    "pypi-simhash": ("simhash 2.1.2 of PyPI, 3 bits", "pairs"),
}
# They take minutes.
ONCE = {"datasketch", "text-dedup-minhash", "text-dedup-simhash", "pypi-simhash"}
# They cut texts themselves.
FROM_TEXTS = {"rensa-texts", "simstore-frame", "text-dedup-simhash"}


class Truth:
    """The documents of a corpus, in order, and which are how similar."""

    def __init__(self, shingles, pairs, similarity):
        with open(shingles, encoding="utf-8") as lines:
            self.places = {json.loads(line)["id"]: place for place, line in enumerate(lines)}
        self.similar = {}
        self.pairs = 0
        with open(pairs, encoding="utf-8") as lines:
            for line in lines:
                a, b, similar = line.rstrip("\n").split("\t")
                if float(similar) >= similarity:
                    self.pairs += 1
                    a, b = self.places[a], self.places[b]
                    self.similar.setdefault(a, set()).add(b)
                    self.similar.setdefault(b, set()).add(a)

    def has(self, a, b):
        return b in self.similar.get(a, ())

    def left(self):
        return len(self.places) - len(removed_by_stars(len(self.places), self.similar))

    def score(self, kind, found, removed=None):
        """Recall and precision of pairs, how many documents are removed, and how many of them are like none that is kept.
        None for what such a tool does not tell."""
        places = [[self.places[name] for name in line] for line in found]
        recall = precision = None
        if kind == "pairs":
            pairs = {(min(pair), max(pair)) for pair in places}
            right = sum(1 for a, b in pairs if self.has(a, b))
            recall, precision = share(right, self.pairs), share(right, len(pairs))
            if removed is None:
                near = {}
                for a, b in pairs:
                    near.setdefault(a, set()).add(b)
                    near.setdefault(b, set()).add(a)
                removed = removed_by_stars(len(self.places), near)
        elif kind == "clusters":
            cluster = {place: number for number, members in enumerate(places) for place in members}
            both = ((a, b) for a, near in self.similar.items() for b in near if a < b)
            right = sum(1 for a, b in both if a in cluster and cluster[a] == cluster.get(b))
            recall = share(right, self.pairs)
            precision = share(right, sum(len(members) * (len(members) - 1) // 2 for members in places))
            removed = {place for members in places for place in members if place != min(members)}
        else:
            removed = {place for place, in places}
        wrong = sum(1 for place in removed if not self.similar.get(place, set()) - removed)
        return recall, precision, len(removed), wrong


def share(part, whole):
    return part / whole if whole else None


def removed_by_stars(count, near):
    """Each document, in order, goes if one that is near it has stayed."""
    removed = set()
    for place in range(count):
        if any(other < place and other not in removed for other in near.get(place, ())):
            removed.add(place)
    return removed


def medians(command, runs):
    return [statistics.median(figures) for figures in zip(*(measured(command) for _ in range(runs)))]


def read(path, header=False, columns=None):
    with open(path, encoding="utf-8") as lines:
        if header:
            next(lines)
        return [line.rstrip("\n").split("\t")[:columns] for line in lines]


def write_union(sources, path):
    """All in one file, each id with its corpus before it, as two have the same names."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        for name, source in sources:
            with gzip.open(source, "rt", encoding="utf-8") as lines:
                for line in lines:
                    document = json.loads(line)
                    document["id"] = f"{name}/{document['id']}"
                    file.write(json.dumps(document, ensure_ascii=False) + "\n")


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = arguments.folder
        os.makedirs(self.folder, exist_ok=True)

    def path(self, corpus, ending):
        return os.path.join(self.folder, corpus.replace("/", "-").replace(" ", "-") + ending)

    def prepare(self, name):
        """The corpus as it stands, its shingles, and its pairs of at least 0.7."""
        sources = [os.path.join(self.arguments.data, source) for source in CORPORA[name]]
        corpus = sources[0]
        if len(sources) > 1:
            corpus = self.path(name, ".jsonl.gz")
            if not os.path.exists(corpus):
                write_union(zip(CORPORA[name], sources), corpus)
        shingles, pairs = self.path(name, ".shingles.jsonl"), self.path(name, ".pairs.tsv")
        if not os.path.exists(pairs):
            command = [self.arguments.truth, corpus, "--similarity", "0.7", "--shingles", shingles]
            subprocess.run([*command, "--pairs", pairs + ".new"], check=True, stdout=subprocess.DEVNULL)
            os.replace(pairs + ".new", pairs)
        return corpus, shingles, pairs

    def simstore(self, corpus, similarity, runs):
        """With all pairs, and with what is left alone: figures of both, the pairs, the ids of what is left."""
        found, kept = self.path("simstore", ".tsv"), self.path("simstore", ".jsonl")
        dedup = [self.arguments.simstore, "dedup", "--quiet", "--similar", str(similarity)]
        figures = medians([*dedup, "--pairs", found, corpus], runs)
        figures_of_kept = medians([*dedup, "--output", kept, corpus], runs)
        with open(kept, encoding="utf-8") as lines:
            kept = {json.loads(line)["id"] for line in lines}
        return figures, figures_of_kept, read(found, header=True, columns=2), kept

    def rival(self, tool, corpus, shingles, similarity, runs):
        found = self.path(tool, ".tsv")
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals.py")
        source = corpus if tool in FROM_TEXTS else shingles
        command = [sys.executable, here, tool, source, "--similarity", str(similarity), "--output", found]
        figures = medians(command, runs)
        return figures, read(found)

    def table(self, name, similarity):
        corpus, shingles, pairs = self.prepare(name)
        truth = Truth(shingles, pairs, similarity)
        count = len(truth.places)
        print(f"\n### {name}, similarity {similarity}\n")
        print(f"{count:,} documents, {truth.pairs:,} pairs of at least {similarity}.\n")
        print("| tool | recall | precision | documents left | removed, and like none that is left | s | s of the processor | MiB |")
        print("|---|---|---|---|---|---|---|---|")
        print(f"| brute force, stars | 1 | 1 | {truth.left():,} | 0 | | | |")
        runs = self.arguments.runs
        if "simstore" in self.arguments.tools:
            figures, figures_of_kept, found, kept = self.simstore(corpus, similarity, runs)
            removed = {place for document, place in truth.places.items() if document not in kept}
            row(f"`simstore dedup --similar {similarity} --pairs`", truth.score("pairs", found, removed), count, figures)
            removed = [document for document in truth.places if document not in kept]
            score = truth.score("removed", [[document] for document in removed])
            row(f"`simstore dedup --similar {similarity} --output`", score, count, figures_of_kept)
        for tool, (title, kind) in RIVALS.items():
            if tool not in self.arguments.tools:
                continue
            figures, found = self.rival(tool, corpus, shingles, similarity, 1 if tool in ONCE else runs)
            row(title, truth.score(kind, found), count, figures)


def row(title, score, count, figures):
    recall, precision, removed, wrong = score
    seconds, processor, memory = figures
    shares = " | ".join("" if value is None else rounded(value) for value in (recall, precision))
    print(f"| {title} | {shares} | {count - removed:,} | {wrong:,} | {seconds:.1f} | {processor:.1f} | {memory / 2**20:.0f} |")
    sys.stdout.flush()


def rounded(value):
    """Never up to 1."""
    return "1" if value == 1 else f"{min(value, 0.9999):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the folder of the corpora")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--truth", default="target/release/simstore-similar")
    parser.add_argument("--folder", default="target/similar", help="what is kept between runs: truth, shingles, what was found")
    parser.add_argument("--corpora", nargs="*", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--similarity", nargs="*", type=float, default=[0.8, 0.7])
    parser.add_argument("--tools", nargs="*", choices=["simstore", *RIVALS], default=["simstore", *RIVALS])
    parser.add_argument("--runs", type=int, default=3, help="of which the medians are taken; tools that take minutes run once")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for similarity in arguments.similarity:
        for corpus in arguments.corpora:
            bench.table(corpus, similarity)


if __name__ == "__main__":
    main()
