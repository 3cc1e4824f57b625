"""Sets too large for one machine: builds shards in Spark tasks, and queries all of them."""

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
from simstore.tasks import queries as tasks
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
    codec: Literal["first-difference", "gap", "elias-fano", "all-differences"] | None = None,
    plan: str | None = None,
    profile: Profile | str | None = None,
    memory: int | str | None = None,
    replace: bool = False,
) -> Shards:
    """Builds a set of fingerprints as shards. Each shard is a store, written by one task.

    The hash of a row's fingerprint and id selects its shard. So shards have similar sizes, even if many rows share a fingerprint, and
    equal rows are merged.

    Each task builds its store under a hidden name, and renames the complete store. Of two attempts at a shard, the first counts. The list
    of shards is written last: until then the set does not exist, or the old set is still valid. The next run removes files of a failed
    run. Two runs must not write to the same directory at the same time.

    Parameters
    ----------
    df : DataFrame
        Read once.
    path : str or os.PathLike
        A directory that the driver and all executors see under this name. It must be missing or empty. To put shards into an object store,
        build them on a shared disk and copy the whole directory.
    shards : int
        The largest number of shards; empty shards are not written. One task writes a shard, and one task reads it for queries.
    fingerprint : str
        The column of the fingerprints: bigint for 64 bits, binary of 16 bytes (the most significant first) for 128. Rows with null are
        counted and skipped.
    id : str
        The column of the ids: bigint, not negative, not null.
    distance : int
        The largest distance of later queries, in bits.
    codec, plan : str, optional
        As for `simstore.Builder`.
    profile : Profile or str, optional
        How texts become fingerprints. The set records the profile's name.
    memory : int or str, optional
        Memory for sorting in each task, in bytes, or as "8G": 16 MiB or more. The default is a quarter of the machine's memory, which is
        too much if several tasks share a machine.
    replace : bool
        Whether existing shards are replaced, once the new ones are complete. Queries that still read the old shards then fail.

    Returns
    -------
    Shards
        The contents of the set: ``pairs``, ``missing`` (rows without a fingerprint), and the contents of each of its ``shards``.

    Raises
    ------
    FileExistsError
        If the directory has shards or other files.
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
    if not isinstance(found := _columns.column_type(df, id), T.LongType):
        raise TypeError(f"column `{id}` is {found.simpleString()}: ids of a store are bigint, not negative")
    if isinstance(shards, bool) or not isinstance(shards, int):
        raise TypeError(f"shards is a number, not {type(shards).__name__}")
    if shards < 1:
        raise ValueError(f"shards is {shards}: expected 1 or more")
    if isinstance(profile, str):
        profile = Profile(profile, bits=bits)
    # Invalid settings are refused here, before any task starts.
    with tempfile.TemporaryDirectory() as folder:
        Builder(os.path.join(folder, "store"), distance=distance, bits=bits, codec=codec, plan=plan, profile=profile, memory=memory)
    if profile is not None and profile.bits != bits:
        raise ValueError(f"the profile makes fingerprints of {profile.bits} bits, column `{fingerprint}` has {bits}")
    place = os.path.abspath(path)
    run = begin(place, replace)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from build_shard(
            batches,
            place,
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
    written = rows.repartition(shards, "fingerprint", "id").mapInArrow(task, spark_schema(WRITTEN)).collect()
    name = None if profile is None else profile.name
    made = merged((row.asDict() for row in written), run, bits=bits, distance=distance, profile=name)
    for shard in made.shards:
        made.open(shard, os.path.join(place, shard.folder))
    made.write(place)
    return made


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
    """Returns the pairs of a set of shards that are near the fingerprints of a DataFrame.

    The distinct fingerprints of the queries are packed in blocks of up to a megabyte, and compressed. Spark sends each block to each
    shard, whose task streams the shard past many queries at once. No rows go through the driver, and the shuffle has at most 8 bytes (16
    for 128 bits) for each query and shard. The matches are joined with the ids of the queries.

    Parameters
    ----------
    df : DataFrame
        The queries; read twice.
    path : str or os.PathLike
        The directory given to `build_store`.
    distance : int, optional
        In bits. The default is the distance that the set was built for, which is also the maximum.
    fingerprint : str
        The column of the fingerprints, as for `build_store`. A null matches nothing.
    id : str
        The column of the queries' ids, of any type with an order. None may be null.
    fetch : callable, optional
        Needed if executors cannot read the directory. ``fetch(path)`` copies ``path`` (the file ``shards.json`` or the directory of a
        shard) to the local disk, and returns the local path. The driver calls it for the list. Each executor calls it once for each shard
        that its tasks read. It is pickled.
    together : int
        Approximate maximum number of queries in one pass over a shard. The task holds these queries and their matches in memory. More
        queries need more passes.

    Returns
    -------
    DataFrame
        With columns query (the id of the query), id, fingerprint and distance (int) of each match. A match is returned once, even if rows
        are repeated. Rows have no order.

    Raises
    ------
    FileNotFoundError
        If the set or one of its shards is missing.
    CorruptError, NotAStoreError
        If the list is damaged or of another format. A damaged shard ends the job.
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
    # With `fetch`, the path may be an address, which `abspath` would damage.
    place = os.fspath(path).rstrip("/") if fetch is not None else os.path.abspath(path)
    stored = Shards.read(f"{place}/{LIST}" if fetch is None else fetch(f"{place}/{LIST}"))
    if stored.bits != bits:
        raise ValueError(f"column `{fingerprint}` has fingerprints of {bits} bits, {place} of {stored.bits}")
    distance = stored.distance if distance is None else distance
    if isinstance(distance, bool) or not isinstance(distance, int):
        raise TypeError(f"distance is a number of bits, not {type(distance).__name__}")
    if not 0 <= distance <= stored.distance:
        raise ValueError(f"{place}: distance {distance} is not one that these shards can answer (0 to {stored.distance})")
    if isinstance(together, bool) or not isinstance(together, int) or together < 1:
        raise ValueError(f"together is {together}: expected a number from 1")
    if fetch is None:
        for shard in stored.shards:
            stored.check(shard, os.path.join(place, shard.folder))

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from tasks.pack(batches, "asked", bits)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from tasks.query_shards(
            batches, stored, place, distance, fetch=fetch, folder=_working_folder, together=together
        )

    rows = df.select(ids.alias("query"), _columns.column(fingerprint).alias("asked")).where("asked is not null").distinct()
    # Sorted, so that blocks are equal when Spark computes them again after a fault. Spark refuses other blocks.
    asked = rows.select("asked").distinct().sortWithinPartitions("asked")
    blocks = asked.mapInArrow(pack, spark_schema(tasks.PACKED))
    # A partition for each shard, so that one task streams one shard.
    count = max(1, len(stored.shards))
    keys = [(shard, int(key)) for shard, key in enumerate(_partitioning.partition_keys(count))][: len(stored.shards)]
    to = F.array(*(F.struct(F.lit(shard).alias("shard"), F.lit(key).alias("key")) for shard, key in keys))
    to = to.cast("array<struct<shard: int, key: int>>")
    sent = blocks.select("count", "queries", F.explode(to).alias("to")).select("count", "queries", "to.*")
    found = sent.repartition(count, "key").mapInArrow(task, spark_schema(tasks.found_schema(bits)))
    return found.join(rows, "asked").select("query", "id", "fingerprint", "distance")


def _working_folder() -> str:
    """Returns a directory that the tasks of an executor share, and that is removed with the executor."""
    from pyspark import SparkFiles

    return os.path.abspath(SparkFiles.getRootDirectory())
