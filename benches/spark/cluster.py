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
    """Of each process the parent, the ticks of the processor that it has had, and the command."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found[int(pid)] = int(fields[1]), int(fields[11]) + int(fields[12]), file.read()
    return found


def _proportional(pid):
    """Resident memory of a process in bytes; what it shares with others counts by its share."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError, StopIteration):
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    return 0


class Memory(threading.Thread):
    """Looks at the executors of this process.

    `peak` is bytes of the largest with its Python workers, `jvm` and `python` apart; `processor` seconds of all processes of this Spark,
    the driver's too, since it was started.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.jvm = self.python = 0
        self._over = threading.Event()
        self._before, self._ticks = {}, {}
        self._look()
        self._before = dict(self._ticks)

    @property
    def processor(self):
        ticks = sum(ticks - self._before.get(pid, 0) for pid, ticks in self._ticks.items())
        return ticks / os.sysconf("SC_CLK_TCK")

    def run(self):
        while not self._over.wait(EVERY):
            self._look()

    def _look(self):
        processes = _processes()
        children = {}
        for pid, (parent, _, _) in processes.items():
            children.setdefault(parent, []).append(pid)

        def below(root):
            for child in children.get(root, []):
                yield child
                yield from below(child)

        all_of_it = [os.getpid(), *below(os.getpid())]
        self._ticks.update((pid, processes[pid][1]) for pid in all_of_it if pid in processes)
        executors = [pid for pid in all_of_it if pid in processes and "CoarseGrainedExecutorBackend" in processes[pid][2]]
        for executor in executors:
            workers = list(below(executor))
            jvm, python = _proportional(executor), sum(map(_proportional, workers))
            self.peak, self.jvm, self.python = max(self.peak, jvm + python), max(self.jvm, jvm), max(self.python, python)

    def end(self):
        self._over.set()
        self.join()
        self._look()


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
