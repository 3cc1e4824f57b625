"""Sets of fingerprints in shards, for sets that are too large for one machine: Spark tasks build the shards and query them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore import Builder, Profile
from simstore.spark import _columns, _partitioning
from simstore.spark._schemas import spark_schema
from simstore.tasks import queries
from simstore.tasks.columns import checked_bits
from simstore.tasks.queries import Fetch
from simstore.tasks.shards import LIST_FILE, WRITTEN, Shards, begin, build_shard, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def build_store(
    df: DataFrame,
    path: str | os.PathLike[str],
    shards: int,
    fingerprint: str = "fingerprint",
    id: str = "id",
    distance: int = 3,
    *,
    codec: Literal["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"] | None = None,
    plan: str | None = None,
    profile: Profile | str | None = None,
    memory: int | str | None = None,
    replace: bool = False,
) -> Shards:
    """Builds a set of fingerprints in shards. Each shard is a store, written by one task.

    The hash of a row's fingerprint and id selects its shard. So shards have similar sizes, even if many rows share a fingerprint, and
    equal rows are merged.

    Each task builds its store under a hidden name, and renames the complete store. If two attempts build the same shard, the first to
    finish counts. The list of shards is written last: until then the set does not exist, or the old set is still valid. If a run fails,
    the next run removes its files. Two runs must not write to the same directory at the same time.

    Parameters
    ----------
    df : DataFrame
        Read once.
    path : str or os.PathLike
        Directory of the set, with the same path on the driver and on all executors. It must be missing or empty, unless `replace` is True.
        To put shards into an object store, build them on a shared disk and copy the whole directory.
    shards : int
        Maximum number of shards; empty shards are not written. One task writes a shard, and one task reads it for queries.
    fingerprint : str
        Column of the fingerprints: bigint for 64 bits, binary of 16 bytes (the most significant first) for 128 bits. Rows with null are
        counted and skipped.
    id : str
        Column of the ids: bigint, not negative, not null.
    distance : int
        Maximum distance of later queries, in bits.
    codec, plan : str, optional
        See `simstore.Builder`.
    profile : Profile or str, optional
        Profile that made the fingerprints from texts. The set records its name.
    memory : int or str, optional
        Memory for sorting in each task, in bytes, or as "8G": 16 MiB or more. The default is a quarter of the machine's memory, which is
        too much if several tasks share a machine.
    replace : bool
        Whether existing shards are replaced when the new shards are complete. Queries that still read the old shards then fail.

    Returns
    -------
    Shards
        The list of the set's ``shards``, with the totals ``pairs`` (stored pairs of fingerprint and id) and ``missing`` (rows without a
        fingerprint).

    Raises
    ------
    FileExistsError
        If the directory has shards and `replace` is False, or if it has other files.
    ValueError, TypeError
        If columns are missing or of another type, ids are null or negative, or settings are invalid.

    Examples
    --------
    >>> from simstore.spark import build_store
    >>> pages = spark.createDataFrame([(1, 0b0000), (2, 0b1111), (3, None)], "id bigint, fingerprint bigint")
    >>> made = build_store(pages, "pages", shards=2)
    >>> made.pairs, made.missing
    (2, 1)
    """
    bits = checked_bits(_columns.fingerprint_bits(df, fingerprint))
    if not isinstance(id_type := _columns.column_type(df, id), T.LongType):
        raise TypeError(f"column `{id}` is {id_type.simpleString()}: ids of a store are bigint, not negative")
    if isinstance(shards, bool) or not isinstance(shards, int):
        raise TypeError(f"shards is a number, not {type(shards).__name__}")
    if shards < 1:
        raise ValueError(f"shards is {shards}: expected 1 or more")
    if isinstance(profile, str):
        profile = Profile(profile, bits=bits)
    # Raises an error for invalid settings before any task starts.
    with tempfile.TemporaryDirectory() as folder:
        Builder(os.path.join(folder, "store"), distance=distance, bits=bits, codec=codec, plan=plan, profile=profile, memory=memory)
    if profile is not None and profile.bits != bits:
        raise ValueError(f"the profile makes fingerprints of {profile.bits} bits, column `{fingerprint}` has {bits}")
    directory = os.path.abspath(path)
    run = begin(directory, replace)

    def build_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from build_shard(
            batches,
            directory,
            run,
            context.partitionId(),
            bits=bits,
            distance=distance,
            codec=codec,
            plan=plan,
            profile=profile,
            memory=memory,
        )

    rows = df.select(_columns.column(fingerprint).alias("fingerprint"), _columns.column(id).alias("id"))
    reports = rows.repartition(shards, "fingerprint", "id").mapInArrow(build_partition, spark_schema(WRITTEN)).collect()
    profile_name = None if profile is None else profile.name
    built = merged((row.asDict() for row in reports), run, bits=bits, distance=distance, profile=profile_name)
    for shard in built.shards:
        built.open(shard, os.path.join(directory, shard.folder))
    built.write(directory)
    return built


def query(
    df: DataFrame,
    path: str | os.PathLike[str],
    distance: int | None = None,
    fingerprint: str = "fingerprint",
    id: str = "id",
    *,
    fetch: Fetch | None = None,
    together: int = 1 << 20,
) -> DataFrame:
    """Queries a set of shards: returns the stored fingerprints near the fingerprints of a DataFrame, with their ids.

    The distinct fingerprints of the queries are packed in blocks of up to a megabyte, and compressed. Spark sends each block to the task
    of each shard. The task reads its shard once for many queries. No rows go through the driver. The shuffle has at most 8 bytes (16 for
    128 bits) for each query and shard. The matches are joined with the ids of the queries.

    Parameters
    ----------
    df : DataFrame
        Queries; read twice.
    path : str or os.PathLike
        Directory of the set, as given to `build_store`.
    distance : int, optional
        Maximum distance of a match, in bits. The default, which is also the largest possible value, is the distance that the set was built
        for.
    fingerprint : str
        Column of the fingerprints, with the types of `build_store`. A null has no matches.
    id : str
        Column of the queries' ids, without nulls, of any type that Spark can order.
    fetch : callable, optional
        Needed if the executors cannot read the directory. ``fetch(path)`` copies ``path`` (the file ``shards.json`` or the directory of a
        shard) to the local disk, and returns the local path. The driver calls it for ``shards.json``. Each executor calls it once for each
        shard that its tasks read. It must be possible to pickle the callable.
    together : int
        Approximate maximum number of queries in one pass over a shard. The task holds these queries and their matches in memory. More
        queries need more passes.

    Returns
    -------
    DataFrame
        With a row for each match, in no order: ``query``, the id of the query; ``id`` and ``fingerprint`` of the stored pair; and
        ``distance`` (int, in bits). A match is returned once, even if rows are repeated.

    Raises
    ------
    FileNotFoundError
        If the set or one of its shards is missing.
    CorruptError, NotAStoreError
        If the list of shards is damaged or of another format. A damaged shard ends the job with an error.
    ValueError, TypeError
        If columns are missing or of another type, fingerprints have another width, or the distance is too large.

    Examples
    --------
    >>> from simstore.spark import build_store, query
    >>> pages = spark.createDataFrame([(1, 0b0000), (2, 0b1111)], "id bigint, fingerprint bigint")
    >>> made = build_store(pages, "pages", shards=2)
    >>> asked = spark.createDataFrame([("a", 0b0001)], "id string, fingerprint bigint")
    >>> query(asked, "pages").orderBy("distance").show()
    +-----+---+-----------+--------+
    |query| id|fingerprint|distance|
    +-----+---+-----------+--------+
    |    a|  1|          0|       1|
    |    a|  2|         15|       3|
    +-----+---+-----------+--------+
    <BLANKLINE>
    """
    bits, ids = _columns.fingerprint_bits(df, fingerprint), _columns.id_column(df, id)
    # With `fetch`, the path may be a URL, which `abspath` would change.
    directory = os.fspath(path).rstrip("/") if fetch is not None else os.path.abspath(path)
    list_file = f"{directory}/{LIST_FILE}"
    stored = Shards.read(list_file if fetch is None else fetch(list_file))
    if stored.bits != bits:
        raise ValueError(f"column `{fingerprint}` has fingerprints of {bits} bits, {directory} of {stored.bits}")
    distance = stored.distance if distance is None else distance
    if isinstance(distance, bool) or not isinstance(distance, int):
        raise TypeError(f"distance is a number of bits, not {type(distance).__name__}")
    if not 0 <= distance <= stored.distance:
        raise ValueError(f"{directory}: distance {distance} is not one that these shards can answer (0 to {stored.distance})")
    if isinstance(together, bool) or not isinstance(together, int) or together < 1:
        raise ValueError(f"together is {together}: expected a number from 1")
    if fetch is None:
        for shard in stored.shards:
            stored.check(shard, os.path.join(directory, shard.folder))

    def pack_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from queries.pack(batches, "asked", bits)

    def query_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from queries.query_shards(
            batches, stored, directory, distance, fetch=fetch, folder=_executor_directory, together=together
        )

    rows = df.select(ids.alias("query"), _columns.column(fingerprint).alias("asked")).where("asked is not null").distinct()
    # Sorted, so that the blocks are equal if Spark computes them again after a fault. Spark refuses blocks that differ.
    fingerprints = rows.select("asked").distinct().sortWithinPartitions("asked")
    blocks = fingerprints.mapInArrow(pack_partition, spark_schema(queries.PACKED))
    # One partition for each shard, so that one task reads one shard.
    partitions = max(1, len(stored.shards))
    keys = [(shard, int(key)) for shard, key in enumerate(_partitioning.partition_keys(partitions))][: len(stored.shards)]
    targets = F.array(*(F.struct(F.lit(shard).alias("shard"), F.lit(key).alias("key")) for shard, key in keys))
    targets = targets.cast("array<struct<shard: int, key: int>>")
    sent = blocks.select("count", "queries", F.explode(targets).alias("target")).select("count", "queries", "target.*")
    matches = sent.repartition(partitions, "key").mapInArrow(query_partition, spark_schema(queries.found_schema(bits)))
    return matches.join(rows, "asked").select("query", "id", "fingerprint", "distance")


def _executor_directory() -> str:
    """Returns the directory that the tasks of an executor share. Spark removes it with the executor."""
    from pyspark import SparkFiles

    return os.path.abspath(SparkFiles.getRootDirectory())
