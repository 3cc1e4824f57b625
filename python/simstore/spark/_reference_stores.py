"""The option `against` of `simstore.spark.dedup`: stores whose documents are compared with the rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

import simstore
from simstore import _simstore
from simstore.spark import _columns
from simstore.spark._schemas import spark_schema
from simstore.tasks import stored
from simstore.tasks.columns import fingerprint_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# Type of the column `stored` in rows compared by similarity: the index of the store, and the name of the stored document.
STORED_TYPE = spark_schema(pa.schema([stored.SIMILAR_TYPE.field("store"), stored.SIMILAR_TYPE.field("name")]))


class ReferenceStores:
    """The stores of the option `against`.

    Attributes
    ----------
    paths : list of str
        Paths of the stores; empty if the option is not given.
    """

    def __init__(self, against: str | Sequence[str] | None) -> None:
        paths = [] if against is None else [against] if isinstance(against, str) else list(against)
        self.paths = [str(path) for path in paths]

    def common_profile(self, profile: simstore.Profile | str | None) -> simstore.Profile | str | None:
        """Returns `profile`; if it is None, the profile of the stores, or None without stores.

        Raises an error if a store has another profile or width, or compares texts by similarity, not by fingerprints.
        """
        common = simstore.Profile(profile) if isinstance(profile, str) else profile
        for path in self.paths:
            snapshot = simstore.Snapshot(path)
            if snapshot.metadata("similar") is not None:
                raise ValueError(f"{path}: is a store of similar documents: give option `similar` instead of `distance`")
            # A store has no profile if its fingerprints were not computed by simstore.
            if common is None:
                common = simstore.Profile(snapshot.profile, bits=128 if snapshot.bits == 128 else 64)
            if snapshot.profile not in (None, common.name):
                raise ValueError(f"{path}: has profile {snapshot.profile}, not {common.name}: texts are compared by one")
            if snapshot.bits != common.bits:
                raise ValueError(f"{path}: has fingerprints of {snapshot.bits} bits, the profile makes some of {common.bits}")
        return common

    def with_nearest(self, rows: DataFrame, distance: int) -> DataFrame:
        """Adds the column ``stored``: the nearest stored document within `distance` bits of the row's fingerprint, or null."""
        bits = _columns.fingerprint_bits(rows, "fingerprint")
        schema = spark_schema(pa.schema([("stored", stored.near_type(fingerprint_type(bits)))]), *rows.schema.fields)
        if not self.paths:
            return rows.withColumn("stored", F.lit(None).cast(schema["stored"].dataType))
        find_nearest = partial(stored.nearest, paths=self.paths, distance=distance, bits=bits)
        return rows.mapInArrow(find_nearest, schema)

    def with_most_similar(
        self, rows: DataFrame, similar: float | None, profile: simstore.Profile | str | None, keep: str
    ) -> tuple[float, simstore.Profile | str | None, DataFrame]:
        """Returns the similarity threshold, the profile, and the rows.

        If there are stores, the profile is the profile of the stores, and the rows have the new column ``stored``: the most similar stored
        document, or null. If `similar` is None, the threshold of the stores applies, or 0.8 without stores. With stores, raises an error
        if `profile` is given or `keep` is "none".
        """
        if not self.paths:
            return 0.8 if similar is None else similar, profile, rows
        if keep == "none":
            raise ValueError(
                'option `keep` "none": with a store of similar documents, what is similar to one that is stored is not compared with the '
                "others: take out what has duplicates first, and compare what is left with the store"
            )
        if profile is not None:
            raise ValueError("option `profile`: the store compares texts by their similarity, in its own way")
        # Raises an error if a path is not a store of similar documents.
        stores = _simstore._SimilarStores(self.paths, similar)
        find_most_similar = partial(stored.most_similar, paths=self.paths, similar=stores.similar)
        schema = spark_schema(pa.schema([("stored", stored.SIMILAR_TYPE)]), *rows.schema.fields)
        return stores.similar, stores.profile, rows.mapInArrow(find_most_similar, schema)
