"""Columns of record batches as the native library takes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa


def width_of(bits: int) -> Literal[64, 128]:
    """The width of fingerprints, if it is one."""
    if bits == 64:
        return 64
    if bits == 128:
        return 128
    raise ValueError(f"option `bits` is {bits}: expected 64 or 128")


def value_of(bits: int) -> pa.DataType:
    """The type of fingerprints as tasks hand them on."""
    return pa.int64() if bits == 64 else pa.binary()


def check_column(name: str, there: Sequence[str]) -> None:
    """Refuses a column that is not there, and says which one may be meant."""
    if name not in there:
        meant = "".join(f" (did you mean `{near}`?)" for near in difflib.get_close_matches(name, there, 1))
        raise ValueError(f"there is no column `{name}`{meant}: there are {', '.join(there)}")


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column by its name."""
    check_column(name, batch.schema.names)
    return batch.column(name)


def fingerprints_of(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """A column of fingerprints: uint64, or int64 with the same bits; or 16 bytes each, the most significant first."""
    column = column_of(batch, name)
    if bits == 64 and column.type in (pa.int64(), pa.uint64()):
        return column.view(pa.uint64())
    if bits == 128 and (pa.types.is_binary(column.type) or column.type in (pa.binary(16), pa.large_binary())):
        return column.cast(pa.binary())
    expected = "int64 or uint64" if bits == 64 else "16 bytes each"
    raise TypeError(f"column `{name}` is {column.type}: fingerprints of {bits} bits are {expected}")
