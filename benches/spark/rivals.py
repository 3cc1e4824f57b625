#!/usr/bin/env python3
"""Compares simstore.spark with common ways to find near-duplicates on Spark; prints Markdown tables.

    PY=venv/bin/python
    $PY benches/spark/rivals.py near FOLDER... [--distance 3] [--tools buckets near_pairs join]
    $PY benches/spark/rivals.py documents CORPUS.jsonl.gz SHINGLES.jsonl PAIRS.tsv FOLDER
    $PY benches/spark/rivals.py similar FOLDER --count 1000 5000 20000 [--similar 0.8] [--tools minhash-3 minhash-5 similar_pairs]

- `near` finds all pairs of rows whose fingerprints are within the distance, in folders of `inputs.py`.
- `documents` makes FOLDER for `similar`: the texts with their shingles, and all similar pairs. SHINGLES.jsonl and PAIRS.tsv are from
  `simstore-similar --similarity 0.8 --shingles SHINGLES.jsonl --pairs PAIRS.tsv` (`benches/similar`).
- `similar` finds all similar pairs of documents. The other tools get sets of shingles. simstore gets the texts and makes the same shingles
  itself, so its time includes making and hashing the shingles.

Each run is a separate process with its own Spark: two executors with one core each, and default settings. The time is from reading the
input to writing the pairs as Parquet, without the start of Spark; for tools without Spark, this time is in brackets. CPU seconds are of all
processes of Spark, including the driver. Shuffled is the bytes written for shuffles. Memory is the largest resident memory of an executor
with its Python workers.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow
import pyarrow.parquet

import inputs

# Joins rows that share one of four blocks of 16 bits, and compares them. Two fingerprints within 3 bits have at least one equal block.
BUCKET_JOIN = """
WITH blocks AS (
  SELECT id, fingerprint, posexplode(array(
    fingerprint & 65535, shiftright(fingerprint, 16) & 65535,
    shiftright(fingerprint, 32) & 65535, shiftright(fingerprint, 48) & 65535)) AS (place, block)
  FROM fingerprints)
SELECT DISTINCT a.id AS id_a, b.id AS id_b, bit_count(a.fingerprint ^ b.fingerprint) AS distance
FROM blocks a JOIN blocks b ON a.place = b.place AND a.block = b.block AND a.id < b.id
WHERE bit_count(a.fingerprint ^ b.fingerprint) <= {distance}
"""


def buckets(spark, arguments):
    read_rows(spark, arguments).createOrReplaceTempView("fingerprints")
    return spark.sql(BUCKET_JOIN.format(distance=arguments.distance))


def near_pairs(spark, arguments):
    import simstore.spark

    return simstore.spark.near_pairs(read_rows(spark, arguments), distance=arguments.distance)


def minhash_pairs(tables):
    def run(spark, arguments):
        """Calls MinHashLSH as the guide of pyspark.ml shows. HashingTF turns the ready-made shingles into binary sparse vectors."""
        from pyspark.ml.feature import HashingTF, MinHashLSH

        documents = read_rows(spark, arguments).where("size(shingles) > 0").select("id", "shingles")
        vectors = HashingTF(inputCol="shingles", outputCol="features", numFeatures=1 << 20, binary=True).transform(documents)
        vectors = vectors.select("id", "features")
        model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=tables, seed=16).fit(vectors)
        # MinHashLSH excludes pairs exactly at the threshold, simstore includes them.
        near = model.approxSimilarityJoin(vectors, vectors, 1 - arguments.similar + 1e-9, distCol="distance")
        return near.where("datasetA.id < datasetB.id").selectExpr("datasetA.id AS id_a", "datasetB.id AS id_b", "distance")

    return run


def similar_pairs(spark, arguments):
    import simstore.spark

    return simstore.spark.similar_pairs(read_rows(spark, arguments).select("id", "text"), "text", "id", similar=arguments.similar)


SPARK_TOOLS = {
    "buckets": ("bucket join in SQL, 4 of 16 bits", buckets),
    "near_pairs": ("`simstore.spark.near_pairs`", near_pairs),
    "minhash-3": ("`MinHashLSH`, 3 tables", minhash_pairs(3)),
    "minhash-5": ("`MinHashLSH`, 5 tables", minhash_pairs(5)),
    "similar_pairs": ("`simstore.spark.similar_pairs`", similar_pairs),
}


def read_rows(spark, arguments):
    rows = spark.read.parquet(arguments.folder)
    return rows if arguments.count is None else rows.where(rows.id < arguments.count)


def run_spark_tool(arguments):
    """Runs a Spark tool. Returns its figures, and an array of its pairs: the pair of the ids a and b is a * 2^32 + b."""
    from cluster import Cluster

    with Cluster(memory=arguments.memory) as cluster:
        output = os.path.join(cluster.scratch, "pairs.parquet")
        with cluster.measured("pairs") as usage:
            SPARK_TOOLS[arguments.run][1](cluster.spark, arguments).write.parquet(output)
        cluster.stop()
        group = cluster.groups()["pairs"]
        columns = pyarrow.parquet.read_table(output, columns=["id_a", "id_b"])
        a, b = (columns[name].to_numpy().astype(np.uint64) for name in ("id_a", "id_b"))
    keys = (np.minimum(a, b) << np.uint64(32)) | np.maximum(a, b)
    figures = {"seconds": usage.seconds, "processor": usage.processor, "memory": usage.peak}
    return figures | {"shuffled": group.shuffled_bytes, "spilled": group.total("spilled")}, keys


def run_self_join(arguments):
    """Runs `simstore.self_join`, without Spark.

    Returns its figures, and an array of its pairs: the pair of the ids a and b is a * 2^32 + b.
    """
    import simstore

    fingerprints = inputs.read_fingerprints(arguments.folder)
    start, before = time.perf_counter(), time.process_time()
    table = simstore.self_join(fingerprints, arguments.distance)
    figures = {"seconds": time.perf_counter() - start, "processor": time.process_time() - before}
    return figures, (table["a"].to_numpy().astype(np.uint64) << np.uint64(32)) | table["b"].to_numpy()


def run_tool(arguments):
    figures, keys = (run_self_join if arguments.run == "join" else run_spark_tool)(arguments)
    np.save(arguments.output, np.sort(keys))
    with open(arguments.output + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)


def measure_row(label, tool, folder, count, arguments, truth=None):
    """Measures a tool in a separate process and prints its table row.

    Returns the pairs that the tool found, or None if the tool fails or exceeds the timeout.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "pairs.npy")
        command = [sys.executable, __file__, arguments.what, folder, "--run", tool, "--output", output, "--memory", str(arguments.memory)]
        command += ["--distance", str(arguments.distance), "--similar", str(arguments.similar)]
        command += [] if count is None else ["--count", str(count)]
        title = SPARK_TOOLS[tool][0] if tool in SPARK_TOOLS else "`simstore.self_join`, without Spark"
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            print(f"| {label} | {title} | above {arguments.timeout} | | | | | | | |", flush=True)
            return None
        if done.returncode:
            print(f"| {label} | {title} | failed | | | | | | | |", flush=True)
            print(done.stderr[-4000:], file=sys.stderr)
            return None
        pairs = np.load(output)
        with open(output + ".json", encoding="utf-8") as file:
            figures = json.load(file)
    truth = pairs if truth is None else truth
    distinct = np.unique(pairs)
    found = len(np.intersect1d(distinct, truth, assume_unique=True))
    seconds = f"{figures['seconds']:.1f}" if tool in SPARK_TOOLS else f"({figures['seconds']:.2f})"
    processor = f"{figures['processor']:.1f}" if "processor" in figures else ""
    mebibytes = [f"{figures[name] / 2**20:,.1f}" if name in figures else "" for name in ("shuffled", "spilled", "memory")]
    wrong = len(pairs) - found
    cells = [label, title, seconds, processor, *mebibytes, f"{found:,}", f"{len(truth) - found:,}", f"{wrong:,}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    return pairs


HEADER = "| {} | tool | s | processor, s | shuffled, MiB | spilled, MiB | an executor, MiB | pairs found | missed | wrong or twice |"


def compare_near_pairs(arguments):
    print(HEADER.format("fingerprints") + "\n|" + "---|" * 10, flush=True)
    for folder in arguments.folder:
        label = os.path.basename(folder.rstrip("/"))
        truth = measure_row(label, "join", folder, None, arguments)
        for tool in arguments.tools or ["buckets", "near_pairs"]:
            measure_row(label, tool, folder, None, arguments, truth)


def compare_similar_pairs(arguments):
    print(HEADER.format("documents") + "\n|" + "---|" * 10, flush=True)
    (folder,) = arguments.folder
    with open(os.path.join(folder, "pairs.npy"), "rb") as file:
        pairs = np.load(file)
    for count in arguments.count:
        within = (pairs & np.uint64(0xFFFF_FFFF)) < count
        for tool in arguments.tools or ["minhash-3", "minhash-5", "similar_pairs"]:
            measure_row(f"{count:,}", tool, os.path.join(folder, "documents"), count, arguments, np.unique(pairs[within]))


def write_documents(arguments):
    corpus, shingles, pairs, folder = arguments.folder
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    with open(shingles, encoding="utf-8") as lines:
        sets = [json.loads(line) for line in lines]
    positions = {document["id"]: position for position, document in enumerate(sets)}
    os.makedirs(os.path.join(folder, "documents"))
    for start in range(0, len(texts), 1000):
        chunk = slice(start, start + 1000)
        columns = {
            "id": np.arange(start, start + len(texts[chunk]), dtype=np.int64),
            "text": texts[chunk],
            "shingles": [document["text"].split() for document in sets[chunk]],
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), os.path.join(folder, "documents", f"part-{start:08}.parquet"))
    with open(pairs, encoding="utf-8") as lines:
        position_pairs = [sorted(positions[name] for name in line.split("\t")[:2]) for line in lines]
    a, b = np.array(position_pairs, dtype=np.uint64).reshape(-1, 2).T
    np.save(os.path.join(folder, "pairs.npy"), (a << np.uint64(32)) | b)
    print(f"{len(texts):,} documents, {len(position_pairs):,} pairs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["near", "documents", "similar"])
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--count", type=int, nargs="+", help="number of documents to use, from the start")
    parser.add_argument("--tools", nargs="+", choices=SPARK_TOOLS)
    parser.add_argument("--memory", type=int, default=4096, help="memory of the JVM of an executor, in MiB")
    parser.add_argument("--timeout", type=int, default=900, help="time limit of a run in seconds, including the start of Spark")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        (arguments.folder,) = arguments.folder
        arguments.count = arguments.count and arguments.count[0]
        run_tool(arguments)
    else:
        {"near": compare_near_pairs, "documents": write_documents, "similar": compare_similar_pairs}[arguments.what](arguments)


if __name__ == "__main__":
    main()
