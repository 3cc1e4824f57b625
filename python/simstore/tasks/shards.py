"""Sets in shards, as specified in `format-spec/shards.md`: their list, and the task that writes a shard."""

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

LIST_FILE = "shards.json"

#: Schema of the row that a shard's task reports to `merged`.
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
    """One shard of a set.

    Attributes
    ----------
    folder : str
        The shard's directory in the directory of the set.
    fingerprints, pairs : int
        Number of distinct fingerprints, and number of pairs of fingerprint and id.
    checksum : str
        Checksum of the shard's manifest, which covers all of its files.
    """

    folder: str
    fingerprints: int
    pairs: int
    checksum: str


@dataclass(frozen=True)
class Shards:
    """The list of a set's shards.

    Attributes
    ----------
    run : str
        The run that wrote the shards.
    bits, distance : int
        The width of the fingerprints, and the largest distance of queries.
    profile : str or None
        How texts became fingerprints.
    missing : int
        Number of rows without a fingerprint, which are in no shard.
    shards : tuple of Shard
        The shards that are not empty.
    """

    run: str
    bits: int
    distance: int
    profile: str | None
    missing: int
    shards: tuple[Shard, ...]

    @property
    def pairs(self) -> int:
        """Number of pairs of fingerprint and id in the set."""
        return sum(shard.pairs for shard in self.shards)

    @staticmethod
    def read(file: str | os.PathLike[str]) -> Shards:
        """Reads the list of a set: the file `shards.json` in its directory.

        Raises
        ------
        FileNotFoundError
            If the file is missing: no run has succeeded.
        CorruptError
            If the file is damaged.
        NotAStoreError
            If the file has another format or version.
        """
        run, bits, distance, profile, missing, shards = _simstore._read_shards(os.fspath(file))
        return Shards(run, bits, distance, profile, missing, tuple(Shard(*shard) for shard in shards))

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes the list, so that the directory holds these shards from then on, and removes files of earlier runs and attempts."""
        _simstore._write_shards(os.fspath(folder), astuple(self))

    def check(self, shard: Shard, path: str | os.PathLike[str]) -> None:
        """Checks by its manifest that the directory `path` has the shard in the list.

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
        has = (snapshot.bits, snapshot.distance, snapshot.stats["fingerprints"], snapshot.stats["ids"])
        _simstore._check_shard(os.fspath(path), astuple(self), astuple(shard), has)
        return snapshot


def _sync_folder(folder: str | os.PathLike[str]) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def shard_folder_name(number: int, run: str) -> str:
    """Returns the name of a shard's directory."""
    return _simstore._shard_folder(number, run)


def begin(folder: str | os.PathLike[str], replace: bool = False) -> str:
    """Prepares a directory for the shards of a run, and removes files of failed runs. Returns the name of the run.

    Raises
    ------
    FileExistsError
        If the directory has shards and `replace` is False, or if it has other files.
    """
    _simstore._ready_for_shards(os.fspath(folder), replace)
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
    codec: Literal["first-difference", "gap", "elias-fano", "all-differences"] | None = None,
    plan: str | None = None,
    profile: Profile | str | None = None,
    memory: int | str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Writes a shard: a store that appears when it is complete, even if several attempts run at the same time.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Equal pairs must be in the same shard; otherwise queries find them twice.
    folder : str or os.PathLike
        The directory of the set.
    run : str
        The name of the run, from `begin`.
    number : int
        The number of the shard, from 0.
    fingerprint : str
        The column of the fingerprints: int64 or uint64 for 64 bits, 16 bytes each for 128. Nulls are counted and skipped.
    id : str
        The column of the ids: integers from 0.
    bits, distance, codec, plan, profile, memory
        As for `simstore.Builder`.

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
        # Reported instead of raised: a retry would fail too. The remaining rows are read, so that their sender can finish.
        report["problem"] = str(error)
        for _ in rows:
            pass
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    yield pa.RecordBatch.from_pylist([report], schema=WRITTEN)


def _read_pairs(
    batch: pa.RecordBatch, fingerprint: str, id: str, bits: Literal[64, 128]
) -> tuple[pa.Array, pa.Array, int]:
    """Returns fingerprints and ids for a builder, and the number of missing fingerprints."""
    fingerprints, ids = fixed_width_fingerprints(batch, fingerprint, bits), get_column(batch, id)
    if ids.null_count:
        raise ValueError(f"column `{id}`: {ids.null_count} ids are null; every row needs one")
    missing = fingerprints.null_count
    if missing:
        is_there = fingerprints.is_valid()
        fingerprints, ids = fingerprints.filter(is_there), ids.filter(is_there)
    return fingerprints, ids, missing


def fixed_width_fingerprints(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """Returns a column of fingerprints as uint64 or as fixed-size binary of 16 bytes."""
    column = fingerprint_column(batch, name, bits)
    if bits == 64:
        return column
    try:
        return column.cast(pa.binary(16))
    except pa.ArrowInvalid:
        raise ValueError(f"column `{name}`: fingerprints of 128 bits have 16 bytes, and some have not") from None


def _publish(hidden: str, path: str) -> str:
    """Renames a store, unless another attempt has already done so. Returns the checksum of the renamed store."""
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
    """Makes the list of shards from the rows that `build_shard` yields.

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
