"""What the answers are, by plain loops of numpy; and fingerprints to ask for."""

import os
import pathlib

import numpy as np
import pytest
from hypothesis import strategies as st

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = [64, 128]


def array(fingerprints, bits):
    """Ints as numpy has them: uint64, or 16 bytes each, the most significant first."""
    if bits == 64:
        return np.array(fingerprints, dtype=np.uint64)
    data = b"".join(fingerprint.to_bytes(16, "big") for fingerprint in fingerprints)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(fingerprints), 16)


def number(fingerprint):
    """An int, of bytes too, as fingerprints of 128 bits are."""
    return int.from_bytes(fingerprint, "big") if isinstance(fingerprint, bytes) else fingerprint


def distances(fingerprints, others, bits):
    """Hamming distances of all to all."""
    if len(fingerprints) == 0 or len(others) == 0:
        return np.zeros((len(fingerprints), len(others)), dtype=np.int64)
    a, b = (array(some, bits).reshape(len(some), -1) for some in (fingerprints, others))
    return np.bitwise_count(a[:, None, :] ^ b[None, :, :]).sum(axis=2, dtype=np.int64)


def matches(stored, queries, distance, bits):
    """Rows (query, distance, fingerprint, id) of stored pairs of fingerprint and id, sorted."""
    stored = sorted(set(stored))
    near = distances(queries, [fingerprint for fingerprint, _ in stored], bits)
    rows = [(int(q), int(near[q, s]), *stored[s]) for q, s in zip(*np.nonzero(near <= distance))]
    return sorted(rows)


def pairs(fingerprints, distance, bits):
    """Rows (a, b, distance) of the positions of near ones."""
    near = distances(fingerprints, fingerprints, bits)
    return [(int(a), int(b), int(near[a, b])) for a, b in zip(*np.nonzero(near <= distance)) if a < b]


def labels(fingerprints, distance, bits):
    """Labels of what pairs connect, from 1 in the order of first members."""
    label = list(range(len(fingerprints)))
    changed = True
    while changed:
        changed = False
        for a, b, _ in pairs(fingerprints, distance, bits):
            if label[a] != label[b]:
                label[a] = label[b] = min(label[a], label[b])
                changed = True
    numbers = {}
    return [numbers.setdefault(one, len(numbers) + 1) for one in label]


@st.composite
def fingerprints(draw, bits, max_size=60):
    """Adversarial ones: equal, neighbours of one bit and of some, 0, all ones, and any."""
    centres = draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=4)) + [0, 2**bits - 1]
    flips = st.lists(st.integers(0, bits - 1), max_size=7)
    chosen = draw(st.lists(st.tuples(st.sampled_from(centres), flips), max_size=max_size))
    values = []
    for value, positions in chosen:
        for position in positions:
            value ^= 1 << position
        values.append(value)
    return values


def random_fingerprints(count, bits, seed=0):
    """A third random, a third near another one, a third equal to another one."""
    rng = np.random.default_rng(seed)
    values = [int.from_bytes(rng.bytes(bits // 8), "big") for _ in range(count)]
    for at in range(1, count, 3):
        values[at] = values[at - 1]
        for position in rng.integers(0, bits, rng.integers(1, 5)):
            values[at] ^= 1 << int(position)
    for at in range(2, count, 3):
        values[at] = values[int(rng.integers(0, at))]
    return values


def optional(name):
    """A library that a test needs and that the package does not."""
    try:
        return __import__(name)
    except ImportError:
        pytest.skip(f"{name} is not installed: ./test.sh installs it")


def binary():
    """The command line of this repository."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = pathlib.Path(os.environ.get("SIMSTORE_BINARY", target / "debug" / "simstore"))
    if not path.exists():
        pytest.skip(f"there is no {path}: `cargo build` makes it, or SIMSTORE_BINARY tells where it is")
    return str(path)
