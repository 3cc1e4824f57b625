#!/usr/bin/env python3
"""Runs one tool on one corpus. `compare.py` and `../peers` measure this process.

    venv/bin/python benches/similar/rivals.py TOOL SHINGLES.jsonl --similarity 0.8 --output FOUND.tsv

For `compare.py`, the corpus is the output of `simstore-similar --shingles`: the distinct shingles of each document, hashed, with
spaces between them. So all tools have the same sets, and no tool cleans or cuts texts. `rensa-texts` and the tools of `../peers`
cut the texts of the corpus themselves. The output has pairs or clusters of ids; for `../peers`, the ids of kept documents.
"""

import argparse
import contextlib
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

PERMUTATIONS = 256
BATCH = 1000
WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


def documents(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield document["id"], document["text"].split(" ")


def cut(text):
    """The shingles of a text as an expression cuts it; a Han character is a word. Markup is words, too."""
    words = WORD.findall(text.lower())
    return [" ".join(shingle) for shingle in zip(words, words[1:], words[2:])] or words


def cut_documents(path):
    """Documents of a corpus, compressed or not."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield document["id"], cut(document["text"])


def batches(documents):
    names, sets = [], []
    for name, shingles in documents:
        names.append(name)
        sets.append(shingles)
        if len(names) == BATCH:
            yield names, sets
            names, sets = [], []
    yield names, sets


def rensa(path, similarity, documents=documents):
    """Pairs of one of 32 bands whose sketches are similar enough."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=similarity, num_perm=PERMUTATIONS, num_bands=32)
    names, sketches = [], []
    for some, sets in batches(documents(path)):
        sketched = RMinHash.from_token_sets(sets, num_perm=PERMUTATIONS, seed=42)
        index.insert_many(sketched, start_key=len(names))
        names += some
        sketches += sketched
    for b, sketch in enumerate(sketches):
        for a in index.query(sketch):
            if a < b and sketch.jaccard(sketches[a]) >= similarity:
                yield names[a], names[b]


def rensa_texts(path, similarity):
    return rensa(path, similarity, cut_documents)


def rensa_stars(path, similarity):
    """Documents that its deduplicator removes, called as its documentation shows."""
    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=similarity, num_perm=PERMUTATIONS, use_lsh=True)
    for names, sets in batches(documents(path)):
        for name, kept in zip(names, deduplicator.add_pairs(zip(names, sets))):
            if not kept:
                yield (name,)


def rensa_kept(path, similarity, bands=None):
    """Documents that its deduplicator keeps of a corpus whose texts are cut here; it chooses the number of bands."""
    from rensa import RMinHashDeduplicator

    settings = {"num_perm": PERMUTATIONS, "use_lsh": True, "num_bands": bands}
    deduplicator = RMinHashDeduplicator(threshold=similarity, **settings)
    for names, sets in batches(cut_documents(path)):
        for name, kept in zip(names, deduplicator.add_pairs(zip(map(str, names), sets))):
            if kept:
                yield (name,)


def rensa_kept_bands(path, similarity):
    return rensa_kept(path, similarity, bands=32)


def datasketch(path, similarity):
    """Pairs of its index, with bands as it chooses them, whose sketches are similar enough."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS)
    names, sketches = [], []
    for some, sets in batches(documents(path)):
        for name, shingles in zip(some, sets):
            sketch = MinHash(num_perm=PERMUTATIONS)
            sketch.update_batch([shingle.encode() for shingle in shingles])
            index.insert(len(names), sketch)
            names.append(name)
            sketches.append(sketch)
    for b, sketch in enumerate(sketches):
        for a in index.query(sketch):
            if a < b and sketch.jaccard(sketches[a]) >= similarity:
                yield names[a], names[b]


def datasketch_kept(path, similarity):
    """Of a corpus as it stands, each document that is similar enough to none that its index has, which then has it."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS)
    kept = []
    for names, sets in batches(cut_documents(path)):
        encoded = ([shingle.encode() for shingle in shingles] for shingles in sets)
        for name, sketch in zip(names, MinHash.generator(encoded, num_perm=PERMUTATIONS)):
            if all(sketch.jaccard(kept[key]) < similarity for key in index.query(sketch)):
                index.insert(len(kept), sketch)
                kept.append(sketch)
                yield (name,)


@contextlib.contextmanager
def text_dedup(path, module, *arguments):
    """The output folder of a module of text-dedup, run by its command line."""
    with tempfile.TemporaryDirectory() as folder:
        # Its loader chooses the format by the name.
        corpus, output = os.path.join(folder, "corpus.jsonl"), os.path.join(folder, "output")
        os.symlink(os.path.abspath(path), corpus)
        command = [sys.executable, "-m", f"text_dedup.{module}", "--path", "json", "--data_files", corpus]
        command += ["--split", "train", "--column", "text", "--output", output, "--cache_dir", os.path.join(folder, "cache")]
        environment = os.environ | {"HF_HOME": os.path.join(folder, "home"), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run([*command, *arguments], env=environment, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[-2000:])
        yield output


def text_dedup_clusters(path, module, *arguments):
    """The clusters that a module of text-dedup makes of words that are ready-made shingles."""
    with text_dedup(path, module, *arguments, "--ngram", "1", "--idx_column", "id", "--debug") as output:
        with open(os.path.join(output, "uf.pkl"), "rb") as file:
            parents = pickle.load(file)
    if not isinstance(parents, dict):
        parents = parents.parent

    def root(name):
        while parents[name] != name:
            name = parents[name]
        return name

    clusters = {}
    for name in parents:
        clusters.setdefault(root(name), []).append(name)
    return (members for members in clusters.values() if len(members) > 1)


def minhash_arguments(similarity):
    return ["--min_length", "1", "--num_perm", str(PERMUTATIONS), "--threshold", str(similarity), "--hash_func", "xxh3"]


def text_dedup_minhash(path, similarity):
    return text_dedup_clusters(path, "minhash", *minhash_arguments(similarity))


def text_dedup_kept(path, similarity):
    """Documents in the output of its MinHash, which cuts the texts into words itself."""
    from datasets import load_from_disk

    with text_dedup(path, "minhash", *minhash_arguments(similarity), "--ngram", "3") as output:
        yield from ((name,) for name in load_from_disk(output)["id"])


def text_dedup_simhash(path, _similarity):
    return text_dedup_clusters(path, "simhash")


def pypi_simhash(path, _similarity):
    """Pairs within 3 bits."""
    import logging

    from simhash import Simhash, SimhashIndex

    logging.disable(logging.WARNING)
    names, sketches = [], []
    for name, shingles in documents(path):
        names.append(name)
        sketches.append(Simhash(shingles))
    index = SimhashIndex(list(enumerate(sketches)), k=3)
    for b, sketch in enumerate(sketches):
        yield from ((names[int(a)], names[b]) for a in index.get_near_dups(sketch) if int(a) < b)


def simstore_frame(path, similarity):
    """A frame of pandas, as one has it, and the pairs as ids."""
    import pandas

    import simstore

    frame = pandas.read_json(path, lines=True, dtype=False)
    pairs = simstore.dedup(frame, similar=similarity, pairs=True).pairs
    yield from zip(pairs["a"].to_pylist(), pairs["b"].to_pylist())


TOOLS = {
    "simstore-frame": simstore_frame,
    "rensa": rensa,
    "rensa-texts": rensa_texts,
    "rensa-stars": rensa_stars,
    "rensa-kept": rensa_kept,
    "rensa-kept-bands": rensa_kept_bands,
    "datasketch": datasketch,
    "datasketch-kept": datasketch_kept,
    "text-dedup-minhash": text_dedup_minhash,
    "text-dedup-kept": text_dedup_kept,
    "text-dedup-simhash": text_dedup_simhash,
    "pypi-simhash": pypi_simhash,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("corpus")
    parser.add_argument("--similarity", type=float, default=0.8)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    with open(arguments.output, "w", encoding="utf-8") as file:
        for found in TOOLS[arguments.tool](arguments.corpus, arguments.similarity):
            file.write("\t".join(map(str, found)) + "\n")


if __name__ == "__main__":
    main()
