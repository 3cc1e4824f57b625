"""Random texts and sample documents, their exact Jaccard similarity, and the output of the command-line program."""

import json
import os
import pathlib
import random
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SAMPLES = ROOT / "samples"


def sample_rows(name):
    """Returns the JSON objects of a file in samples/."""
    with open(SAMPLES / name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def shingles(text):
    """Returns the shingles of three ASCII words, or one shingle of all words if the text has fewer than three."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[start : start + 3]) for start in range(max(1, len(words) - 2))} if words else set()


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


def random_texts(seed, count, topics=8, words=24):
    """Returns random texts. Each has the words of one of a few topics, and about 3% of its words are replaced."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        topic = rng.randrange(topics)
        texts.append(
            " ".join(
                f"other{rng.randrange(1000)}" if rng.random() < 0.03 else f"word{topic}x{index}" for index in range(words)
            )
        )
    return texts


def cli_binary():
    """Returns the path of the command-line program. If it is not built, the test is skipped."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = pathlib.Path(os.environ.get("SIMSTORE_BINARY", target / "debug" / "simstore"))
    if not path.exists():
        pytest.skip(f"{path} is not built: `cargo build` makes it, SIMSTORE_BINARY names another")
    return path


def run_cli(*args):
    """Runs the command-line program, and returns the JSON objects that it prints."""
    completed = subprocess.run([cli_binary(), *map(str, args)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in completed.stdout.splitlines()]
