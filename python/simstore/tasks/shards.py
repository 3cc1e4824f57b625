"""A set in shards, as `format-spec/shards.md` has it: the list of them, and the task that writes one."""

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
from simstore.tasks.columns import column_of, fingerprints_of

LIST = "shards.json"

#: What a task that writes a shard tells: a row, for `merged`.
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
        Its name in the folder of the set.
    fingerprints, pairs : int
        How many distinct fingerprints it holds, and how many of them with their ids.
    checksum : str
        That of its manifest, which stands for all of its files.
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
        The run that wrote them.
    bits, distance : int
        The width of the fingerprints, and the largest distance that can be asked for.
    profile : str or None
        How texts became fingerprints.
    missing : int
        How many rows had no fingerprint, and so are in no shard.
    shards : tuple of Shard
        Those that hold anything.
    """

    run: str
    bits: int
    distance: int
    profile: str | None
    missing: int
    shards: tuple[Shard, ...]

    @property
    def pairs(self) -> int:
        """How many fingerprints with their ids the set holds."""
        return sum(shard.pairs for shard in self.shards)

    @staticmethod
    def read(file: str | os.PathLike[str]) -> Shards:
        """Reads the list of a set: the file `shards.json` of its folder.

        Raises
        ------
        FileNotFoundError
            If it is not there: no run has ended well.
        CorruptError
            If it is not as it was written.
        NotAStoreError
            If it is something else, or of another version.
        """
        run, bits, distance, profile, missing, shards = _simstore._read_shards(os.fspath(file))
        return Shards(run, bits, distance, profile, missing, tuple(Shard(*shard) for shard in shards))

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Makes the folder the set of these shards, at once, and removes what earlier runs and attempts left in it."""
        _simstore._write_shards(os.fspath(folder), astuple(self))

    def check(self, shard: Shard, path: str | os.PathLike[str]) -> None:
        """Checks that the shard in the folder `path` is the one that was written, by its manifest.

        Raises
        ------
        FileNotFoundError
            If it is not there.
        CorruptError
            If it is another.
        """
        _simstore._check_shard(os.fspath(path), astuple(self), astuple(shard))

    def open(self, shard: Shard, path: str | os.PathLike[str]) -> Snapshot:
        """Opens the shard in the folder `path`; raises what `check` does, and `CorruptError` for one that is damaged."""
        self.check(shard, path)
        snapshot = Snapshot(path)
        has = (snapshot.bits, snapshot.distance, snapshot.stats["fingerprints"], snapshot.stats["ids"])
        _simstore._check_shard(os.fspath(path), astuple(self), astuple(shard), has)
        return snapshot


def _sync(folder: str | os.PathLike[str]) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def folder_of(number: int, run: str) -> str:
    """The name of a shard's folder."""
    return _simstore._shard_folder(number, run)


def begin(folder: str | os.PathLike[str], replace: bool = False) -> str:
    """Makes a folder ready for the shards of a run, and removes what failed ones have left; returns what the run is called.

    Raises
    ------
    FileExistsError
        If the folder has shards and they are not to be replaced, or if it has anything else.
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
    """Writes a shard: a store that appears as a whole, whoever else tries at the same time.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Pairs that are equal have to be in the same shard, or are found twice.
    folder : str or os.PathLike
        Where the shards of the set are.
    run : str
        What `begin` returned.
    number : int
        Which shard it is, from 0.
    fingerprint : str
        The column: int64 or uint64 for 64 bits, 16 bytes each for 128. Nulls are counted and left out.
    id : str
        The column of the ids: integers from 0.
    bits, distance, codec, plan, profile, memory
        As for `simstore.Builder`.

    Yields
    ------
    pyarrow.RecordBatch
        One row, of the schema `WRITTEN`: what the shard holds, or the problem of its rows. A shard of no rows is not written.
    """
    name = folder_of(number, run)
    hidden = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    told: dict[str, Any] = {"number": number, "missing": 0}
    rows = iter(batches)
    try:
        builder = Builder(
            hidden, distance=distance, bits=bits, codec=codec, plan=plan, profile=profile, memory=memory
        )
        is_empty = True
        for batch in rows:
            fingerprints, ids, missing = _pairs(batch, fingerprint, id, bits)
            told["missing"] += missing
            if len(ids):
                builder.insert_many(fingerprints, ids)
                is_empty = False
        if not is_empty:
            stats = builder.finish().stats
            told |= {"folder": name, "fingerprints": stats["fingerprints"], "pairs": stats["ids"]}
            told["checksum"] = _rename(hidden, os.path.join(folder, name))
    except ValueError as error:
        # Told instead of raised: no other attempt would do better. Who hands over the rows is not left in the middle.
        told["problem"] = str(error)
        for _ in rows:
            pass
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    yield pa.RecordBatch.from_pylist([told], schema=WRITTEN)


def _pairs(
    batch: pa.RecordBatch, fingerprint: str, id: str, bits: Literal[64, 128]
) -> tuple[pa.Array, pa.Array, int]:
    """Fingerprints and ids as a builder takes them, and how many fingerprints are missing."""
    fingerprints, ids = whole_fingerprints(batch, fingerprint, bits), column_of(batch, id)
    if ids.null_count:
        raise ValueError(f"column `{id}`: {ids.null_count} ids are null; every row needs one")
    missing = fingerprints.null_count
    if missing:
        is_there = fingerprints.is_valid()
        fingerprints, ids = fingerprints.filter(is_there), ids.filter(is_there)
    return fingerprints, ids, missing


def whole_fingerprints(batch: pa.RecordBatch, name: str, bits: int) -> pa.Array:
    """A column of fingerprints, as uint64 or as 16 bytes of a fixed length."""
    column = fingerprints_of(batch, name, bits)
    if bits == 64:
        return column
    try:
        return column.cast(pa.binary(16))
    except pa.ArrowInvalid:
        raise ValueError(f"column `{name}`: fingerprints of 128 bits have 16 bytes, and some have not") from None


def _rename(hidden: str, path: str) -> str:
    """Gives a store its name, if no other attempt has done so; the checksum of the one that has it."""
    try:
        os.rename(hidden, path)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
    _sync(os.path.dirname(path))
    return _simstore._shard_checksum(path)


def merged(
    written: Iterable[dict[str, Any]], run: str, *, bits: int, distance: int, profile: str | None = None
) -> Shards:
    """The list of what tasks have written, from the rows that `build_shard` gives.

    Raises
    ------
    ValueError
        If the rows of a shard were not as they have to be.
    """
    rows = sorted(written, key=lambda row: int(row["number"]))
    for row in rows:
        if row["problem"] is not None:
            raise ValueError(row["problem"])
    fields = Shard.__dataclass_fields__
    shards = tuple(Shard(**{name: row[name] for name in fields}) for row in rows if row["folder"] is not None)
    return Shards(run, bits, distance, profile, sum(row["missing"] for row in rows), shards)
