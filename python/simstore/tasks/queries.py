"""Queries of a set of shards: the tasks of `simstore.spark.query`.

`pack` packs queries in blocks. Send each block to the tasks of all shards, which call `query_shards`. A task reads its shard once for many
queries.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simstore import Snapshot
from simstore.tasks.columns import fingerprint_type
from simstore.tasks.shards import Shards, fixed_width_fingerprints

Path: TypeAlias = str | os.PathLike[str]
#: Type of a callable that copies a directory or a file to the local disk, and returns the local path.
Fetch: TypeAlias = Callable[[str], Path]

# Minimum number of queries in a packed block, except for the last block: a megabyte before compression, for 64 bits.
BLOCK_QUERIES = 1 << 17
# Maximum number of rows in a yielded batch.
BATCH_ROWS = 1 << 16

#: Schema of packed blocks: the number of queries, and the queries.
PACKED = pa.schema([("count", pa.int32()), ("queries", pa.binary())])


def found_schema(bits: int) -> pa.Schema:
    """Returns the schema of matches: ``asked``, the queried fingerprint; and the stored ``fingerprint``, its ``id`` and ``distance``."""
    value_type = fingerprint_type(bits)
    return pa.schema([("asked", value_type), ("fingerprint", value_type), ("id", pa.int64()), ("distance", pa.int32())])


def pack(
    batches: Iterable[pa.RecordBatch], fingerprint: str = "fingerprint", bits: int = 64
) -> Iterator[pa.RecordBatch]:
    """Packs queries in blocks. The queries of a block are sorted, distinct and compressed.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    fingerprint : str
        Column of the queries: int64 or uint64 for 64 bits, 16 bytes each for 128 bits. Nulls are left out.
    bits : {64, 128}
        Width of the fingerprints.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `PACKED`: one row for each block.
    """
    waiting: list[NDArray[Any]] = []
    count = 0
    for batch in batches:
        column = fixed_width_fingerprints(batch, fingerprint, bits)
        waiting.append(_to_numbers(column.drop_null(), bits))
        count += len(waiting[-1])
        if count >= BLOCK_QUERIES:
            yield _pack_block(waiting, bits)
            waiting, count = [], 0
    if count:
        yield _pack_block(waiting, bits)


def _pack_block(fingerprints: list[NDArray[Any]], bits: int) -> pa.RecordBatch:
    """Packs queries into one block. `fingerprints` has arrays of uint64, for 128 bits with shape (n, 2), as `_to_numbers` returns them."""
    # Fingerprints of 128 bits are rows of two numbers, which `unique` sorts by the first number and then by the second.
    data = np.unique(np.concatenate(fingerprints), axis=0).astype(">u8").view(np.uint8).reshape(-1, bits // 8)
    # Bytes with the same position in the fingerprint are grouped. This compresses well, because leading bytes of sorted numbers repeat.
    compressed = pa.compress(np.ascontiguousarray(data.T).tobytes(), codec="zstd", asbytes=True)
    return pa.record_batch([pa.array([len(data)], pa.int32()), pa.array([compressed], pa.binary())], schema=PACKED)


def _unpack_block(count: int, compressed: bytes, bits: int) -> NDArray[Any]:
    """Unpacks a block of queries into the array that `Snapshot.query_many` takes: uint64, or uint8 with shape (count, 16) for 128 bits."""
    data = pa.decompress(compressed, decompressed_size=count * bits // 8, codec="zstd", asbytes=True)
    rows = np.ascontiguousarray(np.frombuffer(data, dtype=np.uint8).reshape(bits // 8, count).T)
    return rows if bits == 128 else rows.view(">u8").reshape(-1).astype(np.uint64)


def _to_numbers(column: pa.Array, bits: int) -> NDArray[Any]:
    """Returns a column without nulls as an array of uint64; with shape (n, 2) for 128 bits, the most significant half first."""
    if bits == 64:
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    # The joined bytes are contiguous, even if the column is a slice.
    data = b"".join(column.to_pylist())
    return np.frombuffer(data, dtype=">u8").reshape(-1, 2).astype(np.uint64)


def query_shards(
    batches: Iterable[pa.RecordBatch],
    shards: Shards,
    path: str,
    distance: int | None = None,
    *,
    fetch: Fetch | None = None,
    folder: Path | Callable[[], Path] = ".",
    together: int = 1 << 20,
) -> Iterator[pa.RecordBatch]:
    """Finds the stored fingerprints near packed queries. Each shard is read once for up to about `together` queries.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``shard`` (a position in ``shards.shards``), ``count`` and ``queries`` (as `pack` yields them). If a query is sent
        to a shard twice, its matches are returned twice.
    shards : Shards
        List of the shards of the queried set of fingerprints.
    path : str
        Directory that holds the shards.
    distance : int, optional
        Maximum distance of a match, in bits. The default is ``shards.distance``.
    fetch : callable, optional
        Called with the path of a shard. It returns the path of a copy on the local disk. The processes of a machine that share `folder`
        call it once for each shard.
    folder : str or os.PathLike or callable
        Directory on the local disk in which the processes record the copies that `fetch` made, or a function that returns the
        directory. Unused without `fetch`.
    together : int
        Approximate maximum number of queries in one pass over a shard. More queries in a pass need more memory and fewer passes.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `found_schema`.
    """
    waiting: dict[int, list[NDArray[Any]]] = {}
    opened: dict[int, Snapshot] = {}

    def query_waiting(shard: int) -> Iterator[pa.RecordBatch]:
        if shard not in opened:
            shard_path: Path = f"{path}/{shards.shards[shard].folder}"
            if fetch is not None:
                shard_path = fetch_once(fetch, os.fspath(shard_path), folder() if callable(folder) else folder)
            opened[shard] = shards.open(shards.shards[shard], shard_path)
        queries = np.concatenate(waiting.pop(shard))
        yield from _match_batches(opened[shard], queries, distance)

    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in ("shard", "count", "queries")), strict=True)
        for shard, count, queries in rows:
            waiting.setdefault(shard, []).append(_unpack_block(count, queries, shards.bits))
            if sum(map(len, waiting[shard])) >= together:
                yield from query_waiting(shard)
    for shard in list(waiting):
        yield from query_waiting(shard)


def _match_batches(snapshot: Snapshot, queries: NDArray[Any], distance: int | None) -> Iterator[pa.RecordBatch]:
    """Yields the matches of unpacked queries in one shard, with the schema `found_schema`."""
    matches = pa.table(snapshot.query_many(queries, distance))
    if snapshot.bits == 64:
        query_values = pa.array(queries).view(pa.int64())
        stored_values = pa.chunked_array([chunk.view(pa.int64()) for chunk in matches["fingerprint"].chunks], pa.int64())
    else:
        query_values = pa.Array.from_buffers(pa.binary(16), len(queries), [None, pa.py_buffer(queries)]).cast(pa.binary())
        stored_values = matches["fingerprint"].cast(pa.binary())
    for start in range(0, len(matches), BATCH_ROWS):
        rows = matches.slice(start, BATCH_ROWS)
        columns = {
            "asked": query_values.take(rows["query"]),
            "fingerprint": stored_values.slice(start, BATCH_ROWS),
            "id": rows["id"].cast(pa.int64()),
            "distance": rows["distance"].cast(pa.int32()),
        }
        yield from pa.table(columns, schema=found_schema(snapshot.bits)).to_batches()


def fetch_once(fetch: Fetch, path: str, folder: Path) -> str:
    """Returns the path of the local copy of `path`. The first process that uses `folder` fetches the copy; the other processes wait."""
    # Imported here, because Windows has no fcntl.
    import fcntl

    name = os.path.join(folder, f".fetched-{zlib.crc32(path.encode()):08x}-{os.path.basename(path)}")
    # If a process ends, its lock is released.
    with open(f"{name}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(name) as file:
                source, copy = json.load(file)
            if source == path and os.path.exists(copy):
                return str(copy)
        except FileNotFoundError:
            pass
        copy = os.path.abspath(fetch(path))
        hidden = f"{name}.{secrets.token_hex(8)}"
        with open(hidden, "w") as file:
            json.dump([path, copy], file)
        os.rename(hidden, name)
        return copy
