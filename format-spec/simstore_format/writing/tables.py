"""Table files: table.md."""

from ..frame import CODECS
from ..table import HEADER, MAGIC, has_code, has_lines, symbol_count
from .codes import pack_lengths
from .fixed_fields import elias_fano_blocks, suffix_blocks
from .frame import checksum_of_checksums, crc, number, sealed, start
from .lines import LineWriter, choose_shape, page_checksums
from .spans import SpanEncoder


def pigeonhole_tables(bits, distance):
    """Returns tables for a distance: distance + 1 runs of bits, each the prefix of a table. At most `distance` errors leave one run
    without an error."""
    edges = [i * bits // (distance + 1) for i in range(distance + 2)]
    return [{"prefix": list(range(a, b)), "flips": 0} for a, b in zip(edges, edges[1:])]


def permute(value, permutation):
    """Returns the number whose bit t is bit permutation[t] of `value`. Bit 0 is the most significant."""
    bits = len(permutation)
    permuted = 0
    for source in permutation:
        permuted = permuted << 1 | value >> bits - 1 - source & 1
    return permuted


class TableSettings:
    """Settings that all tables of a segment share."""

    def __init__(self, bits, codec, block_size, span):
        self.bits, self.codec, self.block_size = bits, codec, block_size
        self.span = 0 if codec in ("elias-fano", "prefix-lines") else span


def table_file(settings, prefix, flips, fingerprints):
    """Returns a table file, and the numbers of fingerprints of its blocks."""
    bits, codec, block_size = settings.bits, settings.codec, settings.block_size
    permutation = prefix + [bit for bit in range(bits) if bit not in prefix]
    values = sorted(permute(value, permutation) for value in fingerprints)
    key_bits, main_lines, lengths, lines = 0, 0, {}, b""
    if codec == "elias-fano":
        coded = elias_fano_blocks(bits, block_size, values)
    elif has_lines(codec, len(values)):
        key_bits, main_lines = choose_shape(len(values))
        lines = LineWriter([value >> bits - key_bits for value in values], key_bits, main_lines).to_bytes()
        coded = suffix_blocks(bits, block_size, key_bits, values)
    elif codec == "prefix-lines":
        coded = []
    else:
        encoder = SpanEncoder(codec, bits, block_size, settings.span, values)
        coded = encoder.blocks()
        lengths = encoder.lengths if has_code(codec, len(values)) else {}

    counts, blocks, index, at = [], [], b"", 0
    for count, block in coded:
        counts.append(count)
        blocks.append(sealed(len(blocks), block))
        at += count
        index += number(values[at - 1], bits // 8)

    code = pack_lengths(lengths, symbol_count(codec, bits))
    blocks_offset = max(256, -(-(HEADER + bits + len(code)) // 64) * 64)
    header = start(MAGIC) + bytes([bits, CODECS.index(codec), len(prefix), flips])
    header += number(block_size, 4) + number(settings.span, 2) + bytes([key_bits, 0]) + number(blocks_offset, 4) + bytes(4)
    header += number(len(values), 8) + number(main_lines, 8) + bytes(permutation) + code
    header = header.ljust(blocks_offset, b"\0")

    body = header + b"".join(blocks) + index
    if lines:
        body = body.ljust(-(-len(body) // 64) * 64, b"\0")
    pages = page_checksums(lines)
    footer = number(len(blocks), 8) + number(sum(map(len, blocks)), 8) + number(len(lines) // 64 - main_lines, 8)
    footer += crc(header) + checksum_of_checksums(blocks) + crc(index) + crc(pages)
    return body + lines + pages + footer + crc(footer) + MAGIC, counts
