"""Near-duplicates on more than one machine: the same answers, for DataFrames of Spark."""

try:
    import pyarrow as _pyarrow
    import pyspark.sql as _sql
except ImportError as error:
    raise ImportError("simstore.spark needs pyspark and pyarrow: `pip install 'simstore[spark]'`") from error

from simstore.spark.shards import build_store, query

__all__ = ["build_store", "query"]
