"""The frame of id, name, note and metadata files: chunked.md."""

from .frame import checksum_of_checksums, crc, number, sealed, start


def chunked_file(magic, fields, chunks, keys=None):
    """Returns a chunked file. `chunks` come without their checksums. `keys`, if given, has a key for each chunk."""
    header = start(magic) + bytes(4) + fields
    parts = [sealed(k, chunk) for k, chunk in enumerate(chunks)]
    directory, at = b"", len(header)
    for k, part in enumerate(parts):
        directory += number(at, 8)
        if keys is not None:
            directory += number(keys[k], 8)
        at += len(part)
    directory += number(at, 8)
    footer = number(len(parts), 8) + crc(header) + checksum_of_checksums(parts) + crc(directory)
    return header + b"".join(parts) + directory + footer + crc(footer) + magic
