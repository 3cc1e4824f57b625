"""Stored documents near rows. All tasks must be able to read the directories of the stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from simstore import Snapshot, _simstore
from simstore.tasks.columns import fingerprint_column, get_column

# The smallest value is the nearest match: by distance, then by the order of the stores, then by id.
MATCH_ORDER_FIELDS = [("distance", pa.int32()), ("store", pa.int32()), ("id", pa.binary())]
SIMILAR_TYPE = pa.struct([("similarity", pa.float64()), ("store", pa.int32()), ("id", pa.binary()), ("name", pa.string())])


def near_type(value: pa.DataType) -> pa.StructType:
    """Returns the type of the column that `nearest` adds, for fingerprints of a type."""
    return pa.struct([*MATCH_ORDER_FIELDS, ("bits", pa.binary()), ("fingerprint", value), ("name", pa.string())])


def nearest(
    batches: Iterable[pa.RecordBatch],
    paths: Sequence[str],
    distance: int,
    fingerprint: str = "fingerprint",
    bits: int = 64,
    into: str = "stored",
) -> Iterator[pa.RecordBatch]:
    """Adds the nearest stored document of each fingerprint.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    paths : sequence of str
        The stores.
    distance : int
        In bits.
    fingerprint : str
        The column: int64 or uint64 for 64 bits, 16 bytes each for 128. A null has no match.
    bits : {64, 128}
    into : str
        The new column.

    Yields
    ------
    pyarrow.RecordBatch
        With a column of structs, null without a match: distance, store (the number of the store), id (8 bytes, the most significant
        first), bits (the fingerprint as bytes), fingerprint, and name (the stored name, or the id, or the fingerprint in hexadecimal
        digits). The smallest struct is the nearest match.
    """
    stores = [Snapshot(path) for path in paths]
    for batch in batches:
        values = fingerprint_column(batch, fingerprint, bits)
        queries = values if bits == 64 else values.cast(pa.binary(16))
        best: dict[int, tuple[int, int, bytes, bytes, str]] = {}
        for number, store in enumerate(stores):
            for row in store.query_many(queries, distance).to_pylist():
                data = row["fingerprint"] if bits == 128 else row["fingerprint"].to_bytes(8, "big")
                id = b"" if row["id"] is None else row["id"].to_bytes(8, "big")
                name = row["name"] or (data.hex() if row["id"] is None else str(row["id"]))
                found = (row["distance"], number, id, data, name)
                if row["query"] not in best or found < best[row["query"]]:
                    best[row["query"]] = found
        value = batch.schema.field(fingerprint).type
        rows = [_match_struct(best[at], bits) if at in best else None for at in range(len(batch))]
        yield batch.append_column(into, pa.array(rows, near_type(value)))


def _match_struct(found: tuple[int, int, bytes, bytes, str], bits: int) -> dict[str, object]:
    distance, store, id, data, name = found
    value = int.from_bytes(data, "big", signed=True) if bits == 64 else data
    return {"distance": distance, "store": store, "id": id, "bits": data, "fingerprint": value, "name": name}


def most_similar(
    batches: Iterable[pa.RecordBatch], paths: Sequence[str], similar: float, text: str = "text", into: str = "stored"
) -> Iterator[pa.RecordBatch]:
    """Adds the most similar stored document of each text.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    paths : sequence of str
        Stores of similar documents.
    similar : float
        The threshold: at least the threshold of the stores.
    text, into : str
        The column of the texts, and the new column.

    Yields
    ------
    pyarrow.RecordBatch
        With a column of structs, null without a similar document: similarity, store (the number of the store), id (8 bytes) and name
        (the stored name, or the id).
    """
    stores = _simstore._SimilarStores(paths, similar)
    for batch in batches:
        found = pa.table(stores.most_similar(get_column(batch, text)))
        rows = [
            None
            if row["id"] is None
            else row | {"id": row["id"].to_bytes(8, "big"), "name": row["name"] or str(row["id"])}
            for row in found.to_pylist()
        ]
        yield batch.append_column(into, pa.array(rows, SIMILAR_TYPE))
