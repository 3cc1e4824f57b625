"""Texts to fingerprints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

import simstore
from simstore.tasks.columns import get_column


def fingerprint(
    batches: Iterable[pa.RecordBatch],
    profile: simstore.Profile,
    text: str = "text",
    into: str = "fingerprint",
) -> Iterator[pa.RecordBatch]:
    """Adds the fingerprints of texts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    profile : Profile
    text : str
        The column of the texts.
    into : str
        The new column, last. It replaces a column with the same name.

    Yields
    ------
    pyarrow.RecordBatch
        With an additional column of int64 (the same 64 bits), or binary of 16 bytes. It is null for null and for texts without features.
    """
    for batch in batches:
        made = pa.array(profile.fingerprints(get_column(batch, text)))
        made = made.view(pa.int64()) if profile.bits == 64 else made.cast(pa.binary())
        if into in batch.schema.names:
            batch = batch.drop_columns(into)
        yield batch.append_column(into, made)
