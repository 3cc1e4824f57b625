"""Functions for the tasks of a compute cluster. Each takes an iterator of `pyarrow.RecordBatch`, and yields batches.

The functions do not depend on Spark. Spark accepts them in `DataFrame.mapInArrow`. Other systems that pass Arrow batches to processes, such
as Ray and Dask, can call them too. Each function is deterministic, so a task may be repeated, or run twice at the same time.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError("simstore.tasks needs pyarrow: `pip install 'simstore[pyarrow]'`") from error
