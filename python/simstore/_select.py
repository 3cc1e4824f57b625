"""Some rows of what a library holds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def select(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """The rows that are wanted, as the type that they came in; of other iterables a list."""
    if isinstance(rows, Mapping):
        return _of_mapping(rows, wanted)
    libraries = {kind.__module__.split(".")[0] for kind in type(rows).__mro__}
    if "polars" in libraries:
        return _of_polars(rows, wanted)
    if isinstance(rows, list | tuple) and any(map(_is_table, rows)):
        parts = _parts(list(rows), wanted)
        return type(rows)(select(table, part) for table, part in zip(rows, parts, strict=True))
    try:
        count = len(rows)
    except TypeError as error:
        raise TypeError(
            f"expected a frame, a table, a list or an array, with a row for each document, found {type(rows).__name__}"
        ) from error
    _check(count, wanted)
    if "pyarrow" in libraries:
        import pyarrow as pa

        return rows.filter(pa.array(wanted))
    if "datasets" in libraries and hasattr(rows, "select"):
        return rows.select(np.flatnonzero(wanted))
    if "numpy" in libraries or "pandas" in libraries:
        return rows[wanted]
    kept = itertools.compress(rows, wanted)
    return tuple(kept) if isinstance(rows, tuple) else list(kept)


def _of_polars(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    import polars as pl

    # A query is counted: a mask of one row would be stretched to any number of them.
    is_lazy = isinstance(rows, pl.LazyFrame)
    _check(int(rows.select(pl.len()).collect().item()) if is_lazy else len(rows), wanted)
    mask = pl.Series(wanted)
    return rows.filter(pl.lit(mask) if is_lazy else mask)


def _of_mapping(rows: Mapping[str, Any], wanted: NDArray[np.bool_]) -> Any:
    """Of a dict of columns the columns, of a dict of datasets the datasets, which follow one another."""
    if not all(map(_is_table, rows.values())):
        return {name: select(column, wanted) for name, column in rows.items()}
    parts = _parts(list(rows.values()), wanted)
    selected = {name: select(table, part) for (name, table), part in zip(rows.items(), parts, strict=True)}
    return type(rows)(selected) if type(rows).__module__.startswith("datasets") else selected


def _is_table(rows: Any) -> bool:
    return hasattr(rows, "column_names") or hasattr(rows, "columns") or hasattr(rows, "num_columns")


def _parts(tables: list[Any], wanted: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Which rows of each table are wanted."""
    ends = np.cumsum([len(table) for table in tables])
    _check(int(ends[-1]) if tables else 0, wanted)
    return np.split(wanted, ends[:-1])


def _check(rows: int, wanted: NDArray[np.bool_]) -> None:
    if rows != len(wanted):
        raise ValueError(f"expected a row for each of the {len(wanted)} documents, found {rows}")
