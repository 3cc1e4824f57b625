"""Sets too large for one machine: stores that Spark's tasks write, and the queries past all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from simstore import Builder, Profile
from simstore.spark import _columns, _places
from simstore.spark._schemas import schema_of
from simstore.tasks import queries as tasks
from simstore.tasks.columns import width_of
from simstore.tasks.queries import Fetch
from simstore.tasks.shards import LIST, WRITTEN, Shards, begin, build_shard, merged

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
    """Builds a set of fingerprints as stores, its shards: one for each task.

    A row goes to the shard that the hash of its fingerprint and id says: shards are about of one size however crowded the set is, and
    rows that are equal are one.
    Each task builds its store under a hidden name and renames it when it is whole; of two attempts at a shard, the first counts. The
    list of the shards is written last: until then the set is not there, or is the old one. What a run that failed has left is removed by
    the next one. Two runs are not to write to one folder at the same time.

    Parameters
    ----------
    df : DataFrame
        Read once.
    path : str or os.PathLike
        A folder that the driver and all executors see under this name: it is not there, or empty. Shards that are to be in an object
        store are built on a shared disk and copied, all of the folder.
    shards : int
        How many, at most: one that would hold nothing is not written. A task writes one, and a task reads one when they are queried.
    fingerprint : str
        The column: bigint for 64 bits, binary of 16 bytes (the most significant first) for 128. Rows where it is null are in no shard,
        and counted.
    id : str
        The column of the ids: bigint, not negative, not null.
    distance : int
        The largest distance that queries will ask for, in bits.
    codec, plan : str, optional
        As for `simstore.Builder`.
    profile : Profile or str, optional
        How texts became fingerprints: kept with the shards.
    memory : int or str, optional
        Memory for sorting in each task, in bytes, or as "8G": 16 MiB or more. A quarter of the machine's by default,
        which is too much where several tasks share one.
    replace : bool
        Whether shards that are there are replaced, once the new ones are complete. Queries of the old ones that are under way fail then.

    Returns
    -------
    Shards
        What the set holds: ``pairs``, ``missing`` (rows without a fingerprint), and what each of its ``shards`` does.

    Raises
    ------
    FileExistsError
        If the folder has shards, or anything else.
    ValueError, TypeError
        For columns that are not there or of another type, ids that are null or negative, settings that make no sense.

    Examples
    --------
    >>> from simstore.spark import build_store
    >>> pages = spark.createDataFrame([(1, 0b0000), (2, 0b1111), (3, None)], "id bigint, fingerprint bigint")
    >>> made = build_store(pages, "pages", shards=2)
    >>> made.pairs, made.missing
    (2, 1)
    """
    bits = width_of(_columns.width(df, fingerprint))
    if not isinstance(found := _columns.type_of(df, id), T.LongType):
        raise TypeError(f"column `{id}` is {found.simpleString()}: ids of a store are bigint, not negative")
    if isinstance(shards, bool) or not isinstance(shards, int):
        raise TypeError(f"shards is a number, not {type(shards).__name__}")
    if shards < 1:
        raise ValueError(f"shards is {shards}: expected 1 or more")
    if isinstance(profile, str):
        profile = Profile(profile, bits=bits)
    # Settings that make no sense are refused here, not by the tasks.
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
    written = rows.repartition(shards, "fingerprint", "id").mapInArrow(task, schema_of(WRITTEN)).collect()
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
    """What is near the fingerprints of a DataFrame in a set of shards.

    The fingerprints that are asked for, each once, are packed in blocks of up to a megabyte, and compressed. Spark sends each block to
    each shard, whose task streams the shard past many queries at once. Nothing goes through the driver: what is shuffled is at most 8
    bytes (16 of 128 bits) for each query and shard. What is found is joined with the ids of the queries.

    Parameters
    ----------
    df : DataFrame
        The queries; read twice.
    path : str or os.PathLike
        The folder that `build_store` made.
    distance : int, optional
        In bits; by default the one that the set was built for, which is also the largest.
    fingerprint : str
        The column, as for `build_store`. Nothing is near a null.
    id : str
        The column of the queries' ids, of any type that has an order. None may be null.
    fetch : callable, optional
        Where executors do not see the folder: ``fetch(path)`` copies what is at a path, the file ``path/shards.json`` or the folder of a
        shard, to the local disk, and returns where. The driver calls it for the list; of the executors each calls it once for a shard
        that its tasks read. It is pickled.
    together : int
        At most so many queries, about, go past a shard at once. A shard is read once for each so many, and the task has them, and what is
        near them, in memory.

    Returns
    -------
    DataFrame
        With columns query (the id of the query), id, fingerprint and distance (int) of what is near it: each once, however often
        rows are repeated; in no order.

    Raises
    ------
    FileNotFoundError
        If the set, or one of its shards, is not there.
    CorruptError, NotAStoreError
        If the list is not as it was written, or something else. A shard that is not ends the job.
    ValueError, TypeError
        For columns that are not there or of another type, fingerprints of another width, a distance that is too large.

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
    bits, ids = _columns.width(df, fingerprint), _columns.ids(df, id)
    # Not `abspath` where it may be an address.
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
    # Sorted, so that blocks that are made again after a fault are the same: Spark refuses others.
    asked = rows.select("asked").distinct().sortWithinPartitions("asked")
    blocks = asked.mapInArrow(pack, schema_of(tasks.PACKED))
    # A partition for each shard: one task streams one.
    count = max(1, len(stored.shards))
    keys = [(shard, int(key)) for shard, key in enumerate(_places.keys(count))][: len(stored.shards)]
    to = F.array(*(F.struct(F.lit(shard).alias("shard"), F.lit(key).alias("key")) for shard, key in keys))
    to = to.cast("array<struct<shard: int, key: int>>")
    sent = blocks.select("count", "queries", F.explode(to).alias("to")).select("count", "queries", "to.*")
    found = sent.repartition(count, "key").mapInArrow(task, schema_of(tasks.found_schema(bits)))
    return found.join(rows, "asked").select("query", "id", "fingerprint", "distance")


def _working_folder() -> str:
    """A folder that the tasks of one executor share, and that goes with it."""
    from pyspark import SparkFiles

    return os.path.abspath(SparkFiles.getRootDirectory())
