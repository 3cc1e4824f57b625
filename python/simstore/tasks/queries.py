"""Batches of queries for the shards of a set. Each shard is read once for each batch."""

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
#: Copies a directory or a file to the local disk, and returns the local path.
Fetch: TypeAlias = Callable[[str], Path]

# Queries that are packed together: a megabyte before compression.
BLOCK_QUERIES = 1 << 17
# Maximum number of rows in a returned batch.
BATCH_ROWS = 1 << 16

PACKED = pa.schema([("count", pa.int32()), ("queries", pa.binary())])


def found_schema(bits: int) -> pa.Schema:
    """Returns the schema of matches: the query, and the stored fingerprint with its id."""
    value = fingerprint_type(bits)
    return pa.schema([("asked", value), ("fingerprint", value), ("id", pa.int64()), ("distance", pa.int32())])


def pack(
    batches: Iterable[pa.RecordBatch], fingerprint: str = "fingerprint", bits: int = 64
) -> Iterator[pa.RecordBatch]:
    """Packs queries in blocks: sorted, distinct and compressed.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    fingerprint : str
        The column: int64 or uint64 for 64 bits, 16 bytes each for 128. Nulls are left out.
    bits : {64, 128}

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `PACKED`.
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


def _pack_block(waiting: list[NDArray[Any]], bits: int) -> pa.RecordBatch:
    # Rows are sorted by their first number, then by the second.
    data = np.unique(np.concatenate(waiting), axis=0).astype(">u8").view(np.uint8).reshape(-1, bits // 8)
    # Bytes are grouped by their position in the number: the leading bytes of sorted numbers repeat.
    compressed = pa.compress(np.ascontiguousarray(data.T).tobytes(), codec="zstd", asbytes=True)
    return pa.record_batch([pa.array([len(data)], pa.int32()), pa.array([compressed], pa.binary())], schema=PACKED)


def _unpack_block(count: int, compressed: bytes, bits: int) -> NDArray[Any]:
    """Unpacks queries for the native library."""
    data = pa.decompress(compressed, decompressed_size=count * bits // 8, codec="zstd", asbytes=True)
    rows = np.ascontiguousarray(np.frombuffer(data, dtype=np.uint8).reshape(bits // 8, count).T)
    return rows if bits == 128 else rows.view(">u8").reshape(-1).astype(np.uint64)


def _to_numbers(column: pa.Array, bits: int) -> NDArray[Any]:
    """Returns a column without nulls as unsigned numbers; as two halves each for 128 bits."""
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
    """Finds the stored fingerprints near packed queries. Each shard is read once for each batch of queries.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns shard (a position in ``shards.shards``), count and queries (as `pack` yields them). A repeated query for a shard
        is answered again.
    shards : Shards
        The list of the set.
    path : str
        The directory of the set.
    distance : int, optional
        In bits. The default is the distance of the set.
    fetch : callable, optional
        Called with the path of a shard, once for all processes of a machine that share `folder`. It returns the path of a copy.
    folder : str or os.PathLike or callable
        The working directory on the local disk, or a function that returns it; only for `fetch`.
    together : int
        Approximate maximum number of queries in a batch. Larger batches need more memory, and read the shards less often.

    Yields
    ------
    pyarrow.RecordBatch
        With the schema `found_schema`.
    """
    waiting: dict[int, list[NDArray[Any]]] = {}
    opened: dict[int, Snapshot] = {}

    def answer(shard: int) -> Iterator[pa.RecordBatch]:
        if shard not in opened:
            of = shards.shards[shard]
            place: Path = f"{path}/{of.folder}"
            if fetch is not None:
                place = fetch_once(fetch, os.fspath(place), folder() if callable(folder) else folder)
            opened[shard] = shards.open(of, place)
        queries = np.concatenate(waiting.pop(shard))
        yield from _match_batches(opened[shard], queries, distance)

    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in ("shard", "count", "queries")), strict=True)
        for shard, count, queries in rows:
            waiting.setdefault(shard, []).append(_unpack_block(count, queries, shards.bits))
            if sum(map(len, waiting[shard])) >= together:
                yield from answer(shard)
    for shard in list(waiting):
        yield from answer(shard)


def _match_batches(snapshot: Snapshot, queries: NDArray[Any], distance: int | None) -> Iterator[pa.RecordBatch]:
    found = pa.table(snapshot.query_many(queries, distance))
    if snapshot.bits == 64:
        asked = pa.array(queries).view(pa.int64())
        near = pa.chunked_array([chunk.view(pa.int64()) for chunk in found["fingerprint"].chunks], pa.int64())
    else:
        asked = pa.Array.from_buffers(pa.binary(16), len(queries), [None, pa.py_buffer(queries)]).cast(pa.binary())
        near = found["fingerprint"].cast(pa.binary())
    for at in range(0, len(found), BATCH_ROWS):
        rows = found.slice(at, BATCH_ROWS)
        columns = {
            "asked": asked.take(rows["query"]),
            "fingerprint": near.slice(at, BATCH_ROWS),
            "id": rows["id"].cast(pa.int64()),
            "distance": rows["distance"].cast(pa.int32()),
        }
        yield from pa.table(columns, schema=found_schema(snapshot.bits)).to_batches()


def fetch_once(fetch: Fetch, path: str, folder: Path) -> str:
    """Returns the local copy of `path`. The first process of this directory fetches it, and the other processes wait."""
    # Imported here, because some systems lack it.
    import fcntl

    name = os.path.join(folder, f".fetched-{zlib.crc32(path.encode()):08x}-{os.path.basename(path)}")
    # The lock ends with the process that holds it.
    with open(f"{name}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(name) as file:
                of, copy = json.load(file)
            if of == path and os.path.exists(copy):
                return str(copy)
        except FileNotFoundError:
            pass
        copy = os.path.abspath(fetch(path))
        hidden = f"{name}.{secrets.token_hex(8)}"
        with open(hidden, "w") as file:
            json.dump([path, copy], file)
        os.rename(hidden, name)
        return copy
