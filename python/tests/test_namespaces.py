"""`simstore` as a namespace of Polars and an accessor of pandas."""

import doctest

import pytest

import plain
import simstore
from corpora import rows_of

ROWS = rows_of("en.jsonl")


def texts(frame):
    return list((frame.collect() if hasattr(frame, "collect") else frame)["text"])


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_it(library):
    module, namespace = plain.optional(library), pytest.importorskip(f"simstore.{library}")
    assert doctest.testmod(namespace).failed == 0
    frames = [module.DataFrame(ROWS)] + ([module.LazyFrame(ROWS)] if library == "polars" else [])
    for frame in frames:
        result = simstore.dedup(ROWS)
        assert frame.simstore.dedup().is_kept.tolist() == result.is_kept.tolist()
        assert texts(frame.simstore.unique()) == [row["text"] for row in result.unique(ROWS)]
        assert texts(frame.simstore.duplicates(similar=0.8)) == [row["text"] for row in result.duplicates(ROWS)]
        assert type(frame.simstore.unique()) is type(frame)
    for bits in plain.WIDTHS:
        profile = simstore.Profile(bits=bits)
        values = [ROWS[0]["text"], None, "!"]
        made = module.Series("text", values) if library == "polars" else module.Series(values, index=[7, 8, 9])
        made = made.simstore.fingerprints(profile)
        assert list(made)[0] == profile.fingerprint(ROWS[0]["text"])
        assert (made.null_count() if library == "polars" else made.isna().sum()) == 2


def test_expressions_of_polars():
    pl = plain.optional("polars")
    import simstore.polars  # noqa: F401

    lazily = pl.LazyFrame(ROWS).with_columns(fp=pl.col("text").simstore.fingerprints()).collect()
    assert lazily["fp"].to_list() == simstore.Profile().fingerprints([row["text"] for row in ROWS]).to_pylist()
    assert lazily.schema["fp"] == pl.UInt64
