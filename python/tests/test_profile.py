"""`Profile`: fingerprints of texts."""

import pickle

import numpy as np
import pytest

import simstore


def test_fingerprints_are_those_of_single_texts():
    profile = simstore.Profile()
    texts = ["To be, or not to be", None, "", "?!", "重复 text 重复", "a" * 10_000]
    expected = [profile.fingerprint(text or "") for text in texts]
    assert profile.fingerprints(texts).to_pylist() == expected
    assert profile.fingerprints(iter(texts)).to_pylist() == expected
    assert profile.fingerprints(np.array(texts, dtype=object)).to_pylist() == expected
    assert expected[1:4] == [None, None, None]


def test_a_profile_is_its_name_and_width():
    for profile in [simstore.Profile("chars-4"), simstore.Profile("chars-4", bits=128)]:
        copy = pickle.loads(pickle.dumps(profile))
        assert copy == profile and hash(copy) == hash(profile) and repr(copy) == repr(profile)
        assert copy.fingerprint("near duplicates") == profile.fingerprint("near duplicates")
    assert simstore.Profile("chars-4") != simstore.Profile("chars-4", bits=128)
    with pytest.raises(ValueError, match="unknown text profile"):
        simstore.Profile("nothing")
    with pytest.raises(ValueError, match="128 bits"):
        simstore.Profile("string-hash-128", bits=64)


def test_values_that_are_no_texts_are_refused():
    with pytest.raises(TypeError, match="put it in a list"):
        simstore.Profile().fingerprints("one text")
    with pytest.raises(TypeError, match="text 1 is int"):
        simstore.Profile().fingerprints(["text", 3])


def test_the_files_of_a_profile_go_with_it(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("石墨烯量子点\n", encoding="utf-8")
    profile = simstore.Profile("jieba-20", dictionary=words)
    assert profile.name == "jieba-20,dictionary=6c3035722846a942"
    text = "石墨烯量子点的制备方法与应用"
    expected = profile.fingerprint(text)
    pickled = pickle.dumps(profile)
    words.unlink()
    copy = pickle.loads(pickled)
    assert copy == profile and copy.fingerprint(text) == expected != simstore.Profile("jieba-20").fingerprint(text)
    with pytest.warns(simstore.SimstoreWarning, match="too short"):
        result = simstore.dedup([{"text": text}, {"text": text}], profile=copy, distance=0)
    assert result.is_kept.tolist() == [True, False]
    with pytest.raises(FileNotFoundError):
        simstore.Profile("jieba-20", dictionary=words)
    with pytest.raises(ValueError, match="needs the dictionary"):
        simstore.Profile(profile.name)
