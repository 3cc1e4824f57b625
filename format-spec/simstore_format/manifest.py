"""The manifest of a store: manifest.md."""

import struct

from .frame import CODECS, File, u32
from .table import BLOCK_SIZES

# Kinds of files of a segment beside its tables. The flag of kind i is 2^i.
KINDS = ["ids", "names", "tombstones", "metadata", "notes"]


class Segment:
    """The entry of a segment. `counts` has the number of entries of each kind of file; `footers` the footer checksum of each file."""

    def __init__(self, manifest):
        take, check = manifest.take, manifest.check
        self.number, self.fingerprints, *counts, self.tables, flags = take("<QQQQQQQII")
        self.counts = dict(zip(KINDS, counts))
        name = f"segment {self.number}"
        check(self.number < manifest.next_number, f"{name}, and the next number is {manifest.next_number}")
        check(1 <= self.tables <= 64, f"{name}: {self.tables} tables")
        check(flags < 1 << len(KINDS), f"{name}: flags {flags}")
        kinds = [kind for i, kind in enumerate(KINDS) if flags >> i & 1]
        check(("ids" in kinds) == manifest.has_ids, f"{name}: flags {flags}, the store's say otherwise of ids")
        check(manifest.has_ids or not {"names", "notes"} & set(kinds), f"{name}: names or notes without ids")
        for kind, count in self.counts.items():
            # A segment without fingerprints has an id file without ids.
            is_sound = count >= (self.fingerprints if kind == "ids" else 1) if kind in kinds else count == 0
            check(is_sound, f"{name}: {count} {kind}, flags {flags}")
        files = [f"{self.number:06}-{t:02}.table" for t in range(self.tables)]
        files += [f"{self.number:06}.{kind}" for kind in kinds]
        self.footers = dict(zip(files, take(f"<{len(files)}I")))
        self.plan = manifest.take_text()


class Manifest(File):
    """A manifest. `segments` has the oldest first."""

    def __init__(self, path):
        File.__init__(self, path, b"simstore", 12)
        self.crc = u32(self.data, self.footer)
        self.check_crc(self.crc, self.data[: self.footer], "manifest")
        self.at = 12
        self.read_settings()
        (count, reserved) = self.take("<II")
        self.check(reserved == 0, "reserved bytes 60 to 63 are not zero")
        self.profile, self.plan = self.take_text(), self.take_text()
        self.segments = [Segment(self) for _ in range(count)]
        self.check(self.at == self.footer, "bytes after the last segment")
        numbers = [segment.number for segment in self.segments]
        self.check(len(set(numbers)) == len(numbers), "two segments have one number")

    def read_settings(self):
        check = self.check
        self.bits, self.distance, codec, flags = self.take("<BBBB")
        check(self.bits in (64, 128), f"fingerprints of {self.bits} bits")
        check(self.distance <= self.bits // 4, f"distance {self.distance}")
        check(codec < len(CODECS), f"codec number {codec}")
        check(flags in (0, 1, 3), f"flags {flags}")
        self.codec, self.has_ids, has_highest = CODECS[codec], flags & 1 > 0, flags & 2 > 0
        block_size, span, reserved = self.take("<IHH")
        check(block_size in [0, *BLOCK_SIZES], f"block size {block_size}")
        check(span <= 256, f"span {span}")
        check(reserved == 0, "reserved bytes 22 and 23 are not zero")
        self.next_number, self.first_log, self.sequence, highest = self.take("<QQQQ")
        self.check(self.sequence <= 1 << 63, f"sequence {self.sequence}")
        check(has_highest or highest == 0, f"highest id {highest}, and the flags say that there is none")
        self.highest_id = highest if has_highest else None
        check(1 <= self.next_number <= 1 << 48, f"next number {self.next_number}")
        check(self.first_log < self.next_number, f"first log {self.first_log}")

    def take(self, layout):
        """Returns the next fields."""
        start = self.at
        self.at += struct.calcsize(layout)
        self.check(self.at <= self.footer, "cut short")
        return struct.unpack_from(layout, self.data, start)

    def take_text(self):
        (length,) = self.take("<I")
        (text,) = self.take(f"<{length}s")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            self.check(False, "a text is not UTF-8")
