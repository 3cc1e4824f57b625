"""Prefix lines: prefix-lines.md. Takes main lines for some 24 keys each, and divides lines whose keys do not fit."""

from ..frame import part_checksum
from ..prefix_lines import LINE, MAX_KEYS, PAGE, LineShape
from .frame import number

KEYS_PER_LINE = 24


def choose_shape(fingerprints):
    """Returns (key bits, main lines): from 16 to 32 buckets of 256 keys a line."""
    lines = max(1, -(-fingerprints // KEYS_PER_LINE))
    return 13 + lines.bit_length() - 1, lines


class LineWriter:
    """Makes the lines for keys, which ascend."""

    def __init__(self, keys, key_bits, main):
        self.lines, self.rank = [None] * main, 0
        self.write_group(LineShape(key_bits, 8, main), keys, 0, 0)

    def write_group(self, shape, keys, base, first_line):
        """Writes the main lines, or the lines that divide a line. `base` is subtracted from each key of the group."""
        at = 0
        for line in range(shape.lines):
            first = base + (shape.first_bucket(line) << shape.low_bits)
            end_bucket = shape.first_bucket(line + 1)
            end = at
            while end < len(keys) and keys[end] < base + (end_bucket << shape.low_bits):
                end += 1
            of_line, at = keys[at:end], end
            buckets = end_bucket - shape.first_bucket(line)
            self.write_line(shape, buckets, of_line, base, first, first_line + line)

    def write_line(self, shape, buckets, keys, base, first, name):
        """Writes line `name` of the table: a line of keys, a run, or a divided line."""
        rank = number(self.rank, 5)
        if len(keys) <= min(MAX_KEYS, 64 - shape.slots):
            counts = [0] * shape.slots
            for key in keys:
                counts[shape.slot(key - base >> shape.low_bits)] += 1
            ones = "0" + "0".join("1" * count for count in counts)
            low = bytes(key - base & (1 << shape.low_bits) - 1 for key in keys)
            line = number(int(ones[::-1], 2), 8) + rank + low
        elif keys[0] == keys[-1]:
            line = number(3, 8) + rank + bytes(3) + number(keys[0] - first, 8) + number(len(keys), 8)
        else:
            divided = self.divide(shape, buckets, len(keys))
            first_line = len(self.lines)
            fields = bytes([1, divided.low_bits, 0, 0]) + number(divided.lines, 4)
            self.lines[name] = (fields + rank + bytes(3) + number(first_line, 8)).ljust(LINE, b"\0")
            self.lines += [None] * divided.lines
            self.write_group(divided, keys, first, first_line)
            return
        self.lines[name] = line.ljust(LINE, b"\0")
        self.rank += len(keys)

    def divide(self, shape, buckets, keys):
        """Returns the shape of the lines that divide a line."""
        key_bits = (buckets - 1).bit_length() + shape.low_bits
        low_bits = min(8, key_bits - 1)
        # key_bits is at most 13, so these are at most 32 buckets, and at most 16 slots a line.
        return LineShape(key_bits, low_bits, min(1 << key_bits - low_bits, max(2, -(-keys // KEYS_PER_LINE))))

    def to_bytes(self):
        return b"".join(self.lines)


def page_checksums(lines):
    """Returns the checksums of the pages of lines."""
    pages = enumerate(range(0, len(lines), PAGE))
    return b"".join(number(part_checksum(k, lines[at : at + PAGE]), 4) for k, at in pages)
