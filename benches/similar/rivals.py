#!/usr/bin/env python3
"""Runs one tool on one corpus. `compare.py` and `../peers` measure this process.

    venv/bin/python benches/similar/rivals.py TOOL SHINGLES.jsonl --similarity 0.8 --output FOUND.tsv

For most tools of `compare.py`, the corpus is the output of `simstore-similar --shingles`: the distinct hashed shingles of each document,
separated by spaces. So all these tools have the same sets, and none of them cleans or tokenizes texts. Other tools, such as `rensa-texts`
and those of `../peers`, get the original texts. A line of the output is a pair or a cluster of ids; for `../peers`, the id of a kept
document.
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
BATCH_DOCUMENTS = 1000
WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


def read_shingles(path):
    """Yields (id, shingles) of each document in a file that `simstore-similar --shingles` has written."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield document["id"], document["text"].split(" ")


def shingle_text(text):
    """Returns the word 3-grams of a text. WORD finds the words: a Han character is a word, and markup counts as words."""
    words = WORD.findall(text.lower())
    return [" ".join(shingle) for shingle in zip(words, words[1:], words[2:])] or words


def read_corpus(path):
    """Yields (id, shingles) of a corpus in JSON Lines, compressed with gzip or not. The shingles can repeat."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield document["id"], shingle_text(document["text"])


def batch_documents(documents):
    """Yields batches of up to BATCH_DOCUMENTS documents, each as (list of ids, list of shingle sets)."""
    names, sets = [], []
    for name, shingles in documents:
        names.append(name)
        sets.append(shingles)
        if len(names) == BATCH_DOCUMENTS:
            yield names, sets
            names, sets = [], []
    yield names, sets


def rensa(path, similarity, read_documents=read_shingles):
    """Yields the pairs that rensa's index with 32 bands finds and whose estimated similarity is at least the threshold."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=similarity, num_perm=PERMUTATIONS, num_bands=32)
    names, signatures = [], []
    for batch_names, sets in batch_documents(read_documents(path)):
        batch_signatures = RMinHash.from_token_sets(sets, num_perm=PERMUTATIONS, seed=42)
        index.insert_many(batch_signatures, start_key=len(names))
        names += batch_names
        signatures += batch_signatures
    for b, signature in enumerate(signatures):
        for a in index.query(signature):
            if a < b and signature.jaccard(signatures[a]) >= similarity:
                yield names[a], names[b]


def rensa_texts(path, similarity):
    return rensa(path, similarity, read_corpus)


def rensa_stars(path, similarity):
    """Yields the ids of the documents that rensa's deduplicator removes. The calls follow rensa's documentation."""
    from rensa import RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(threshold=similarity, num_perm=PERMUTATIONS, use_lsh=True)
    for names, sets in batch_documents(read_shingles(path)):
        for name, kept in zip(names, deduplicator.add_pairs(zip(names, sets))):
            if not kept:
                yield (name,)


def rensa_kept(path, similarity, bands=None):
    """Yields the ids of the documents that rensa's deduplicator keeps. If `bands` is None, rensa chooses the number of bands."""
    from rensa import RMinHashDeduplicator

    settings = {"num_perm": PERMUTATIONS, "use_lsh": True, "num_bands": bands}
    deduplicator = RMinHashDeduplicator(threshold=similarity, **settings)
    for names, sets in batch_documents(read_corpus(path)):
        for name, kept in zip(names, deduplicator.add_pairs(zip(map(str, names), sets))):
            if kept:
                yield (name,)


def rensa_kept_bands(path, similarity):
    return rensa_kept(path, similarity, bands=32)


def datasketch(path, similarity):
    """Yields the pairs that datasketch's index finds and whose estimated similarity is at least the threshold.

    datasketch chooses the number of bands.
    """
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS)
    names, signatures = [], []
    for batch_names, sets in batch_documents(read_shingles(path)):
        for name, shingles in zip(batch_names, sets):
            signature = MinHash(num_perm=PERMUTATIONS)
            signature.update_batch([shingle.encode() for shingle in shingles])
            index.insert(len(names), signature)
            names.append(name)
            signatures.append(signature)
    for b, signature in enumerate(signatures):
        for a in index.query(signature):
            if a < b and signature.jaccard(signatures[a]) >= similarity:
                yield names[a], names[b]


def datasketch_kept(path, similarity):
    """Yields the ids of the kept documents. A document is kept, and added to datasketch's index, if the index has no similar document."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS)
    kept = []
    for names, sets in batch_documents(read_corpus(path)):
        encoded = ([shingle.encode() for shingle in shingles] for shingles in sets)
        for name, signature in zip(names, MinHash.generator(encoded, num_perm=PERMUTATIONS)):
            if all(signature.jaccard(kept[key]) < similarity for key in index.query(signature)):
                index.insert(len(kept), signature)
                kept.append(signature)
                yield (name,)


@contextlib.contextmanager
def run_text_dedup(path, module, *arguments):
    """Runs a module of text-dedup on a corpus. Context manager: the `with` block gets the path of the module's output folder."""
    with tempfile.TemporaryDirectory() as folder:
        # The loader of text-dedup chooses the format by the file name.
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
    """Returns the clusters of two or more ids that a module of text-dedup finds in a file written by `simstore-similar --shingles`.

    In this file, each word of a text is the hash of a shingle. The option `--ngram 1` makes text-dedup use the words as they are.
    """
    with run_text_dedup(path, module, *arguments, "--ngram", "1", "--idx_column", "id", "--debug") as output:
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
    """Yields the ids of the documents that text-dedup's MinHash keeps. text-dedup splits the texts into words itself."""
    from datasets import load_from_disk

    with run_text_dedup(path, "minhash", *minhash_arguments(similarity), "--ngram", "3") as output:
        yield from ((name,) for name in load_from_disk(output)["id"])


def text_dedup_simhash(path, _similarity):
    return text_dedup_clusters(path, "simhash")


def pypi_simhash(path, _similarity):
    """Yields the pairs of ids whose fingerprints are within 3 bits, found by the index of the PyPI package simhash."""
    import logging

    from simhash import Simhash, SimhashIndex

    logging.disable(logging.WARNING)
    names, fingerprints = [], []
    for name, shingles in read_shingles(path):
        names.append(name)
        fingerprints.append(Simhash(shingles))
    index = SimhashIndex(list(enumerate(fingerprints)), k=3)
    for b, fingerprint in enumerate(fingerprints):
        yield from ((names[int(a)], names[b]) for a in index.get_near_dups(fingerprint) if int(a) < b)


def simstore_frame(path, similarity):
    """Reads the corpus into a pandas frame. Yields the pairs of ids that `simstore.dedup` finds in this frame."""
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
        for fields in TOOLS[arguments.tool](arguments.corpus, arguments.similarity):
            file.write("\t".join(map(str, fields)) + "\n")


if __name__ == "__main__":
    main()
