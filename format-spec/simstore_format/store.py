"""A whole store: the segments of the manifest (manifest.md), and the logs in the folder (log.md, section "The logs of a store")."""

import os
import re

from .contents import Contents
from .frame import Damaged
from .id_values import Names, Notes
from .ids import Ids
from .log import Log
from .manifest import Manifest
from .metadata import Metadata
from .plan import are_complete
from .table import Table
from .tombstones import Tombstones


class Segment:
    """The files of a segment. `pairs` are fingerprints with ids; each id is 0 in a store without ids."""

    def __init__(self, folder, manifest, entry):
        self.number, self.tables = entry.number, []
        self.names, self.notes, self.metadata, self.deleted = {}, {}, {}, []
        self.manifest, self.entry = manifest, entry
        lists = None
        for name, footer in entry.footers.items():
            path, kind = os.path.join(folder, name), name.split(".")[1]
            if kind == "table":
                file = self.read_table(Table(path))
            elif kind == "ids":
                file = Ids(path, self.tables[0])
                lists = file.lists
                self.check_count(file, file.ids, kind)
            elif kind == "tombstones":
                file = Tombstones(path, manifest.bits, manifest.has_ids)
                self.deleted = file.pairs
                self.check_count(file, len(file.pairs), kind)
            else:
                file = {"names": Names, "notes": Notes, "metadata": Metadata}[kind](path)
                setattr(self, kind, file.values)
                self.check_count(file, len(file.values), kind)
            file.check(file.footer_crc == footer, "is not the file that the manifest names")
        first = self.tables[0]
        first.check(are_complete(self.tables, manifest.distance), "the segment's tables miss neighbours, or take too long to check")
        lists = lists or [[0]] * first.fingerprints
        self.pairs = [(value, each) for value, of_value in zip(first.permuted, lists) for each in of_value]

    def read_table(self, table):
        table.check(table.bits == self.manifest.bits, f"fingerprints of {table.bits} bits")
        is_sound = table.fingerprints == self.entry.fingerprints
        table.check(is_sound, f"{table.fingerprints} fingerprints, the manifest says {self.entry.fingerprints}")
        self.tables.append(table)
        first = self.tables[0]
        first.check(first.permutation == list(range(first.bits)), "the segment's first table is permuted")
        table.check(table.originals() == first.permuted, "the first table holds other fingerprints")
        return table

    def check_count(self, file, count, kind):
        expected = self.entry.counts[kind]
        file.check(count == expected, f"{count} {kind}, the manifest says {expected}")


class Store(Contents):
    """A store. `entries` are (fingerprint, id or None, name or None), ascending. `torn_tail` describes a torn tail of the last log, or is
    None."""

    def __init__(self, path):
        Contents.__init__(self)
        self.path = path
        self.manifest = manifest = Manifest(os.path.join(path, "MANIFEST"))
        self.segments, self.logs, self.torn_tail = [], [], None
        for entry in manifest.segments:
            segment = Segment(path, manifest, entry)
            self.check_highest_id(segment)
            self.segments.append(segment)
            self.add_segment(segment)
        for log in self.read_logs():
            self.logs.append(log)
            self.add_log(log)
        if self.logs and self.logs[-1].torn and not self.logs[-1].closed:
            self.torn_tail = f"{self.logs[-1].path}: a torn tail of {self.logs[-1].torn} bytes, or damage"
        self.entries = [(value, i if manifest.has_ids else None, self.names.get(i)) for value, i in sorted(self.pairs)]

    def check_highest_id(self, segment):
        if self.manifest.has_ids and segment.pairs:
            highest, limit = max(identifier for _, identifier in segment.pairs), self.manifest.highest_id
            self.manifest.check(limit is not None and highest <= limit, f"id {highest}, and the highest id is {limit}")

    def read_logs(self):
        """Yields the logs from the manifest's first log on. Checks that none is missing."""
        first, sequence, before = self.manifest.first_log, self.manifest.sequence, None
        names = [name for name in os.listdir(self.path) if re.fullmatch(r"[0-9]{6,}\.log", name)] if first else []
        numbers = sorted(int(name[:-4]) for name in names if name == f"{int(name[:-4]):06}.log" and int(name[:-4]) < 1 << 48)
        numbers = [number for number in numbers if number >= first]
        if first and numbers[:1] != [first]:
            raise Damaged(f"{self.path}: log {first} is missing")
        segments = {segment.number for segment in self.segments}
        for number in numbers:
            log = Log(os.path.join(self.path, f"{number:06}.log"))
            log.check(number not in segments, "has the number of a segment")
            log.check(log.first_sequence is not None, "the header is damaged")
            if before:
                log.check(log.previous == before.number, f"follows log {log.previous}, not {before.number}")
                problem = f"ends at {before.sound}, the next log says {log.previous_length}"
                before.check(log.previous_length == before.sound, problem)
            log.check(log.bits == self.manifest.bits, f"fingerprints of {log.bits} bits")
            log.check(log.first_sequence == sequence, f"starts with record {log.first_sequence}, not {sequence}")
            if not self.manifest.has_ids:
                check_without_ids(log)
            yield log
            sequence, before = log.next_sequence, log


def check_without_ids(log):
    """Checks that a log has no ids, and so neither names nor notes."""
    for _, operations in log.records:
        for kind, *fields in operations:
            log.check(kind != "note", "a note in a store without ids")
            if kind in ("insert", "delete"):
                log.check(fields[1] == 0, f"id {fields[1]} in a store without ids")
                log.check(fields[2:] in ([], [None]), "a name in a store without ids")
