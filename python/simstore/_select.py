"""Selection of rows of a frame, table, dataset or list by a mask (`Deduplication.unique` and `Deduplication.duplicates`).

A mask is an array with a bool for each row: True if the row is selected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def select(rows: Any, mask: NDArray[np.bool_]) -> Any:
    """Returns the rows that `mask` selects. The result has the type of `rows` if that is a known type of tables; otherwise it is a list."""
    if isinstance(rows, Mapping):
        return _select_mapping(rows, mask)
    libraries = {kind.__module__.split(".")[0] for kind in type(rows).__mro__}
    if "polars" in libraries:
        return _select_polars(rows, mask)
    if isinstance(rows, list | tuple) and any(map(_is_table, rows)):
        masks = _split_mask(list(rows), mask)
        return type(rows)(select(table, table_mask) for table, table_mask in zip(rows, masks, strict=True))
    if "datasets" in libraries and not hasattr(rows, "__len__"):
        return _select_iterable_dataset(rows, mask)
    if hasattr(rows, "to_batches") and hasattr(rows, "scanner"):
        return _select_dataset(rows, mask)
    if not hasattr(rows, "__len__") or "duckdb" in libraries or "_duckdb" in libraries:
        return _select_stream(rows, mask)
    _check_row_count(len(rows), mask)
    if "pyarrow" in libraries:
        import pyarrow as pa

        return rows.filter(pa.array(mask))
    if "datasets" in libraries and hasattr(rows, "select"):
        return rows.select(np.flatnonzero(mask))
    if "numpy" in libraries or "pandas" in libraries:
        return rows[mask]
    selected = itertools.compress(rows, mask)
    return tuple(selected) if isinstance(rows, tuple) else list(selected)


def _select_dataset(rows: Any, mask: NDArray[np.bool_]) -> Any:
    """Returns the selected rows of a pyarrow dataset, as a dataset in memory."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(_filter_batches(rows.to_batches(), rows.schema, mask))


def _select_stream(rows: Any, mask: NDArray[np.bool_]) -> Any:
    """Returns the selected rows of an Arrow stream, as a pyarrow table, or the selected items of an iterable, as a list."""
    if hasattr(rows, "__arrow_c_stream__"):
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_stream(rows)
        return _filter_batches(reader, reader.schema, mask)
    try:
        all_rows = list(rows)
    except TypeError as error:
        raise TypeError(
            f"expected a frame, a table, a dataset, a list or an array, with a row for each document, found {type(rows).__name__}"
        ) from error
    _check_row_count(len(all_rows), mask)
    return list(itertools.compress(all_rows, mask))


def _filter_batches(batches: Iterable[Any], schema: Any, mask: NDArray[np.bool_]) -> Any:
    """Returns the selected rows of record batches, as a table."""
    import pyarrow as pa

    start, selected = 0, []
    for batch in batches:
        end = start + batch.num_rows
        # If there are more rows than the mask has, they are only counted here. The check below then raises an error.
        if end <= len(mask):
            selected.append(batch.filter(pa.array(mask[start:end])))
        start = end
    _check_row_count(start, mask)
    return pa.Table.from_batches(selected, schema=schema)


def _select_iterable_dataset(rows: Any, mask: NDArray[np.bool_]) -> Any:
    """Returns the selected rows of an iterable dataset of Hugging Face. The rows are read when the result is read."""

    def is_selected(_row: Any, index: int) -> bool:
        if index >= len(mask):
            _check_row_count(index + 1, mask)
        return bool(mask[index])

    return rows.filter(is_selected, with_indices=True)


def _select_polars(rows: Any, mask: NDArray[np.bool_]) -> Any:
    import polars as pl

    # Also checked for a lazy query: Polars would repeat a mask with one value for any number of rows.
    _check_row_count(_row_count(rows), mask)
    series = pl.Series(mask)
    return rows.filter(pl.lit(series) if isinstance(rows, pl.LazyFrame) else series)


def _select_mapping(rows: Mapping[str, Any], mask: NDArray[np.bool_]) -> Any:
    """Returns the selected rows of a dict of columns, or of a dict of tables.

    For a dict of tables, the mask has the rows of all tables, one table after another.
    """
    if not all(map(_is_table, rows.values())):
        return {name: select(column, mask) for name, column in rows.items()}
    masks = _split_mask(list(rows.values()), mask)
    selected = {name: select(table, table_mask) for (name, table), table_mask in zip(rows.items(), masks, strict=True)}
    return type(rows)(selected) if type(rows).__module__.startswith("datasets") else selected


def _is_table(rows: Any) -> bool:
    return hasattr(rows, "column_names") or hasattr(rows, "columns") or hasattr(rows, "num_columns") or hasattr(rows, "count_rows")


def _split_mask(tables: list[Any], mask: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Splits the mask of all tables into one mask for each table."""
    ends = np.cumsum([_row_count(table) for table in tables])
    _check_row_count(int(ends[-1]) if tables else 0, mask)
    return np.split(mask, ends[:-1])


def _row_count(table: Any) -> int:
    """Returns the number of rows of a table. Runs the query if `table` is a lazy query of Polars."""
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


def _check_row_count(row_count: int, mask: NDArray[np.bool_]) -> None:
    if row_count != len(mask):
        raise ValueError(f"expected a row for each of the {len(mask)} documents, found {row_count}")
