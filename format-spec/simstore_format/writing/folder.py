"""The build of a store: folder.md, section "How a store changes". The store appears all at once; a crash leaves no half of it."""

import os

from .description import SegmentContents, Settings, check
from .logs import encode_operation, end_record, log_header, record
from .manifests import manifest_file, segment_entry
from .side_files import ids_file, metadata_file, names_file, notes_file, tombstones_file
from .tables import table_file

FIRST_SEQUENCE = 0


def write_store(path, description):
    """Writes a store in a new or empty folder. `description` has the forms that `description.py` and `writer.py` say."""
    settings = Settings(description)
    segments = [SegmentContents(settings, given) for given in description.get("segments", [])]
    logs = [[[settings.operation(*operation) for operation in each] for each in records] for records in description.get("logs", [])]
    # A record without operations would be an end record.
    check(all(each for records in logs for each in records), "a record without operations")
    StoreBuild(path, settings).build(segments, logs)


class StoreBuild:
    """A build in a folder that has no store. The file LOCK is locked until the build ends."""

    def __init__(self, path, settings):
        self.path, self.settings = path, settings

    def build(self, segments, logs):
        os.makedirs(self.path, exist_ok=True)
        check(not os.listdir(self.path), f"{self.path} is not empty")
        with open(os.path.join(self.path, "LOCK"), "xb") as lock:
            lock_file(lock)
            check(os.listdir(self.path) == ["LOCK"], f"{self.path}: another process writes here")
            check(os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name)), f"{lock.name} is another file by now")
            # Step 1: until the manifest is there, BUILDING says that the files are an unfinished build.
            write_synced(os.path.join(self.path, "BUILDING"), b"")
            sync_folder(self.path)
            # Step 2: all files but the manifest.
            entries = [self.write_segment(number, contents) for number, contents in enumerate(segments, 1)]
            first_log = len(segments) + 1
            self.write_logs(first_log, logs)
            # Step 3.
            sync_folder(self.path)
            sync_folder(os.path.dirname(os.path.abspath(self.path)))
            # Step 4: one rename removes BUILDING and makes the store appear.
            ids = [identifier for contents in segments for ids in contents.ids.values() for identifier in ids]
            highest = max(ids, default=None) if self.settings.has_ids else None
            manifest = manifest_file(self.settings, first_log + len(logs), first_log if logs else 0, highest, entries)
            write_synced(os.path.join(self.path, "BUILDING.tmp"), manifest)
            self.rename("BUILDING.tmp", "BUILDING")
            sync_folder(self.path)
            self.rename("BUILDING", "MANIFEST")
            # Step 5.
            sync_folder(self.path)

    def rename(self, old, new):
        os.replace(os.path.join(self.path, old), os.path.join(self.path, new))

    def write_file(self, name, data):
        """Writes a file under a name that ends with .tmp, and renames it when it is synced."""
        write_synced(os.path.join(self.path, name + ".tmp"), data)
        self.rename(name + ".tmp", name)

    def write_segment(self, number, contents):
        """Writes the files of a segment. Returns its entry in the manifest."""
        settings, fingerprints = self.settings, sorted(contents.ids)
        tables, block_counts = [], []
        for table in settings.tables:
            file, counts = table_file(contents.table_settings, table["prefix"], table["flips"], fingerprints)
            tables.append(file)
            block_counts.append(counts)
        lists = [contents.ids[fingerprint] for fingerprint in fingerprints]
        files, counts = {}, {}
        if settings.has_ids:
            # The ids have a chunk for each block of the first table.
            files["ids"], counts["ids"] = ids_file(lists, block_counts[0]), sum(map(len, lists))
        if contents.names:
            files["names"], counts["names"] = names_file(contents.names), len(contents.names)
        if contents.tombstones:
            files["tombstones"] = tombstones_file(settings.bits, contents.tombstones)
            counts["tombstones"] = len(contents.tombstones)
        if contents.metadata:
            files["metadata"], counts["metadata"] = metadata_file(contents.metadata), len(contents.metadata)
        if contents.notes:
            files["notes"], counts["notes"] = notes_file(contents.notes), len(contents.notes)
        for t, file in enumerate(tables):
            self.write_file(f"{number:06}-{t:02}.table", file)
        for kind, file in files.items():
            self.write_file(f"{number:06}.{kind}", file)
        plan = "" if settings.plan == "auto" else settings.plan
        return segment_entry(number, len(fingerprints), tables, files, counts, plan)

    def write_logs(self, first_log, logs):
        sequence, previous, previous_length = FIRST_SEQUENCE, 0, 0
        for number, records in enumerate(logs, first_log):
            header = log_header(self.settings.bits, number, sequence, previous, previous_length)
            self.write_file(f"{number:06}.log", header)
            at = synced = len(header)
            with open(os.path.join(self.path, f"{number:06}.log"), "ab") as file:
                for operations in records:
                    payload = b"".join(encode_operation(self.settings.bits, *operation) for operation in operations)
                    at += file.write(record(number, at, sequence, synced, payload))
                    sequence += 1
                sync(file)
                at += file.write(end_record(number, at, sequence))
                sequence += 1
                sync(file)
            previous, previous_length = number, at


def lock_file(file):
    """Takes the exclusive lock of a writer. On Windows, which has no `flock`, this writer goes without."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync(file):
    file.flush()
    os.fsync(file.fileno())


def write_synced(path, data):
    """Writes a new file and syncs it."""
    with open(path, "xb") as file:
        file.write(data)
        sync(file)


def sync_folder(path):
    """Syncs the names in a folder. Windows has no such call, and needs none."""
    if os.name == "nt":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
