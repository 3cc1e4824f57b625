"""Blocks of elias-fano and prefix-lines: blocks.md. Both have fields of fixed width."""

from ..table import block_fingerprints
from .frame import BitField, number


def low_width(count, last):
    """Returns a good width of the low bits: about log2 of the mean gap. `last` is the last of `count` fingerprints minus the first."""
    return max(0, (last // (count - 1)).bit_length() - 1) if count > 1 else 0


def elias_fano_bits(bits, count, last):
    """Returns the bits of a block."""
    width = low_width(count, last)
    return 64 + bits + (last >> width) + (count - 1) * (1 + width)


def elias_fano_blocks(bits, block_size, values):
    """Yields (number of fingerprints, bytes without checksum) of each block."""
    at = 0
    while at < len(values):
        first, count, most = values[at], 1, min(len(values) - at, 65535)
        while count < most and elias_fano_bits(bits, count + 1, values[at + count] - first) <= 8 * block_size:
            count += 1
        of_block = values[at : at + count]
        at += count
        length = -(-elias_fano_bits(bits, count, of_block[-1] - first) // 8) if at == len(values) else block_size
        yield count, elias_fano_block(bits, length, of_block)


def elias_fano_block(bits, length, values):
    first, width, block = values[0], low_width(len(values), values[-1] - values[0]), BitField(8 * length)
    for i, value in enumerate(values[1:], 1):
        block.put(64 + bits + (value - first >> width) + i - 1, 1, 1)
        block.put(8 * length - i * width, width, (value - first) & (1 << width) - 1)
    return block_bytes(bits, len(values), width, first, block)


def suffix_blocks(bits, block_size, key_bits, values):
    """Yields the blocks of prefix-lines: the last bits of each fingerprint."""
    width, most = bits - key_bits, block_fingerprints(bits, key_bits, block_size)
    for at in range(0, len(values), most):
        of_block = values[at : at + most]
        is_last = at + most >= len(values)
        length = -(-(64 + bits + len(of_block) * width) // 8) if is_last else block_size
        block = BitField(8 * length)
        for i, value in enumerate(of_block):
            block.put(64 + bits + i * width, width, value & (1 << width) - 1)
        yield len(of_block), block_bytes(bits, len(of_block), width, of_block[0], block)


def block_bytes(bits, count, width, first, block):
    """Returns a block without its checksum: the fields before the bit fields, then these."""
    header = number(count, 2) + number(width, 2) + number(first, bits // 8)
    return header + bytes(block.data[8 + bits // 8 :])
