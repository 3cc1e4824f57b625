"""Conventions of all files: README.md."""

import struct
import zlib

from ..frame import VERSION, part_checksum


def crc(data):
    """Returns the CRC-32 as the four bytes of a field."""
    return struct.pack("<I", zlib.crc32(data))


def number(value, size):
    """Returns a little-endian number of `size` bytes."""
    return value.to_bytes(size, "little")


def start(magic):
    """Returns the magic bytes and the version that every file starts with."""
    return magic + number(VERSION, 4)


def sealed(k, data):
    """Returns numbered part k: its checksum, then `data`."""
    return number(part_checksum(k, data), 4) + data


def checksum_of_checksums(parts):
    """Returns the checksum of the checksums of numbered parts."""
    return crc(b"".join(part[:4] for part in parts))


class BitField:
    """Whole bytes for `length` bits, at first all zeros."""

    def __init__(self, length):
        self.data = bytearray(-(-length // 8))

    def put(self, at, count, value):
        """Writes a field of `count` bits at a bit position."""
        start, end = at // 8, -(-(at + count) // 8)
        assert 0 <= value < 1 << count and 0 <= start and end <= len(self.data)
        field = int.from_bytes(self.data[start:end], "little") | value << at % 8
        self.data[start:end] = number(field, end - start)


def footer_checksum(file):
    """Returns the checksum that a file ends with, which the manifest repeats."""
    return file[-12:-8]
