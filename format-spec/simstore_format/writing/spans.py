"""Blocks of first-difference, gap and all-differences: blocks.md.

Each fingerprint but a restart point is a symbol with a code word, and a tail. Words go forward from the start of the span, tails
backward from its end.
"""

from collections import Counter

from ..blocks import position_length, tail_length
from ..huffman import code_words
from .codes import code_lengths
from .frame import BitField, number


def symbol_and_tail(codec, bits, before, value):
    """Returns how `value` is coded after the fingerprint `before`."""
    difference, gap = before ^ value, value - before
    h = difference.bit_length() - 1
    if codec == "first-difference":
        return h, value & (1 << h) - 1
    d = gap.bit_length() - 1
    if codec == "all-differences":
        positions = [p for p in range(h) if difference >> p & 1]
        length = position_length(h)
        if len(positions) <= 5 and len(positions) * length < d:
            tail = sum(p << i * length for i, p in enumerate(positions))
            return (1 + len(positions)) * bits + h, tail
    return d, gap - (1 << d)


class SpanEncoder:
    """The code of a table, and its blocks. `values` are the permuted fingerprints, ascending."""

    def __init__(self, codec, bits, block_size, span, values):
        self.codec, self.bits, self.block_size, self.span = codec, bits, block_size, span
        self.values = values
        # The code of fingerprint i after fingerprint i - 1; fingerprint 0 has none.
        self.coded = [None] + [symbol_and_tail(codec, bits, a, b) for a, b in zip(values, values[1:])]
        self.lengths = code_lengths(Counter(symbol for symbol, _ in self.coded[1:]))
        listed = [self.lengths.get(symbol, 0) for symbol in range(max(self.lengths, default=-1) + 1)]
        self.words = code_words(listed)
        self.sizes = [0] + [self.words[symbol][0] + tail_length(codec, symbol, bits) for symbol, _ in self.coded[1:]]
        self.position_bits = block_size.bit_length() - 1 + 3

    def restart_width(self, first, spans):
        """Returns the width of the restart points of a block of so many spans. `first` is the index of its first fingerprint."""
        return (self.values[first + (spans - 1) * self.span] - self.values[first]).bit_length()

    def spans_start(self, spans, width):
        """Returns the bit position of a block's first span."""
        return 64 + self.bits + (spans - 1) * (width + self.position_bits)

    def blocks(self):
        """Yields (number of fingerprints, bytes without checksum) of each block."""
        first = 0
        while first < len(self.values):
            # The bits of all spans, and of the last one.
            count, size, last_size = 1, 0, 0
            while count < min(len(self.values) - first, 65535):
                added = self.sizes[first + count] if count % self.span else 0
                last_size = last_size + added if count % self.span else 0
                spans = count // self.span + 1
                end = self.spans_start(spans, self.restart_width(first, spans)) + size + added
                # A position has log2(block size) + 3 bits, so a span cannot start at the very end of a full block.
                if end > 8 * self.block_size or (spans > 1 and end - last_size == 8 * self.block_size):
                    break
                count, size = count + 1, size + added
            yield count, self.block(first, count)
            first += count

    def block(self, first, count):
        """Returns the block of `count` fingerprints from index `first` on."""
        end_index = first + count
        restarts = range(first, end_index, self.span)
        width = self.restart_width(first, len(restarts))
        starts = [self.spans_start(len(restarts), width)]
        for restart in restarts:
            starts.append(starts[-1] + sum(self.sizes[restart + 1 : min(restart + self.span, end_index)]))
        length = -(-starts[-1] // 8) if end_index == len(self.values) else self.block_size
        starts[-1] = 8 * length
        block = BitField(8 * length)
        for i, restart in enumerate(restarts):
            if i:
                entry = 64 + self.bits + (i - 1) * (width + self.position_bits)
                block.put(entry, width, self.values[restart] - self.values[first])
                block.put(entry + width, self.position_bits, starts[i])
            self.put_span(block, starts[i], starts[i + 1], self.coded[restart + 1 : min(restart + self.span, end_index)])
        header = number(count, 2) + number(width, 2) + number(self.values[first], self.bits // 8)
        return header + bytes(block.data[8 + self.bits // 8 :])

    def put_span(self, block, start, end, coded):
        """Writes the words and tails of a span."""
        for symbol, tail in coded:
            length, word = self.words[symbol]
            # The most significant bit of a word comes first.
            block.put(start, length, int(f"{word:0{length}b}"[::-1], 2))
            start += length
            size = tail_length(self.codec, symbol, self.bits)
            end -= size
            block.put(end, size, tail)
