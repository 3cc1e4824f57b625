"""Conventions of all files: README.md.

A file starts with eight magic bytes and the format version, and ends with a footer: a checksum and the magic bytes again. A log is
the one kind of file without a footer.
"""

import struct
import zlib

VERSION = 1
CODECS = ["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"]


class Damaged(Exception):
    """A file violates the format."""


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Damaged(f"{path}: {error.strerror}") from error


def u16(data, at):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def number(data):
    """Returns the little-endian number in all of `data`."""
    return int.from_bytes(data, "little")


def are_ascending(values):
    """Whether each value is greater than the one before."""
    return all(a < b for a, b in zip(values, values[1:]))


def part_checksum(k, data):
    """Returns the checksum of numbered part k. `data` is the part without its checksum."""
    return zlib.crc32(data, zlib.crc32(struct.pack("<Q", k)))


class Bits:
    """Bit fields in bytes: bit i is bit i mod 8 of byte i div 8, counted from the least significant."""

    def __init__(self, data):
        self.data = data
        self.len = 8 * len(data)

    def read(self, at, count):
        """Returns the field of `count` bits at bit position `at`. Its first bit is worth 1."""
        part = number(self.data[at // 8 : (at + count + 7) // 8])
        return part >> at % 8 & ((1 << count) - 1)


class File:
    """A file of a store but a log. Checks magic bytes, version and length; `footer` is the offset of the footer."""

    def __init__(self, path, magic, footer_len):
        self.path = path
        self.data = read_file(path)
        self.check_start(magic)
        self.check(len(self.data) >= 12 + footer_len, f"cut short: {len(self.data)} bytes")
        end = self.data[-8:]
        self.check(end == magic, f"ends with {end!r}, not with {magic!r}")
        self.footer = len(self.data) - footer_len

    def check(self, is_sound, problem):
        if not is_sound:
            raise Damaged(f"{self.path}: {problem}")

    def check_start(self, magic):
        """Checks the magic bytes, then the version, before anything else is read."""
        data = self.data
        self.check(len(data) >= 12, f"cut short: {len(data)} bytes")
        self.check(data[:8] == magic, f"starts with {data[:8]!r}, not with {magic!r}")
        version = u32(data, 8)
        self.check(version == VERSION, f"format version {version}, this program reads {VERSION}")

    def check_crc(self, expected, data, part):
        found = zlib.crc32(data)
        self.check(expected == found, f"checksum of the {part} is {found:08x}, expected {expected:08x}")

    def check_zero(self, start, end, part):
        self.check(not any(self.data[start:end]), f"{part}: bytes {start} to {end} are not zero")

    def check_part(self, k, data, part):
        """Compares a block or chunk with the checksum in its first four bytes."""
        found = part_checksum(k, data[4:])
        self.check(u32(data, 0) == found, f"checksum of {part} {k} is {found:08x}")
