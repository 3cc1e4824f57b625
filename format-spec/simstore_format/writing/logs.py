"""Logs: log.md."""

from ..frame import part_checksum
from ..log import MAGIC, RECORD_MAGIC
from .frame import crc, number, start


def log_header(bits, log, first_sequence, previous, previous_length):
    """Returns the header of log number `log`, which follows log `previous` of `previous_length` bytes, or 0."""
    fields = bytes([bits, 0, 0, 0]) + number(log, 8) + number(first_sequence, 8)
    header = start(MAGIC) + fields + number(previous, 8) + number(previous_length, 8) + bytes(4)
    return header + crc(header)


def record(log, at, sequence, durable, payload):
    """Returns the record at offset `at` of a log. `durable` bytes of the log are synced."""
    fields = number(len(payload), 4) + bytes(4) + number(sequence, 8) + number(durable, 8) + payload
    fields += bytes(-len(fields) % 8)
    # The checksum covers the log's number, then the offset, then the fields.
    return RECORD_MAGIC + number(part_checksum(log, number(at, 8) + fields), 4) + fields


def end_record(log, at, sequence):
    """Returns the record that ends a log. All before it must be synced."""
    return record(log, at, sequence, at, b"")


def text(data):
    return number(len(data), 4) + data


def encode_operation(bits, kind, *fields):
    """Returns the bytes of an operation. Fingerprints and ids are numbers, all else is bytes."""
    if kind == "metadata":
        key, value = fields
        return b"\x04" + text(key) + text(value)
    if kind == "note":
        identifier, note = fields
        return b"\x05" + number(identifier, 8) + text(note)
    fingerprint, identifier, *name = fields
    pair = number(fingerprint, bits // 8) + number(identifier, 8)
    if kind == "delete":
        return b"\x03" + pair
    return b"\x02" + pair + text(name[0]) if name else b"\x01" + pair
