"""Columns of record batches: checks of their types, and conversion for the native library."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa


def checked_bits(bits: int) -> Literal[64, 128]:
    """Returns `bits`, a width of fingerprints. Raises an error if it is neither 64 nor 128."""
    if bits == 64:
        return 64
    if bits == 128:
        return 128
    raise ValueError(f"option `bits` is {bits}: expected 64 or 128")


def fingerprint_type(bits: int) -> pa.DataType:
    """Returns the Arrow type of fingerprints in the batches that tasks send to each other."""
    return pa.int64() if bits == 64 else pa.binary()


def check_column(name: str, names: Sequence[str]) -> None:
    """Raises an error if no column has this name. The error suggests a column with a similar name."""
    if name not in names:
        suggestion = "".join(f" (did you mean `{near}`?)" for near in difflib.get_close_matches(name, names, 1))
        raise ValueError(f"no column `{name}`{suggestion}: the columns are {', '.join(names)}")


def get_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Returns the column of this name. Raises an error if it is missing."""
    check_column(name, batch.schema.names)
    return batch.column(name)


def fingerprint_column(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """Returns a column of fingerprints: of type uint64 for 64 bits, of type binary for 128 bits.

    A fingerprint of 128 bits should have 16 bytes, the most significant first. The number of bytes is not checked here.
    """
    column = get_column(batch, name)
    if bits == 64 and column.type in (pa.int64(), pa.uint64()):
        return column.view(pa.uint64())
    if bits == 128 and (pa.types.is_binary(column.type) or column.type in (pa.binary(16), pa.large_binary())):
        return column.cast(pa.binary())
    expected = "int64 or uint64" if bits == 64 else "16 bytes each"
    raise TypeError(f"column `{name}` is {column.type}: fingerprints of {bits} bits are {expected}")
