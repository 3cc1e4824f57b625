#!/usr/bin/env python3
"""Runs simstore and other tools on the same corpora, scores them by the pairs that brute force finds, and prints Markdown tables.

    benches/similar/run.sh SHARED_DATA_FOLDER

This command installs the tools and runs this script. README.md explains the columns.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys

from measure import time_and_memory

CORPORA = {
    "en/win32": ["en/win32.jsonl.gz"],
    "zh/sql-docs": ["zh/sql-docs.jsonl.gz"],
    "zh/dotnet-docs": ["zh/dotnet-docs.jsonl.gz"],
    "all three": ["en/win32.jsonl.gz", "zh/sql-docs.jsonl.gz", "zh/dotnet-docs.jsonl.gz"],
}
# Title of each tool, and the kind of its output: pairs, clusters, or removed documents. A tool uses the similarity threshold, unless its
# title has a distance in bits.
TOOLS = {
    "simstore-frame": ("`simstore.dedup(frame, similar=..., pairs=True)` of Python", "pairs"),
    "rensa": ("rensa 0.5.0, 256 permutations, 32 bands", "pairs"),
    "rensa-texts": ("the same, from the corpus as it stands", "pairs"),
    "rensa-stars": ("rensa 0.5.0, its deduplicator, 256", "removed"),
    "datasketch": ("datasketch 2.0.0, 256", "pairs"),
    "text-dedup-minhash": ("text-dedup 0.4.0, MinHash, 256", "clusters"),
    "text-dedup-simhash": ("text-dedup 0.4.0, SimHash, 3 bits", "clusters"),
    "pypi-simhash": ("simhash 2.1.2 of PyPI, 3 bits", "pairs"),
}
# Tools that take minutes; they run once.
SLOW_TOOLS = {"datasketch", "text-dedup-minhash", "text-dedup-simhash", "pypi-simhash"}
# Tools that read the corpus and tokenize the texts themselves. The others read ready-made shingles.
TEXT_TOOLS = {"rensa-texts", "simstore-frame", "text-dedup-simhash"}


class Truth:
    """The similar pairs of a corpus, as found by brute force. A document is identified by its position in the corpus."""

    def __init__(self, shingles, pairs, similarity):
        with open(shingles, encoding="utf-8") as lines:
            self.positions = {json.loads(line)["id"]: position for position, line in enumerate(lines)}
        self.similar = {}
        self.pairs = 0
        with open(pairs, encoding="utf-8") as lines:
            for line in lines:
                a, b, similar = line.rstrip("\n").split("\t")
                if float(similar) >= similarity:
                    self.pairs += 1
                    a, b = self.positions[a], self.positions[b]
                    self.similar.setdefault(a, set()).add(b)
                    self.similar.setdefault(b, set()).add(a)

    def is_similar(self, a, b):
        return b in self.similar.get(a, ())

    def exact_kept_count(self):
        """Returns the number of documents that remain if each document similar to an earlier kept document is removed."""
        return len(self.positions) - len(removed_by_stars(len(self.positions), self.similar))

    def score(self, kind, reported, removed=None):
        """Returns (recall of pairs, precision of pairs, number of removed documents, number of wrongly removed documents).

        `reported` has the ids of each line of a tool's output: a pair, a cluster, or one removed document, depending on `kind`.
        `removed` has the positions of the removed documents, if the tool lists them besides pairs. A document is wrongly removed
        if no similar document is kept. Recall and precision are None for a list of removed documents.
        """
        positions = [[self.positions[name] for name in line] for line in reported]
        recall = precision = None
        if kind == "pairs":
            pairs = {(min(pair), max(pair)) for pair in positions}
            right = sum(1 for a, b in pairs if self.is_similar(a, b))
            recall, precision = share(right, self.pairs), share(right, len(pairs))
            if removed is None:
                similar = {}
                for a, b in pairs:
                    similar.setdefault(a, set()).add(b)
                    similar.setdefault(b, set()).add(a)
                removed = removed_by_stars(len(self.positions), similar)
        elif kind == "clusters":
            cluster = {position: number for number, members in enumerate(positions) for position in members}
            both = ((a, b) for a, similar in self.similar.items() for b in similar if a < b)
            right = sum(1 for a, b in both if a in cluster and cluster[a] == cluster.get(b))
            recall = share(right, self.pairs)
            precision = share(right, sum(len(members) * (len(members) - 1) // 2 for members in positions))
            removed = {position for members in positions for position in members if position != min(members)}
        else:
            removed = {position for position, in positions}
        wrong = sum(1 for position in removed if not self.similar.get(position, set()) - removed)
        return recall, precision, len(removed), wrong


def share(part, whole):
    return part / whole if whole else None


def removed_by_stars(count, similar):
    """Returns the documents that an exact comparison removes.

    The documents 0 to `count - 1` are visited in order. A document is removed if an earlier similar document was kept. `similar` maps a
    document to the set of documents similar to it.
    """
    removed = set()
    for position in range(count):
        if any(other < position and other not in removed for other in similar.get(position, ())):
            removed.add(position)
    return removed


def median_figures(command, runs):
    """Returns the medians of the wall-clock seconds, CPU seconds and peak memory of a command."""
    return [statistics.median(figures) for figures in zip(*(time_and_memory(command) for _ in range(runs)))]


def read_columns(path, header=False, columns=None):
    """Returns the first `columns` fields of each line of a tab-separated file, or all fields if `columns` is None.

    `header` says whether the file begins with a header line, which is skipped.
    """
    with open(path, encoding="utf-8") as lines:
        if header:
            next(lines)
        return [line.rstrip("\n").split("\t")[:columns] for line in lines]


def write_union(sources, path):
    """Writes all corpora to one file. Each id gets the name of its corpus as a prefix, because two corpora can have the same ids."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        for name, source in sources:
            with gzip.open(source, "rt", encoding="utf-8") as lines:
                for line in lines:
                    document = json.loads(line)
                    document["id"] = f"{name}/{document['id']}"
                    file.write(json.dumps(document, ensure_ascii=False) + "\n")


class Bench:
    """Measures tools on corpora. Keeps the files that it makes of a corpus, so that later runs reuse them."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = arguments.folder
        os.makedirs(self.folder, exist_ok=True)

    def path(self, corpus, ending):
        return os.path.join(self.folder, corpus.replace("/", "-").replace(" ", "-") + ending)

    def prepare(self, name):
        """Returns the paths of the corpus, of its shingles, and of its pairs with a similarity of at least 0.7.

        Makes the files unless they exist.
        """
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

    def run_simstore(self, corpus, similarity, runs):
        """Measures simstore with `--pairs` and with `--output`. Returns the figures of both commands, the pairs and the kept ids."""
        pairs_path, kept_path = self.path("simstore", ".tsv"), self.path("simstore", ".jsonl")
        dedup = [self.arguments.simstore, "dedup", "--quiet", "--similar", str(similarity)]
        figures = median_figures([*dedup, "--pairs", pairs_path, corpus], runs)
        kept_figures = median_figures([*dedup, "--output", kept_path, corpus], runs)
        with open(kept_path, encoding="utf-8") as lines:
            kept_ids = {json.loads(line)["id"] for line in lines}
        return figures, kept_figures, read_columns(pairs_path, header=True, columns=2), kept_ids

    def run_tool(self, tool, corpus, shingles, similarity, runs):
        """Runs another tool. Returns its figures and the lines of its output."""
        pairs_path = self.path(tool, ".tsv")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals.py")
        source = corpus if tool in TEXT_TOOLS else shingles
        command = [sys.executable, script, tool, source, "--similarity", str(similarity), "--output", pairs_path]
        figures = median_figures(command, runs)
        return figures, read_columns(pairs_path)

    def print_table(self, name, similarity):
        """Measures all tools on a corpus and prints a table."""
        corpus, shingles, pairs = self.prepare(name)
        truth = Truth(shingles, pairs, similarity)
        count = len(truth.positions)
        print(f"\n### {name}, similarity {similarity}\n")
        print(f"{count:,} documents, {truth.pairs:,} pairs of at least {similarity}.\n")
        print("| tool | recall | precision | documents left | removed, and like none that is left | s | s of the processor | MiB |")
        print("|---|---|---|---|---|---|---|---|")
        print(f"| brute force, stars | 1 | 1 | {truth.exact_kept_count():,} | 0 | | | |")
        runs = self.arguments.runs
        if "simstore" in self.arguments.tools:
            figures, kept_figures, reported, kept_ids = self.run_simstore(corpus, similarity, runs)
            removed = {position for document, position in truth.positions.items() if document not in kept_ids}
            print_row(f"`simstore dedup --similar {similarity} --pairs`", truth.score("pairs", reported, removed), count, figures)
            removed = [document for document in truth.positions if document not in kept_ids]
            score = truth.score("removed", [[document] for document in removed])
            print_row(f"`simstore dedup --similar {similarity} --output`", score, count, kept_figures)
        for tool, (title, kind) in TOOLS.items():
            if tool not in self.arguments.tools:
                continue
            figures, reported = self.run_tool(tool, corpus, shingles, similarity, 1 if tool in SLOW_TOOLS else runs)
            print_row(title, truth.score(kind, reported), count, figures)


def print_row(title, score, count, figures):
    recall, precision, removed, wrong = score
    seconds, processor, memory = figures
    shares = " | ".join("" if value is None else format_share(value) for value in (recall, precision))
    print(f"| {title} | {shares} | {count - removed:,} | {wrong:,} | {seconds:.1f} | {processor:.1f} | {memory / 2**20:.0f} |")
    sys.stdout.flush()


def format_share(value):
    """Formats a share with four digits. A share below 1 is never rounded up to 1."""
    return "1" if value == 1 else f"{min(value, 0.9999):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of the corpora")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--truth", default="target/release/simstore-similar")
    parser.add_argument("--folder", default="target/similar", help="folder for similar pairs, shingles and results; later runs reuse them")
    parser.add_argument("--corpora", nargs="*", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--similarity", nargs="*", type=float, default=[0.8, 0.7])
    parser.add_argument("--tools", nargs="*", choices=["simstore", *TOOLS], default=["simstore", *TOOLS])
    parser.add_argument("--runs", type=int, default=3, help="runs of each tool, for medians; tools that take minutes run once")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for similarity in arguments.similarity:
        for corpus in arguments.corpora:
            bench.print_table(corpus, similarity)


if __name__ == "__main__":
    main()
