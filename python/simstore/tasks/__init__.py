"""What one task of a cluster does: from an iterator of `pyarrow.RecordBatch` to an iterator of them.

Nothing here knows Spark: `DataFrame.mapInArrow` takes these functions, and so can whatever else hands Arrow batches to processes, as
Ray and Dask do. Each is deterministic, and may be repeated, or run twice at once.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError("simstore.tasks needs pyarrow: `pip install 'simstore[pyarrow]'`") from error
