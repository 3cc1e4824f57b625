#!/usr/bin/env python3
"""Real documents, repeated with edits to many millions: clusters of their fingerprints in memory and in parts.

    cargo build --release && python3 benches/beyond/real.py ../shared/data

The first characters of both versions of the pages of the largest labelled corpus, without their front matter: each is repeated, with
a share of it replaced by what stands in others, and fingerprinted by `simstore fingerprint`. The clusters of all runs have to be
the same. A budget that is too small for what is near is refused by `dedup`.
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

from fingerprints import number, run, shown


def largest(data):
    """The largest of the labelled corpora."""
    return max((Path(data) / "labelled").glob("*.jsonl.gz"), key=lambda path: path.stat().st_size)


def texts(path, characters):
    """The texts of both versions, each once."""
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


def edited(text, others, most, source):
    """A copy, of which up to this share is replaced by pieces of others; small shares are as frequent as large ones."""
    left = int(len(text) * most ** source.uniform(1, 4))
    while left > 0:
        length = min(left, source.randrange(1, 40))
        other = source.choice(others)
        at, start = source.randrange(len(text)), source.randrange(len(other))
        text = text[:at] + other[start : start + length] + text[at + length :]
        left -= length
    return text


def fingerprint(simstore, originals, count, most, seed, path):
    """Writes the fingerprints of so many copies, in a random order."""
    process = subprocess.Popen(
        [simstore, "fingerprint", "-", "--quiet", "--format", "jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def write():
        source = random.Random(seed)
        with process.stdin as documents:
            for at in range(count):
                text = source.choice(originals)
                if at >= len(originals):
                    text = edited(text, originals, most, source)
                documents.write(json.dumps({"id": at, "text": text}, ensure_ascii=False) + "\n")

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
    parser.add_argument("data", help="the folder of the corpora")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--documents", default="20M")
    parser.add_argument("--budgets", nargs="+", default=["all", "512M"], help="`all` is what the machine has")
    parser.add_argument("--characters", type=int, default=500, help="of a document, from its start")
    parser.add_argument("--edits", type=float, default=0.3, help="the largest share of a text that is replaced")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--folder", default="target/beyond", help="for fingerprints, clusters and temporary files")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    corpus, count = largest(arguments.data), number(arguments.documents)
    originals = list(texts(corpus, arguments.characters))
    name = f"real-{arguments.seed}-{count}-{arguments.characters}-{arguments.edits}.u64"
    path = os.path.join(arguments.folder, name)
    if not os.path.exists(path):
        fingerprint(arguments.simstore, originals, count, arguments.edits, arguments.seed, path)
    print(f"{corpus.name}: {len(originals):,} documents, {count:,} with copies, {os.path.getsize(path) // 8:,} fingerprints\n")
    print("| budget | s | s of the processor | peak MiB | temporary MiB | GB moved | clusters |")
    print("|---|---|---|---|---|---|---|")
    checksums = set()
    for budget in arguments.budgets:
        taken = run(arguments.simstore, path, budget, arguments.folder)
        print(f"| {budget} | {shown(taken)} |", flush=True)
        if taken:
            checksums.add(checksum(os.path.join(arguments.folder, "clusters.tsv")))
    if len(checksums) > 1:
        sys.exit("not all have found the same clusters")


if __name__ == "__main__":
    main()
