"""Exact near-duplicate search and deduplication: simhash fingerprints on disk, whole corpora, live stores."""

from simstore._simstore import (
    Array,
    Profile,
    Progress,
    Table,
    __version__,
    similarity,
    sketches,
)
from simstore.errors import BadInputError, CorruptError, Error, LockedError, NotAStoreError

__all__ = [
    "Array",
    "BadInputError",
    "CorruptError",
    "Error",
    "LockedError",
    "NotAStoreError",
    "Profile",
    "Progress",
    "Table",
    "__version__",
    "similarity",
    "sketches",
]
