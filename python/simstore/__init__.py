"""Exact near-duplicate search and deduplication: simhash fingerprints on disk, whole corpora, live stores."""

from simstore._simstore import (
    Array,
    Deduplication,
    Profile,
    Progress,
    Summary,
    Table,
    __version__,
    dedup,
    similarity,
    sketches,
)
from simstore.errors import BadInputError, CorruptError, Error, LockedError, NotAStoreError, SimstoreWarning

__all__ = [
    "Array",
    "BadInputError",
    "CorruptError",
    "Deduplication",
    "Error",
    "LockedError",
    "NotAStoreError",
    "Profile",
    "Progress",
    "SimstoreWarning",
    "Summary",
    "Table",
    "__version__",
    "dedup",
    "similarity",
    "sketches",
]
