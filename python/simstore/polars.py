"""Namespace ``simstore`` of Polars frames, lazy frames, series and expressions. ``import simstore.polars`` registers it.

Examples
--------
>>> import polars as pl, simstore.polars
>>> frame = pl.DataFrame({"text": ["to be or not to be", "something else altogether", "To be, or not to be"]})
>>> frame.simstore.unique()["text"].to_list()
['to be or not to be', 'something else altogether']
>>> frame.with_columns(fp=pl.col("text").simstore.fingerprints())["fp"].n_unique()
2
"""

from __future__ import annotations

from typing import Any

import polars as pl

from simstore import Deduplication, Profile
from simstore import dedup as _dedup

__all__ = ["FrameNamespace", "LazyFrameNamespace", "TextExpression", "TextSeries"]


class FrameNamespace:
    """``frame.simstore``: near-duplicates among the rows. All methods take the options of `simstore.dedup`."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def dedup(self, **options: Any) -> Deduplication:
        """Returns the result of `simstore.dedup`."""
        return _dedup(self._frame, **options)

    def unique(self, **options: Any) -> pl.DataFrame:
        """Returns the frame without near-duplicates."""
        return self.dedup(**options).unique(self._frame)

    def duplicates(self, **options: Any) -> pl.DataFrame:
        """Returns the near-duplicates that `unique` leaves out."""
        return self.dedup(**options).duplicates(self._frame)


class LazyFrameNamespace:
    """``query.simstore``: near-duplicates among the rows of a lazy query, which is collected batch by batch.

    All methods take the options of `simstore.dedup`.
    """

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def dedup(self, **options: Any) -> Deduplication:
        """Returns the result of `simstore.dedup`."""
        return _dedup(self._frame, **options)

    def unique(self, **options: Any) -> pl.LazyFrame:
        """Returns the query without near-duplicates. The query runs now to find them, and again when the result is collected."""
        return self.dedup(**options).unique(self._frame)

    def duplicates(self, **options: Any) -> pl.LazyFrame:
        """Returns the near-duplicates that `unique` leaves out."""
        return self.dedup(**options).duplicates(self._frame)


class TextSeries:
    """``series.simstore``: fingerprints of a series of texts."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def fingerprints(self, profile: Profile | None = None) -> pl.Series:
        """Returns the fingerprints of the texts, null for texts without features."""
        fingerprints: pl.Series = (profile or Profile()).fingerprints(self._series).to_polars()
        return fingerprints.alias(self._series.name)


class TextExpression:
    """``pl.col("text").simstore``: fingerprints of an expression of texts."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def fingerprints(self, profile: Profile | None = None) -> pl.Expr:
        """Returns the fingerprints of the texts, null for texts without features."""
        profile = profile or Profile()
        dtype = pl.UInt64 if profile.bits == 64 else pl.Binary
        return self._expression.map_batches(
            lambda series: TextSeries(series).fingerprints(profile), return_dtype=dtype, is_elementwise=True
        )


pl.api.register_dataframe_namespace("simstore")(FrameNamespace)
pl.api.register_lazyframe_namespace("simstore")(LazyFrameNamespace)
pl.api.register_series_namespace("simstore")(TextSeries)
pl.api.register_expr_namespace("simstore")(TextExpression)
