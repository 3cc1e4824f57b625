#!/usr/bin/env python3
"""Clusters of random 64-bit fingerprints, in memory and in parts: time, memory, temporary disk; draws docs/beyond.svg.

    cargo build --release && python3 benches/beyond/fingerprints.py

Each run is COUNT:BUDGET: `all` is what the machine has, so that as many as fit into it are joined in memory. What was measured is
kept in benches/beyond/fingerprints.tsv, where another run of the same takes its place, and drawn from there.
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
from measure import taken_by

KEPT = Path(__file__).with_suffix(".tsv")
COLUMNS = ["count", "budget", "seconds", "processor", "memory", "disk", "moved", "clusters"]
RUNS = ["10M:all", "10M:128M", "100M:all", "100M:1G", "1000M:4G"]
CHUNK = 1 << 20


def number(text):
    """A count or a size: `10M` is 10 million."""
    scales = {"k": 10**3, "M": 10**6, "G": 10**9}
    return int(text[:-1]) * scales[text[-1]] if text[-1] in scales else int(text)


def write_random(path, count, seed):
    """Raw little-endian values: what dedup reads fastest."""
    if os.path.exists(path) and os.path.getsize(path) == 8 * count:
        return
    source = random.Random(seed)
    with open(path, "wb") as file:
        for start in range(0, count, CHUNK):
            file.write(source.randbytes(8 * min(CHUNK, count - start)))


def run(simstore, path, budget, folder):
    """What it takes to find all clusters, and how many there are; None if it refuses to."""
    temporary, summary = os.path.join(folder, "temporary"), os.path.join(folder, "summary.json")
    os.makedirs(temporary, exist_ok=True)
    dedup = f'exec "$0" "$@" > {summary}'
    command = ["sh", "-c", dedup, simstore, "dedup", path, "--distance", "3", "--quiet", "--json", "--temporary", temporary]
    command += ["--clusters", os.path.join(folder, "clusters.tsv")]
    if budget != "all":
        command += ["--memory", budget]
    taken = taken_by(command, temporary, may_fail=True)
    if taken is None:
        return None
    with open(summary, encoding="utf-8") as file:
        taken["clusters"] = json.loads(file.read().splitlines()[-1])["clusters"]
    return taken


def shown(taken):
    """The cells of a row."""
    if taken is None:
        return "refused | | | | | "
    mebibytes = [f"{taken[name] / 2**20:,.0f}" for name in ("memory", "disk")]
    times = [f"{taken[name]:.1f}" for name in ("seconds", "processor")]
    return " | ".join([*times, *mebibytes, f"{taken['moved'] / 1e9:.1f}", f"{taken['clusters']:,}"])


def read_kept():
    """The rows by count and budget."""
    lines = KEPT.read_text(encoding="utf-8").splitlines()[1:] if KEPT.exists() else []
    rows = [dict(zip(COLUMNS, line.split("\t"))) for line in lines]
    return {(row["count"], row["budget"]): row for row in rows}


def keep(rows):
    order = sorted(rows.values(), key=lambda row: (int(row["count"]), row["budget"] != "all", row["budget"]))
    lines = ["\t".join(COLUMNS), *("\t".join(str(row[name]) for name in COLUMNS) for row in order)]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return order


def draw(rows, target):
    """Time and bytes moved against the number, of what was joined in memory and of what was in parts."""
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
    parser.add_argument("runs", nargs="*", default=RUNS, metavar="COUNT:BUDGET", help=f"[default: {' '.join(RUNS)}]")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--folder", default="target/beyond", help="for fingerprints, clusters and temporary files")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--drawing", default=str(ROOT / "docs" / "beyond.svg"))
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    print("| fingerprints | budget | s | s of the processor | peak MiB | temporary MiB | GB moved | clusters |")
    print("|---|---|---|---|---|---|---|---|")
    rows, path = read_kept(), None
    for each in arguments.runs:
        count, budget = each.split(":")
        count = number(count)
        fingerprints = os.path.join(arguments.folder, f"random-{arguments.seed}-{count}.u64")
        if path and path != fingerprints:
            os.remove(path)
        path = fingerprints
        write_random(path, count, arguments.seed)
        taken = run(arguments.simstore, path, budget, arguments.folder)
        print(f"| {count:,} | {budget} | {shown(taken)} |", flush=True)
        if taken:
            rows[str(count), budget] = {"count": str(count), "budget": budget, **taken}
    os.remove(path)
    draw(keep(rows), Path(arguments.drawing))


if __name__ == "__main__":
    main()
