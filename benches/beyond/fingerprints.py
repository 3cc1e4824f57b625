#!/usr/bin/env python3
"""Measures clustering of random 64-bit fingerprints, in memory and in parts on disk, and draws docs/beyond.svg.

    cargo build --release && python3 benches/beyond/fingerprints.py [COUNT:BUDGET...]

Each argument is one run: `100M:1G` clusters 100 million fingerprints with a memory budget of 1 GiB. The budget `all` is the memory of the
machine. A run whose fingerprints fit in its budget joins them in memory, otherwise in parts on disk. The figures are stored in
benches/beyond/fingerprints.tsv, where a new run replaces an earlier run with the same count and budget. The plot shows all stored runs.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benches" / "similar")]

import drawing
import growth
from measure import resource_usage

RESULTS = Path(__file__).with_suffix(".tsv")
COLUMNS = ["count", "budget", "seconds", "processor", "memory", "disk", "moved", "clusters"]
DEFAULT_RUNS = ["10M:all", "10M:128M", "100M:all", "100M:1G", "1000M:4G"]
CHUNK_FINGERPRINTS = 1 << 20


def parse_number(text):
    """Parses a count with an optional decimal unit: `10M` is 10 million."""
    scales = {"k": 10**3, "M": 10**6, "G": 10**9}
    return int(text[:-1]) * scales[text[-1]] if text[-1] in scales else int(text)


def write_random(path, count, seed):
    """Writes raw little-endian fingerprints, the format that dedup reads fastest. Keeps an existing file of the right size."""
    if os.path.exists(path) and os.path.getsize(path) == 8 * count:
        return
    source = random.Random(seed)
    with open(path, "wb") as file:
        for start in range(0, count, CHUNK_FINGERPRINTS):
            file.write(source.randbytes(8 * min(CHUNK_FINGERPRINTS, count - start)))


def run_dedup(simstore, path, budget, folder):
    """Runs `simstore dedup`. Returns its resource usage and the number of clusters, or None if `dedup` refuses the memory budget."""
    temporary, summary = os.path.join(folder, "temporary"), os.path.join(folder, "summary.json")
    os.makedirs(temporary, exist_ok=True)
    dedup = f'exec "$0" "$@" > {summary}'
    command = ["sh", "-c", dedup, simstore, "dedup", path, "--distance", "3", "--quiet", "--json", "--temporary", temporary]
    command += ["--clusters", os.path.join(folder, "clusters.tsv")]
    if budget != "all":
        command += ["--memory", budget]
    usage = resource_usage(command, temporary, may_fail=True)
    if usage is None:
        return None
    with open(summary, encoding="utf-8") as file:
        usage["clusters"] = json.loads(file.read().splitlines()[-1])["clusters"]
    return usage


def format_cells(usage):
    """Formats the figures of a run as cells of a Markdown row. If `usage` is None, the first cell is `refused`, the others are empty."""
    if usage is None:
        return "refused | | | | | "
    mebibytes = [f"{usage[name] / 2**20:,.0f}" for name in ("memory", "disk")]
    times = [f"{usage[name]:.1f}" for name in ("seconds", "processor")]
    return " | ".join([*times, *mebibytes, f"{usage['moved'] / 1e9:.1f}", f"{usage['clusters']:,}"])


def read_results():
    """Returns the rows of fingerprints.tsv as {(count, budget): row}."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines()[1:] if RESULTS.exists() else []
    rows = [dict(zip(COLUMNS, line.split("\t"))) for line in lines]
    return {(row["count"], row["budget"]): row for row in rows}


def write_results(rows):
    """Writes the rows to fingerprints.tsv in order of count and memory budget, and returns them in this order."""
    order = sorted(rows.values(), key=lambda row: (int(row["count"]), row["budget"] != "all", row["budget"]))
    lines = ["\t".join(COLUMNS), *("\t".join(str(row[name]) for name in COLUMNS) for row in order)]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return order


def draw_plot(rows, target):
    """Draws two charts against the number of fingerprints: time, and bytes read and written.

    Each chart has one line for runs in memory, and one for runs in parts on disk.
    """
    series = {}
    for row in rows:
        name = "in parts" if int(row["disk"]) else "in memory"
        point = (float(row["count"]), float(row["seconds"]), float(row["moved"]) / 1e9)
        series.setdefault(name, []).append(point)
    colours = dict(zip(("in memory", "in parts"), drawing.COLOURS))
    out = growth.panel(series, colours, 1, growth.LEFTS[0], "Time", "seconds, clusters within 3 bits, all threads")
    out += growth.panel(series, colours, 2, growth.LEFTS[1], "Bytes moved", "GB read and written, with the input")
    title = "Time of clusters and bytes moved against the number of fingerprints"
    target.write_text(drawing.picture(title, growth.WIDTH, growth.HEIGHT, out), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", default=DEFAULT_RUNS, metavar="COUNT:BUDGET", help=f"[default: {' '.join(DEFAULT_RUNS)}]")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--folder", default="target/beyond", help="folder for fingerprints, clusters and temporary files")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--drawing", default=str(ROOT / "docs" / "beyond.svg"))
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    print("| fingerprints | budget | s | s of the processor | peak MiB | temporary MiB | GB moved | clusters |")
    print("|---|---|---|---|---|---|---|---|")
    rows, path = read_results(), None
    for run in arguments.runs:
        count, budget = run.split(":")
        count = parse_number(count)
        fingerprints = os.path.join(arguments.folder, f"random-{arguments.seed}-{count}.u64")
        if path and path != fingerprints:
            os.remove(path)
        path = fingerprints
        write_random(path, count, arguments.seed)
        usage = run_dedup(arguments.simstore, path, budget, arguments.folder)
        print(f"| {count:,} | {budget} | {format_cells(usage)} |", flush=True)
        if usage:
            rows[str(count), budget] = {"count": str(count), "budget": budget, **usage}
    os.remove(path)
    draw_plot(write_results(rows), Path(arguments.drawing))


if __name__ == "__main__":
    main()
