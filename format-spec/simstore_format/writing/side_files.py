"""Files of a segment beside its tables: ids.md, names.md, notes.md, metadata.md and tombstones.md."""

from .chunked import chunked_file
from .frame import BitField, crc, number, start

# A chunk of names or notes, and one of metadata, is closed when it has so many bytes.
CHUNK, METADATA_CHUNK = 16384, 4096


def ids_file(lists, counts):
    """Returns an id file. `lists` has the ids of each fingerprint, `counts` the fingerprints of each block of the first table."""
    chunks, at = [], 0
    for count in counts:
        chunks.append(ids_chunk(lists[at : at + count]))
        at += count
    return chunked_file(b"simst-id", number(len(lists), 8) + number(sum(map(len, lists)), 8), chunks)


def ids_chunk(lists):
    ids = [identifier for ids_of_one in lists for identifier in ids_of_one]
    base, grouped = min(ids), int(len(ids) > len(lists))
    width = (max(ids) - base).bit_length()
    body = BitField(len(ids) * (grouped + width))
    i = 0
    for ids_of_one in lists:
        if grouped:
            body.put(i, 1, 1)
        for identifier in ids_of_one:
            body.put(grouped * len(ids) + i * width, width, identifier - base)
            i += 1
    return number(len(ids), 4) + number(base, 8) + bytes([width, grouped, 0, 0]) + bytes(body.data)


def varint(value):
    """Returns a number in bytes of seven bits, the low ones first."""
    encoded = b""
    while value >= 128:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def shared_start(a, b):
    """Returns the number of bytes that both values start with."""
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return length


def id_values_file(magic, values, has_shared):
    """Returns a name file (with shared starts) or a note file. `values` are bytes by id."""
    keys, chunks = [], []
    entries, count, before, last_id = b"", 0, b"", 0
    for identifier, value in sorted(values.items()):
        if not count:
            keys.append(identifier)
            before, last_id = b"", identifier
        shared = shared_start(before, value) if has_shared else 0
        entries += varint(identifier - last_id)
        if has_shared:
            entries += varint(shared)
        entries += varint(len(value) - shared) + value[shared:]
        before, last_id, count = value, identifier, count + 1
        if len(entries) >= CHUNK:
            chunks.append(number(count, 4) + entries)
            entries, count = b"", 0
    if count:
        chunks.append(number(count, 4) + entries)
    return chunked_file(magic, b"", chunks, keys)


def names_file(names):
    return id_values_file(b"simnames", names, True)


def notes_file(notes):
    return id_values_file(b"simnotes", notes, False)


def metadata_file(metadata):
    """Returns a metadata file. `metadata` are bytes by key, and keys are bytes too."""
    chunks, entries, count = [], b"", 0
    for key, value in sorted(metadata.items()):
        entries += number(len(key), 2) + number(len(value), 2) + key + value
        count += 1
        if len(entries) >= METADATA_CHUNK:
            chunks.append(number(count, 4) + entries)
            entries, count = b"", 0
    if count:
        chunks.append(number(count, 4) + entries)
    return chunked_file(b"sim-meta", b"", chunks)


def tombstones_file(bits, pairs):
    """Returns a tombstone file for pairs of fingerprint and id."""
    pairs = sorted(set(pairs))
    file = start(b"simstomb") + bytes([bits, 0, 0, 0]) + number(len(pairs), 8)
    for fingerprint, identifier in pairs:
        file += number(fingerprint, bits // 8) + number(identifier, 8)
    return file + crc(file) + b"simstomb"
