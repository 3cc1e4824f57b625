"""A set of stores: shards.md."""

import json
import os
import re
import zlib

from .frame import Damaged, read_file
from .store import Store

MEMBERS = ["bits", "checksum", "distance", "format", "missing", "profile", "run", "shards", "version"]
SHARD_MEMBERS = ["checksum", "fingerprints", "folder", "pairs"]


class Shards:
    """A sharded set. `entries` are the (fingerprint, id) pairs of all shards, ascending."""

    def __init__(self, path):
        self.path = os.path.join(path, "shards.json")
        data = read_file(self.path)
        tail = re.match(rb', "checksum": "([0-9a-f]{8})"\}\n\Z', data[-26:])
        self.check(tail, "does not end with a checksum")
        self.check(b"%08x" % zlib.crc32(data[:-26]) == tail.group(1), "the checksum is another")
        try:
            self.members = json.loads(data.decode("utf-8"))
        except ValueError as error:
            self.check(False, f"is not JSON: {error}")
        self.check(isinstance(self.members, dict), "is no JSON object")
        self.check(self.members.get("format") == "simstore shards", "is not a list of shards")
        version = self.members.get("version")
        self.check(version == 1, f"version {version}, this program reads 1")
        self.check(sorted(self.members) == MEMBERS, "has other members")
        self.bits, self.distance, self.run = (self.members[name] for name in ("bits", "distance", "run"))
        self.profile, self.missing, shards = (self.members[name] for name in ("profile", "missing", "shards"))
        self.check_number("bits", self.bits, 64, 128)
        self.check(self.bits in (64, 128), f"bits {self.bits}")
        self.check_number("distance", self.distance, 0, self.bits // 4)
        self.check_text("run", self.run, "[0-9a-f]{16}")
        self.check_number("missing", self.missing, 0, 2**64 - 1)
        if self.profile is not None:
            self.check_text("profile", self.profile, "(?s).*")
        self.check(isinstance(shards, list), "the shards are no array")
        entries, before = set(), -1
        for shard in shards:
            is_shard = isinstance(shard, dict) and sorted(shard) == SHARD_MEMBERS
            self.check(is_shard, "a shard has other members")
            before = self.read_shard(path, shard, before, entries)
        self.entries = sorted(entries)

    def check(self, is_sound, problem):
        if not is_sound:
            raise Damaged(f"{self.path}: {problem}")

    def check_number(self, name, value, least, most):
        self.check(type(value) is int and least <= value <= most, f"{name} {value!r}")

    def check_text(self, name, value, pattern):
        self.check(isinstance(value, str) and re.fullmatch(pattern, value), f"{name} {value!r}")

    def read_shard(self, path, shard, before, entries):
        """Adds the pairs of a shard to `entries`. Returns the shard's number."""
        folder = shard["folder"]
        self.check_text("folder", folder, f"shard-[0-9]{{5,}}-{self.run}")
        number = int(folder.split("-")[1])
        self.check(folder == f"shard-{number:05}-{self.run}" and number > before, f"folder {folder!r}")
        self.check_number("fingerprints", shard["fingerprints"], 1, 2**64 - 1)
        self.check_number("pairs", shard["pairs"], shard["fingerprints"], 2**64 - 1)
        self.check_text("checksum", shard["checksum"], "[0-9a-f]{8}")
        store = Store(os.path.join(path, folder))
        manifest = store.manifest
        found = f"{manifest.crc:08x}"
        manifest.check(found == shard["checksum"], f"checksum is {found}, the list of shards says {shard['checksum']}")
        manifest.check((manifest.bits, manifest.distance) == (self.bits, self.distance), "bits or distance are others")
        fingerprints, pairs = len({value for value, _ in store.pairs}), len(store.pairs)
        is_sound = (fingerprints, pairs) == (shard["fingerprints"], shard["pairs"])
        manifest.check(is_sound, f"holds {fingerprints} fingerprints, {pairs} pairs")
        entries.update(store.pairs)
        return number
