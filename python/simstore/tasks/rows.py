"""Ids that go with fingerprints: packed rows, and which of them pairs of fingerprints stand for.

The steps, and what brings rows together between them: `pack_rows`, by ``place``, once for all that follows; `pack_pairs` of what
`simstore.tasks.joining.near` gives, by ``place``; `ids_of_a` with the rows of that place, by ``place`` again; `ids_of_b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import simstore
from simstore.tasks.columns import column_of, fingerprints_of
from simstore.tasks.joining import TOGETHER, settled

# Rows of a batch that a task gives: places, each with thousands in them.
PLACES = 256


def rows_schema(id_type: pa.DataType) -> pa.Schema:
    """Of packed rows: the bucket, its fingerprints, and their ids in the same order."""
    return pa.schema([("place", pa.int32()), ("fingerprints", pa.binary()), ("ids", pa.list_(id_type))])


PAIRS = pa.schema([("place", pa.int32()), ("a", pa.binary()), ("b", pa.binary()), ("distances", pa.binary())])


def half_schema(id_type: pa.DataType) -> pa.Schema:
    """Of packed pairs of which one fingerprint is known by its ids."""
    ids = pa.list_(pa.list_(id_type))
    return pa.schema([("place", pa.int32()), ("b", pa.binary()), ("distances", pa.binary()), ("ids", ids)])


def pair_schema(id_type: pa.DataType) -> pa.Schema:
    """Of pairs of fingerprints by the ids of each."""
    return pa.schema([("ids_a", pa.list_(id_type)), ("ids_b", pa.list_(id_type)), ("distance", pa.int32())])


def pack_rows(
    batches: Iterable[pa.RecordBatch],
    parts: simstore.Parts,
    fingerprint: str = "fingerprint",
    id: str = "id",
    buckets: int = 1,
) -> Iterator[pa.RecordBatch]:
    """Packs fingerprints with their ids, by buckets.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    parts : Parts
    fingerprint, id : str
        The columns. Rows with a null fingerprint are left out.
    buckets : int

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `rows_schema`.
    """
    for some in _together(batches, [fingerprint, id]):
        ids = some.column(id).combine_chunks()
        values = [fingerprints_of(batch, fingerprint, parts.bits) for batch in some.to_batches()]
        spread = pa.table(parts.spread(pa.chunked_array(values), buckets))
        columns = [spread.column("place"), spread.column("fingerprints"), _taken(ids, spread)]
        yield from pa.table(columns, schema=rows_schema(ids.type)).to_batches(max_chunksize=PLACES)


def pack_pairs(
    batches: Iterable[pa.RecordBatch], parts: simstore.Parts, buckets: int = 1
) -> Iterator[pa.RecordBatch]:
    """Packs pairs of fingerprints by the bucket of the one.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns a, b and distance.
    parts : Parts
    buckets : int

    Yields
    ------
    pyarrow.RecordBatch
        Of the schema `PAIRS`.
    """
    for some in _together(batches, ["a", "b", "distance"]):
        values = [fingerprints_of(batch, "a", parts.bits) for batch in some.to_batches()]
        spread = pa.table(parts.spread(pa.chunked_array(values), buckets))
        positions, ends = _positions(spread)
        b = _bytes_of(some.column("b"), parts.bits)[positions]
        distances = some.column("distance").to_numpy().astype(np.uint8)[positions]
        columns = [spread.column("place"), spread.column("fingerprints"), _pieces(b, ends), _pieces(distances, ends)]
        yield from pa.table(columns, schema=PAIRS).to_batches(max_chunksize=PLACES)


def ids_of_a(rows: pa.Table, pairs: pa.Table, parts: simstore.Parts, buckets: int = 1) -> pa.Table:
    """Takes the ids for the one fingerprint of pairs, and packs the pairs by the bucket of the other.

    Parameters
    ----------
    rows, pairs : pyarrow.Table
        What `pack_rows` and `pack_pairs` have made, all of one place.
    parts : Parts
    buckets : int

    Returns
    -------
    pyarrow.Table
        Of the schema `half_schema`: a list of ids for each pair.
    """
    id_type = rows.schema.field("ids").type.value_type
    rows, pairs = _with_ids_settled(rows, ["fingerprints"]), settled(pairs, ["a", "b", "distances"])
    ids = _ids(rows, pairs.column("a"), parts)
    b = _unpacked(pairs.column("b"), parts.bits)
    spread = pa.table(parts.spread(b, buckets))
    positions, ends = _positions(spread)
    distances = _joined(pairs.column("distances"))[positions]
    columns = [spread.column("place"), spread.column("fingerprints"), _pieces(distances, ends), _taken(ids, spread)]
    return pa.table(columns, schema=half_schema(id_type))


def ids_of_b(rows: pa.Table, pairs: pa.Table, parts: simstore.Parts) -> pa.Table:
    """Takes the ids for the other fingerprint.

    Parameters
    ----------
    rows, pairs : pyarrow.Table
        What `pack_rows` and `ids_of_a` have made, all of one place.
    parts : Parts

    Returns
    -------
    pyarrow.Table
        Of the schema `pair_schema`, a row for each pair of fingerprints; of one that is paired with itself, the same ids twice.
    """
    id_type = rows.schema.field("ids").type.value_type
    of_b = _ids(rows, pairs.column("b"), parts)
    of_a = pa.chunked_array([chunk.flatten() for chunk in pairs.column("ids").chunks], pa.list_(id_type))
    distances = _joined(pairs.column("distances")).astype(np.int32)
    return pa.table([of_a, of_b, distances], schema=pair_schema(id_type))


def _with_ids_settled(table: pa.Table, names: list[str]) -> pa.Table:
    """The same for rows with ids, which have no order of Arrow's: that of how they are written, where all else is equal."""
    table = settled(table, names)
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    equal = {key for key, after in zip(keys, keys[1:]) if key == after}
    if not equal:
        return table
    ids = table.column("ids")
    written = [repr(ids[at].as_py()) if key in equal else "" for at, key in enumerate(keys)]
    return table.take(sorted(range(len(keys)), key=lambda at: (keys[at], written[at])))


def _together(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """Some columns of batches, many rows at a time."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(pa.record_batch([column_of(batch, name) for name in names], names=names))
        count += batch.num_rows
        if count >= TOGETHER:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def _positions(spread: pa.Table) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The positions of all buckets, and where those of each end."""
    positions = spread.column("positions")
    lengths = pc.list_value_length(positions).to_numpy()
    return positions.combine_chunks().flatten().to_numpy(), np.cumsum(lengths, dtype=np.int64)


def _taken(values: pa.Array, spread: pa.Table) -> pa.ListArray:
    """Values in lists, those of each bucket in one."""
    positions, ends = _positions(spread)
    taken = values.take(pa.array(positions))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, taken)


def _pieces(values: NDArray[Any], ends: NDArray[np.int64]) -> pa.Array:
    """The bytes of values, those of each bucket in one."""
    starts = np.concatenate([[0], ends])
    return pa.array([values[start:end].tobytes() for start, end in zip(starts, ends)], pa.binary())


def _ids(rows: pa.Table, values: pa.ChunkedArray, parts: simstore.Parts) -> pa.ListArray:
    """The ids of each of some packed fingerprints."""
    ids = pa.chunked_array([chunk.flatten() for chunk in rows.column("ids").chunks], rows.column("ids").type.value_type)
    found = pa.array(parts.look_up(rows.column("fingerprints"), values))
    taken = ids.combine_chunks().take(found.flatten())
    return pa.ListArray.from_arrays(found.offsets, taken)


def _joined(values: pa.ChunkedArray) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(value.as_buffer() for value in values), np.uint8)


def _unpacked(values: pa.ChunkedArray, bits: int) -> pa.Array:
    """Packed fingerprints, one by one."""
    data = _joined(values)
    if bits == 64:
        return pa.array(data.view("<u8"))
    # From little-endian to the most significant byte first.
    wide = np.ascontiguousarray(data.reshape(-1, 16)[:, ::-1])
    return pa.Array.from_buffers(pa.binary(16), len(wide), [None, pa.py_buffer(wide)])


def _bytes_of(values: pa.ChunkedArray, bits: int) -> NDArray[Any]:
    """Fingerprints as they are packed: the first axis counts them."""
    if bits == 64:
        narrow: NDArray[np.int64] = values.to_numpy()
        return narrow
    wide = values.combine_chunks().cast(pa.binary(16))
    data = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, 16)[wide.offset : wide.offset + len(wide)]
    return np.ascontiguousarray(data[:, ::-1])
