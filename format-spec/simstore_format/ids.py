"""Ids of the fingerprints of a segment: ids.md."""

from .chunked import Chunked
from .frame import Bits, are_ascending, u32, u64


class Ids(Chunked):
    """An id file. `lists` has the ids of each fingerprint, in the order of the segment's first table."""

    def __init__(self, path, table):
        Chunked.__init__(self, path, b"simst-id", 32, False)
        fingerprints, self.ids = u64(self.data, 16), u64(self.data, 24)
        self.check(fingerprints == table.fingerprints, f"ids of {fingerprints} fingerprints")
        self.check(self.ids >= fingerprints, f"{self.ids} ids for {fingerprints} fingerprints")
        self.check(len(self.chunks) == len(table.blocks), f"{len(self.chunks)} chunks for {len(table.blocks)} blocks")
        self.lists = []
        for k, (chunk, block) in enumerate(zip(self.chunks, table.blocks)):
            lists = self.decode(k, chunk, len(block))
            self.check(len(lists) == len(block), f"chunk {k}: ids of {len(lists)} fingerprints")
            self.check(all(map(are_ascending, lists)), f"chunk {k}: the ids of a fingerprint are not ascending")
            self.lists += lists
        found = sum(map(len, self.lists))
        self.check(found == self.ids, f"{found} ids, the header says {self.ids}")

    def decode(self, k, chunk, fingerprints):
        """Returns the ids in chunk k, a list for each fingerprint of the block."""
        self.check(len(chunk) >= 20, f"chunk {k} is cut short")
        count, base, width, grouped = u32(chunk, 4), u64(chunk, 8), chunk[16], chunk[17]
        is_sound = width <= 64 and grouped <= 1 and not any(chunk[18:20])
        self.check(is_sound, f"chunk {k}: width {width}, grouped {grouped}, or reserved bytes")
        self.check(grouped or count == fingerprints, f"chunk {k}: {count} ids of {fingerprints} fingerprints")
        body, used = Bits(chunk[20:]), count * (grouped + width)
        self.check(body.len == -(-used // 8) * 8, f"chunk {k}: a body of {len(chunk) - 20} bytes for {count} ids")
        self.check(body.read(used, body.len - used) == 0, f"chunk {k}: padding")
        lists = []
        for i in range(count):
            value = base + body.read(grouped * count + i * width, width)
            self.check(value < 1 << 64, f"chunk {k}: id {value}")
            if not grouped or body.read(i, 1):
                lists.append([])
            self.check(lists, f"chunk {k}: the first flag is 0")
            lists[-1].append(value)
        return lists
