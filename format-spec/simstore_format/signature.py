"""Signatures of sets of features: signature.md. All numbers are modulo 2^64, unless 2^32 is stated."""


def splitmix(state):
    """Yields the numbers of SplitMix64."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def signature(features):
    """Returns the sum of the features' words, and the 8 bands of 64 bits."""
    words = [next(splitmix(feature)) for feature in features]
    numbers = splitmix(0)
    rounds = [(next(numbers) | 1, next(numbers)) for _ in range(4)]
    minima = {}
    for a, b in rounds:
        of_round = {}
        for w in words:
            h = (w * a + b) % 2**64
            position, value = h >> 55, (h >> 23) % 2**32
            of_round[position] = min(value, of_round.get(position, value))
        minima = {**of_round, **minima}
    bands = [0] * 8
    for i in range(512):
        number = next(numbers)
        c, d = number % 2**32 | 1, number >> 32
        minimum = minima[i] if i in minima else min((w * c + d) % 2**32 for w in words)
        x = minimum ^ i * 0x9E3779B9 % 2**32
        x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
        x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
        bands[i // 64] |= (x >> 31) << i % 64
    return sum(words) % 2**64, bands


def mix(state):
    """Returns the number of SplitMix64 for a state."""
    return next(splitmix((state - 0x9E3779B97F4A7C15) % 2**64))


def word_hash(word, xxh3):
    """Returns the hash of a word. For a word of more than 16 bytes, this is `xxh3`, since the standard library has no XXH3."""
    word = word.encode()
    if len(word) > 16:
        return xxh3
    low, high = (int.from_bytes(part, "little") for part in (word[:8], word[8:]))
    return mix(low ^ mix((high + len(word) * 0x9E3779B97F4A7C15) % 2**64))


def shingle(words):
    """Returns the hash of a run of words from the hashes of the words."""
    if len(words) == 1:
        return words[0]
    total = 0
    for word in words:
        total = (total * 0x9E3779B97F4A7C15 + word) % 2**64
    return mix(total)
