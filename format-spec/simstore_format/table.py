"""A table file: table.md. Blocks are decoded in `blocks`, prefix lines in `prefix_lines`."""

import struct
import zlib

from .blocks import decode_block
from .frame import CODECS, File, are_ascending, number, u16, u32, u64
from .huffman import code_words, is_code
from .prefix_lines import PrefixLines

MAGIC = b"simtable"
FOOTER = struct.Struct("<QQQIIIII8s")
HEADER = 48
BLOCK_SIZES = [1 << i for i in range(8, 17)]


def symbol_count(codec, bits):
    """Returns a, the number of code lengths in a header."""
    return {"all-differences": 13 * bits, "prefix-lines": 0}.get(codec, bits)


def has_code(codec, fingerprints):
    """Whether the table has code words."""
    return codec in ("first-difference", "gap", "all-differences") and fingerprints >= 2


def has_lines(codec, fingerprints):
    """Whether the table has prefix lines."""
    return codec == "prefix-lines" and fingerprints > 0


def block_fingerprints(bits, key_bits, block_size):
    """Returns C, the fingerprints of each block of prefix-lines but the last."""
    return min((block_size * 8 - 64 - bits) // (bits - key_bits), 65535)


class Table(File):
    """A table. `blocks` are lists of permuted fingerprints; `permuted` has all of them in order."""

    def __init__(self, path):
        File.__init__(self, path, MAGIC, FOOTER.size)
        fields = FOOTER.unpack_from(self.data, self.footer)
        self.footer_crc = fields[7]
        self.check_crc(self.footer_crc, self.data[self.footer : self.footer + 40], "footer")
        self.check(self.footer >= HEADER, "no room for a header")
        self.read_fields()
        self.find_parts(*fields[:7])
        self.read_permutation_and_code()
        if self.lines:
            data = self.data[self.lines_at : self.footer]
            self.keys = PrefixLines(self.check, data, self.lines, self.dividing_lines, self.key_bits, self.fingerprints).keys
        self.read_blocks()

    def read_fields(self):
        """Reads and checks the fields of the header, up to the permutation."""
        data, check = self.data, self.check
        self.bits, codec, self.prefix_bits, self.flips = data[12:16]
        self.block_size, self.span, self.key_bits = u32(data, 16), u16(data, 20), data[22]
        self.blocks_offset, self.fingerprints, self.lines = u32(data, 24), u64(data, 32), u64(data, 40)
        check(self.bits in (64, 128), f"fingerprints of {self.bits} bits")
        check(codec < len(CODECS), f"codec number {codec}")
        self.codec = CODECS[codec]
        check(self.prefix_bits <= self.bits, f"{self.prefix_bits} prefix bits")
        check(self.flips <= self.bits // 4, f"{self.flips} flips")
        check(self.block_size in BLOCK_SIZES, f"block size {self.block_size}")
        least, most = (0, 0) if self.codec in ("elias-fano", "prefix-lines") else (1, 256)
        check(least <= self.span <= most, f"span {self.span}")
        check(data[23] == 0 and u32(data, 28) == 0, "reserved bytes are not zero")
        self.permutation_end = HEADER + self.bits
        self.lengths_end = self.permutation_end + symbol_count(self.codec, self.bits) // 2
        check(max(256, self.lengths_end) <= self.blocks_offset <= 4096, f"blocks offset {self.blocks_offset}")
        if has_lines(self.codec, self.fingerprints):
            check(8 <= self.key_bits <= min(40, self.bits - 8), f"{self.key_bits} key bits")
            check(1 <= self.lines <= 1 << self.key_bits - 8, f"{self.lines} prefix lines")
        else:
            check(self.key_bits == 0 and self.lines == 0, "prefix lines in a table that has none")

    def find_parts(self, blocks, blocks_len, dividing, header_crc, blocks_crc, index_crc, pages_crc):
        """Checks that the parts fill the file, and their checksums."""
        data, check = self.data, self.check
        self.blocks_crc, self.dividing_lines = blocks_crc, dividing
        self.index_at = self.blocks_offset + blocks_len
        self.lines_at = index_end = self.index_at + blocks * (self.bits // 8)
        if self.lines:
            alignment = 4096 if self.blocks_offset == 4096 else 64
            self.lines_at = -(-index_end // alignment) * alignment
        else:
            check(dividing == 0, f"{dividing} dividing lines in a table without prefix lines")
        lines = self.lines + dividing
        check(lines < 1 << 32, f"{lines} prefix lines")
        pages_at = self.lines_at + lines * 64
        check(pages_at + -(-lines // 64) * 4 == self.footer, "the parts do not fill the file")
        check(blocks == -(-blocks_len // self.block_size), f"{blocks} blocks in {blocks_len} bytes")
        most = 65535
        if self.lines:
            most = self.block_fingerprints = block_fingerprints(self.bits, self.key_bits, self.block_size)
        check(blocks <= self.fingerprints <= blocks * most, f"{self.fingerprints} fingerprints in {blocks} blocks")
        self.check_zero(index_end, self.lines_at, "padding before the prefix lines")
        self.check_crc(header_crc, data[: self.blocks_offset], "header")
        self.check_crc(index_crc, data[self.index_at : index_end], "block index")
        self.check_crc(pages_crc, data[pages_at : self.footer], "page checksums")
        entries = range(self.index_at, index_end, self.bits // 8)
        self.index = [number(data[at : at + self.bits // 8]) for at in entries]
        check(are_ascending(self.index), "the block index is not ascending")

    def read_permutation_and_code(self):
        self.permutation = list(self.data[HEADER : self.permutation_end])
        is_sound = sorted(self.permutation) == list(range(self.bits))
        self.check(is_sound, "the permutation does not name each bit once")
        pairs = self.data[self.permutation_end : self.lengths_end]
        lengths = [length for pair in pairs for length in (pair & 15, pair >> 4)]
        if has_code(self.codec, self.fingerprints):
            self.check(is_code(lengths), "the code lengths make no complete code")
        else:
            self.check(not any(lengths), "code words in a table that has none")
        self.code_lengths = {symbol: length for symbol, length in enumerate(lengths) if length}
        self.symbols = {word: symbol for symbol, word in code_words(lengths).items()}
        self.check_zero(self.lengths_end, self.blocks_offset, "header")

    def read_blocks(self):
        self.blocks = []
        crc = 0
        for k, last in enumerate(self.index):
            start = self.blocks_offset + k * self.block_size
            block = self.data[start : min(start + self.block_size, self.index_at)]
            self.check(len(block) >= 8 + self.bits // 8, f"block {k} is cut short")
            self.check_part(k, block, "block")
            crc = zlib.crc32(block[:4], crc)
            values = decode_block(self, k, block)
            self.check(values[-1] == last, f"block {k} does not end with its entry in the block index")
            self.blocks.append(values)
        self.check(crc == self.blocks_crc, f"checksum of the checksums of the blocks is {crc:08x}")
        self.permuted = [value for values in self.blocks for value in values]
        self.check(are_ascending(self.permuted), "the fingerprints are not ascending")
        self.check(len(self.permuted) == self.fingerprints, f"{len(self.permuted)} fingerprints in the blocks")

    def invert(self, permuted):
        """Returns the original of a permuted fingerprint."""
        value = 0
        for target, source in enumerate(self.permutation):
            if permuted >> (self.bits - 1 - target) & 1:
                value |= 1 << (self.bits - 1 - source)
        return value

    def originals(self):
        """Returns all fingerprints, not permuted, ascending."""
        return sorted(map(self.invert, self.permuted))
