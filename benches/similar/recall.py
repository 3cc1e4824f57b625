"""Draws how surely sketches find two texts, against their similarity: by the formula, and as random sets show it.

    python3 benches/similar/recall.py docs/similarity.svg

Needs numpy. The sketches are made here once more, by format-spec/signature.md.
"""

import sys
from math import acos, comb, pi
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))

from drawing import Axes, linear, picture

SKETCHES, BITS = 8, 64
POSITIONS = SKETCHES * BITS
# What finds two texts of similarity 0.8 with a probability of 0.95: sketches joined, and the distance in bits. And three
# bits of a fingerprint, which is a simhash.
CHOICES = [(1, 11), (2, 8), (4, 6), (8, 5), (1, 3)]
TOTAL = 69
MEMBERS, TRIALS = 200, 300
COLOURS = ["#3f7fd6", "#b8860b", "#d1495b", "#2a9d6f", "#777777"]
U64 = np.uint64


def at_most(bits, p, distance):
    return sum(comb(bits, i) * p**i * (1 - p) ** (bits - i) for i in range(distance + 1))


def recall(similarity, joined, distance):
    if distance == 3:
        return at_most(BITS, acos(min(1.0, 2 * similarity / (1 + similarity))) / pi, distance)
    p = (1 - similarity) / 2
    found = 1 - (1 - at_most(BITS, p, distance)) ** joined
    return max(0.0, found - (1 - at_most(POSITIONS, p, TOTAL)))


def mixed(state):
    word = (state ^ (state >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U64(27))) * U64(0x94D049BB133111EB)
    return word ^ (word >> U64(31))


GOLDEN = 0x9E3779B97F4A7C15
NUMBERS = mixed(np.array([(i * GOLDEN) % 2**64 for i in range(1, 9 + POSITIONS)], dtype=U64))
ODD, ADD = NUMBERS[8:].astype(np.uint32) | np.uint32(1), (NUMBERS[8:] >> U64(32)).astype(np.uint32)


def sketches(members):
    """The sketches of a set, as bits: SKETCHES x 64."""
    words = mixed(members + U64(GOLDEN))
    minima, is_there = np.zeros(POSITIONS, np.uint32), np.zeros(POSITIONS, bool)
    for at in range(4):
        hashes = words * (NUMBERS[2 * at] | U64(1)) + NUMBERS[2 * at + 1]
        positions, values = hashes >> U64(55), (hashes >> U64(23)).astype(np.uint32)
        of_round = np.full(POSITIONS, 2**32 - 1, np.uint32)
        np.minimum.at(of_round, positions.astype(int), values)
        new = np.zeros(POSITIONS, bool)
        new[positions.astype(int)] = True
        new &= ~is_there
        minima[new] = of_round[new]
        is_there |= new
    empty = ~is_there
    minima[empty] = (words.astype(np.uint32)[:, None] * ODD[empty] + ADD[empty]).min(axis=0)
    bits = minima ^ (np.arange(POSITIONS, dtype=np.uint32) * np.uint32(0x9E3779B9))
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (bits >> np.uint32(31)).reshape(SKETCHES, BITS).astype(bool)


def simhash(members):
    return 2 * (members[:, None] >> np.arange(64, dtype=U64) & U64(1)).sum(axis=0) > len(members)


def measured(similarity, random):
    """How often each choice finds two sets of about this similarity, and what it is exactly."""
    both = round(2 * similarity / (1 + similarity) * MEMBERS)
    counts = [0] * len(CHOICES)
    for _ in range(TRIALS):
        drawn = random.integers(0, 1 << 64, 2 * MEMBERS - both, dtype=U64)
        a, b = drawn[:MEMBERS], drawn[MEMBERS - both :]
        distances = (sketches(a) ^ sketches(b)).sum(axis=1)
        for at, (joined, distance) in enumerate(CHOICES):
            if distance == 3:
                counts[at] += bool((simhash(a) ^ simhash(b)).sum() <= distance)
            else:
                counts[at] += bool((distances[:joined] <= distance).any() and distances.sum() <= TOTAL)
    return both / (2 * MEMBERS - both), [count / TRIALS for count in counts]


def main(path):
    least, below = 0.4, f"similarity (lines: the formula; points: {TRIALS} random pairs of sets of {MEMBERS})"
    axes = Axes(50, 20, 560, 300, linear(least, 1), linear(0, 1))
    tenths = [tenth / 10 for tenth in range(11)]
    out = axes.grid({s: f"{s:g}" for s in tenths if s >= least}, {share: f"{share:g}" for share in tenths}, below)
    for at, ((joined, distance), colour) in enumerate(zip(CHOICES, COLOURS)):
        steps = [least + (1 - least) * i / 200 for i in range(201)]
        out.append(axes.line([(s, recall(s, joined, distance)) for s in steps], colour))
        name = f"{joined} sketch{'es' * (joined > 1)} within {distance} bits"
        out.append(f'<path class="line" stroke="{colour}" d="M{axes.right + 15} {axes.top + 20 + 22 * at}h18"/>')
        out.append(f'<text x="{axes.right + 40}" y="{axes.top + 24 + 22 * at}">{name}</text>')
    random = np.random.default_rng(13)
    for step in range(13):
        similarity, shares = measured(0.4 + 0.05 * step, random)
        row = [f"{similarity:.3f}"]
        for share, (joined, distance), colour in zip(shares, CHOICES, COLOURS):
            out += axes.dots([(similarity, share)], colour)
            row.append(f"{share:.3f} ({recall(similarity, joined, distance):.3f})")
        print("\t".join(row))
    title = "How surely two texts are found, against their similarity"
    Path(path).write_text(picture(title, axes.right + 190, axes.bottom + 50, out), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
