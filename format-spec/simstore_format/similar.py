"""Documents in a store of similar documents: similar.md."""

import itertools

from .frame import Damaged, u32, u64


def decompress(frame, dictionary):
    """Decompresses a Zstandard frame. Returns None if this Python has no zstd module (before 3.14)."""
    try:
        from compression import zstd
    except ImportError:
        return None
    try:
        return zstd.decompress(frame, zstd.ZstdDict(dictionary) if dictionary else None)
    except zstd.ZstdError as error:
        raise Damaged(f"a text: {error}") from error


def document(path, store, identifier):
    """Returns the number of features of a document, their sum, and its bands. Checks its text."""
    note = store.notes[identifier]
    where = f"{path}: note of {identifier}: "
    has_texts = store.metadata["similar"].endswith(b" texts")
    if len(note) < (80 if has_texts else 76):
        raise Damaged(f"{where}{len(note)} bytes")
    if u32(note, 0) == 0:
        raise Damaged(where + "no features")
    if has_texts:
        parts = (store.metadata.get(f"similar texts {part}") for part in range(8))
        text = decompress(note[80:], b"".join(itertools.takewhile(lambda part: part is not None, parts)))
        if text is not None and len(text) != u32(note, 76):
            raise Damaged(f"{where}a text of {len(text)} bytes, not {u32(note, 76)}")
        try:
            text is None or text.decode()
        except UnicodeDecodeError as error:
            raise Damaged(where + "a text that is not UTF-8") from error
    return u32(note, 0), u64(note, 4), [u64(note, at) for at in range(12, 76, 8)]


def estimate(a, b):
    """Returns the estimated similarity of two documents, and its standard error."""
    if a == b:
        return 1.0, 0.0
    differ = sum(bin(x ^ y).count("1") for x, y in zip(a[2], b[2]))
    p = (1 + differ) / (2 + 512)
    similarity = max(0.0, 1 - 2 * differ / 512)
    both = int(similarity * (a[0] + b[0]) / (1 + similarity) + 0.5)
    both = min(both, min(a[0], b[0]) - (a[0] == b[0]))
    return both / (a[0] + b[0] - both), 2 * (p * (1 - p) / 512) ** 0.5


def similarity(path, store, identifiers):
    """Returns the estimated similarity of two documents of a store, and its standard error."""
    if "similar" not in store.metadata:
        raise Damaged(f"{path}: no metadata `similar`")
    for identifier in identifiers:
        if identifier not in store.notes:
            raise Damaged(f"{path}: no document {identifier}")
    a, b = (document(path, store, identifier) for identifier in identifiers)
    return estimate(a, b)
