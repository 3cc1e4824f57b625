"""Manifests: manifest.md."""

from ..frame import CODECS
from ..manifest import KINDS
from .frame import crc, footer_checksum, number, start

MAGIC = b"simstore"


def text(value):
    data = value.encode("utf-8")
    return number(len(data), 4) + data


def segment_entry(segment, fingerprints, tables, files, counts, plan):
    """Returns the entry of a segment. `tables` are its table files; `files` and `counts` are the other files and their entries by kind."""
    kinds = [kind for kind in KINDS if kind in files]
    entry = number(segment, 8) + number(fingerprints, 8)
    entry += b"".join(number(counts.get(kind, 0), 8) for kind in KINDS)
    entry += number(len(tables), 4) + number(sum(1 << KINDS.index(kind) for kind in kinds), 4)
    entry += b"".join(footer_checksum(file) for file in tables + [files[kind] for kind in kinds])
    return entry + text(plan)


def manifest_file(settings, next_number, first_log, highest_id, segments):
    """Returns a manifest. `segments` are entries. The first log starts with sequence 0; without logs, `first_log` is 0."""
    flags = settings.has_ids | (highest_id is not None) << 1
    file = start(MAGIC) + bytes([settings.bits, settings.distance, CODECS.index(settings.codec), flags])
    file += number(settings.block_size, 4) + number(settings.span, 2) + bytes(2)
    file += number(next_number, 8) + number(first_log, 8) + number(0, 8) + number(highest_id or 0, 8)
    file += number(len(segments), 4) + bytes(4) + text(settings.profile) + text(settings.plan) + b"".join(segments)
    return file + crc(file) + MAGIC
