"""Join of fingerprints in many tasks: all near pairs, or clusters. `simstore.JoinParts` describes the join.

The steps are `pack`, then `scatter`, then `near` for pairs or `connect` for clusters. `pack` groups fingerprints into *buckets* by a hash:
equal fingerprints are in the same bucket. `scatter` distributes them to the *places* of the join: a place is one part of one
table. After each of these two steps, send the rows with the same ``place`` to one task. `merge` merges the forests that `connect`
yields, in one or more rounds. One task then calls `members` on all remaining forests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import simstore
from simstore.tasks.columns import checked_bits, fingerprint_column, fingerprint_type

# Number of fingerprints that a task collects before it packs them, so that a packed value has many fingerprints even with many buckets.
PACK_FINGERPRINTS = 1 << 20
# Maximum number of rows in a yielded batch.
BATCH_ROWS = 1 << 16

#: Schema of packed fingerprints: ``place``, a bucket (after `pack`) or a place of the join (after `scatter`); its ``fingerprints``; and
#: ``repeated``, the fingerprints that occur several times, or null.
SENT = pa.schema([("place", pa.int32()), ("fingerprints", pa.binary()), ("repeated", pa.binary())])
#: Schema of forests: packed edges, which are pairs of fingerprints.
EDGES = pa.schema([("edges", pa.binary())])


def near_schema(bits: int) -> pa.Schema:
    """Returns the schema of near pairs: two fingerprints, and their distance in bits."""
    return pa.schema([("a", fingerprint_type(bits)), ("b", fingerprint_type(bits)), ("distance", pa.int32())])


def nodes_schema(bits: int) -> pa.Schema:
    """Returns the schema of the batches of `unpack`: the two fingerprints of an edge, with one row for each edge."""
    return pa.schema([("node", fingerprint_type(bits)), ("other", fingerprint_type(bits))])


def members_schema(bits: int) -> pa.Schema:
    """Returns the schema of the members of clusters, each with the root of its cluster."""
    return pa.schema([("member", fingerprint_type(bits)), ("root", fingerprint_type(bits))])


def pack(
    batches: Iterable[pa.RecordBatch], parts: simstore.JoinParts, fingerprint: str = "fingerprint", buckets: int = 1
) -> Iterator[pa.RecordBatch]:
    """Groups fingerprints by a hash, and packs many distinct fingerprints of a group into one row.

    The groups are called *buckets*. Equal fingerprints are in the same bucket. Send all rows of a bucket to one task.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    parts : JoinParts
        The join, the same in all tasks.
    fingerprint : str
        Column of the fingerprints: int64 or uint64 for 64 bits, 16 bytes each for 128 bits. Nulls are left out.
    buckets : int
        Number of buckets, the same in all tasks.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `SENT`, as `JoinParts.pack` returns it. The column ``place`` has the bucket.
    """
    waiting: list[pa.Array] = []
    count = 0
    for batch in batches:
        waiting.append(fingerprint_column(batch, fingerprint, parts.bits))
        count += len(waiting[-1])
        if count >= PACK_FINGERPRINTS:
            yield from _packed_batches(parts.pack(pa.chunked_array(waiting), buckets))
            waiting, count = [], 0
    if waiting:
        yield from _packed_batches(parts.pack(pa.chunked_array(waiting), buckets))


def scatter(batches: Iterable[pa.RecordBatch], parts: simstore.JoinParts) -> Iterator[pa.RecordBatch]:
    """Collapses the equal fingerprints of one or more buckets, and packs each distinct fingerprint once for each table of the join.

    A bucket has the fingerprints with the same value of a hash. A place of the join is one part of one table.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the schema `SENT`: all rows of these buckets. The column ``repeated`` may be missing, as in the batches of `rows.pack_rows`.
    parts : JoinParts
        The join, the same in all tasks.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `SENT`; ``place`` is a place of the join.
    """
    for _, fingerprints, repeated in _group_by_place(batches):
        yield from _packed_batches(parts.scatter(fingerprints, repeated))


def near(batches: Iterable[pa.RecordBatch], parts: simstore.JoinParts) -> Iterator[pa.RecordBatch]:
    """Finds the near pairs of one or more places. A place is one part of one table of the join.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the schema `SENT`: all rows of these places.
    parts : JoinParts
        The join, the same in all tasks.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `near_schema`; a <= b as unsigned numbers. Only one place yields a given pair. A fingerprint that occurs several
        times is also paired with itself.
    """
    for place, fingerprints, repeated in _group_by_place(batches):
        for pairs in parts.pairs(place, fingerprints, repeated):
            table = pa.table(pairs)
            columns = [*_fingerprint_columns(table, ["a", "b"]), table.column("distance").cast(pa.int32())]
            yield from pa.table(columns, schema=near_schema(parts.bits)).to_batches(max_chunksize=BATCH_ROWS)


def connect(batches: Iterable[pa.RecordBatch], parts: simstore.JoinParts) -> Iterator[pa.RecordBatch]:
    """Connects the near fingerprints of one or more places. A place is one part of one table of the join.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the schema `SENT`: all rows of these places.
    parts : JoinParts
        The join, the same in all tasks.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `EDGES`: a forest for each place, as `JoinParts.forest` returns it. A forest has edges that connect the members
        of each cluster, one edge fewer than members.
    """
    for place, fingerprints, repeated in _group_by_place(batches):
        yield from _edge_batches(parts.forest(place, fingerprints, repeated))


def connect_pairs(
    batches: Iterable[pa.RecordBatch], a: str = "a", b: str = "b", bits: int = 64
) -> Iterator[pa.RecordBatch]:
    """Makes a forest from pairs of fingerprints.

    A forest has edges that connect the members of each cluster, one edge fewer than members.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    a, b : str
        Columns of the fingerprints: int64 or uint64 for 64 bits, 16 bytes each for 128 bits.
    bits : {64, 128}
        Width of the fingerprints.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `EDGES`: one forest.
    """
    forest = simstore.Forest(checked_bits(bits))
    for batch in batches:
        forest.connect(fingerprint_column(batch, a, bits), fingerprint_column(batch, b, bits))
    yield from _edge_batches(forest.packed())


def merge(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """Merges forests into one forest.

    A forest has edges that connect the members of each cluster, one edge fewer than members.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the column ``edges`` of the schema `EDGES`. Other columns are ignored.
    bits : {64, 128}
        Width of the fingerprints.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `EDGES`: one forest.
    """
    yield from _edge_batches(_merge_forests(batches, bits).packed())


def unpack(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """Unpacks the edges of forests into one row for each edge. The edges of a forest connect the members of each cluster.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the column ``edges`` of the schema `EDGES`.
    bits : {64, 128}
        Width of the fingerprints.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `nodes_schema`. If a fingerprint is connected only with itself, ``node`` and ``other`` are equal.
    """
    for batch in batches:
        first, member = _fingerprint_columns(pa.table(_merge_forests([batch], bits).edges()), ["first", "member"])
        yield from pa.table([member, first], schema=nodes_schema(bits)).to_batches(max_chunksize=BATCH_ROWS)


def members(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """Merges forests (edges that connect the members of each cluster), and yields the members of all clusters.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the column ``edges`` of the schema `EDGES`: the edges of all forests.
    bits : {64, 128}
        Width of the fingerprints.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `members_schema`: all members of each cluster, including the root. The root is the smallest member, compared as an
        unsigned number.
    """
    edges = pa.table(_merge_forests(batches, bits).edges())
    root, member = _fingerprint_columns(edges, ["first", "member"])
    roots = root.unique()
    # The next lines add each root once, so edges of a root to itself are left out.
    is_other = pc.not_equal(root, member)
    columns = [
        pa.chunked_array([*member.filter(is_other).chunks, roots], root.type),
        pa.chunked_array([*root.filter(is_other).chunks, roots], root.type),
    ]
    yield from pa.table(columns, schema=members_schema(bits)).to_batches(max_chunksize=BATCH_ROWS)


def _merge_forests(batches: Iterable[pa.RecordBatch], bits: int) -> simstore.Forest:
    forest = simstore.Forest(checked_bits(bits))
    for batch in batches:
        forest.merge(batch.column("edges"))
    return forest


def _group_by_place(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.ChunkedArray, pa.ChunkedArray]]:
    """Groups the rows of batches with the schema `SENT` by the column ``place``.

    Yields for each value of ``place`` the value, and the columns ``fingerprints`` and ``repeated`` of the rows with this value.
    """
    # With the schema, because the iterator may be empty.
    table = sort_packed(pa.Table.from_batches([_with_repeated(batch) for batch in batches], SENT), SENT.names)
    places = table.column("place")
    for place in sorted(places.unique().to_pylist()):
        place_rows = table.filter(pc.equal(places, place)) if len(places.unique()) > 1 else table
        yield place, place_rows.column("fingerprints"), place_rows.column("repeated")


def sort_packed(table: pa.Table, names: list[str]) -> pa.Table:
    """Sorts packed rows by the columns `names`, so that the result does not depend on their order of arrival.

    The order matters, because a job fails if Spark computes lost data again and the data differs.
    """
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))


def _with_repeated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch with the schema `SENT`. A missing column ``repeated`` becomes nulls."""
    if "repeated" in batch.schema.names:
        return batch.select(SENT.names)
    columns = [batch.column("place"), batch.column("fingerprints"), pa.nulls(batch.num_rows, pa.binary())]
    return pa.record_batch(columns, schema=SENT)


def _packed_batches(table: simstore.Table) -> Iterator[pa.RecordBatch]:
    yield from pa.table(table).cast(SENT).to_batches()


def _edge_batches(edges: simstore.Array) -> Iterator[pa.RecordBatch]:
    yield from pa.table([pa.array(edges)], schema=EDGES).to_batches()


def _fingerprint_columns(table: pa.Table, names: list[str]) -> list[Any]:
    """Returns the columns `names`, which are fingerprints, with the type `fingerprint_type`."""
    columns = [table.column(name) for name in names]
    if columns[0].type == pa.uint64():
        return [pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64()) for column in columns]
    return [column.cast(pa.binary()) for column in columns]
