"""Texts to fingerprints, on all executors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T

import simstore
from simstore.spark import _columns
from simstore.spark._schemas import spark_schema
from simstore.tasks import fingerprints
from simstore.tasks.columns import fingerprint_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fingerprint(
    df: DataFrame, text: str = "text", profile: simstore.Profile | str | None = None, into: str = "fingerprint"
) -> DataFrame:
    """Adds the fingerprints of texts.

    Parameters
    ----------
    df : DataFrame
    text : str
        The column of the texts, of type string.
    profile : Profile or str, optional
        The profile of the fingerprints. Its files are sent to the executors.
    into : str
        The new column. It replaces a column with the same name.

    Returns
    -------
    DataFrame
        With the column, last: bigint (the 64 bits as they are, so half of all are negative), or binary of 16 bytes (the most
        significant first) for 128 bits; null for null and for texts without features.
    """
    found = _columns.column_type(df, text)
    if not isinstance(found, T.StringType):
        raise TypeError(f"column `{text}` is {found.simpleString()}: texts are string")
    made = profile if isinstance(profile, simstore.Profile) else simstore.Profile(profile)
    others = [field for field in df.schema.fields if field.name != into]
    schema = spark_schema(pa.schema([(into, fingerprint_type(made.bits))]), *others)
    return df.mapInArrow(partial(fingerprints.fingerprint, profile=made, text=text, into=into), schema)
