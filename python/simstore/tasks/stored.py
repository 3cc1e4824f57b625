"""Comparison of rows with the documents of stores: the tasks of the option ``against`` of `simstore.spark.dedup`.

All tasks must be able to read the directories of the stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from simstore import Snapshot, _simstore
from simstore.tasks.columns import fingerprint_column, get_column

# First fields of the struct of a match. Structs are compared field by field, so the smallest struct is the nearest match. Among equal
# distances, the earlier store comes first, and then the smaller id.
MATCH_ORDER_FIELDS = [("distance", pa.int32()), ("store", pa.int32()), ("id", pa.binary())]
#: Type of the column that `most_similar` adds.
SIMILAR_TYPE = pa.struct([("similarity", pa.float64()), ("store", pa.int32()), ("id", pa.binary()), ("name", pa.string())])


def near_type(value: pa.DataType) -> pa.StructType:
    """Returns the type of the column that `nearest` adds. `value` is the type of the column of the fingerprints."""
    return pa.struct([*MATCH_ORDER_FIELDS, ("bits", pa.binary()), ("fingerprint", value), ("name", pa.string())])


def nearest(
    batches: Iterable[pa.RecordBatch],
    paths: Sequence[str],
    distance: int,
    fingerprint: str = "fingerprint",
    bits: int = 64,
    into: str = "stored",
) -> Iterator[pa.RecordBatch]:
    """Adds a column with the stored document nearest to each fingerprint.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    paths : sequence of str
        Paths of the stores.
    distance : int
        Maximum distance of a match, in bits.
    fingerprint : str
        Column of the fingerprints: int64 or uint64 for 64 bits, 16 bytes each for 128 bits. A null has no match.
    bits : {64, 128}
        Width of the fingerprints.
    into : str
        Name of the new column.

    Yields
    ------
    pyarrow.RecordBatch
        With the new column: a struct, or null if no stored document is within the distance. Structs sort by distance first, so that the
        smallest of several structs is the nearest match. The fields are:

        - ``distance``, in bits;
        - ``store``, the index of the store in `paths`;
        - ``id``, as 8 bytes, the most significant first; empty if the document has no id;
        - ``bits``, the stored fingerprint as bytes, the most significant first;
        - ``fingerprint``, the stored fingerprint with the type of the column of the fingerprints;
        - ``name``: the stored name, or else the id, or else the fingerprint in hexadecimal digits.
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
                match = (row["distance"], number, id, data, name)
                if row["query"] not in best or match < best[row["query"]]:
                    best[row["query"]] = match
        value_type = batch.schema.field(fingerprint).type
        structs = [_match_struct(best[row], bits) if row in best else None for row in range(len(batch))]
        yield batch.append_column(into, pa.array(structs, near_type(value_type)))


def _match_struct(match: tuple[int, int, bytes, bytes, str], bits: int) -> dict[str, object]:
    distance, store, id, data, name = match
    value = int.from_bytes(data, "big", signed=True) if bits == 64 else data
    return {"distance": distance, "store": store, "id": id, "bits": data, "fingerprint": value, "name": name}


def most_similar(
    batches: Iterable[pa.RecordBatch], paths: Sequence[str], similar: float, text: str = "text", into: str = "stored"
) -> Iterator[pa.RecordBatch]:
    """Adds a column with the stored document most similar to each text.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    paths : sequence of str
        Paths of stores that find documents by similarity (see `simstore.SimilarStore`).
    similar : float
        Similarity threshold. It must be at least the threshold of each store.
    text, into : str
        Column of the texts, and name of the new column.

    Yields
    ------
    pyarrow.RecordBatch
        With the new column: a struct, or null if no stored document is similar. The fields are:

        - ``similarity``, from `similar` to 1;
        - ``store``, the index of the store in `paths`;
        - ``id``, as 8 bytes, the most significant first;
        - ``name``: the stored name, or else the id.
    """
    stores = _simstore._SimilarStores(paths, similar)
    for batch in batches:
        matches = pa.table(stores.most_similar(get_column(batch, text)))
        structs = [
            None
            if row["id"] is None
            else row | {"id": row["id"].to_bytes(8, "big"), "name": row["name"] or str(row["id"])}
            for row in matches.to_pylist()
        ]
        yield batch.append_column(into, pa.array(structs, SIMILAR_TYPE))
