"""The work of single tasks on a cluster: functions from an iterator of `pyarrow.RecordBatch` to another one.

Nothing here depends on Spark. `DataFrame.mapInArrow` takes these functions, and so does any other system that passes Arrow batches to
processes, such as Ray and Dask. Each function is deterministic, and may be repeated, or run twice at once.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError("simstore.tasks needs pyarrow: `pip install 'simstore[pyarrow]'`") from error
