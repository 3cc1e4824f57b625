"""Exact near-duplicate search and deduplication: simhash fingerprints on disk, whole corpora, live stores."""

from simstore._simstore import (
    Array,
    Compression,
    Deduplication,
    Evaluation,
    Profile,
    Progress,
    Summary,
    Table,
    __version__,
    compression,
    dedup,
    evaluate,
    similarity,
    sketches,
)
from simstore.errors import BadInputError, CorruptError, Error, LockedError, NotAStoreError, SimstoreWarning

__all__ = [
    "Array",
    "BadInputError",
    "Compression",
    "CorruptError",
    "Deduplication",
    "Error",
    "Evaluation",
    "LockedError",
    "NotAStoreError",
    "Profile",
    "Progress",
    "SimstoreWarning",
    "Summary",
    "Table",
    "__version__",
    "compression",
    "dedup",
    "evaluate",
    "similarity",
    "sketches",
]
