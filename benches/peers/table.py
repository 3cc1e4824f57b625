#!/usr/bin/env python3
"""Runs simstore and other tools on the same documents, and writes their figures to table.md, figures.json and plot.svg.

    benches/peers/run.sh FOLDER_OR_FILE
    benches/peers/run.sh --synthetic 100k --tools simstore gaoya
    benches/peers/run.sh --self-test

FOLDER_OR_FILE is a file, or a folder of files, in Parquet or JSON Lines (also with .gz). `--synthetic` generates the documents instead.
README.md explains the columns of the table.
"""

import argparse
import datetime
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "similar")]

import report
from documents import find_files
from measure import GIB, run_limited
from scores import Truth, planted_pairs, read_kept, read_pairs
from tools import DEFAULT_TOOLS, TOOLS, Setup, copy_corpus, describe_machine

MIB = 1 << 20


class Bench:
    """Runs the tools on one corpus, and compares their results with the similar pairs of the corpus.

    The corpus and all results are files in the folder of the option `--output`.
    """

    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = Path(arguments.output)
        self.temporary = self.folder / "temporary"
        for folder in (self.temporary, self.folder / "kept", self.folder / "logs", self.folder / "wrongly-removed"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.corpus = str(self.folder / "documents.jsonl")
        self.ids = None
        parquet = not arguments.synthetic and any(file.endswith(".parquet") for file in find_files(arguments.data)[0])
        synthetic = arguments.synthetic is not None
        self.setup = Setup(arguments.tools, needs_parquet=parquet, needs_truth=not synthetic, needs_synth=synthetic)

    def prepare(self):
        """Writes the corpus and finds its similar pairs."""
        arguments = self.arguments
        if arguments.synthetic:
            log_progress(f"making {arguments.synthetic} documents with planted copies")
            synth = [self.setup.synth, "documents", self.corpus, "--count", arguments.synthetic]
            subprocess.run([*synth, "--words", str(arguments.words), "--seed", str(arguments.seed)], check=True)
            with open(self.corpus, "rb") as lines:
                counts = {"documents": sum(1 for _ in lines), "without_text": 0, "other_files": 0}
            source, pairs = "planted", planted_pairs(self.corpus, arguments.similar)
        else:
            log_progress(f"reading {arguments.data}")
            self.ids = str(self.folder / "ids.txt")
            fields = arguments.text_field, arguments.id_field
            counts = copy_corpus(self.setup, arguments.data, self.corpus, self.ids, *fields, arguments.plain_words)
            source, pairs = None, None
            if counts["documents"] <= arguments.truth_limit:
                source, pairs = "brute force", self.find_similar_pairs()
        self.truth = Truth(counts["documents"], pairs)
        similar = None if pairs is None else len(self.truth.pairs)
        self.data = {**counts, "mib": os.path.getsize(self.corpus) / MIB, "plain_words": arguments.plain_words}
        self.data |= {"truth": source, "similar_pairs": similar}

    def find_similar_pairs(self):
        """Finds the similar pairs by brute force (`simstore-similar`). Yields them."""
        log_progress("finding all similar pairs by brute force")
        path = self.folder / "similar-pairs.tsv"
        command = [self.setup.truth, self.corpus, "--similarity", str(self.arguments.similar), "--pairs", path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return read_pairs(path, self.arguments.similar)

    def exact_row(self):
        """Returns the table row of an exact comparison (`Truth.exact_score`), or None if the similar pairs are unknown."""
        if self.truth.pairs is None:
            return None
        return {"title": "exact comparison", "failure": None, **self.truth.exact_score().as_dict()}

    def tool_row(self, name):
        """Runs a tool several times. Returns its table row: the medians of the runs, and the score of the last run.

        If a run fails, the row has the reason instead.
        """
        tool, arguments = TOOLS[name], self.arguments
        title = f"{tool.package} {self.setup.version(name)}"
        if name == "rensa-32-bands":
            title += ", 32 bands"
        row = {"name": name, "title": title, "settings": tool.settings, "words": tool.words, "load": os.getloadavg()[0]}
        row["failure"] = self.setup.failures.get(name)
        if row["failure"]:
            return row
        kept = self.folder / "kept" / f"{name}.txt"
        command = self.setup.command(name, self.corpus, str(kept), arguments.similar, arguments.memory, str(self.temporary))
        limits = {"timeout": arguments.timeout * 60, "limit": arguments.limit * GIB, "log": str(self.folder / "logs" / f"{name}.txt")}
        runs = []
        for _ in range(arguments.runs):
            runs.append(run_limited(command, str(self.temporary), **limits))
            row["failure"] = runs[-1]["failure"]
            if row["failure"]:
                return row | {"last_run": runs[-1]}
        median = {figure: statistics.median(run[figure] for run in runs) for figure in ("seconds", "processor", "memory", "disk")}
        row |= {"seconds": median["seconds"], "cpu_seconds": median["processor"]}
        row |= {"memory_mib": median["memory"] / MIB, "temporary_mib": median["disk"] / MIB}
        try:
            documents = read_kept(kept)
            score = self.truth.score(documents)
        except (OSError, ValueError) as error:
            return row | {"failure": f"list of kept documents: {error}"}
        if score.wrong:
            self.write_wrongly_removed(name, documents)
        return row | score.as_dict()

    def write_wrongly_removed(self, name, kept):
        """Writes a file with the ids of the documents that the tool `name` wrongly removed. `kept` has the documents that it kept.

        The ids are those of the input files, or the numbers of generated documents.
        """
        wrong = self.truth.wrongly_removed(set(range(self.truth.count)) - kept)
        names = None
        if self.ids:
            with open(self.ids, encoding="utf-8") as lines:
                names = lines.read().split("\n")
        with open(self.folder / "wrongly-removed" / f"{name}.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{names[document] if names else document}\n" for document in wrong)

    def run(self):
        """Measures all tools and writes the report after each tool."""
        arguments = self.arguments
        self.prepare()
        figures = {
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "command": shlex.join(["benches/peers/run.sh", *arguments.typed]),
            "similar": arguments.similar,
            "data": self.data,
            "machine": describe_machine(),
            "runs": arguments.runs,
            "limit_gib": arguments.limit,
            "timeout_minutes": arguments.timeout,
            "exact": self.exact_row(),
            "tools": [],
        }
        for name in arguments.tools:
            log_progress(name)
            figures["tools"].append(self.tool_row(name))
            report.write_report(figures, self.folder)
        shutil.rmtree(self.temporary, ignore_errors=True)
        if not arguments.keep_documents:
            os.remove(self.corpus)
        return figures


def log_progress(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def self_test(arguments):
    """Runs only simstore on 2,000 documents and checks the files of the report."""
    with tempfile.TemporaryDirectory() as folder:
        arguments.synthetic, arguments.tools, arguments.output, arguments.runs = "2000", ["simstore"], folder, 1
        Bench(arguments).run()
        lines = (Path(folder) / "table.md").read_text(encoding="utf-8").splitlines()
        rows = [line for line in lines if line.startswith("| ")]
        assert [len(row.split("|")) for row in rows] == [10, 10, 10], rows
        assert rows[0] == "| " + " | ".join(report.COLUMNS) + " |", rows[0]
        assert [row.split(" | ")[0].split()[1] for row in rows[1:]] == ["exact", "simstore"], rows
        figures = json.loads((Path(folder) / "figures.json").read_text(encoding="utf-8"))
        tool, = figures["tools"]
        assert tool["failure"] is None and tool["recall"] > 0.95 and tool["wrong"] == 0 and tool["precision"] == 1, tool
        assert tool["kept"] + tool["removed"] == figures["data"]["documents"] == 2000, tool
        assert figures["exact"]["recall"] == 1 and figures["data"]["similar_pairs"] > 100, figures
        picture = xml.etree.ElementTree.parse(Path(folder) / "plot.svg").getroot()
        bars = [element for element in picture if element.tag.endswith("rect")]
        assert len(bars) == len(report.PANELS), len(bars)
    print("self-test passed")


def main():
    target = os.environ.get("CARGO_TARGET_DIR") or str(FOLDER.parent.parent / "target")
    parser = argparse.ArgumentParser(
        prog="benches/peers/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", help="file, or folder of files, in Parquet or JSON Lines")
    parser.add_argument("--synthetic", metavar="N", help="use N random documents with planted copies instead, like 100k")
    parser.add_argument("--text-field", default="text", help="field or column of the text [default: text]")
    parser.add_argument("--id-field", default="id", help="field or column of the id [default: id]")
    parser.add_argument("--plain-words", action="store_true", help="give all tools lower-case words separated by single spaces")
    parser.add_argument("--similar", type=float, default=0.8, help="threshold of the Jaccard similarity [default: 0.8]")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=DEFAULT_TOOLS, help=f"[default: {' '.join(DEFAULT_TOOLS)}]")
    parser.add_argument("--runs", type=int, default=1, help="runs of each tool; the table has the medians [default: 1]")
    parser.add_argument("--limit", type=float, default=16, metavar="GIB", help="memory limit of a tool [default: 16]")
    parser.add_argument("--timeout", type=float, default=30, metavar="MINUTES", help="time limit of a run [default: 30]")
    parser.add_argument("--memory", metavar="SIZE", help="memory budget of simstore, like 4GiB")
    parser.add_argument("--truth-limit", type=int, default=200_000, metavar="N", help="document limit of brute force [default: 200000]")
    parser.add_argument("--words", type=int, default=60, help="mean words of a synthetic document [default: 60]")
    parser.add_argument("--seed", type=int, default=7, help="seed of the synthetic documents [default: 7]")
    parser.add_argument("--output", default=os.path.join(target, "peers-table"), metavar="DIR", help="[default: target/peers-table]")
    parser.add_argument("--keep-documents", action="store_true", help="keep documents.jsonl, the file that the tools read")
    parser.add_argument("--self-test", action="store_true", help="run only simstore on 2,000 documents and check the files")
    arguments = parser.parse_args()
    arguments.typed = sys.argv[1:]
    if arguments.self_test:
        return self_test(arguments)
    if (arguments.data is None) == (arguments.synthetic is None):
        parser.error("give a file or a folder of documents, or --synthetic N")
    if arguments.data is not None and not os.path.exists(arguments.data):
        parser.error(f"{arguments.data} does not exist")
    figures = Bench(arguments).run()
    print(report.format_table(figures))
    print(f"{arguments.output} has table.md, figures.json, plot.svg, and the lists of kept documents", file=sys.stderr)


if __name__ == "__main__":
    main()
