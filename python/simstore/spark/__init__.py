"""Near-duplicate detection for Spark DataFrames. The results are the same as on one machine."""

try:
    import pyarrow as _pyarrow  # noqa: F401
    import pyspark.sql as _sql  # noqa: F401
except ImportError as error:
    raise ImportError("simstore.spark needs pyspark and pyarrow: `pip install 'simstore[spark]'`") from error

from simstore.spark._persist import release
from simstore.spark.clusters import clusters
from simstore.spark.dedup import dedup
from simstore.spark.fingerprints import fingerprint
from simstore.spark.pairs import near_pairs
from simstore.spark.parts import choose_parts
from simstore.spark.shards import build_store, query
from simstore.spark.similar import similar_pairs

__all__ = [
    "build_store",
    "choose_parts",
    "clusters",
    "dedup",
    "fingerprint",
    "near_pairs",
    "query",
    "release",
    "similar_pairs",
]
