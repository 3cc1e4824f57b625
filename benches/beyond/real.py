#!/usr/bin/env python3
"""Clusters the fingerprints of millions of edited copies of real documents, in memory and in parts on disk.

    cargo build --release && python3 benches/beyond/real.py ../shared/data

The largest file in the folder `labelled` of the data has two versions of each page. The originals are the first 500 characters
(`--characters`) of each version, without front matter. In a copy, a share of the original text is replaced by pieces of other texts.
`simstore fingerprint` makes the fingerprints. Each memory budget is one run, and all runs must find the same clusters. `dedup` refuses a
budget that is too small for the near pairs.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from fingerprints import format_cells, parse_number, run_dedup


def largest_corpus(data):
    """Returns the path of the largest .jsonl.gz file in the subfolder `labelled` of the folder `data`."""
    return max((Path(data) / "labelled").glob("*.jsonl.gz"), key=lambda path: path.stat().st_size)


def read_texts(path, characters):
    """Yields the distinct texts of a file that has an old and a new version of each page.

    A text is the first `characters` characters of a version, without front matter.
    """
    seen = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            for text in (pair["text_old"], pair["text_new"]):
                if text.startswith("---"):
                    text = text.split("\n---", 1)[-1].partition("\n")[2]
                text = text.strip()[:characters]
                if text and text not in seen:
                    seen.add(text)
                    yield text


def edit_text(text, others, max_share, random_source):
    """Returns a copy with up to `max_share` of the text replaced by pieces of other texts.

    The replaced share is random: `max_share` to the power of a random exponent from 1 to 4.
    """
    remaining = int(len(text) * max_share ** random_source.uniform(1, 4))
    while remaining > 0:
        length = min(remaining, random_source.randrange(1, 40))
        other = random_source.choice(others)
        position, start = random_source.randrange(len(text)), random_source.randrange(len(other))
        text = text[:position] + other[start : start + length] + text[position + length :]
        remaining -= length
    return text


def write_fingerprints(simstore, originals, count, max_share, seed, path):
    """Writes the fingerprints of `count` texts. The first `len(originals)` are random elements of `originals`, the others edited copies.

    In a copy, up to `max_share` of the text is replaced.
    """
    process = subprocess.Popen(
        [simstore, "fingerprint", "-", "--quiet", "--format", "jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def write():
        random_source = random.Random(seed)
        with process.stdin as documents:
            for index in range(count):
                text = random_source.choice(originals)
                if index >= len(originals):
                    text = edit_text(text, originals, max_share, random_source)
                documents.write(json.dumps({"id": index, "text": text}, ensure_ascii=False) + "\n")

    writer = threading.Thread(target=write)
    writer.start()
    with open(path + ".new", "wb") as file:
        for line in process.stdout:
            file.write(struct.pack("<Q", int(line.partition("\t")[0], 16)))
    writer.join()
    if process.wait():
        sys.exit("the documents could not be fingerprinted")
    os.replace(path + ".new", path)


def checksum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of the corpora")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--documents", default="20M")
    parser.add_argument("--budgets", nargs="+", default=["all", "512M"], help="memory budgets; `all` is the memory of the machine")
    parser.add_argument("--characters", type=int, default=500, help="number of characters from the start of a document")
    parser.add_argument("--edits", type=float, default=0.3, help="maximum share of a text that is replaced")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--folder", default="target/beyond", help="folder for fingerprints, clusters and temporary files")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    corpus, count = largest_corpus(arguments.data), parse_number(arguments.documents)
    originals = list(read_texts(corpus, arguments.characters))
    name = f"real-{arguments.seed}-{count}-{arguments.characters}-{arguments.edits}.u64"
    path = os.path.join(arguments.folder, name)
    if not os.path.exists(path):
        write_fingerprints(arguments.simstore, originals, count, arguments.edits, arguments.seed, path)
    print(f"{corpus.name}: {len(originals):,} documents, {count:,} with copies, {os.path.getsize(path) // 8:,} fingerprints\n")
    print("| budget | s | s of the processor | peak MiB | temporary MiB | GB moved | clusters |")
    print("|---|---|---|---|---|---|---|")
    checksums = set()
    for budget in arguments.budgets:
        usage = run_dedup(arguments.simstore, path, budget, arguments.folder)
        print(f"| {budget} | {format_cells(usage)} |", flush=True)
        if usage:
            checksums.add(checksum(os.path.join(arguments.folder, "clusters.tsv")))
    if len(checksums) > 1:
        sys.exit("not all have found the same clusters")


if __name__ == "__main__":
    main()
