"""Fingerprints as DataFrames have them, and settings for a while."""

import contextlib


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
