"""Look-up of the ids for pairs of fingerprints, in many tasks.

`pack_rows` packs the fingerprints of all rows with their ids, in batches that `simstore.tasks.joining.scatter` also accepts. `pack_pairs`
packs the pairs that `simstore.tasks.joining.near` finds. `ids_of_a` looks up the ids of the first fingerprint of each pair, then `ids_of_b`
the ids of the second. Before each look-up, send the rows and the pairs with the same ``place`` to one task. In this module, ``place`` is
always a bucket: the value of a hash of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import simstore
from simstore.tasks.columns import fingerprint_column, get_column
from simstore.tasks.joining import PACK_FINGERPRINTS, sort_packed

# Maximum number of rows in a yielded batch. Each row has thousands of packed values.
BATCH_PLACES = 256


def rows_schema(id_type: pa.DataType) -> pa.Schema:
    """Returns the schema of the batches of `pack_rows`: ``place`` (a hash value), the ``fingerprints`` with this value, and their ``ids``.

    The fingerprints are packed into one binary value, in the order of the ids.
    """
    return pa.schema([("place", pa.int32()), ("fingerprints", pa.binary()), ("ids", pa.list_(id_type))])


#: Schema of packed pairs: ``place`` (the bucket of the first fingerprints), and the two fingerprints and the distances of its pairs.
PAIRS = pa.schema([("place", pa.int32()), ("a", pa.binary()), ("b", pa.binary()), ("distances", pa.binary())])


def half_schema(id_type: pa.DataType) -> pa.Schema:
    """Returns the schema of the result of `ids_of_a`: pairs of fingerprints, grouped into rows by a hash of the second fingerprint.

    ``place`` is the hash value of the row, and ``b`` has the packed second fingerprints. The first fingerprints are replaced by ``ids``:
    for each pair, a list of the ids of its first fingerprint.
    """
    ids = pa.list_(pa.list_(id_type))
    return pa.schema([("place", pa.int32()), ("b", pa.binary()), ("distances", pa.binary()), ("ids", ids)])


def pair_schema(id_type: pa.DataType) -> pa.Schema:
    """Returns the schema of pairs with the ids of both fingerprints, with one row for each pair."""
    return pa.schema([("ids_a", pa.list_(id_type)), ("ids_b", pa.list_(id_type)), ("distance", pa.int32())])


def pack_rows(
    batches: Iterable[pa.RecordBatch],
    parts: simstore.JoinParts,
    fingerprint: str = "fingerprint",
    id: str = "id",
    buckets: int = 1,
) -> Iterator[pa.RecordBatch]:
    """Groups fingerprints with their ids by a hash of the fingerprint, and packs many fingerprints of a group into one row.

    The groups are called *buckets*. Send all rows of a bucket to one task.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    parts : JoinParts
        The join, the same in all tasks.
    fingerprint, id : str
        Columns of the fingerprints and of the ids. Rows with a null fingerprint are left out.
    buckets : int
        Number of buckets, the same in all tasks.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `rows_schema`.
    """
    for table in _concat_batches(batches, [fingerprint, id]):
        ids = table.column(id).combine_chunks()
        values = [fingerprint_column(batch, fingerprint, parts.bits) for batch in table.to_batches()]
        spread = pa.table(parts.spread(pa.chunked_array(values), buckets))
        columns = [spread.column("place"), spread.column("fingerprints"), _values_by_bucket(ids, spread)]
        yield from pa.table(columns, schema=rows_schema(ids.type)).to_batches(max_chunksize=BATCH_PLACES)


def pack_pairs(
    batches: Iterable[pa.RecordBatch], parts: simstore.JoinParts, buckets: int = 1
) -> Iterator[pa.RecordBatch]:
    """Groups pairs of fingerprints by a hash of the first fingerprint, and packs many pairs of a group into one row.

    The groups are called *buckets*. Send all rows of a bucket to one task.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the columns of `simstore.tasks.joining.near_schema`.
    parts : JoinParts
        The join that found the pairs, the same in all tasks.
    buckets : int
        Number of buckets, as for `pack_rows`.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `PAIRS`.
    """
    for table in _concat_batches(batches, ["a", "b", "distance"]):
        values = [fingerprint_column(batch, "a", parts.bits) for batch in table.to_batches()]
        spread = pa.table(parts.spread(pa.chunked_array(values), buckets))
        positions, ends = _bucket_positions(spread)
        b = _packable_fingerprints(table.column("b"), parts.bits)[positions]
        distances = table.column("distance").to_numpy().astype(np.uint8)[positions]
        columns = [spread.column("place"), spread.column("fingerprints"), _bytes_by_bucket(b, ends), _bytes_by_bucket(distances, ends)]
        yield from pa.table(columns, schema=PAIRS).to_batches(max_chunksize=BATCH_PLACES)


def ids_of_a(rows: pa.Table, pairs: pa.Table, parts: simstore.JoinParts, buckets: int = 1) -> pa.Table:
    """Looks up the ids of the first fingerprint of each near pair, and groups the pairs by the bucket of their second fingerprint.

    A bucket is a hash value of a fingerprint. The result has a row for each bucket that occurs; the column ``place`` is the bucket.

    Parameters
    ----------
    rows, pairs : pyarrow.Table
        Results of `pack_rows` and `pack_pairs`: all rows with one value of ``place``.
    parts : JoinParts
        The join that found the pairs, the same in all tasks.
    buckets : int
        Number of buckets, as for `pack_rows`.

    Returns
    -------
    pyarrow.Table
        With the schema `half_schema`.
    """
    id_type = rows.schema.field("ids").type.value_type
    rows, pairs = _sort_packed_rows(rows, ["fingerprints"]), sort_packed(pairs, ["a", "b", "distances"])
    ids = _look_up_ids(rows, pairs.column("a"), parts)
    b = _unpack_fingerprints(pairs.column("b"), parts.bits)
    spread = pa.table(parts.spread(b, buckets))
    positions, ends = _bucket_positions(spread)
    distances = _concat_bytes(pairs.column("distances"))[positions]
    columns = [spread.column("place"), spread.column("fingerprints"), _bytes_by_bucket(distances, ends), _values_by_bucket(ids, spread)]
    return pa.table(columns, schema=half_schema(id_type))


def ids_of_b(rows: pa.Table, pairs: pa.Table, parts: simstore.JoinParts) -> pa.Table:
    """Looks up the ids of the second fingerprint of each pair.

    Parameters
    ----------
    rows, pairs : pyarrow.Table
        Results of `pack_rows` and `ids_of_a`: all rows with one value of ``place``.
    parts : JoinParts
        The join that found the pairs, the same in all tasks.

    Returns
    -------
    pyarrow.Table
        With the schema `pair_schema`. If a fingerprint is paired with itself, both lists have the same ids.
    """
    id_type = rows.schema.field("ids").type.value_type
    ids_b = _look_up_ids(rows, pairs.column("b"), parts)
    ids_a = pa.chunked_array([chunk.flatten() for chunk in pairs.column("ids").chunks], pa.list_(id_type))
    distances = _concat_bytes(pairs.column("distances")).astype(np.int32)
    return pa.table([ids_a, ids_b, distances], schema=pair_schema(id_type))


def _sort_packed_rows(table: pa.Table, names: list[str]) -> pa.Table:
    """Sorts packed rows like `sort_packed`. Rows that are equal in the columns `names` are sorted by the `repr` of their ids.

    The ids are sorted in Python, because Arrow cannot sort a column of lists.
    """
    table = sort_packed(table, names)
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    repeated_keys = {key for key, next_key in zip(keys, keys[1:]) if key == next_key}
    if not repeated_keys:
        return table
    ids = table.column("ids")
    id_texts = [repr(ids[row].as_py()) if key in repeated_keys else "" for row, key in enumerate(keys)]
    return table.take(sorted(range(len(keys)), key=lambda row: (keys[row], id_texts[row])))


def _concat_batches(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """Yields the columns `names` of the batches, as tables of at least `PACK_FINGERPRINTS` rows, except for the last table."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(pa.record_batch([get_column(batch, name) for name in names], names=names))
        count += batch.num_rows
        if count >= PACK_FINGERPRINTS:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def _bucket_positions(spread: pa.Table) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Flattens the column ``positions`` of a result of `JoinParts.spread`: a list of row numbers for each bucket of fingerprints.

    Returns all lists as one array, and the index in this array at which each list ends.
    """
    positions = spread.column("positions")
    lengths = pc.list_value_length(positions).to_numpy()
    return positions.combine_chunks().flatten().to_numpy(), np.cumsum(lengths, dtype=np.int64)


def _values_by_bucket(values: pa.Array, spread: pa.Table) -> pa.ListArray:
    """Returns a list for each row of `spread`, a result of `JoinParts.spread`: the elements of `values` at the row's ``positions``."""
    positions, ends = _bucket_positions(spread)
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(positions)))


def _bytes_by_bucket(values: NDArray[Any], ends: NDArray[np.int64]) -> pa.Array:
    """Cuts `values` into slices, and returns one binary value for each slice. `ends` has the index in `values` at which each slice ends."""
    starts = np.concatenate([[0], ends])
    return pa.array([values[start:end].tobytes() for start, end in zip(starts, ends)], pa.binary())


def _look_up_ids(rows: pa.Table, values: pa.ChunkedArray, parts: simstore.JoinParts) -> pa.ListArray:
    """Returns a list of ids for each packed fingerprint in `values`: the ids that this fingerprint has in `rows`.

    `rows` has the schema `rows_schema`.
    """
    ids = pa.chunked_array([chunk.flatten() for chunk in rows.column("ids").chunks], rows.column("ids").type.value_type)
    positions = pa.array(parts.look_up(rows.column("fingerprints"), values))
    return pa.ListArray.from_arrays(positions.offsets, ids.combine_chunks().take(positions.flatten()))


def _concat_bytes(values: pa.ChunkedArray) -> NDArray[np.uint8]:
    """Returns the bytes of all binary values, one value after another."""
    return np.frombuffer(b"".join(value.as_buffer() for value in values), np.uint8)


def _unpack_fingerprints(values: pa.ChunkedArray, bits: int) -> pa.Array:
    """Unpacks binary values, which are concatenated fingerprints, into one array of fingerprints."""
    data = _concat_bytes(values)
    if bits == 64:
        return pa.array(data.view("<u8"))
    # From little-endian bytes to the most significant byte first.
    wide = np.ascontiguousarray(data.reshape(-1, 16)[:, ::-1])
    return pa.Array.from_buffers(pa.binary(16), len(wide), [None, pa.py_buffer(wide)])


def _packable_fingerprints(values: pa.ChunkedArray, bits: int) -> NDArray[Any]:
    """Returns fingerprints in the byte order of packed values (little-endian): as an array of int64, or of uint8 with shape (n, 16)."""
    if bits == 64:
        narrow: NDArray[np.int64] = values.to_numpy()
        return narrow
    wide = values.combine_chunks().cast(pa.binary(16))
    data = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, 16)[wide.offset : wide.offset + len(wide)]
    return np.ascontiguousarray(data[:, ::-1])
