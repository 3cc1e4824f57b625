#!/usr/bin/env python3
"""Near-duplicates on Spark as people find them today, and with simstore.spark: tables in Markdown.

    PY=venv/bin/python
    $PY benches/spark/rivals.py near FOLDER... [--distance 3] [--tools buckets near_pairs join]
    $PY benches/spark/rivals.py documents CORPUS.jsonl.gz SHINGLES.jsonl PAIRS.tsv FOLDER
    $PY benches/spark/rivals.py similar FOLDER --count 1000 5000 20000 [--similar 0.8] [--tools minhash-3 minhash-5 similar_pairs]

`near`: all pairs of rows whose fingerprints are within the distance, of the folders that `inputs.py` makes. `documents` makes the
folder for `similar`: texts with their shingles, as `simstore-similar --similarity 0.8 --shingles SHINGLES.jsonl --pairs PAIRS.tsv`
(`benches/similar`) writes them, and all pairs that there are. All tools get the same sets of shingles; simstore cuts and hashes them
itself, in its time.

Each run is a process with a Spark of its own, two executors of one core, and settings as Spark has them. The pairs are written as
Parquet; the time is from reading to that, without the start of Spark, and stands in brackets for tools without Spark. Seconds of the
processor are those of all processes of this Spark, the driver's too. Shuffled is what was written to be shuffled. Memory is the largest of
an executor with its Python workers, resident.
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

# Buckets of 16 bits, whose fingerprints are compared: what differs in at most 3 bits agrees in one of 4.
BUCKETS = """
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
    frame(spark, arguments).createOrReplaceTempView("fingerprints")
    return spark.sql(BUCKETS.format(distance=arguments.distance))


def near_pairs(spark, arguments):
    import simstore.spark

    return simstore.spark.near_pairs(frame(spark, arguments), distance=arguments.distance)


def minhash(tables):
    def pairs(spark, arguments):
        """As the guide of pyspark.ml shows it; what is cut into shingles already is hashed into sparse vectors of ones."""
        from pyspark.ml.feature import HashingTF, MinHashLSH

        documents = frame(spark, arguments).where("size(shingles) > 0").select("id", "shingles")
        vectors = HashingTF(inputCol="shingles", outputCol="features", numFeatures=1 << 20, binary=True).transform(documents)
        vectors = vectors.select("id", "features")
        model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=tables, seed=16).fit(vectors)
        # Its pairs are below the threshold, ours at most at it.
        near = model.approxSimilarityJoin(vectors, vectors, 1 - arguments.similar + 1e-9, distCol="distance")
        return near.where("datasetA.id < datasetB.id").selectExpr("datasetA.id AS id_a", "datasetB.id AS id_b", "distance")

    return pairs


def similar_pairs(spark, arguments):
    import simstore.spark

    return simstore.spark.similar_pairs(frame(spark, arguments).select("id", "text"), "text", "id", similar=arguments.similar)


SPARK = {
    "buckets": ("bucket join in SQL, 4 of 16 bits", buckets),
    "near_pairs": ("`simstore.spark.near_pairs`", near_pairs),
    "minhash-3": ("`MinHashLSH`, 3 tables", minhash(3)),
    "minhash-5": ("`MinHashLSH`, 5 tables", minhash(5)),
    "similar_pairs": ("`simstore.spark.similar_pairs`", similar_pairs),
}


def frame(spark, arguments):
    rows = spark.read.parquet(arguments.folder)
    return rows if arguments.count is None else rows.where(rows.id < arguments.count)


def spark_run(arguments):
    """What one tool takes, and its pairs as `a * 2^32 + b`, in order."""
    from cluster import Cluster

    with Cluster(memory=arguments.memory) as cluster:
        output = os.path.join(cluster.scratch, "pairs.parquet")
        with cluster.measured("pairs") as memory:
            SPARK[arguments.run][1](cluster.spark, arguments).write.parquet(output)
        cluster.stop()
        group = cluster.groups()["pairs"]
        columns = pyarrow.parquet.read_table(output, columns=["id_a", "id_b"])
        a, b = (columns[name].to_numpy().astype(np.uint64) for name in ("id_a", "id_b"))
    keys = (np.minimum(a, b) << np.uint64(32)) | np.maximum(a, b)
    taken = {"seconds": memory.seconds, "processor": memory.processor, "memory": memory.peak}
    return taken | {"shuffled": group.shuffled, "spilled": group.sum("spilled")}, keys


def join_run(arguments):
    """The pairs as one machine finds them."""
    import simstore

    fingerprints = inputs.read(arguments.folder)
    start, before = time.perf_counter(), time.process_time()
    table = simstore.self_join(fingerprints, arguments.distance)
    taken = {"seconds": time.perf_counter() - start, "processor": time.process_time() - before}
    return taken, (table["a"].to_numpy().astype(np.uint64) << np.uint64(32)) | table["b"].to_numpy()


def run(arguments):
    taken, keys = (join_run if arguments.run == "join" else spark_run)(arguments)
    np.save(arguments.output, np.sort(keys))
    with open(arguments.output + ".json", "w", encoding="utf-8") as file:
        json.dump(taken, file)


def row(label, tool, folder, count, arguments, truth=None):
    """Prints a row; the pairs that were found, or none if the tool failed or took too long."""
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "pairs.npy")
        command = [sys.executable, __file__, arguments.what, folder, "--run", tool, "--output", output, "--memory", str(arguments.memory)]
        command += ["--distance", str(arguments.distance), "--similar", str(arguments.similar)]
        command += [] if count is None else ["--count", str(count)]
        name = SPARK[tool][0] if tool in SPARK else "`simstore.self_join`, without Spark"
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            print(f"| {label} | {name} | above {arguments.timeout} | | | | | | | |", flush=True)
            return None
        if done.returncode:
            print(f"| {label} | {name} | failed | | | | | | | |", flush=True)
            print(done.stderr[-4000:], file=sys.stderr)
            return None
        pairs = np.load(output)
        with open(output + ".json", encoding="utf-8") as file:
            taken = json.load(file)
    truth = pairs if truth is None else truth
    distinct = np.unique(pairs)
    found = len(np.intersect1d(distinct, truth, assume_unique=True))
    seconds = f"{taken['seconds']:.1f}" if tool in SPARK else f"({taken['seconds']:.2f})"
    processor = f"{taken['processor']:.1f}" if "processor" in taken else ""
    bytes_of = [f"{taken[each] / 2**20:,.1f}" if each in taken else "" for each in ("shuffled", "spilled", "memory")]
    wrong = len(pairs) - found
    cells = [label, name, seconds, processor, *bytes_of, f"{found:,}", f"{len(truth) - found:,}", f"{wrong:,}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    return pairs


HEADER = "| {} | tool | s | processor, s | shuffled, MiB | spilled, MiB | an executor, MiB | pairs found | missed | wrong or twice |"


def near(arguments):
    print(HEADER.format("fingerprints") + "\n|" + "---|" * 10, flush=True)
    for folder in arguments.folder:
        label = os.path.basename(folder.rstrip("/"))
        truth = row(label, "join", folder, None, arguments)
        for tool in arguments.tools or ["buckets", "near_pairs"]:
            row(label, tool, folder, None, arguments, truth)


def similar(arguments):
    print(HEADER.format("documents") + "\n|" + "---|" * 10, flush=True)
    (folder,) = arguments.folder
    with open(os.path.join(folder, "pairs.npy"), "rb") as file:
        pairs = np.load(file)
    for count in arguments.count:
        within = (pairs & np.uint64(0xFFFF_FFFF)) < count
        for tool in arguments.tools or ["minhash-3", "minhash-5", "similar_pairs"]:
            row(f"{count:,}", tool, os.path.join(folder, "documents"), count, arguments, np.unique(pairs[within]))


def documents(arguments):
    corpus, shingles, pairs, folder = arguments.folder
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    with open(shingles, encoding="utf-8") as lines:
        sets = [json.loads(line) for line in lines]
    place = {each["id"]: number for number, each in enumerate(sets)}
    os.makedirs(os.path.join(folder, "documents"))
    for start in range(0, len(texts), 1000):
        some = slice(start, start + 1000)
        columns = {
            "id": np.arange(start, start + len(texts[some]), dtype=np.int64),
            "text": texts[some],
            "shingles": [each["text"].split() for each in sets[some]],
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), os.path.join(folder, "documents", f"part-{start:08}.parquet"))
    with open(pairs, encoding="utf-8") as lines:
        found = [sorted(place[name] for name in line.split("\t")[:2]) for line in lines]
    a, b = np.array(found, dtype=np.uint64).reshape(-1, 2).T
    np.save(os.path.join(folder, "pairs.npy"), (a << np.uint64(32)) | b)
    print(f"{len(texts):,} documents, {len(found):,} pairs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["near", "documents", "similar"])
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--count", type=int, nargs="+", help="of documents, the first ones")
    parser.add_argument("--tools", nargs="+", choices=SPARK)
    parser.add_argument("--memory", type=int, default=4096, help="of the JVM of an executor, in MiB")
    parser.add_argument("--timeout", type=int, default=900, help="seconds, with the start of Spark")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        (arguments.folder,) = arguments.folder
        arguments.count = arguments.count and arguments.count[0]
        run(arguments)
    else:
        {"near": near, "documents": documents, "similar": similar}[arguments.what](arguments)


if __name__ == "__main__":
    main()
