"""Checks that results are correct when Spark runs a speculative copy of a slow task.

    python -m spark.speculation FOLDER

This is a separate program, because a process can have only one Spark session. Spark starts copies only on other machines, so
the executors run on two loopback addresses, which Spark takes for two machines.
"""

import contextlib
import functools
import os
import sys

import helpers
from spark import frames

MACHINES = ["127.0.0.1", "127.0.0.2"]


def start_two_machines(folder, settings):
    """Returns a session whose executors have two different addresses."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(settings.items())
    gateway = launch_gateway(conf)
    deploy, java_conf = gateway.jvm.org.apache.spark.deploy, gateway.jvm.org.apache.spark.SparkConf()
    none = gateway.jvm.scala.Option.empty()
    master = deploy.master.Master.startRpcEnvAndEndpoint(MACHINES[0], 0, 0, java_conf)._1()
    address = f"spark://{MACHINES[0]}:{master.address().port()}"
    addresses = gateway.new_array(gateway.jvm.java.lang.String, 1)
    addresses[0] = address
    for number, machine in enumerate(MACHINES):
        work, number = f"{folder}/work-{number}", gateway.jvm.scala.Option.apply(number)
        deploy.worker.Worker.startRpcEnvAndEndpoint(machine, 0, 0, 1, 1024, addresses, work, number, java_conf, none)
    conf.setMaster(address).setAppName("copies of tasks")
    session = SparkSession(SparkContext(gateway=gateway, conf=conf))
    session.sparkContext.setLogLevel("ERROR")
    return session


def wait_for_copy(folder, batches):
    """Yields the batches. In partition 0, waits at the end until a copy of the task also reaches the end, so both finish together."""
    from pyspark import TaskContext

    yield from batches
    task = TaskContext.get()
    if task.partitionId() != 0:
        return
    pipe = f"{folder}/{task.stageId()}"
    try:
        os.mkfifo(pipe)
    except FileExistsError:
        # A third attempt does not wait.
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{pipe}-met")
            open(pipe, "w").close()
    else:
        open(pipe).close()


def copy_waiter(folder):
    """Creates the folder for named pipes. Returns `wait_for_copy` with this folder: it makes a task wait for a second attempt of it."""
    os.mkdir(folder)
    return functools.partial(wait_for_copy, folder)


def copies_met(folder):
    """Returns the number of tasks that ran at the same time as a second attempt of the same task."""
    return sum(name.endswith("-met") for name in os.listdir(folder))


def check_shards(spark, folder):
    """Checks a shard that two attempts write at once, and a query that two attempts answer."""
    from simstore.spark import build_store, query
    from simstore.spark import shards as module

    values = helpers.random_fingerprints(200, 64)
    build_shard, wait = module.build_shard, copy_waiter(f"{folder}/written")
    module.build_shard = lambda batches, *args, **settings: build_shard(wait(batches), *args, **settings)
    shard_list = build_store(frames.fingerprint_frame(spark, values), f"{folder}/set", 3)
    assert copies_met(f"{folder}/written") == 1
    assert shard_list.pairs == 200 and sorted(os.listdir(f"{folder}/set")) == sorted(
        ["shards.json", *(shard.folder for shard in shard_list.shards)]
    )
    queries = frames.fingerprint_frame(spark, values).mapInArrow(copy_waiter(f"{folder}/asked"), "id long, fingerprint long")
    rows = query(queries, f"{folder}/set").collect()
    assert copies_met(f"{folder}/asked") > 0
    found = sorted((row.query, row.distance, frames.to_int(row.fingerprint), row.id) for row in rows)
    assert found == helpers.brute_force_matches(zip(values, range(200)), values, 3, 64)


def check_pairs_and_clusters(spark, folder):
    """Checks near pairs and clusters. In each step of the join, one task runs twice at once."""
    from simstore.tasks import joining, rows
    from spark import test_faults

    fingerprints = test_faults.mixed_fingerprints()
    frame = frames.fingerprint_frame(spark, fingerprints)
    steps = [(rows, "pack_rows"), (rows, "pack_pairs"), *((joining, name) for name in ("pack", "scatter", "near", "connect"))]
    for module, name in steps:
        step, wait = getattr(module, name), copy_waiter(f"{folder}/{name}")

        def run_twice(batches, *args, step=step, wait=wait, **settings):
            return step(wait(batches), *args, **settings)

        setattr(module, name, run_twice)
    assert test_faults.collect_pairs(frame) == test_faults.expected_pairs(fingerprints)
    assert test_faults.collect_clusters(frame) == test_faults.expected_clusters(fingerprints)
    assert all(copies_met(f"{folder}/{name}") for _, name in steps)


CHECKS = [check_shards, check_pairs_and_clusters]


if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    from spark.conftest import SETTINGS

    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        # When 1% of the tasks have ended, Spark copies each slower task.
        "spark.speculation.quantile": "0.01",
        "spark.speculation.multiplier": "1.01",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    session = start_two_machines(folder, SETTINGS | speculation)
    try:
        for job in CHECKS:
            job(session, folder)
    finally:
        # Otherwise the workers start executors while the process ends, and their output hides the errors of the checks.
        session.stop()
