"""Blocks of a table: blocks.md.

`decode_block` returns the permuted fingerprints of a block. The codecs first-difference, gap and all-differences cut a block into
spans of code words and tails; elias-fano and prefix-lines have fields of fixed width.
"""

from .frame import Bits, are_ascending, number, u16
from .huffman import MAX_CODE_LENGTH


def position_length(h):
    """Returns u(h), the bits of a position in all-differences."""
    return (h - 1).bit_length() if h > 1 else 0


def tail_length(codec, symbol, bits):
    """Returns the bits of a symbol's tail."""
    if codec != "all-differences":
        return symbol
    form, h = divmod(symbol, bits)
    if form == 0:
        return h
    return (form - 1) % 6 * position_length(h) + (4 if form > 6 else 0)


def decode_block(table, k, block):
    """Returns the fingerprints of block k of a table. Checks all but the block's checksum."""
    return BlockDecoder(table, k, block).decode()


class BlockDecoder:
    """Decodes one block. Positions and lengths are in bits from the start of the block."""

    def __init__(self, table, k, block):
        self.table, self.k, self.block = table, k, block
        self.bits = Bits(block)
        self.count, self.width = u16(block, 4), u16(block, 6)
        # The end of the block's header, where the bit fields begin, and the end of the block.
        self.begin, self.end = 64 + table.bits, self.bits.len
        self.first = number(block[8 : 8 + table.bits // 8])

    def check(self, is_sound, problem):
        self.table.check(is_sound, f"block {self.k}: {problem}")

    def decode(self):
        self.check(0 < self.count <= self.end, f"{self.count} fingerprints")
        if self.table.codec == "prefix-lines":
            values = self.decode_suffixes()
        elif self.table.codec == "elias-fano":
            values = self.decode_elias_fano()
        else:
            values = self.decode_spans()
        self.check(are_ascending(values), "the fingerprints are not ascending")
        self.check(values[-1] < 1 << self.table.bits, "a fingerprint is too large")
        return values

    def decode_suffixes(self):
        """Section "prefix-lines": the last bits of each fingerprint, after the first bits in the prefix lines."""
        width, begin, room = self.width, self.begin, self.table.block_fingerprints
        self.check(width == self.table.bits - self.table.key_bits, f"width {width}")
        self.check(self.count <= room and begin + self.count * width <= self.end, f"{self.count} fingerprints")
        keys = self.table.keys[self.k * room : self.k * room + self.count]
        self.check(len(keys) == self.count, f"{len(keys)} keys for {self.count} fingerprints")
        values = [key << width | self.bits.read(begin + i * width, width) for i, key in enumerate(keys)]
        self.check(values[0] == self.first, "the first fingerprint is another")
        self.check(self.bits.read(begin + self.count * width, self.end) == 0, "padding")
        return values

    def decode_elias_fano(self):
        """Section "elias-fano": upper bits in unary from the front, low bits in fields from the back."""
        width, upper = self.width, self.begin
        lower = self.end - (self.count - 1) * width
        self.check(width < self.table.bits and upper <= lower, f"width {width}")
        values = [self.first]
        for at in range(upper, lower):
            if self.bits.read(at, 1):
                i = len(values)
                self.check(i < self.count, "too many upper bits")
                zeros = at - upper - (i - 1)
                values.append(self.first + (zeros << width | self.bits.read(self.end - i * width, width)))
        self.check(len(values) == self.count, "too few upper bits")
        return values

    def decode_spans(self):
        """Section "first-difference, gap and all-differences": entries of the restart points, then the spans."""
        span, width = self.table.span, self.width
        spans = -(-self.count // span)
        position_bits = self.table.block_size.bit_length() - 1 + 3
        entry_bits = width + position_bits
        data = self.begin + (spans - 1) * entry_bits
        self.check(width <= self.table.bits and data <= self.end, f"width {width}")
        entries = range(self.begin, data, entry_bits)
        starts = [data] + [self.bits.read(at + width, position_bits) for at in entries]
        restarts = [self.first] + [self.first + self.bits.read(at, width) for at in entries]
        values = []
        for i, (start, end) in enumerate(zip(starts, starts[1:] + [self.end])):
            self.check(start <= end <= self.end, "positions of spans are not ascending")
            length = min(span, self.count - i * span)
            values += self.decode_span(restarts[i], length, start, end, i == spans - 1)
        return values

    def decode_span(self, restart, length, start, end, is_last):
        """Decodes a span of `length` fingerprints between two bit positions."""
        table, word_end, tail = self.table, start, end
        coded = []
        for _ in range(length - 1):
            symbol, word_end = self.read_word(word_end, end)
            tail -= tail_length(table.codec, symbol, table.bits)
            coded.append((symbol, tail))
        self.check(word_end <= tail, "words and tails overlap")
        self.check(is_last or word_end == tail, "a hole between words and tails")
        self.check(self.bits.read(word_end, tail - word_end) == 0, "padding")
        values = [restart]
        for symbol, at in coded:
            values.append(self.next_fingerprint(symbol, at, values))
        return values

    def read_word(self, at, end):
        """Returns the symbol of the code word at a bit position, and the position after the word."""
        word = 0
        for length in range(1, min(MAX_CODE_LENGTH, end - at) + 1):
            word = word << 1 | self.bits.read(at + length - 1, 1)
            symbol = self.table.symbols.get((length, word))
            if symbol is not None:
                return symbol, at + length
        self.check(False, "bits that are no code word")

    def next_fingerprint(self, symbol, at, span):
        """Returns the fingerprint that follows `span`, the span up to there. Its tail is at bit position `at`."""
        before = span[-1]
        if self.table.codec == "all-differences":
            return self.follow(symbol, at, span)
        coded, tail = 1 << symbol, self.bits.read(at, symbol)
        if self.table.codec == "gap":
            return before + coded + tail
        self.check(before & coded == 0, "the bit that differs first is set in the predecessor")
        return before >> symbol + 1 << symbol + 1 | coded | tail

    def follow(self, symbol, at, span):
        """Section "all-differences": 13 forms."""
        form, h = divmod(symbol, self.table.bits)
        if form == 0:
            return span[-1] + (1 << h) + self.bits.read(at, h)
        length, back = position_length(h), 0
        positions = [self.bits.read(at + i * length, length) for i in range((form - 1) % 6)]
        if form > 6:
            back = self.bits.read(at + len(positions) * length, 4)
            self.check(0 < back < len(span), f"{back} places back")
        is_sound = are_ascending(positions) and all(position < h for position in positions)
        self.check(is_sound, f"positions {positions} below bit {h}")
        value = span[-1 - back] ^ 1 << h
        for position in positions:
            value ^= 1 << position
        return value
