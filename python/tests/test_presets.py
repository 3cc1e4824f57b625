"""Presets give what other tools give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simstore
from corpora import rows_of

simhash = pytest.importorskip("simhash")

PYPI = simstore.Profile.preset("pypi-simhash")


def test_of_real_texts():
    texts = [row["text"] for name in ("en.jsonl", "zh.jsonl") for row in rows_of(name)]
    texts += [text[: len(text) // part] for text in texts for part in (2, 9)]
    assert len(texts) > 400
    assert PYPI.fingerprints(texts).to_pylist() == [simhash.Simhash(text).value for text in texts]


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=200))
def test_of_any_text(text):
    # What this Python does not know as a character, another may.
    assert PYPI.fingerprint(text) == simhash.Simhash(text).value


def test_distances_are_the_same():
    a, b = "How are you? I am fine.", "How are u? I am fine."
    expected = simhash.Simhash(a).distance(simhash.Simhash(b))
    assert (PYPI.fingerprint(a) ^ PYPI.fingerprint(b)).bit_count() == expected


def test_what_is_no_preset_is_refused():
    with pytest.raises(ValueError, match="expected one of .*pypi-simhash"):
        simstore.Profile.preset("nothing")
    assert "pypi-simhash" in simstore.Profile.presets()
