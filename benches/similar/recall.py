"""Draws the probability that simstore finds a pair of texts, by its similarity: computed by formula, and measured with random sets.

    python3 benches/similar/recall.py docs/similarity.svg

Needs numpy. This is an independent implementation of the signatures of format-spec/signature.md.
"""

import sys
from math import acos, comb, pi
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))

from drawing import Axes, linear, picture

BANDS, BAND_BITS = 8, 64
SIGNATURE_BITS = BANDS * BAND_BITS
# Number of joined bands and distance in bits; each has a recall of at least 0.95 at similarity 0.8. The last one is a simhash fingerprint
# within 3 bits.
SETTINGS = [(1, 11), (2, 8), (4, 6), (8, 5), (1, 3)]
MAX_SIGNATURE_DISTANCE = 69
SET_SIZE, TRIALS = 200, 300
COLOURS = ["#3f7fd6", "#b8860b", "#d1495b", "#2a9d6f", "#777777"]
U64 = np.uint64


def binomial_cdf(bits, p, distance):
    """Returns the probability that at most `distance` of `bits` bits differ, each with probability `p`."""
    return sum(comb(bits, i) * p**i * (1 - p) ** (bits - i) for i in range(distance + 1))


def recall(similarity, band_count, distance):
    """Returns the probability that a pair of this similarity is found, computed from the binomial distribution of differing bits.

    A pair is found if at least one of `band_count` bands differs in at most `distance` bits, and the whole signature in at most
    MAX_SIGNATURE_DISTANCE bits. If `distance` is 3, the search compares simhash fingerprints instead: a pair is found if its
    fingerprints differ in at most 3 bits.
    """
    if distance == 3:
        return binomial_cdf(BAND_BITS, acos(min(1.0, 2 * similarity / (1 + similarity))) / pi, distance)
    p = (1 - similarity) / 2
    found = 1 - (1 - binomial_cdf(BAND_BITS, p, distance)) ** band_count
    return max(0.0, found - (1 - binomial_cdf(SIGNATURE_BITS, p, MAX_SIGNATURE_DISTANCE)))


def mix_bits(state):
    word = (state ^ (state >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U64(27))) * U64(0x94D049BB133111EB)
    return word ^ (word >> U64(31))


GOLDEN = 0x9E3779B97F4A7C15
CONSTANTS = mix_bits(np.array([(i * GOLDEN) % 2**64 for i in range(1, 9 + SIGNATURE_BITS)], dtype=U64))
MULTIPLIERS, ADDENDS = CONSTANTS[8:].astype(np.uint32) | np.uint32(1), (CONSTANTS[8:] >> U64(32)).astype(np.uint32)


def signature(members):
    """Returns the signature of a set of 64-bit hashes as Booleans, in the shape BANDS x BAND_BITS."""
    words = mix_bits(members + U64(GOLDEN))
    minima, is_filled = np.zeros(SIGNATURE_BITS, np.uint32), np.zeros(SIGNATURE_BITS, bool)
    for index in range(4):
        hashes = words * (CONSTANTS[2 * index] | U64(1)) + CONSTANTS[2 * index + 1]
        positions, values = hashes >> U64(55), (hashes >> U64(23)).astype(np.uint32)
        round_minima = np.full(SIGNATURE_BITS, 2**32 - 1, np.uint32)
        np.minimum.at(round_minima, positions.astype(int), values)
        new = np.zeros(SIGNATURE_BITS, bool)
        new[positions.astype(int)] = True
        new &= ~is_filled
        minima[new] = round_minima[new]
        is_filled |= new
    empty = ~is_filled
    minima[empty] = (words.astype(np.uint32)[:, None] * MULTIPLIERS[empty] + ADDENDS[empty]).min(axis=0)
    bits = minima ^ (np.arange(SIGNATURE_BITS, dtype=np.uint32) * np.uint32(0x9E3779B9))
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (bits >> np.uint32(31)).reshape(BANDS, BAND_BITS).astype(bool)


def simhash(members):
    return 2 * (members[:, None] >> np.arange(64, dtype=U64) & U64(1)).sum(axis=0) > len(members)


def measured_recall(similarity, random):
    """Measures how often pairs of random sets with a similarity near `similarity` are found.

    Returns the exact similarity of each pair, and the share of pairs found for each entry (number of bands, distance) of SETTINGS.
    """
    shared = round(2 * similarity / (1 + similarity) * SET_SIZE)
    counts = [0] * len(SETTINGS)
    for _ in range(TRIALS):
        members = random.integers(0, 1 << 64, 2 * SET_SIZE - shared, dtype=U64)
        a, b = members[:SET_SIZE], members[SET_SIZE - shared :]
        distances = (signature(a) ^ signature(b)).sum(axis=1)
        for index, (band_count, distance) in enumerate(SETTINGS):
            if distance == 3:
                counts[index] += bool((simhash(a) ^ simhash(b)).sum() <= distance)
            else:
                counts[index] += bool((distances[:band_count] <= distance).any() and distances.sum() <= MAX_SIGNATURE_DISTANCE)
    return shared / (2 * SET_SIZE - shared), [count / TRIALS for count in counts]


def main(path):
    min_similarity, x_label = 0.4, f"similarity (lines: the formula; points: {TRIALS} random pairs of sets of {SET_SIZE})"
    axes = Axes(50, 20, 560, 300, linear(min_similarity, 1), linear(0, 1))
    tenths = [tenth / 10 for tenth in range(11)]
    out = axes.grid({s: f"{s:g}" for s in tenths if s >= min_similarity}, {share: f"{share:g}" for share in tenths}, x_label)
    for index, ((band_count, distance), colour) in enumerate(zip(SETTINGS, COLOURS)):
        steps = [min_similarity + (1 - min_similarity) * i / 200 for i in range(201)]
        out.append(axes.line([(s, recall(s, band_count, distance)) for s in steps], colour))
        name = f"{band_count} sketch{'es' * (band_count > 1)} within {distance} bits"
        out.append(f'<path class="line" stroke="{colour}" d="M{axes.right + 15} {axes.top + 20 + 22 * index}h18"/>')
        out.append(f'<text x="{axes.right + 40}" y="{axes.top + 24 + 22 * index}">{name}</text>')
    random = np.random.default_rng(13)
    for step in range(13):
        similarity, shares = measured_recall(0.4 + 0.05 * step, random)
        row = [f"{similarity:.3f}"]
        for share, (band_count, distance), colour in zip(shares, SETTINGS, COLOURS):
            out += axes.dots([(similarity, share)], colour)
            row.append(f"{share:.3f} ({recall(similarity, band_count, distance):.3f})")
        print("\t".join(row))
    title = "How surely two texts are found, against their similarity"
    Path(path).write_text(picture(title, axes.right + 190, axes.bottom + 50, out), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
