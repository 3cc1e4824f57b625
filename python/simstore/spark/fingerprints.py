"""Fingerprints of a column of texts."""

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
    """Adds a column with the fingerprints of the texts.

    Parameters
    ----------
    df : DataFrame
    text : str
        Column of the texts, of type string.
    profile : Profile or str, optional
        Profile of the fingerprints. Its files are sent to the executors.
    into : str
        Name of the new column. The new column replaces a column with the same name.

    Returns
    -------
    DataFrame
        The new column is the last. Its type is bigint for 64 bits (the same bits as a signed number, so half of the numbers are
        negative), and binary of 16 bytes (the most significant first) for 128 bits. The fingerprint is null if the text is null or has no
        features.
    """
    text_type = _columns.column_type(df, text)
    if not isinstance(text_type, T.StringType):
        raise TypeError(f"column `{text}` is {text_type.simpleString()}: texts are string")
    if not isinstance(profile, simstore.Profile):
        profile = simstore.Profile(profile)
    others = [field for field in df.schema.fields if field.name != into]
    schema = spark_schema(pa.schema([(into, fingerprint_type(profile.bits))]), *others)
    return df.mapInArrow(partial(fingerprints.fingerprint, profile=profile, text=text, into=into), schema)
