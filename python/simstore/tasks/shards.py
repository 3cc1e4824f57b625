"""Sets of fingerprints in shards: the list of a set's shards, and the task that writes a shard. Format: `format-spec/shards.md`."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any, Literal

import pyarrow as pa

from simstore import Builder, Profile, Snapshot, _simstore
from simstore.tasks.columns import fingerprint_column, get_column

# Name of the file with the list, in the directory of a set.
LIST_FILE = "shards.json"

#: Schema of the report that `build_shard` yields and `merged` takes. ``folder``, ``fingerprints``, ``pairs`` and ``checksum`` are null for
#: an empty shard. ``missing`` is the number of rows without a fingerprint. ``problem`` is the error that ended the task, or null.
WRITTEN = pa.schema(
    [
        ("number", pa.int64()),
        ("folder", pa.string()),
        ("fingerprints", pa.int64()),
        ("pairs", pa.int64()),
        ("checksum", pa.string()),
        ("missing", pa.int64()),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True)
class Shard:
    """One shard of a set of fingerprints.

    Attributes
    ----------
    folder : str
        Name of the shard's directory, which is in the directory of the set.
    fingerprints, pairs : int
        Number of distinct fingerprints, and number of distinct pairs of fingerprint and id.
    checksum : str
        Checksum of the shard's manifest, which covers all files of the shard.
    """

    folder: str
    fingerprints: int
    pairs: int
    checksum: str


@dataclass(frozen=True)
class Shards:
    """The list of the shards of a set of fingerprints.

    Attributes
    ----------
    run : str
        Name of the run that wrote the shards.
    bits, distance : int
        Width of the fingerprints, and maximum distance of queries, both in bits.
    profile : str or None
        Name of the profile that made the fingerprints from texts.
    missing : int
        Number of rows without a fingerprint, which are in no shard.
    shards : tuple of Shard
        Shards that are not empty.
    """

    run: str
    bits: int
    distance: int
    profile: str | None
    missing: int
    shards: tuple[Shard, ...]

    @property
    def pairs(self) -> int:
        """Number of pairs of fingerprint and id in all shards."""
        return sum(shard.pairs for shard in self.shards)

    @staticmethod
    def read(file: str | os.PathLike[str]) -> Shards:
        """Reads the list from `file`: the file ``shards.json`` in the directory that holds the shards, or a copy of this file.

        Raises
        ------
        FileNotFoundError
            If the file is missing: no run has succeeded.
        CorruptError
            If the file is damaged.
        NotAStoreError
            If the file has another format or version.
        """
        run, bits, distance, profile, missing, shards = _simstore._read_shard_list(os.fspath(file))
        return Shards(run, bits, distance, profile, missing, tuple(Shard(*shard) for shard in shards))

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes the list to `folder`, the directory that holds the shards, and so replaces an earlier list there.

        Then removes the files that earlier runs and failed or repeated tasks left there.
        """
        _simstore._write_shard_list(os.fspath(folder), astuple(self))

    def check(self, shard: Shard, path: str | os.PathLike[str]) -> None:
        """Checks that the directory `path` has this shard of the list, by the checksum of its manifest.

        Raises
        ------
        FileNotFoundError
            If the directory is missing.
        CorruptError
            If the directory has another shard.
        """
        _simstore._check_shard(os.fspath(path), astuple(self), astuple(shard))

    def open(self, shard: Shard, path: str | os.PathLike[str]) -> Snapshot:
        """Opens the shard in the directory `path`. Raises the errors of `check`, and `CorruptError` if the shard is damaged."""
        self.check(shard, path)
        snapshot = Snapshot(path)
        properties = (snapshot.bits, snapshot.distance, snapshot.stats["fingerprints"], snapshot.stats["ids"])
        _simstore._check_shard(os.fspath(path), astuple(self), astuple(shard), properties)
        return snapshot


def _sync_folder(folder: str | os.PathLike[str]) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shard_folder_name(number: int, run: str) -> str:
    """Returns the name of the directory to which the run with the name `run` writes shard `number`."""
    return _simstore._shard_folder(number, run)


def begin(folder: str | os.PathLike[str], replace: bool = False) -> str:
    """Prepares a directory for the shards of a run, and removes files of failed runs. Returns the name of the run.

    Raises
    ------
    FileExistsError
        If the directory has shards and `replace` is False, or if it has other files.
    """
    _simstore._prepare_shard_folder(os.fspath(folder), replace)
    return secrets.token_hex(8)


def build_shard(
    batches: Iterable[pa.RecordBatch],
    folder: str | os.PathLike[str],
    run: str,
    number: int,
    *,
    fingerprint: str = "fingerprint",
    id: str = "id",
    bits: Literal[64, 128] = 64,
    distance: int = 3,
    codec: Literal["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"] | None = None,
    plan: str | None = None,
    profile: Profile | str | None = None,
    memory: int | str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Writes one shard of a set of fingerprints. The shard is a store, which appears in the directory of the set when it is complete.

    Several attempts at the same shard may run at the same time: the first to finish counts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Rows of the shard. Rows with the same fingerprint and id must be in the same shard; otherwise queries find them twice.
    folder : str or os.PathLike
        Directory of the set.
    run : str
        Name of the run, from `begin`.
    number : int
        Number of the shard, from 0.
    fingerprint : str
        Column of the fingerprints: int64 or uint64 for 64 bits, 16 bytes each for 128 bits. Nulls are counted and skipped.
    id : str
        Column of the ids: integers, not negative, not null.
    bits, distance, codec, plan, profile, memory
        See `simstore.Builder`.

    Yields
    ------
    pyarrow.RecordBatch
        One row with the schema `WRITTEN`: the contents of the shard, or the problem with its rows. An empty shard is not written.
    """
    name = shard_folder_name(number, run)
    hidden = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    report: dict[str, Any] = {"number": number, "missing": 0}
    rows = iter(batches)
    try:
        builder = Builder(
            hidden, distance=distance, bits=bits, codec=codec, plan=plan, profile=profile, memory=memory
        )
        is_empty = True
        for batch in rows:
            fingerprints, ids, missing = _read_pairs(batch, fingerprint, id, bits)
            report["missing"] += missing
            if len(ids):
                builder.insert_many(fingerprints, ids)
                is_empty = False
        if not is_empty:
            stats = builder.finish().stats
            report |= {"folder": name, "fingerprints": stats["fingerprints"], "pairs": stats["ids"]}
            report["checksum"] = _publish(hidden, os.path.join(folder, name))
    except ValueError as error:
        # The problem is reported, not raised, because a retry would fail too. The remaining rows are read, so that their sender can finish.
        report["problem"] = str(error)
        for _ in rows:
            pass
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    yield pa.RecordBatch.from_pylist([report], schema=WRITTEN)


def _read_pairs(
    batch: pa.RecordBatch, fingerprint: str, id: str, bits: Literal[64, 128]
) -> tuple[pa.Array, pa.Array, int]:
    """Returns the fingerprints and ids of the rows with a fingerprint, and the number of rows without one."""
    fingerprints, ids = fixed_width_fingerprints(batch, fingerprint, bits), get_column(batch, id)
    if ids.null_count:
        raise ValueError(f"column `{id}`: {ids.null_count} ids are null; every row needs one")
    missing = fingerprints.null_count
    if missing:
        is_present = fingerprints.is_valid()
        fingerprints, ids = fingerprints.filter(is_present), ids.filter(is_present)
    return fingerprints, ids, missing


def fixed_width_fingerprints(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """Returns a column of fingerprints: of type uint64 for 64 bits, of fixed-size binary of 16 bytes for 128 bits."""
    column = fingerprint_column(batch, name, bits)
    if bits == 64:
        return column
    try:
        return column.cast(pa.binary(16))
    except pa.ArrowInvalid:
        raise ValueError(f"column `{name}`: fingerprints of 128 bits have 16 bytes, and some have not") from None


def _publish(hidden: str, path: str) -> str:
    """Renames a complete store to its final path, unless another attempt has already done so.

    Returns the checksum of the manifest of the store at this path.
    """
    try:
        os.rename(hidden, path)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
    _sync_folder(os.path.dirname(path))
    return _simstore._shard_checksum(path)


def merged(
    written: Iterable[dict[str, Any]], run: str, *, bits: int, distance: int, profile: str | None = None
) -> Shards:
    """Makes the list of all shards of a set of fingerprints, from the reports of `build_shard`.

    Parameters
    ----------
    written : iterable of dict
        Rows that `build_shard` yields, as dicts.
    run : str
        Name of the run, from `begin`.
    bits, distance : int
        Width of the fingerprints, and maximum distance of queries, both in bits.
    profile : str, optional
        Name of the profile that made the fingerprints from texts.

    Raises
    ------
    ValueError
        If a row reports a problem.
    """
    rows = sorted(written, key=lambda row: int(row["number"]))
    for row in rows:
        if row["problem"] is not None:
            raise ValueError(row["problem"])
    fields = Shard.__dataclass_fields__
    shards = tuple(Shard(**{name: row[name] for name in fields}) for row in rows if row["folder"] is not None)
    return Shards(run, bits, distance, profile, sum(row["missing"] for row in rows), shards)
