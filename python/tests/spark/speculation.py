"""Jobs of which one task is slow, on two machines that Spark takes for two: a copy of the task runs beside it.

    python -m spark.speculation FOLDER

A program of its own, as a process has one Spark. Of a local cluster all executors are on one machine, where Spark starts no copies.
"""

import contextlib
import functools
import os
import sys

import plain
from spark import frames

MACHINES = ["127.0.0.1", "127.0.0.2"]


def two_machines(folder, settings):
    """A session whose executors are on two machines by their addresses."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(settings.items())
    gateway = launch_gateway(conf)
    deploy, of_java = gateway.jvm.org.apache.spark.deploy, gateway.jvm.org.apache.spark.SparkConf()
    none = gateway.jvm.scala.Option.empty()
    master = deploy.master.Master.startRpcEnvAndEndpoint(MACHINES[0], 0, 0, of_java)._1()
    address = f"spark://{MACHINES[0]}:{master.address().port()}"
    addresses = gateway.new_array(gateway.jvm.java.lang.String, 1)
    addresses[0] = address
    for number, machine in enumerate(MACHINES):
        work, number = f"{folder}/work-{number}", gateway.jvm.scala.Option.apply(number)
        deploy.worker.Worker.startRpcEnvAndEndpoint(machine, 0, 0, 1, 1024, addresses, work, number, of_java, none)
    conf.setMaster(address).setAppName("copies of tasks")
    session = SparkSession(SparkContext(gateway=gateway, conf=conf))
    session.sparkContext.setLogLevel("ERROR")
    return session


def meeting(folder, batches):
    """Waits before the end of its rows, in the first task of a stage, until a copy has come as far; then goes on beside it."""
    from pyspark import TaskContext

    yield from batches
    task = TaskContext.get()
    if task.partitionId() != 0:
        return
    place = f"{folder}/{task.stageId()}"
    try:
        os.mkfifo(place)
    except FileExistsError:
        # A third attempt is not held up.
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{place}-met")
            open(place, "w").close()
    else:
        open(place).close()


def meet(folder):
    """Where tasks and their copies meet."""
    os.mkdir(folder)
    return functools.partial(meeting, folder)


def have_met(folder):
    return sum(name.endswith("-met") for name in os.listdir(folder))


def shards(spark, folder):
    """A shard is written by two attempts at once, and a query answered by two."""
    from simstore.spark import build_store, query
    from simstore.spark import shards as module

    values = plain.random_fingerprints(200, 64)
    build_shard, wait = module.build_shard, meet(f"{folder}/written")
    module.build_shard = lambda batches, *args, **settings: build_shard(wait(batches), *args, **settings)
    made = build_store(frames.frame(spark, values), f"{folder}/set", 3)
    assert have_met(f"{folder}/written") == 1
    assert made.pairs == 200 and sorted(os.listdir(f"{folder}/set")) == sorted(
        ["shards.json", *(shard.folder for shard in made.shards)]
    )
    asked = frames.frame(spark, values).mapInArrow(meet(f"{folder}/asked"), "id long, fingerprint long")
    rows = query(asked, f"{folder}/set").collect()
    assert have_met(f"{folder}/asked") > 0
    found = sorted((row.query, row.distance, frames.number(row.fingerprint), row.id) for row in rows)
    assert found == plain.matches(zip(values, range(200)), values, 3, 64)


def pairs_and_clusters(spark, folder):
    """Each step of a join has a task that runs twice at once."""
    from simstore.tasks import joining, rows
    from spark import test_faults

    fingerprints = test_faults.values()
    frame = frames.frame(spark, fingerprints)
    steps = [(rows, "pack_rows"), (rows, "pack_pairs"), *((joining, name) for name in ("pack", "scatter", "near", "connect"))]
    for module, name in steps:
        step, wait = getattr(module, name), meet(f"{folder}/{name}")

        def twice(batches, *args, step=step, wait=wait, **settings):
            return step(wait(batches), *args, **settings)

        setattr(module, name, twice)
    assert test_faults.pairs_of(frame) == test_faults.expected_pairs(fingerprints)
    assert test_faults.clusters_of(frame) == test_faults.expected_clusters(fingerprints)
    assert all(have_met(f"{folder}/{name}") for _, name in steps)


JOBS = [shards, pairs_and_clusters]


if __name__ == "__main__":
    (given,) = sys.argv[1:]
    from spark.conftest import SETTINGS

    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        # As soon as one task has ended, a copy of any that takes longer.
        "spark.speculation.quantile": "0.01",
        "spark.speculation.multiplier": "1.01",
        "spark.sql.warehouse.dir": f"{given}/warehouse",
    }
    session = two_machines(given, SETTINGS | speculation)
    try:
        for job in JOBS:
            job(session, given)
    finally:
        # Without it the workers start executors while the process ends, and what it says is lost in that.
        session.stop()
