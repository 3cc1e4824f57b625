"""Stores that rows are compared with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

import simstore
from simstore import _simstore
from simstore.spark import _columns
from simstore.spark._schemas import schema_of
from simstore.tasks import stored
from simstore.tasks.columns import value_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# By similarity, the columns about a stored document.
STORED = schema_of(pa.schema([stored.SIMILAR.field("store"), stored.SIMILAR.field("name")]))


class Stores:
    """The stores of the option `against`, or none without the option.

    Attributes
    ----------
    paths : list of str
    """

    def __init__(self, against: str | Sequence[str] | None) -> None:
        paths = [] if against is None else [against] if isinstance(against, str) else list(against)
        self.paths = [str(path) for path in paths]

    def profile(self, profile: simstore.Profile | str | None) -> simstore.Profile | str | None:
        """Returns the profile of the stores, which must all have the same profile."""
        made = simstore.Profile(profile) if isinstance(profile, str) else profile
        for path in self.paths:
            snapshot = simstore.Snapshot(path)
            if snapshot.mark("similar") is not None:
                raise ValueError(f"{path}: is a store of similar documents: give option `similar` instead of `distance`")
            # A store of fingerprints from another source may have no profile.
            if made is None:
                made = simstore.Profile(snapshot.profile, bits=128 if snapshot.bits == 128 else 64)
            if snapshot.profile not in (None, made.name):
                raise ValueError(f"{path}: has profile {snapshot.profile}, not {made.name}: texts are compared by one")
            if snapshot.bits != made.bits:
                raise ValueError(f"{path}: has fingerprints of {snapshot.bits} bits, the profile makes some of {made.bits}")
        return made

    def nearest(self, rows: DataFrame, distance: int) -> DataFrame:
        """Returns the rows with a column stored: the stored document nearest to the fingerprint."""
        bits = _columns.width(rows, "fingerprint")
        schema = schema_of(pa.schema([("stored", stored.near_type(value_of(bits)))]), *rows.schema.fields)
        if not self.paths:
            return rows.withColumn("stored", F.lit(None).cast(schema["stored"].dataType))
        look_up = partial(stored.nearest, paths=self.paths, distance=distance, bits=bits)
        return rows.mapInArrow(look_up, schema)

    def most_similar(
        self, rows: DataFrame, similar: float | None, profile: simstore.Profile | str | None, keep: str
    ) -> tuple[float, simstore.Profile | str | None, DataFrame]:
        """Returns the threshold, the profile, and the rows. If any store is given, the rows have a column `stored`."""
        if not self.paths:
            return 0.8 if similar is None else similar, profile, rows
        if keep == "none":
            raise ValueError(
                'option `keep` "none": with a store of similar documents, what is similar to one that is stored is not compared with the '
                "others: take out what has duplicates first, and compare what is left with the store"
            )
        if profile is not None:
            raise ValueError("option `profile`: the store compares texts by their similarity, in its own way")
        # Refuses any other kind of store.
        stores = _simstore._SimilarStores(self.paths, similar)
        look_up = partial(stored.most_similar, paths=self.paths, similar=stores.similar)
        schema = schema_of(pa.schema([("stored", stored.SIMILAR)]), *rows.schema.fields)
        return stores.similar, stores.profile, rows.mapInArrow(look_up, schema)
