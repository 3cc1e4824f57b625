"""The contents of a store: contents.md.

They are the contents of the segments from the oldest to the newest, changed by the operations of the logs.
"""


class Contents:
    """`pairs` are fingerprints with ids. `names` and `notes` are by id, `metadata` by key. In a store without ids, each id is 0."""

    def __init__(self):
        self.pairs, self.names, self.notes, self.metadata = set(), {}, {}, {}

    def add_segment(self, segment):
        """Applies the tombstones of a segment, which are about older segments, then adds its contents."""
        for pair in segment.deleted:
            self.apply_delete(*pair)
        self.pairs.update(segment.pairs)
        self.names.update(segment.names)
        self.notes.update(segment.notes)
        self.metadata.update(segment.metadata)

    def add_log(self, log):
        """Applies the operations of a log in order."""
        for _, operations in log.records:
            for kind, *fields in operations:
                getattr(self, f"apply_{kind}")(*fields)

    def apply_insert(self, fingerprint, identifier, name):
        self.pairs.add((fingerprint, identifier))
        if name is not None:
            self.names[identifier] = name

    def apply_delete(self, fingerprint, identifier):
        """Removes a pair, and the name and note of its id in any case."""
        self.pairs.discard((fingerprint, identifier))
        self.names.pop(identifier, None)
        self.notes.pop(identifier, None)

    def apply_note(self, identifier, note):
        self.notes[identifier] = note

    def apply_metadata(self, key, value):
        self.metadata[key] = value
