#!/usr/bin/env python3
"""simstore.spark.near_pairs and clusters beside the join of one machine on the same cores, in the same run: a table in Markdown.

    PYTHON=venv/bin/python
    $PYTHON benches/spark/join.py 1M 10M 50M [--shape mixed] [--what near_pairs clusters] [--memory 3072] [--folder target/spark]

The sets are those of `inputs.py`, made where they are not there yet. All runs are processes of their own, one after the other. One
machine: `simstore.self_join` or `simstore.clusters` of the fingerprints in memory, on all cores; in brackets from Parquet to Parquet.
Spark: two executors of one core each, from Parquet to Parquet, without the start of Spark. Both results have to be the same, pair by
pair. A fingerprint's bytes are those written to be shuffled, by all stages together, for each row of the input; spilled are those
that Spark wrote to disk for want of memory. Memory is the largest resident set of an executor with its Python workers; in brackets
the JVM alone and the workers alone. Seconds of the processor are those of all processes: of one machine from the start of Python, of
Spark the driver's and the executors' while the job ran. Growth is the time for each fingerprint beside that of the row before.
"""

import argparse
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

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "similar"))
from measure import taken_by  # noqa: E402


def pairs_alone(folder, output, distance):
    import simstore

    fingerprints = inputs.read(folder)
    start = time.perf_counter()
    table = simstore.self_join(fingerprints, distance)
    seconds = time.perf_counter() - start
    pyarrow.parquet.write_table(table.to_pyarrow(), output)
    return seconds


def clusters_alone(folder, output, distance):
    import simstore

    fingerprints = inputs.read(folder)
    start = time.perf_counter()
    labels = simstore.clusters(fingerprints, distance)
    seconds = time.perf_counter() - start
    pyarrow.parquet.write_table(pyarrow.table({"cluster": labels}), output)
    return seconds


def pairs_of(output):
    """All pairs, in one order."""
    table = pyarrow.parquet.read_table(output)
    names = ("a", "b") if "a" in table.column_names else ("id_a", "id_b")
    a, b = (table[name].to_numpy().astype(np.uint64) for name in names)
    distances = np.asarray(table["distance"].to_numpy(), dtype=np.int64)
    keys = (np.minimum(a, b) << np.uint64(32)) | np.maximum(a, b)
    order = np.argsort(keys)
    return [keys[order], distances[order]], f"{len(keys):,}"


def clusters_of(output):
    """For each row that is not alone the first row of its cluster."""
    table = pyarrow.parquet.read_table(output)
    labels = np.asarray(table["cluster"].to_numpy())
    ids = np.asarray(table["id"].to_numpy()) if "id" in table.column_names else np.arange(len(labels))
    order = np.argsort(ids)
    ids, labels = ids[order], labels[order]
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    together = sizes[inverse] > 1
    return [ids[together], ids[first[inverse]][together]], f"{np.sum(sizes > 1):,}"


def near_pairs_spark(rows, arguments):
    import simstore.spark

    return simstore.spark.near_pairs(rows, distance=arguments.distance)


def clusters_spark(rows, arguments):
    import simstore.spark

    return simstore.spark.clusters(rows, distance=arguments.distance)


WHAT = {
    "near_pairs": ("`self_join`", "pairs", pairs_alone, near_pairs_spark, pairs_of),
    "clusters": ("`clusters`", "clusters", clusters_alone, clusters_spark, clusters_of),
}


def run(arguments):
    """A process of its own: one machine, or Spark."""
    _, _, alone, spark, _ = WHAT[arguments.what[0]]
    start = time.perf_counter()
    if arguments.run == "alone":
        taken = {"seconds": alone(arguments.input, arguments.output, arguments.distance)}
        taken["with_files"] = time.perf_counter() - start
    else:
        taken = with_spark(spark, arguments)
    with open(arguments.told, "w", encoding="utf-8") as file:
        json.dump(taken, file)


def with_spark(query, arguments):
    from cluster import Cluster

    settings = dict(setting.split("=", 1) for setting in arguments.set)
    with Cluster(memory=arguments.memory, settings=settings, folder=arguments.folder) as cluster:
        with cluster.measured("join") as memory:
            query(cluster.spark.read.parquet(arguments.input), arguments).write.parquet(f"file://{os.path.abspath(arguments.output)}")
        cluster.stop()
        group = cluster.groups()["join"]
        if arguments.log:
            (log,) = os.listdir(cluster.logs)
            os.replace(os.path.join(cluster.logs, log), arguments.log)
    return {
        "seconds": memory.seconds,
        "processor": memory.processor,
        "shuffled": group.shuffled,
        "spilled": group.sum("spilled"),
        "tasks": group.tasks,
        "peak": memory.peak,
        "jvm": memory.jvm,
        "python": memory.python,
    }


def measure(what, count, arguments):
    """What both take, and whether they find the same."""
    folder = os.path.join(arguments.folder, f"{arguments.shape}-{count}")
    if not os.path.exists(folder):
        inputs.write(inputs.made(arguments.shape, inputs.number(count)), folder)
    taken, results = {}, {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for place in ("alone", "spark"):
            output, told = os.path.join(scratch, f"{place}.parquet"), os.path.join(scratch, f"{place}.json")
            command = [sys.executable, __file__, count, "--what", what, "--run", place, "--input", folder, "--output", output]
            command += ["--told", told, "--memory", str(arguments.memory), "--distance", str(arguments.distance)]
            command += ["--folder", arguments.folder, "--log", arguments.log or ""]
            command += [f"--set={setting}" for setting in arguments.set]
            whole = {}
            if place == "alone":
                of_process = taken_by(command)
                whole = {"peak": of_process["memory"], "processor": of_process["processor"]}
            else:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with open(told, encoding="utf-8") as file:
                taken[place] = json.load(file) | whole
            results[place] = output
        (expected, number), (found, _) = (WHAT[what][4](results[place]) for place in ("alone", "spark"))
    same = all(np.array_equal(*columns) for columns in zip(expected, found))
    return taken["alone"], taken["spark"], number, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="+", help="like 10M")
    parser.add_argument("--shape", choices=["random", "mixed", "clustered"], default="mixed")
    parser.add_argument("--what", nargs="+", choices=WHAT, default=list(WHAT))
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--memory", type=int, default=3072, help="of the JVM of an executor, in MiB")
    parser.add_argument("--folder", default="target/spark", help="for the sets, and for what Spark writes meanwhile")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    parser.add_argument("--log", help="keep the event log of the last run here")
    for hidden in ("--run", "--input", "--output", "--told"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return
    # Spark knows no working folder.
    arguments.folder = os.path.abspath(arguments.folder)
    os.makedirs(arguments.folder, exist_ok=True)
    for what in arguments.what:
        alone_name, things = WHAT[what][:2]
        print(
            f"| {arguments.shape}, k = {arguments.distance} | {alone_name}, s | processor, s | MiB | `spark.{what}`, s | "
            "processor, s | times | growth | "
            f"shuffled, bytes a fingerprint | spilled, MiB | tasks | an executor, MiB | {things} | the same |\n" + "|" + "---|" * 14
        )
        before = None
        for count in arguments.count:
            alone, spark, number, same = measure(what, count, arguments)
            n = inputs.number(count)
            growth = f"{spark['seconds'] / n / before:.2f}" if before else ""
            before = spark["seconds"] / n
            mebibytes = {name: f"{spark[name] / 2**20:,.0f}" for name in ("spilled", "peak", "jvm", "python")}
            print(
                f"| {n:,} | {alone['seconds']:.2f} ({alone['with_files']:.2f}) | {alone['processor']:.1f} | {alone['peak'] / 2**20:,.0f} | "
                f"{spark['seconds']:.1f} | {spark['processor']:.1f} | "
                f"{spark['seconds'] / alone['seconds']:.1f} ({spark['seconds'] / alone['with_files']:.1f}) | {growth} | "
                f"{spark['shuffled'] / n:.1f} | {mebibytes['spilled']} | {spark['tasks']} | "
                f"{mebibytes['peak']} ({mebibytes['jvm']}, {mebibytes['python']}) | {number} | {'yes' if same else 'NO'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
