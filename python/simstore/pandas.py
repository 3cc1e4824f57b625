"""Accessor ``simstore`` of pandas frames and series. ``import simstore.pandas`` registers it.

Examples
--------
>>> import pandas as pd, simstore.pandas
>>> frame = pd.DataFrame({"text": ["to be or not to be", "something else altogether", "To be, or not to be"]})
>>> frame.simstore.unique()["text"].tolist()
['to be or not to be', 'something else altogether']
>>> frame["text"].simstore.fingerprints().nunique()
2
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from simstore import Deduplication, Profile
from simstore import dedup as _dedup

__all__ = ["FrameAccessor", "TextAccessor"]


class FrameAccessor:
    """``frame.simstore``: near-duplicates among the rows. All methods take the options of `simstore.dedup`."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def dedup(self, **options: Any) -> Deduplication:
        """Returns the result of `simstore.dedup`."""
        return _dedup(self._frame, **options)

    def unique(self, **options: Any) -> pd.DataFrame:
        """Returns the frame without near-duplicates."""
        return self.dedup(**options).unique(self._frame)

    def duplicates(self, **options: Any) -> pd.DataFrame:
        """Returns the near-duplicates that `unique` leaves out."""
        return self.dedup(**options).duplicates(self._frame)


class TextAccessor:
    """``series.simstore``: fingerprints of a series of texts."""

    def __init__(self, series: pd.Series[str]) -> None:
        self._series = series

    def fingerprints(self, profile: Profile | None = None) -> pd.Series[Any]:
        """Returns the fingerprints of the texts, with the index of the series. Texts without features have a missing value."""
        fingerprints = (profile or Profile()).fingerprints(self._series)
        dtype = "UInt64" if fingerprints.type == "uint64" else object
        return pd.Series(fingerprints.to_pylist(), index=self._series.index, name=self._series.name, dtype=dtype)


pd.api.extensions.register_dataframe_accessor("simstore")(FrameAccessor)
pd.api.extensions.register_series_accessor("simstore")(TextAccessor)
