"""Names and notes of documents by id: names.md and notes.md. The two kinds of files differ only in shared starts and in limits."""

from .chunked import Chunked
from .frame import u32


class IdValues(Chunked):
    """Values by id. With `has_shared`, an entry says how many bytes it shares with the value before."""

    def __init__(self, path, magic, has_shared, longest, longest_chunk):
        Chunked.__init__(self, path, magic, 16, True)
        self.has_shared, self.longest = has_shared, longest
        self.values = {}
        self.last_id = -1
        for k, chunk in enumerate(self.chunks):
            self.check(len(chunk) <= longest_chunk, f"chunk {k} has {len(chunk)} bytes")
            self.read_chunk(k, chunk)

    def read_chunk(self, k, chunk):
        at, value, identifier, count = 8, b"", self.keys[k], u32(chunk, 4)
        self.check(count > 0, f"chunk {k} is empty")
        for i in range(count):
            difference, at = self.varint(chunk, at)
            shared, at = self.varint(chunk, at) if self.has_shared else (0, at)
            length, at = self.varint(chunk, at)
            self.check((i == 0) == (difference == 0), f"chunk {k}: entry {i} has a difference of {difference}")
            self.check(shared <= len(value), f"chunk {k}: entry {i} shares {shared} of {len(value)} bytes")
            is_sound = at + length <= len(chunk) and shared + length <= self.longest
            self.check(is_sound, f"chunk {k}: entry {i} has {shared + length} bytes")
            identifier += difference
            self.check(self.last_id < identifier < 1 << 64, f"chunk {k}: id {identifier} after id {self.last_id}")
            value = value[:shared] + chunk[at : at + length]
            at += length
            self.values[identifier] = value
            self.last_id = identifier
        self.check(at == len(chunk), f"chunk {k}: bytes after the last entry")

    def varint(self, chunk, at):
        """Returns the varint at an offset, and the offset after it."""
        value = 0
        for i in range(10):
            self.check(at < len(chunk), "a chunk cuts off a varint")
            byte = chunk[at]
            at += 1
            value |= (byte & 127) << 7 * i
            if byte < 128:
                self.check(value < 1 << 64, "a varint of 2^64 or more")
                self.check(byte > 0 or i == 0, "a varint of more bytes than it needs")
                return value, at
        self.check(False, "a varint of more than 10 bytes")


class Names(IdValues):
    """A name file. `values` are texts by id."""

    def __init__(self, path):
        IdValues.__init__(self, path, b"simnames", True, 1 << 16, 1 << 17)
        for identifier, name in self.values.items():
            try:
                self.values[identifier] = name.decode("utf-8")
            except UnicodeDecodeError:
                self.check(False, f"the name of {identifier} is not UTF-8")


class Notes(IdValues):
    """A note file. `values` are bytes by id."""

    def __init__(self, path):
        IdValues.__init__(self, path, b"simnotes", False, 1 << 24, (1 << 24) + (1 << 16))
