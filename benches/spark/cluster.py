"""Starts a local Spark cluster and measures the time and memory of its processes, for the other scripts of this folder."""

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

# Seconds between two samples of the executors' memory.
SAMPLE_SECONDS = 0.25


def _read_processes():
    """Returns {pid: (parent pid, CPU time in clock ticks, command line)} of all processes."""
    processes = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                processes[int(pid)] = int(fields[1]), int(fields[11]) + int(fields[12]), file.read()
    return processes


def _proportional_memory(pid):
    """Returns the memory of a process in bytes, or 0 if the process has ended. A page shared by n processes counts 1/n."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError, StopIteration):
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    return 0


class UsageMonitor(threading.Thread):
    """Measures the memory and time of the Spark cluster that this process started, by regular samples.

    `peak` is the largest memory of an executor with its Python workers, in bytes. `jvm` is the largest memory of an executor without the
    workers, `python` the largest memory of the workers of an executor. `processor` is the CPU seconds of all processes of the cluster,
    including the driver, since the monitor was created.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.jvm = self.python = 0
        self._stopped = threading.Event()
        self._ticks_before, self._ticks = {}, {}
        self._sample()
        self._ticks_before = dict(self._ticks)

    @property
    def processor(self):
        ticks = sum(ticks - self._ticks_before.get(pid, 0) for pid, ticks in self._ticks.items())
        return ticks / os.sysconf("SC_CLK_TCK")

    def run(self):
        while not self._stopped.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self):
        processes = _read_processes()
        children = {}
        for pid, (parent, _, _) in processes.items():
            children.setdefault(parent, []).append(pid)

        def descendants(root):
            for child in children.get(root, []):
                yield child
                yield from descendants(child)

        pids = [os.getpid(), *descendants(os.getpid())]
        self._ticks.update((pid, processes[pid][1]) for pid in pids if pid in processes)
        executors = [pid for pid in pids if pid in processes and "CoarseGrainedExecutorBackend" in processes[pid][2]]
        for executor in executors:
            workers = list(descendants(executor))
            jvm, python = _proportional_memory(executor), sum(map(_proportional_memory, workers))
            self.peak, self.jvm, self.python = max(self.peak, jvm + python), max(self.jvm, jvm), max(self.python, python)

    def stop(self):
        self._stopped.set()
        self.join()
        self._sample()


class Cluster:
    """A Spark cluster on this machine. Each executor is a process with one core.

    Spark writes an event log to a temporary folder, which is removed at the end of the `with` block.

    ::

        with Cluster(memory=4096) as cluster:
            with cluster.measured("join") as usage:
                ...
            cluster.stop()
            cluster.groups()["join"].shuffled_bytes
    """

    def __init__(self, executors=2, memory=4096, settings=None, folder=None):
        self._home = tempfile.mkdtemp(prefix="spark-", dir=folder)
        self.scratch = os.path.join(self._home, "scratch")
        logs = os.path.join(self._home, "events")
        for directory in (self.scratch, logs):
            os.mkdir(directory)
        os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Folder for the logs and files of the executors of a local cluster.
        os.environ["SPARK_WORKER_DIR"] = os.path.join(self._home, "work")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local-cluster[{executors},1,{memory}]").appName("bench")
        options = {
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
        for name, value in options.items():
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
        """Assigns the jobs of a `with` block to the job group `name`, and measures them.

        The value of the `with` statement is a `UsageMonitor`. After the block, the monitor has the duration `seconds` too.
        """
        monitor = UsageMonitor()
        self.spark.sparkContext.setJobGroup(name, name)
        monitor.start()
        start = time.perf_counter()
        try:
            yield monitor
        finally:
            monitor.seconds = time.perf_counter() - start
            monitor.stop()
            self.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)

    def stop(self):
        """Stops Spark, which completes the event log."""
        self.spark.stop()

    def groups(self):
        (log,) = glob.glob(os.path.join(self.logs, "*"))
        return events.read_groups(log)
