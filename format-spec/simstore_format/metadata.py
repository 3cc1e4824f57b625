"""Metadata of a store by key: metadata.md."""

from .chunked import Chunked
from .frame import are_ascending, u16, u32

LONGEST, LONGEST_CHUNK = 4096, 16384


class Metadata(Chunked):
    """A metadata file. `values` are bytes by key."""

    def __init__(self, path):
        Chunked.__init__(self, path, b"sim-meta", 16, False)
        entries = []
        for k, chunk in enumerate(self.chunks):
            self.check(len(chunk) <= LONGEST_CHUNK, f"chunk {k} has {len(chunk)} bytes")
            self.check(u32(chunk, 4) > 0, f"chunk {k} is empty")
            at = 8
            for _ in range(u32(chunk, 4)):
                self.check(at + 4 <= len(chunk), f"chunk {k} is cut short")
                key, value = u16(chunk, at), u16(chunk, at + 2)
                at += 4 + key + value
                is_sound = max(key, value) <= LONGEST and at <= len(chunk)
                self.check(is_sound, f"chunk {k}: a key of {key} bytes, a value of {value} bytes")
                entries.append((chunk[at - key - value : at - value], chunk[at - value : at]))
            self.check(at == len(chunk), f"chunk {k}: bytes after the last entry")
        self.check(are_ascending([key for key, _ in entries]), "the keys are not ascending")
        try:
            self.values = {key.decode("utf-8"): value for key, value in entries}
        except UnicodeDecodeError:
            self.check(False, "a key is not UTF-8")
