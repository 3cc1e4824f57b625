"""A Spark of several processes on this machine, and what its executors take: for the other scripts of this folder."""

import contextlib
import glob
import os
import shutil
import sys
import tempfile
import threading
import time

import pyspark

import events

# How often the memory of the executors is looked at, in seconds.
EVERY = 0.25


def _processes():
    """The parent and the command of each process."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found[int(pid)] = parent, file.read()
    return found


def _proportional(pid):
    """Resident memory of a process in bytes; what it shares with others counts by its share."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError, StopIteration):
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    return 0


class Memory(threading.Thread):
    """Looks at the executors of this process: `peak` bytes of the largest with its Python workers, `jvm` and `python` apart."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.jvm = self.python = 0
        self._over = threading.Event()

    def run(self):
        while not self._over.wait(EVERY):
            self._look()

    def _look(self):
        processes = _processes()
        children = {}
        for pid, (parent, _) in processes.items():
            children.setdefault(parent, []).append(pid)
        unvisited, executors = [os.getpid()], []
        while unvisited:
            pid = unvisited.pop()
            if "CoarseGrainedExecutorBackend" in processes.get(pid, (0, ""))[1]:
                executors.append(pid)
            else:
                unvisited += children.get(pid, [])
        for executor in executors:
            workers, unvisited = [], list(children.get(executor, []))
            while unvisited:
                workers.append(unvisited.pop())
                unvisited += children.get(workers[-1], [])
            jvm, python = _proportional(executor), sum(map(_proportional, workers))
            self.peak, self.jvm, self.python = max(self.peak, jvm + python), max(self.jvm, jvm), max(self.python, python)

    def end(self):
        self._over.set()
        self.join()


class Cluster:
    """Executors in processes of their own, of a core each, with an event log in a folder that goes with it.

    ::

        with Cluster(memory=4096) as cluster:
            with cluster.measured("join") as memory:
                ...
            cluster.stop()
            cluster.groups()["join"].shuffled
    """

    def __init__(self, executors=2, memory=4096, settings=None, folder=None):
        self._home = tempfile.mkdtemp(prefix="spark-", dir=folder)
        self.scratch = os.path.join(self._home, "scratch")
        logs = os.path.join(self._home, "events")
        for place in (self.scratch, logs):
            os.mkdir(place)
        os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Executors of a local cluster keep their logs and files here.
        os.environ["SPARK_WORKER_DIR"] = os.path.join(self._home, "work")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local-cluster[{executors},1,{memory}]").appName("bench")
        chosen = {
            "spark.ui.enabled": "false",
            "spark.executor.memory": f"{memory}m",
            "spark.driver.memory": "1g",
            "spark.local.dir": self.scratch,
            "spark.sql.warehouse.dir": os.path.join(self._home, "warehouse"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{logs}",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            **(settings or {}),
        }
        for name, value in chosen.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.logs = logs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    @contextlib.contextmanager
    def measured(self, name):
        """Jobs started meanwhile are the group `name`; gives a `Memory`, which has `seconds` too when it is over."""
        memory = Memory()
        self.spark.sparkContext.setJobGroup(name, name)
        memory.start()
        start = time.perf_counter()
        try:
            yield memory
        finally:
            memory.seconds = time.perf_counter() - start
            memory.end()
            self.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)

    def stop(self):
        """After this the event log is whole."""
        self.spark.stop()

    def groups(self):
        (log,) = glob.glob(os.path.join(self.logs, "*"))
        return events.groups(log)
