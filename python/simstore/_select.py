"""Selection of rows of a frame, a table, a dataset or a list."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def select(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """Returns the wanted rows in the type of `rows`; for other iterables, as a list."""
    if isinstance(rows, Mapping):
        return _of_mapping(rows, wanted)
    libraries = {kind.__module__.split(".")[0] for kind in type(rows).__mro__}
    if "polars" in libraries:
        return _of_polars(rows, wanted)
    if isinstance(rows, list | tuple) and any(map(_is_table, rows)):
        parts = _parts(list(rows), wanted)
        return type(rows)(select(table, part) for table, part in zip(rows, parts, strict=True))
    if "datasets" in libraries and not hasattr(rows, "__len__"):
        return _of_iterable_dataset(rows, wanted)
    if hasattr(rows, "to_batches") and hasattr(rows, "scanner"):
        return _of_dataset(rows, wanted)
    if not hasattr(rows, "__len__") or "duckdb" in libraries or "_duckdb" in libraries:
        return _of_stream(rows, wanted)
    _check(len(rows), wanted)
    if "pyarrow" in libraries:
        import pyarrow as pa

        return rows.filter(pa.array(wanted))
    if "datasets" in libraries and hasattr(rows, "select"):
        return rows.select(np.flatnonzero(wanted))
    if "numpy" in libraries or "pandas" in libraries:
        return rows[wanted]
    kept = itertools.compress(rows, wanted)
    return tuple(kept) if isinstance(rows, tuple) else list(kept)


def _of_dataset(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """Returns rows of a pyarrow dataset as a dataset in memory."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(_filtered(rows.to_batches(), rows.schema, wanted))


def _of_stream(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """Returns rows of an Arrow stream as a pyarrow table, or items of an iterable as a list."""
    if hasattr(rows, "__arrow_c_stream__"):
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_stream(rows)
        return _filtered(reader, reader.schema, wanted)
    try:
        all_rows = list(rows)
    except TypeError as error:
        raise TypeError(
            f"expected a frame, a table, a dataset, a list or an array, with a row for each document, found {type(rows).__name__}"
        ) from error
    _check(len(all_rows), wanted)
    return list(itertools.compress(all_rows, wanted))


def _filtered(batches: Iterable[Any], schema: Any, wanted: NDArray[np.bool_]) -> Any:
    """Returns the wanted rows of record batches, as a table."""
    import pyarrow as pa

    start, kept = 0, []
    for batch in batches:
        end = start + batch.num_rows
        # Further rows are counted, and refused below.
        if end <= len(wanted):
            kept.append(batch.filter(pa.array(wanted[start:end])))
        start = end
    _check(start, wanted)
    return pa.Table.from_batches(kept, schema=schema)


def _of_iterable_dataset(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    """Returns the wanted rows of an iterable dataset of Hugging Face. They are read when the result is read."""

    def is_wanted(_row: Any, at: int) -> bool:
        if at >= len(wanted):
            _check(at + 1, wanted)
        return bool(wanted[at])

    return rows.filter(is_wanted, with_indices=True)


def _of_polars(rows: Any, wanted: NDArray[np.bool_]) -> Any:
    import polars as pl

    # A query is counted: a mask of one row would be stretched to any number of them.
    is_lazy = isinstance(rows, pl.LazyFrame)
    _check(_count(rows), wanted)
    mask = pl.Series(wanted)
    return rows.filter(pl.lit(mask) if is_lazy else mask)


def _of_mapping(rows: Mapping[str, Any], wanted: NDArray[np.bool_]) -> Any:
    """Returns the wanted rows of a dict of columns, or of a dict of datasets, whose rows are numbered through."""
    if not all(map(_is_table, rows.values())):
        return {name: select(column, wanted) for name, column in rows.items()}
    parts = _parts(list(rows.values()), wanted)
    selected = {name: select(table, part) for (name, table), part in zip(rows.items(), parts, strict=True)}
    return type(rows)(selected) if type(rows).__module__.startswith("datasets") else selected


def _is_table(rows: Any) -> bool:
    return hasattr(rows, "column_names") or hasattr(rows, "columns") or hasattr(rows, "num_columns") or hasattr(rows, "count_rows")


def _parts(tables: list[Any], wanted: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Returns the mask of the wanted rows for each table."""
    ends = np.cumsum([_count(table) for table in tables])
    _check(int(ends[-1]) if tables else 0, wanted)
    return np.split(wanted, ends[:-1])


def _count(table: Any) -> int:
    """Returns the number of rows of a table."""
    if hasattr(table, "count_rows"):
        return int(table.count_rows())
    if hasattr(table, "collect"):
        import polars as pl

        return int(table.select(pl.len()).collect().item())
    try:
        return len(table)
    except TypeError as error:
        name = type(table).__name__
        raise TypeError(f"{name} among other tables: where its rows end is not known, so select the rows of each by itself") from error


def _check(rows: int, wanted: NDArray[np.bool_]) -> None:
    if rows != len(wanted):
        raise ValueError(f"expected a row for each of the {len(wanted)} documents, found {rows}")
