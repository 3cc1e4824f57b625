"""Preset profiles give the same fingerprints as the tools that they are named after."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simstore
from corpora import sample_rows

simhash = pytest.importorskip("simhash")

PROFILE = simstore.Profile.preset("pypi-simhash")


def test_sample_texts():
    texts = [row["text"] for name in ("en.jsonl", "zh.jsonl") for row in sample_rows(name)]
    texts += [text[: len(text) // part] for text in texts for part in (2, 9)]
    assert len(texts) > 400
    assert PROFILE.fingerprints(texts).to_pylist() == [simhash.Simhash(text).value for text in texts]


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=200))
def test_random_texts(text):
    # Unassigned code points (Cn) are excluded: they differ between Unicode versions, and so between Python and simstore.
    assert PROFILE.fingerprint(text) == simhash.Simhash(text).value


def test_distances_are_the_same():
    a, b = "How are you? I am fine.", "How are u? I am fine."
    expected = simhash.Simhash(a).distance(simhash.Simhash(b))
    assert (PROFILE.fingerprint(a) ^ PROFILE.fingerprint(b)).bit_count() == expected


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="expected one of .*pypi-simhash"):
        simstore.Profile.preset("nothing")
    assert "pypi-simhash" in simstore.Profile.presets()
