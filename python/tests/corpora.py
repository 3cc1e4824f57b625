"""Random corpora, the plain loop over them, and the command line, to compare with."""

import json
import os
import pathlib
import random
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SAMPLES = ROOT / "samples"


def rows_of(name):
    with open(SAMPLES / name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def shingles(text):
    """Every three successive words, of a text of plain words; all of them where there are fewer."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))} if words else set()


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


def texts(seed, count, topics=8, words=24):
    """Texts of a few topics, of which some words are replaced."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        topic = chance.randrange(topics)
        made.append(
            " ".join(
                f"other{chance.randrange(1000)}" if chance.random() < 0.03 else f"word{topic}x{at}" for at in range(words)
            )
        )
    return made


def binary():
    """The command line; where it is not built, the test is skipped."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = pathlib.Path(os.environ.get("SIMSTORE_BINARY", target / "debug" / "simstore"))
    if not path.exists():
        pytest.skip(f"{path} is not built: `cargo build` makes it, SIMSTORE_BINARY names another")
    return path


def run(*args):
    """The objects that the command line prints as JSON."""
    done = subprocess.run([binary(), *map(str, args)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
