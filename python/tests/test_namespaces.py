"""The attribute `simstore` of Polars and pandas objects gives the same results as `simstore.dedup` and `Profile.fingerprints`."""

import doctest

import pytest

import helpers
import simstore
from corpora import sample_rows

ROWS = sample_rows("en.jsonl")


def frame_texts(frame):
    return list((frame.collect() if hasattr(frame, "collect") else frame)["text"])


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_the_namespace(library):
    module, namespace = helpers.optional_module(library), pytest.importorskip(f"simstore.{library}")
    assert doctest.testmod(namespace).failed == 0
    frames = [module.DataFrame(ROWS)] + ([module.LazyFrame(ROWS)] if library == "polars" else [])
    for frame in frames:
        result = simstore.dedup(ROWS)
        assert frame.simstore.dedup().is_kept.tolist() == result.is_kept.tolist()
        assert frame_texts(frame.simstore.unique()) == [row["text"] for row in result.unique(ROWS)]
        assert frame_texts(frame.simstore.duplicates(similar=0.8)) == [row["text"] for row in result.duplicates(ROWS)]
        assert type(frame.simstore.unique()) is type(frame)
    for bits in helpers.WIDTHS:
        profile = simstore.Profile(bits=bits)
        values = [ROWS[0]["text"], None, "!"]
        series = module.Series("text", values) if library == "polars" else module.Series(values, index=[7, 8, 9])
        series = series.simstore.fingerprints(profile)
        assert list(series)[0] == profile.fingerprint(ROWS[0]["text"])
        assert (series.null_count() if library == "polars" else series.isna().sum()) == 2


def test_expressions_of_polars():
    pl = helpers.optional_module("polars")
    import simstore.polars  # noqa: F401

    lazily = pl.LazyFrame(ROWS).with_columns(fp=pl.col("text").simstore.fingerprints()).collect()
    assert lazily["fp"].to_list() == simstore.Profile().fingerprints([row["text"] for row in ROWS]).to_pylist()
    assert lazily.schema["fp"] == pl.UInt64
