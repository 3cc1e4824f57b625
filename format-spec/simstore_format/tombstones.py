"""Pairs that are deleted from older segments: tombstones.md."""

from .frame import File, are_ascending, number, u32, u64


class Tombstones(File):
    """A tombstone file. `pairs` are fingerprints with ids. In a store without ids, each id is 0."""

    def __init__(self, path, bits, has_ids):
        File.__init__(self, path, b"simstomb", 12)
        data = self.data
        self.footer_crc = u32(data, self.footer)
        self.check_crc(self.footer_crc, data[: self.footer], "tombstones")
        self.check(self.footer >= 24, f"cut short: {len(data)} bytes")
        self.check(data[12] == bits, f"fingerprints of {data[12]} bits")
        self.check_zero(13, 16, "header")
        count, size = u64(data, 16), bits // 8 + 8
        self.check(24 + count * size == self.footer, f"{count} tombstones in {self.footer - 24} bytes")
        at = range(24, self.footer, size)
        self.pairs = [(number(data[i : i + size - 8]), u64(data, i + size - 8)) for i in at]
        self.check(are_ascending(self.pairs), "the tombstones are not ascending")
        self.check(has_ids or not any(identifier for _, identifier in self.pairs), "ids in a store without ids")
