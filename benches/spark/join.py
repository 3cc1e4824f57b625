#!/usr/bin/env python3
"""Compares simstore.spark.near_pairs and clusters with the join on one machine, on the same cores; prints a Markdown table.

    PYTHON=venv/bin/python
    $PYTHON benches/spark/join.py 1M 10M 50M [--shape mixed] [--what near_pairs clusters] [--memory 3072] [--folder target/spark]

`inputs.py` generates the fingerprints if the folder does not have them. The runs are separate processes, one after the other. Both must
have the same result. The table has these figures:

- One machine: time of `simstore.self_join` or `simstore.clusters` in memory, on all cores; in brackets, the time including reading the
  input from Parquet and writing the result to Parquet.
- Spark: time with two executors of one core each, including reading and writing Parquet, but not the start of Spark.
- Shuffled: bytes that all stages write for shuffles, divided by the rows of the input. Spilled: bytes that Spark writes to disk because
  memory is full.
- Memory of an executor: largest resident memory with its Python workers; in brackets, the JVM and the workers separately.
- CPU seconds: all processes. For one machine, from the start of Python; for Spark, driver and executors while the job runs.
- Growth: time for each fingerprint, divided by that time in the row above.
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
from measure import resource_usage  # noqa: E402


def local_pairs(folder, output, distance):
    import simstore

    fingerprints = inputs.read_fingerprints(folder)
    start = time.perf_counter()
    table = simstore.self_join(fingerprints, distance)
    seconds = time.perf_counter() - start
    pyarrow.parquet.write_table(table.to_pyarrow(), output)
    return seconds


def local_clusters(folder, output, distance):
    import simstore

    fingerprints = inputs.read_fingerprints(folder)
    start = time.perf_counter()
    labels = simstore.clusters(fingerprints, distance)
    seconds = time.perf_counter() - start
    pyarrow.parquet.write_table(pyarrow.table({"cluster": labels}), output)
    return seconds


def read_pairs(output):
    """Reads the pairs (a, b, distance) of a Parquet file. Returns ([keys, distances], number of pairs as text).

    The key of a pair is a * 2^32 + b. The keys ascend.
    """
    table = pyarrow.parquet.read_table(output)
    names = ("a", "b") if "a" in table.column_names else ("id_a", "id_b")
    a, b = (table[name].to_numpy().astype(np.uint64) for name in names)
    distances = np.asarray(table["distance"].to_numpy(), dtype=np.int64)
    keys = (np.minimum(a, b) << np.uint64(32)) | np.maximum(a, b)
    order = np.argsort(keys)
    return [keys[order], distances[order]], f"{len(keys):,}"


def read_clusters(output):
    """Reads the clusters of a Parquet file. Returns ([ids, first ids], number of clusters as text).

    Each id of a cluster of two or more is in `ids`, in ascending order, and the smallest id of its cluster is in `first ids`.
    """
    table = pyarrow.parquet.read_table(output)
    labels = np.asarray(table["cluster"].to_numpy())
    ids = np.asarray(table["id"].to_numpy()) if "id" in table.column_names else np.arange(len(labels))
    order = np.argsort(ids)
    ids, labels = ids[order], labels[order]
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    clustered = sizes[inverse] > 1
    return [ids[clustered], ids[first[inverse]][clustered]], f"{np.sum(sizes > 1):,}"


def spark_near_pairs(rows, arguments):
    import simstore.spark

    return simstore.spark.near_pairs(rows, distance=arguments.distance)


def spark_clusters(rows, arguments):
    import simstore.spark

    return simstore.spark.clusters(rows, distance=arguments.distance)


OPERATIONS = {
    "near_pairs": ("`self_join`", "pairs", local_pairs, spark_near_pairs, read_pairs),
    "clusters": ("`clusters`", "clusters", local_clusters, spark_clusters, read_clusters),
}


def run(arguments):
    """Runs the operation `near_pairs` or `clusters`, on this machine alone or on Spark, and writes the figures to a file."""
    _, _, local_function, spark_function, _ = OPERATIONS[arguments.what[0]]
    start = time.perf_counter()
    if arguments.run == "local":
        figures = {"seconds": local_function(arguments.input, arguments.output, arguments.distance)}
        figures["with_files"] = time.perf_counter() - start
    else:
        figures = run_spark(spark_function, arguments)
    with open(arguments.figures, "w", encoding="utf-8") as file:
        json.dump(figures, file)


def run_spark(query, arguments):
    """Runs the function `query` on a new Spark cluster, with input and output in Parquet. Returns the figures of the run."""
    from cluster import Cluster

    settings = dict(setting.split("=", 1) for setting in arguments.set)
    with Cluster(memory=arguments.memory, settings=settings, folder=arguments.folder) as cluster:
        with cluster.measured("join") as usage:
            query(cluster.spark.read.parquet(arguments.input), arguments).write.parquet(f"file://{os.path.abspath(arguments.output)}")
        cluster.stop()
        group = cluster.groups()["join"]
        if arguments.log:
            (log,) = os.listdir(cluster.logs)
            os.replace(os.path.join(cluster.logs, log), arguments.log)
    return {
        "seconds": usage.seconds,
        "processor": usage.processor,
        "shuffled": group.shuffled_bytes,
        "spilled": group.total("spilled"),
        "tasks": group.tasks,
        "peak": usage.peak,
        "jvm": usage.jvm,
        "python": usage.python,
    }


def measure(operation, count, arguments):
    """Runs `operation`, near_pairs or clusters, on one machine and on Spark.

    Returns (local figures, Spark figures, number of results as text, whether the results are equal).
    """
    folder = os.path.join(arguments.folder, f"{arguments.shape}-{count}")
    if not os.path.exists(folder):
        inputs.write_parquet(inputs.generate(arguments.shape, inputs.parse_number(count)), folder)
    figures, results = {}, {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for mode in ("local", "spark"):
            output, figures_path = os.path.join(scratch, f"{mode}.parquet"), os.path.join(scratch, f"{mode}.json")
            command = [sys.executable, __file__, count, "--what", operation, "--run", mode, "--input", folder, "--output", output]
            command += ["--figures", figures_path, "--memory", str(arguments.memory), "--distance", str(arguments.distance)]
            command += ["--folder", arguments.folder, "--log", arguments.log or ""]
            command += [f"--set={setting}" for setting in arguments.set]
            process_figures = {}
            if mode == "local":
                process_usage = resource_usage(command)
                process_figures = {"peak": process_usage["memory"], "processor": process_usage["processor"]}
            else:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with open(figures_path, encoding="utf-8") as file:
                figures[mode] = json.load(file) | process_figures
            results[mode] = output
        (expected, result_count), (actual, _) = (OPERATIONS[operation][4](results[mode]) for mode in ("local", "spark"))
    same = all(np.array_equal(*columns) for columns in zip(expected, actual))
    return figures["local"], figures["spark"], result_count, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="+", help="like 10M")
    parser.add_argument("--shape", choices=["random", "mixed", "clustered"], default="mixed")
    parser.add_argument("--what", nargs="+", choices=OPERATIONS, default=list(OPERATIONS))
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--memory", type=int, default=3072, help="memory of the JVM of an executor, in MiB")
    parser.add_argument("--folder", default="target/spark", help="folder for the fingerprints and for Spark's temporary files")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="Spark setting; can be repeated")
    parser.add_argument("--log", help="file for the event log of the last run")
    for hidden in ("--run", "--input", "--output", "--figures"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return
    # Spark needs an absolute path.
    arguments.folder = os.path.abspath(arguments.folder)
    os.makedirs(arguments.folder, exist_ok=True)
    for operation in arguments.what:
        local_name, result_noun = OPERATIONS[operation][:2]
        print(
            f"| {arguments.shape}, k = {arguments.distance} | {local_name}, s | processor, s | MiB | `spark.{operation}`, s | "
            "processor, s | times | growth | "
            f"shuffled, bytes a fingerprint | spilled, MiB | tasks | an executor, MiB | {result_noun} | the same |\n" + "|" + "---|" * 14
        )
        previous_seconds = None
        for count in arguments.count:
            local, spark, result_count, same = measure(operation, count, arguments)
            n = inputs.parse_number(count)
            growth = f"{spark['seconds'] / n / previous_seconds:.2f}" if previous_seconds else ""
            previous_seconds = spark["seconds"] / n
            mebibytes = {name: f"{spark[name] / 2**20:,.0f}" for name in ("spilled", "peak", "jvm", "python")}
            print(
                f"| {n:,} | {local['seconds']:.2f} ({local['with_files']:.2f}) | {local['processor']:.1f} | {local['peak'] / 2**20:,.0f} | "
                f"{spark['seconds']:.1f} | {spark['processor']:.1f} | "
                f"{spark['seconds'] / local['seconds']:.1f} ({spark['seconds'] / local['with_files']:.1f}) | {growth} | "
                f"{spark['shuffled'] / n:.1f} | {mebibytes['spilled']} | {spark['tasks']} | "
                f"{mebibytes['peak']} ({mebibytes['jvm']}, {mebibytes['python']}) | {result_count} | {'yes' if same else 'NO'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
