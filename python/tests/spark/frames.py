"""Fingerprints as DataFrames have them, and what tests do to a cluster."""

import contextlib

import psutil


def value(fingerprint, bits=64):
    """A fingerprint as a DataFrame has it: a long with the same 64 bits, or 16 bytes, the most significant first."""
    if fingerprint is None:
        return None
    if bits == 128:
        return fingerprint.to_bytes(16, "big")
    return fingerprint - (fingerprint >> 63 << 64)


def number(value):
    """The fingerprint of a value in a DataFrame, as an unsigned int."""
    if isinstance(value, int):
        return value % 2**64
    return None if value is None else int.from_bytes(value, "big")


def frame(spark, fingerprints, ids=None, bits=64, partitions=3, id_type="long"):
    """A DataFrame of the columns `id` (positions, where none are given) and `fingerprint`."""
    ids = range(len(fingerprints)) if ids is None else ids
    rows = [(id, value(one, bits)) for id, one in zip(ids, fingerprints, strict=True)]
    schema = f"id {id_type}, fingerprint {'long' if bits == 64 else 'binary'}"
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


@contextlib.contextmanager
def settings(spark, changed):
    """Other settings of SQL for a while."""
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def executors():
    """The processes of the executors."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                found.append(process)
    return found


def kill_executor(spark):
    """Kills one executor, as a lost machine would; the cluster starts another. The process that is gone is returned."""
    executor = min(executors(), key=lambda process: process.pid)
    executor.kill()
    executor.wait()
    return executor
