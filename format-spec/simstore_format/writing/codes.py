"""Lengths of code words: table.md, section "Code lengths". The package-merge algorithm finds the best lengths of at most 12 bits."""

from collections import Counter

from ..huffman import MAX_CODE_LENGTH


def code_lengths(counts):
    """Returns {symbol: length of its word} for {symbol: count}."""
    if len(counts) < 2:
        return dict.fromkeys(counts, 1)
    symbols = sorted((count, [symbol]) for symbol, count in counts.items())
    packages = []
    for _ in range(MAX_CODE_LENGTH):
        merged = sorted(symbols + packages)
        packages = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(merged[::2], merged[1::2])]
    # A symbol's word is as long as the number of the chosen packages that hold the symbol.
    chosen = packages[: len(counts) - 1]
    return dict(Counter(symbol for _, members in chosen for symbol in members))


def pack_lengths(lengths, symbols):
    """Returns the code lengths of a header: 4 bits each."""
    halves = [lengths.get(symbol, 0) for symbol in range(symbols)]
    return bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2]))
