"""The frame of id, name, note and metadata files: chunked.md."""

import struct
import zlib

from .frame import File, u64


class Chunked(File):
    """A chunked file. `chunks` are the chunks with their checksums; `keys` their keys, or None."""

    def __init__(self, path, magic, header_len, has_keys):
        File.__init__(self, path, magic, 32)
        data, foot = self.data, self.footer
        count, header_crc, chunks_crc, directory_crc, self.footer_crc = struct.unpack_from("<QIIII", data, foot)
        self.check_crc(self.footer_crc, data[foot : foot + 20], "footer")
        entry = 16 if has_keys else 8
        directory = foot - count * entry - 8
        self.check(directory >= header_len, f"no room for {count} chunks")
        self.check_crc(header_crc, data[:header_len], "header")
        self.check_crc(directory_crc, data[directory:foot], "directory")
        self.check_zero(12, 16, "header")
        offsets = [u64(data, directory + i * entry) for i in range(count + 1)]
        self.keys = [u64(data, directory + i * entry + 8) for i in range(count)] if has_keys else None
        is_sound = offsets[0] == header_len and offsets[-1] == directory and offsets == sorted(offsets)
        self.check(is_sound, "the offsets in the directory do not ascend from the header to the directory")
        self.chunks = [data[start:end] for start, end in zip(offsets, offsets[1:])]
        crc = 0
        for k, chunk in enumerate(self.chunks):
            self.check(len(chunk) >= 8, f"chunk {k} is cut short")
            self.check_part(k, chunk, "chunk")
            crc = zlib.crc32(chunk[:4], crc)
        self.check(crc == chunks_crc, f"checksum of the checksums of the chunks is {crc:08x}")
