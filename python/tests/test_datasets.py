"""The cache of Hugging Face `datasets` gives a profile the same hash in every process."""

import subprocess
import sys

import pytest

import simstore

fingerprint = pytest.importorskip("datasets.fingerprint")

HASH_PROGRAM = """
from datasets.fingerprint import Hasher
import simstore
profile = simstore.Profile({arguments})
print(Hasher.hash(profile))
def make(row):
    return {{"fingerprint": profile.fingerprint(row["text"])}}
print(Hasher.hash(make))
print(Hasher.hash(lambda row: profile.fingerprints(row["text"])))
"""


def hashes(arguments):
    code = HASH_PROGRAM.format(arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_hashes_are_the_same_in_every_process(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("石墨烯量子点\n", encoding="utf-8")
    expected = [hashes(f"'jieba-20', dictionary={str(words)!r}"), hashes("'chars-4'"), hashes("'chars-4', bits=128")]
    assert hashes("'chars-4'") == expected[1] and hashes(f"'jieba-20', dictionary={str(words)!r}") == expected[0]
    assert len({hash_text for hash_texts in expected for hash_text in hash_texts}) == 9


def test_a_map_of_a_dataset_is_cached(tmp_path):
    datasets = pytest.importorskip("datasets")
    profile = simstore.Profile()

    def make(batch, profile=profile):
        return {"fingerprint": profile.fingerprints(batch["text"]).to_numpy()}

    dataset = datasets.Dataset.from_dict({"text": ["to be", "or not", "to be"]})
    dataset.save_to_disk(tmp_path / "data")
    dataset = datasets.load_from_disk(tmp_path / "data")
    datasets.disable_progress_bars()
    first = dataset.map(make, batched=True)
    again = dataset.map(make, batched=True)
    assert first.cache_files == again.cache_files
    assert first["fingerprint"][:] == profile.fingerprints(dataset["text"][:]).to_pylist()
