"""Columns of record batches, converted for the native library."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa


def checked_bits(bits: int) -> Literal[64, 128]:
    """Returns the width of fingerprints, or raises an error if it is invalid."""
    if bits == 64:
        return 64
    if bits == 128:
        return 128
    raise ValueError(f"option `bits` is {bits}: expected 64 or 128")


def fingerprint_type(bits: int) -> pa.DataType:
    """Returns the type of fingerprints in batches between tasks."""
    return pa.int64() if bits == 64 else pa.binary()


def check_column(name: str, there: Sequence[str]) -> None:
    """Refuses a missing column, and suggests one with a similar name."""
    if name not in there:
        meant = "".join(f" (did you mean `{near}`?)" for near in difflib.get_close_matches(name, there, 1))
        raise ValueError(f"no column `{name}`{meant}: the columns are {', '.join(there)}")


def get_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Returns a column by its name."""
    check_column(name, batch.schema.names)
    return batch.column(name)


def fingerprint_column(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """Returns a column of fingerprints: uint64 for 64 bits; 16 bytes each, the most significant first, for 128 bits."""
    column = get_column(batch, name)
    if bits == 64 and column.type in (pa.int64(), pa.uint64()):
        return column.view(pa.uint64())
    if bits == 128 and (pa.types.is_binary(column.type) or column.type in (pa.binary(16), pa.large_binary())):
        return column.cast(pa.binary())
    expected = "int64 or uint64" if bits == 64 else "16 bytes each"
    raise TypeError(f"column `{name}` is {column.type}: fingerprints of {bits} bits are {expected}")
