"""Some rows of what a library holds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def select(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """The rows that are wanted, as the type that they came in."""
    library = type(rows).__module__.split(".")[0]
    if library == "polars":
        import polars as pl

        if isinstance(rows, pl.LazyFrame):
            # Its length is known when it is collected, and checked then.
            return rows.filter(pl.lit(pl.Series(wanted)))
        _check(len(rows), wanted)
        return rows.filter(pl.Series(wanted))
    if isinstance(rows, Mapping):
        return _of_mapping(rows, wanted)
    try:
        count = len(rows)
    except TypeError as error:
        raise TypeError(
            f"expected a frame, a table, a list or an array, with a row for each document, found {type(rows).__name__}"
        ) from error
    _check(count, wanted)
    if library == "pyarrow":
        import pyarrow as pa

        return rows.filter(pa.array(wanted))
    if library == "datasets" and hasattr(rows, "select"):
        return rows.select(np.flatnonzero(wanted))
    if library in ("numpy", "pandas"):
        return rows[wanted]
    kept = itertools.compress(rows, wanted)
    return tuple(kept) if isinstance(rows, tuple) else list(kept)


def _of_mapping(rows: Mapping[str, Any], wanted: NDArray[np.bool_]) -> dict[str, Any]:
    """Of a dict of columns the columns, of a dict of datasets the datasets, which follow one another."""
    if any(hasattr(value, "column_names") or hasattr(value, "columns") for value in rows.values()):
        ends = np.cumsum([len(value) for value in rows.values()])
        _check(int(ends[-1]), wanted)
        parts = np.split(wanted, ends[:-1])
        selected = {name: select(value, part) for (name, value), part in zip(rows.items(), parts, strict=True)}
        return type(rows)(selected) if isinstance(rows, dict) else selected
    return {name: select(column, wanted) for name, column in rows.items()}


def _check(rows: int, wanted: NDArray[np.bool_]) -> None:
    if rows != len(wanted):
        raise ValueError(f"expected a row for each of the {len(wanted)} documents, found {rows}")
