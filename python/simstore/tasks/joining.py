"""A join in parts: all pairs, or clusters, of fingerprints that many tasks hold (`simstore.Parts`).

The steps, and what brings rows together between them: `pack`, by ``place``; `scatter`, by ``place``; then `near` or `connect`; of what
`connect` gives, `merge` in any grouping, down to one task, and `members`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import simstore
from simstore.tasks.columns import fingerprints_of, value_of, width_of

# Fingerprints that a task packs together: enough for blocks of thousands, whatever the number of buckets.
TOGETHER = 1 << 20
# Rows of a batch that a task gives.
ROWS = 1 << 16

SENT = pa.schema([("place", pa.int32()), ("fingerprints", pa.binary()), ("repeated", pa.binary())])
EDGES = pa.schema([("edges", pa.binary())])


def near_schema(bits: int) -> pa.Schema:
    """Of pairs of fingerprints."""
    return pa.schema([("a", value_of(bits)), ("b", value_of(bits)), ("distance", pa.int32())])


def nodes_schema(bits: int) -> pa.Schema:
    """Of edges, a row each."""
    return pa.schema([("node", value_of(bits)), ("other", value_of(bits))])


def members_schema(bits: int) -> pa.Schema:
    """Of the members of clusters."""
    return pa.schema([("member", value_of(bits)), ("root", value_of(bits))])


def pack(
    batches: Iterable[pa.RecordBatch], parts: simstore.Parts, fingerprint: str = "fingerprint", buckets: int = 1
) -> Iterator[pa.RecordBatch]:
    """Packs fingerprints, each once, by buckets.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    parts : Parts
    fingerprint : str
        The column: int64 or uint64 for 64 bits, 16 bytes each for 128. Nulls are left out.
    buckets : int

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `SENT`: place (the bucket), fingerprints and repeated (packed), as `Parts.pack` gives them.
    """
    waiting: list[pa.Array] = []
    count = 0
    for batch in batches:
        waiting.append(fingerprints_of(batch, fingerprint, parts.bits))
        count += len(waiting[-1])
        if count >= TOGETHER:
            yield from _sent(parts.pack(pa.chunked_array(waiting), buckets))
            waiting, count = [], 0
    if waiting:
        yield from _sent(parts.pack(pa.chunked_array(waiting), buckets))


def scatter(batches: Iterable[pa.RecordBatch], parts: simstore.Parts) -> Iterator[pa.RecordBatch]:
    """Collapses what came to one bucket, or some, and sends it once for each table.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Of the schema `SENT`: all rows of these places. Or with columns place and fingerprints alone, as `rows.pack_rows` packs them.
    parts : Parts

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `SENT`: place is one of the join now.
    """
    for _, fingerprints, repeated in _by_place(batches):
        yield from _sent(parts.scatter(fingerprints, repeated))


def near(batches: Iterable[pa.RecordBatch], parts: simstore.Parts) -> Iterator[pa.RecordBatch]:
    """Finds the pairs of one place, or some.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Of the schema `SENT`: all rows of these places.
    parts : Parts

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `near_schema`; a <= b as unsigned numbers. Over all places each pair
        is there once, and what was there several times in a pair with itself.
    """
    for place, fingerprints, repeated in _by_place(batches):
        for pairs in parts.pairs(place, fingerprints, repeated):
            table = pa.table(pairs)
            columns = [*_values(table, ["a", "b"]), table.column("distance").cast(pa.int32())]
            yield from pa.table(columns, schema=near_schema(parts.bits)).to_batches(max_chunksize=ROWS)


def connect(batches: Iterable[pa.RecordBatch], parts: simstore.Parts) -> Iterator[pa.RecordBatch]:
    """Connects the fingerprints of one place, or some, that are near each other.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Of the schema `SENT`: all rows of these places.
    parts : Parts

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `EDGES`: packed edges, fewer than fingerprints, as `Parts.forest` gives them.
    """
    for place, fingerprints, repeated in _by_place(batches):
        yield from _packed(parts.forest(place, fingerprints, repeated))


def connect_pairs(
    batches: Iterable[pa.RecordBatch], a: str = "a", b: str = "b", bits: int = 64
) -> Iterator[pa.RecordBatch]:
    """Connects the two of each pair.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    a, b : str
        The columns: int64 or uint64, or 16 bytes each.
    bits : {64, 128}

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `EDGES`.
    """
    forest = simstore.Forest(width_of(bits))
    for batch in batches:
        forest.connect(fingerprints_of(batch, a, bits), fingerprints_of(batch, b, bits))
    yield from _packed(forest.packed())


def merge(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """Puts forests together.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Of the schema `EDGES`, or with a column edges of this kind.
    bits : {64, 128}

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `EDGES`.
    """
    yield from _packed(_merged(batches, bits).packed())


def unpack(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """The edges of forests, a row each.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With a column edges.
    bits : {64, 128}

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `nodes_schema`; the two are the same where one is connected with itself alone.
    """
    for batch in batches:
        first, member = _values(pa.table(_merged([batch], bits).edges()), ["first", "member"])
        yield from pa.table([member, first], schema=nodes_schema(bits)).to_batches(max_chunksize=ROWS)


def members(batches: Iterable[pa.RecordBatch], bits: int = 64) -> Iterator[pa.RecordBatch]:
    """The members of clusters, by all forests together.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With a column edges, as `merge` gives it: all that there is.
    bits : {64, 128}

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `members_schema`: of each cluster all members, the root too, which is the smallest
        as an unsigned number.
    """
    edges = pa.table(_merged(batches, bits).edges())
    root, member = _values(edges, ["first", "member"])
    roots = root.unique()
    # What is connected with none but itself is there already.
    is_other = pc.not_equal(root, member)
    columns = [
        pa.chunked_array([*member.filter(is_other).chunks, roots], root.type),
        pa.chunked_array([*root.filter(is_other).chunks, roots], root.type),
    ]
    yield from pa.table(columns, schema=members_schema(bits)).to_batches(max_chunksize=ROWS)


def _merged(batches: Iterable[pa.RecordBatch], bits: int) -> simstore.Forest:
    forest = simstore.Forest(width_of(bits))
    for batch in batches:
        forest.merge(batch.column("edges"))
    return forest


def _by_place(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.ChunkedArray, pa.ChunkedArray]]:
    """The rows of each place, all of them; one place at a time is let go."""
    # Of an empty iterator there is no table.
    table = settled(pa.Table.from_batches([_as_sent(batch) for batch in batches], SENT), SENT.names)
    places = table.column("place")
    for place in sorted(places.unique().to_pylist()):
        of_place = table.filter(pc.equal(places, place)) if len(places.unique()) > 1 else table
        yield place, of_place.column("fingerprints"), of_place.column("repeated")


def settled(table: pa.Table, names: list[str]) -> pa.Table:
    """Packed rows in an order of their own, not the one in which they came.

    What is made of them is packed otherwise in another order, and Spark, where it makes anew what was lost, refuses what differs.
    """
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))


def _as_sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    if "repeated" in batch.schema.names:
        return batch.select(SENT.names)
    columns = [batch.column("place"), batch.column("fingerprints"), pa.nulls(batch.num_rows, pa.binary())]
    return pa.record_batch(columns, schema=SENT)


def _sent(table: simstore.Table) -> Iterator[pa.RecordBatch]:
    yield from pa.table(table).cast(SENT).to_batches()


def _packed(edges: simstore.Array) -> Iterator[pa.RecordBatch]:
    yield from pa.table([pa.array(edges)], schema=EDGES).to_batches()


def _values(table: pa.Table, names: list[str]) -> list[Any]:
    """Columns of fingerprints as DataFrames have them."""
    columns = [table.column(name) for name in names]
    if columns[0].type == pa.uint64():
        return [pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64()) for column in columns]
    return [column.cast(pa.binary()) for column in columns]
