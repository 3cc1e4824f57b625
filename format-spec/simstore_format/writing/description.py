"""The description of a store that the writer gets: the same JSON forms that `reader.py --json` prints.

Wrong input raises `ValueError`. Numbers and bytes are decoded here, so that the other modules have only numbers and bytes.
"""

from types import SimpleNamespace

from ..frame import CODECS
from ..log import MAX_KEY, MAX_METADATA, MAX_NAME, MAX_NOTE
from ..plan import are_complete
from ..table import BLOCK_SIZES
from .tables import TableSettings, pigeonhole_tables

# For a block size or span of 0, which means that the writer chooses.
DEFAULT_BLOCK_SIZE, DEFAULT_SPAN = 4096, 64


def check(is_sound, problem):
    if not is_sound:
        raise ValueError(problem)


def limited(data, limit, kind):
    check(len(data) <= limit, f"a {kind} of {len(data)} bytes, {limit} are allowed")
    return data


def id_number(given):
    identifier = int(given)
    check(0 <= identifier < 1 << 64, f"id {given}")
    return identifier


class Settings:
    """The settings of a store."""

    def __init__(self, given):
        self.bits, self.distance, self.codec = given["bits"], given["distance"], given["codec"]
        self.has_ids, self.profile, self.plan = given.get("ids", True), given.get("profile", ""), given.get("plan", "auto")
        self.block_size, self.span = given.get("block_size", 0), given.get("span", 0)
        check(self.bits in (64, 128), f"bits {self.bits}")
        check(0 <= self.distance <= self.bits // 4, f"distance {self.distance}")
        self.table_settings(given)
        self.tables = given.get("tables") or pigeonhole_tables(self.bits, self.distance)
        for t, table in enumerate(self.tables):
            prefix = table["prefix"]
            check(set(prefix) <= set(range(self.bits)) and len(set(prefix)) == len(prefix), f"table {t}: prefix {prefix}")
            check(t > 0 or prefix == list(range(len(prefix))), "the first table is not permuted: its prefix is bits 0, 1, 2 ...")
            check(0 <= table["flips"] <= self.bits // 4, f"table {t}: {table['flips']} flips")
        check(1 <= len(self.tables) <= 64, f"{len(self.tables)} tables, 1 to 64 are possible")
        plan = [
            SimpleNamespace(permutation=table["prefix"], prefix_bits=len(table["prefix"]), flips=table["flips"], bits=self.bits)
            for table in self.tables
        ]
        check(are_complete(plan, self.distance), f"the tables miss neighbours within {self.distance} bits")

    def table_settings(self, given):
        """Returns the settings of tables: the store's, unless `given` has others."""
        codec, block_size, span = (given.get(name, getattr(self, name)) for name in ("codec", "block_size", "span"))
        block_size, span = block_size or DEFAULT_BLOCK_SIZE, span or DEFAULT_SPAN
        check(codec in CODECS, f"codec {codec}")
        check(block_size in BLOCK_SIZES, f"block size {block_size}")
        check(1 <= span <= 256, f"span {span}")
        return TableSettings(self.bits, codec, block_size, span)

    def pair(self, fingerprint, identifier="0"):
        value = int(fingerprint, 16)
        check(0 <= value < 1 << self.bits, f"fingerprint {fingerprint}")
        identifier = id_number(identifier)
        check(self.has_ids or identifier == 0, f"id {identifier} in a store without ids")
        return value, identifier

    def name(self, name):
        check(self.has_ids, "a name in a store without ids")
        return limited(name.encode("utf-8"), MAX_NAME, "name")

    def note(self, note):
        check(self.has_ids, "a note in a store without ids")
        return limited(bytes.fromhex(note), MAX_NOTE, "note")

    def metadata(self, key, value):
        return limited(key.encode("utf-8"), MAX_KEY, "key"), limited(bytes.fromhex(value), MAX_METADATA, "value")

    def operation(self, kind, *fields):
        """Decodes an operation of a log."""
        if kind == "metadata":
            return (kind, *self.metadata(*fields))
        if kind == "note":
            return kind, id_number(fields[0]), self.note(fields[1])
        check(kind in ("insert", "delete"), f"operation {kind}")
        names = [self.name(name) for name in fields[2:]]
        check(len(names) <= (kind == "insert"), f"operation {kind} of {len(fields)} fields")
        return (kind, *self.pair(*fields[:2]), *names)


class SegmentContents:
    """The contents of a segment. `ids` has the ids of each fingerprint."""

    def __init__(self, settings, given):
        self.ids = {}
        for fingerprint, identifier in sorted({settings.pair(*pair) for pair in given.get("pairs", [])}):
            self.ids.setdefault(fingerprint, []).append(identifier)
        self.names = {id_number(i): settings.name(name) for i, name in given.get("names", {}).items()}
        self.notes = {id_number(i): settings.note(note) for i, note in given.get("notes", {}).items()}
        self.metadata = dict(settings.metadata(*entry) for entry in given.get("metadata", {}).items())
        self.tombstones = {settings.pair(*pair) for pair in given.get("tombstones", [])}
        self.table_settings = settings.table_settings(given)
