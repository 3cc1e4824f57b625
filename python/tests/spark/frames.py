"""Fingerprints in Spark DataFrames, and temporary settings of the session."""

import contextlib


def to_column_value(fingerprint, bits=64):
    """Returns a fingerprint as a column value: a signed long with the same 64 bits, or 16 big-endian bytes."""
    if fingerprint is None:
        return None
    if bits == 128:
        return fingerprint.to_bytes(16, "big")
    return fingerprint - (fingerprint >> 63 << 64)


def to_int(value):
    """Returns the fingerprint of a column value as an unsigned int."""
    if isinstance(value, int):
        return value % 2**64
    return None if value is None else int.from_bytes(value, "big")


def fingerprint_frame(spark, fingerprints, ids=None, bits=64, partitions=3, id_type="long"):
    """Returns a DataFrame with the columns `id` (default: positions) and `fingerprint`."""
    ids = range(len(fingerprints)) if ids is None else ids
    rows = [(id, to_column_value(fingerprint, bits)) for id, fingerprint in zip(ids, fingerprints, strict=True)]
    schema = f"id {id_type}, fingerprint {'long' if bits == 64 else 'binary'}"
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


@contextlib.contextmanager
def changed_settings(spark, changed):
    """Changes settings of Spark SQL, and restores them at the end of the `with` block."""
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
