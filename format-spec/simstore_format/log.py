"""A log of operations: log.md.

A log grows, so it has no footer, and a crash may leave a torn tail. A torn tail is damage if a later record says that it was synced.
"""

import os
import struct
import zlib

from .frame import File, number, read_file, u32, u64

MAGIC, RECORD_MAGIC = b"simstlog", b"\xf7rec"
HEADER, RECORD_HEADER = 56, 32
MAX_NAME, MAX_KEY, MAX_METADATA, MAX_NOTE = 1 << 16, 1 << 12, 1 << 12, 1 << 24


class Record:
    """A record whose magic and checksum are right. `end` is the offset after its padding."""

    def __init__(self, data, at, end):
        self.start, self.end = at, end
        self.payload, self.reserved, self.sequence, self.durable = struct.unpack_from("<IIQQ", data, at + 8)


class Log(File):
    """A log. `records` are (sequence, operations). `first_sequence` is None if the header is damaged. `sound` is the number of bytes
    of the header and the sound records, `torn` the number of bytes after them. `closed` is true if the log has an end record."""

    def __init__(self, path):
        self.path, self.data = path, read_file(path)
        digits = os.path.basename(path).split(".")[0]
        self.check(digits.isdecimal(), "the name of a log is its number and .log")
        self.number = int(digits)
        self.records, self.sound, self.closed = [], 0, False
        self.bits = self.first_sequence = None
        self.previous = self.previous_length = 0
        if self.read_header():
            self.read_records()
        self.torn = len(self.data) - self.sound

    def read_header(self):
        """Reads the header. Returns whether it is complete."""
        data = self.data
        if data[:8] == MAGIC and len(data) >= 12:
            self.check_start(MAGIC)
        if len(data) < HEADER:
            return False
        is_torn = data[:8] == MAGIC and zlib.crc32(data[:52]) != u32(data, 52)
        if is_torn or not any(data[:HEADER]):
            self.check_unsynced(0, 0)
            return False
        self.check_start(MAGIC)
        self.bits, number_in_header, first = data[12], u64(data, 16), u64(data, 24)
        self.check(self.bits in (64, 128), f"fingerprints of {self.bits} bits")
        self.check_zero(13, 16, "header")
        self.check_zero(48, 52, "header")
        self.check(number_in_header == self.number, f"is log {number_in_header}, not the one of its name")
        self.check(first <= 1 << 63, f"first sequence number {first}")
        self.previous, self.previous_length = u64(data, 32), u64(data, 40)
        length = self.previous_length
        self.check(self.previous < self.number, f"names log {self.previous} before it")
        fits = length >= HEADER and length % 8 == 0 if self.previous else length == 0
        self.check(fits, f"names a log of {length} bytes before it")
        self.first_sequence = first
        return True

    def read_records(self):
        """Reads up to the end record, or the first record that is not sound."""
        self.sound, self.next_sequence = HEADER, self.first_sequence
        while self.sound < len(self.data) and not self.closed:
            record = self.record_at(self.sound)
            if record is None or record.sequence != self.next_sequence:
                self.check_unsynced(self.sound, self.next_sequence + 1)
                return
            operations = Payload(self, record).operations
            self.closed = record.payload == 0
            if not self.closed:
                self.records.append((record.sequence, operations))
            self.sound = record.end
            self.next_sequence += 1

    def record_at(self, at):
        """Returns the record at an offset, or None if it is not sound."""
        data = self.data
        if len(data) - at < RECORD_HEADER or data[at : at + 4] != RECORD_MAGIC:
            return None
        end = at + RECORD_HEADER + -(-u32(data, at + 8) // 8) * 8
        if end > len(data):
            return None
        place = struct.pack("<QQ", self.number, at)
        if zlib.crc32(data[at + 8 : end], zlib.crc32(place)) != u32(data, at + 4):
            return None
        return Record(data, at, end)

    def check_unsynced(self, at, least):
        """Rejects the log if a later record, of sequence `least` or more, says that the unsound bytes at an offset were synced.
        No crash explains that."""
        data, problem = self.data, f"the bytes at offset {at} were synced, and are not sound"
        # Checksums may cover four times the rest of the file, so the search is linear.
        left = 4 * (len(data) - at)
        for later in range(at + 8, len(data) - RECORD_HEADER + 1, 8):
            if data[later : later + 4] != RECORD_MAGIC:
                continue
            length = RECORD_HEADER + -(-u32(data, later + 8) // 8) * 8
            sequence, durable = u64(data, later + 16), u64(data, later + 24)
            if length <= len(data) - later and sequence >= least and at < durable <= later:
                self.check(length <= left and self.record_at(later) is None, problem)
                left -= length


class Payload:
    """Reads the operations of a sound record."""

    def __init__(self, log, record):
        self.log, self.record, self.data, self.bits = log, record, log.data, log.bits
        self.at = record.start + RECORD_HEADER
        self.end = self.at + record.payload
        self.check(record.reserved == 0, "reserved bytes are not zero")
        self.check(not any(self.data[self.end : record.end]), "padding is not zero")
        self.check(record.durable <= record.start, f"durable is {record.durable}")
        is_sound = record.payload > 0 or record.durable == record.start
        self.check(is_sound, f"an end record, and durable is {record.durable}")
        self.operations = []
        while self.at < self.end:
            self.operations.append(self.operation())

    def check(self, is_sound, problem):
        self.log.check(is_sound, f"the record at offset {self.record.start}: {problem}")

    def take(self, length):
        self.check(self.at + length <= self.end, "an operation is cut short")
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, limit):
        length = number(self.take(4))
        self.check(length <= limit, f"a text or value of {length} bytes")
        return self.take(length)

    def text(self, limit):
        try:
            return self.value(limit).decode("utf-8")
        except UnicodeDecodeError:
            self.check(False, "a text is not UTF-8")

    def operation(self):
        """Returns an operation: its kind and its fields. Insert without a name has the name None."""
        (kind,) = self.take(1)
        self.check(1 <= kind <= 5, f"an operation of kind {kind}")
        if kind == 4:
            return "metadata", self.text(MAX_KEY), self.value(MAX_METADATA)
        if kind == 5:
            return "note", number(self.take(8)), self.value(MAX_NOTE)
        fingerprint, identifier = number(self.take(self.bits // 8)), number(self.take(8))
        if kind == 3:
            return "delete", fingerprint, identifier
        return "insert", fingerprint, identifier, self.text(MAX_NAME) if kind == 2 else None
