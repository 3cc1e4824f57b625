"""Fingerprints of texts: the task of `simstore.spark.fingerprint`."""

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
    """Adds a column with the fingerprints of the texts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    profile : Profile
        Profile of the fingerprints.
    text : str
        Column of the texts.
    into : str
        Name of the new column, which is the last. The new column replaces a column with the same name.

    Yields
    ------
    pyarrow.RecordBatch
        With the new column: int64 for 64 bits (the same bits as a signed number), binary of 16 bytes for 128 bits. The fingerprint is
        null if the text is null or has no features.
    """
    for batch in batches:
        fingerprints = pa.array(profile.fingerprints(get_column(batch, text)))
        fingerprints = fingerprints.view(pa.int64()) if profile.bits == 64 else fingerprints.cast(pa.binary())
        if into in batch.schema.names:
            batch = batch.drop_columns(into)
        yield batch.append_column(into, fingerprints)
