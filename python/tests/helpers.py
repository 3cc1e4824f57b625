"""Expected results by brute force in numpy, random fingerprints, optional modules, and the path of the command-line program."""

import os
import pathlib

import numpy as np
import pytest
from hypothesis import strategies as st

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = [64, 128]


def to_array(fingerprints, bits):
    """Returns fingerprints as a numpy array: uint64 for 64 bits, rows of 16 big-endian bytes for 128 bits."""
    if bits == 64:
        return np.array(fingerprints, dtype=np.uint64)
    data = b"".join(fingerprint.to_bytes(16, "big") for fingerprint in fingerprints)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(fingerprints), 16)


def to_int(fingerprint):
    """Returns a fingerprint as an int. Fingerprints of 128 bits are big-endian bytes."""
    return int.from_bytes(fingerprint, "big") if isinstance(fingerprint, bytes) else fingerprint


def distance_matrix(fingerprints, others, bits):
    """Returns the matrix of Hamming distances, a row for each fingerprint and a column for each of `others`."""
    if len(fingerprints) == 0 or len(others) == 0:
        return np.zeros((len(fingerprints), len(others)), dtype=np.int64)
    a, b = (to_array(values, bits).reshape(len(values), -1) for values in (fingerprints, others))
    return np.bitwise_count(a[:, None, :] ^ b[None, :, :]).sum(axis=2, dtype=np.int64)


def brute_force_matches(stored, queries, distance, bits):
    """Returns sorted rows (position of the query, distance, fingerprint, id). `stored` has pairs of fingerprint and id."""
    stored = sorted(set(stored))
    distances = distance_matrix(queries, [fingerprint for fingerprint, _ in stored], bits)
    rows = [(int(q), int(distances[q, s]), *stored[s]) for q, s in zip(*np.nonzero(distances <= distance))]
    return sorted(rows)


def brute_force_pairs(fingerprints, distance, bits):
    """Returns rows (a, b, distance) of the positions of all fingerprints within the distance of each other, with a < b."""
    distances = distance_matrix(fingerprints, fingerprints, bits)
    return [(int(a), int(b), int(distances[a, b])) for a, b in zip(*np.nonzero(distances <= distance)) if a < b]


def brute_force_labels(fingerprints, distance, bits):
    """Returns the cluster label of each fingerprint: connected components of the pairs, numbered from 1 in order of their first members."""
    label = list(range(len(fingerprints)))
    changed = True
    while changed:
        changed = False
        for a, b, _ in brute_force_pairs(fingerprints, distance, bits):
            if label[a] != label[b]:
                label[a] = label[b] = min(label[a], label[b])
                changed = True
    label_of_root = {}
    return [label_of_root.setdefault(value, len(label_of_root) + 1) for value in label]


@st.composite
def fingerprint_lists(draw, bits, max_size=60):
    """Draws lists of adversarial fingerprints: 0, all ones and random centres, each with 0 to 7 bits flipped."""
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
    """Returns ints: a third random, a third near another fingerprint, a third equal to another fingerprint."""
    rng = np.random.default_rng(seed)
    values = [int.from_bytes(rng.bytes(bits // 8), "big") for _ in range(count)]
    for index in range(1, count, 3):
        values[index] = values[index - 1]
        for position in rng.integers(0, bits, rng.integers(1, 5)):
            values[index] ^= 1 << int(position)
    for index in range(2, count, 3):
        values[index] = values[int(rng.integers(0, index))]
    return values


def optional_module(name):
    """Returns a module that simstore does not require. If it is not installed, the test is skipped."""
    try:
        return __import__(name)
    except ImportError:
        pytest.skip(f"{name} is not installed: ./test.sh installs it")


def cli_binary():
    """Returns the path of the command-line program. If it is not built, the test is skipped."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = pathlib.Path(os.environ.get("SIMSTORE_BINARY", target / "debug" / "simstore"))
    if not path.exists():
        pytest.skip(f"there is no {path}: `cargo build` makes it, or SIMSTORE_BINARY tells where it is")
    return str(path)
