"""The work of single tasks on a cluster: functions that take an iterator of `pyarrow.RecordBatch` and return another iterator.

Nothing here depends on Spark. `DataFrame.mapInArrow` of Spark accepts these functions, and so does any other system that passes Arrow
batches to processes, such as Ray and Dask. Each function is deterministic, so a task may be repeated, or run twice at the same time.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError("simstore.tasks needs pyarrow: `pip install 'simstore[pyarrow]'`") from error
