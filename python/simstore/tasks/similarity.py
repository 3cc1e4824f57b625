"""Similar texts: the tasks of a search on a cluster.

Texts with the same set of features count as one text in all steps: a *digest* of 16 bytes identifies the set. Bands of MinHash
signatures find pairs of sets (`candidates`), which are then compared (`compared`). `simstore.spark.similar_pairs` distributes these steps
over a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from simstore import _simstore
from simstore._simstore import Profile, Table
from simstore.tasks.columns import get_column

Batches = Iterable[pa.RecordBatch]

SKETCHED = pa.schema(
    [
        ("digest", pa.binary()),
        ("features", pa.int32()),
        ("sketches", pa.list_(pa.int64())),
    ]
)
FEATURE_SETS = pa.schema([("digest", pa.binary()), ("members", pa.binary())])
CANDIDATES = pa.schema([("digest_a", pa.binary()), ("digest_b", pa.binary())])
SIMILAR = pa.schema([*CANDIDATES, ("similarity", pa.float64())])
#: Type of the bytes that replace values in `moments`.
SORT_KEY_TYPE = pa.binary()
LED = pa.schema([("digest", pa.binary()), ("leader", pa.binary()), ("nearest", pa.binary()), ("similarity", pa.float64())])


def sketched(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """Computes the MinHash bands of texts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    text : str
        The column of the texts. A null has no features.
    profile : Profile, optional
        The profile of the features, instead of shingles.

    Yields
    ------
    pyarrow.RecordBatch
        All columns except the text, and ``digest``, which identifies the set of features; ``features``, their number; and ``sketches``, a
        list of 8 bands. They are null for a text without features, which is similar to no other text.
    """
    for batch in batches:
        made = _to_batch(_simstore._sketched(get_column(batch, text), profile), SKETCHED)
        others = batch.drop_columns(text)
        schema = pa.schema([*others.schema, *SKETCHED])
        yield pa.record_batch([*others.columns, *made.columns], schema=schema)


def feature_sets(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """Returns the sets of features of texts, for `compared`.

    The parameters are the same as for `sketched`.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest``, and ``members``: the 64-bit hashes of all features, ascending and packed. Texts without features have no row.
    """
    for batch in batches:
        made = _to_batch(_simstore._feature_sets(get_column(batch, text), profile), FEATURE_SETS)
        yield made.filter(pc.is_valid(made.column("digest")))


def candidates(
    batches: Batches, *, similar: float, chosen: tuple[int, int, int], sketch: int
) -> Iterator[pa.RecordBatch]:
    """Chooses the pairs of sets to compare, from the pairs that the join of a band found.

    Each pair is a candidate of one band only: the first band that finds it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest``, ``features`` and ``sketches`` of both sets, with suffixes ``_a`` and ``_b``. A pair with equal bands
        must be there in both orders, another pair once.
    similar : float
        The threshold.
    chosen : tuple of int
        The choice of joined bands: how many bands, the distance for each band, and the distance over all bands together.
    sketch : int
        The number of the band, from 0.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a`` and ``digest_b``, the smaller first.
    """
    for batch in batches:
        a, b = (tuple(batch.column(f"{name}_{side}") for name in ("digest", "features", "sketches")) for side in "ab")
        yield _to_batch(_simstore._candidates(a, b, similar, chosen, sketch), CANDIDATES)


def compared(batches: Batches, *, similar: float) -> Iterator[pa.RecordBatch]:
    """Compares candidates by their features.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest_a``, ``digest_b``, and the ``members`` of both, as ``members_a`` and ``members_b``.
    similar : float
        The threshold.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a``, ``digest_b`` and ``similarity`` of the similar pairs.
    """
    for batch in batches:
        similarity = pa.array(_simstore._compared(batch.column("members_a"), batch.column("members_b"), similar))
        columns = [batch.column("digest_a"), batch.column("digest_b"), similarity]
        made = pa.record_batch([column.cast(field.type) for column, field in zip(columns, SIMILAR)], schema=SIMILAR)
        yield made.filter(pc.is_valid(similarity))


def led(batches: Batches, *, most: int = 50_000_000) -> Iterator[pa.RecordBatch]:
    """Computes stars. A set is a leader unless a more preferred leader is similar to it. The most preferred similar leader leads it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``root``, ``digest``, ``other`` and ``similarity``. Rows of a component (with the same root) are contiguous: first
        its sets, the most preferred first, with ``other`` null; then its pairs.
    most : int
        Maximum number of pairs of a component, which are in memory together; more are an error.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest`` of a set with a leader; ``leader``, the digest of its leader; ``nearest``, the digest of the most similar leader (among
        equally similar leaders, the most preferred); and the ``similarity`` to the nearest.
    """
    stars = _simstore._Stars(most)
    for batch in batches:
        yield _to_batch(stars.push(*(batch.column(name) for name in ("root", "digest", "other", "similarity"))), LED)
    yield _to_batch(stars.finish(), LED)


def moments(batches: Batches, moment: str, rule: str = "newest") -> Iterator[pa.RecordBatch]:
    """Replaces values by bytes that sort by the preference of a rule of `simstore.dedup`. Missing values come last.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    moment : str
        The column, of texts.
    rule : {"newest", "largest", "smallest"}
        "newest" compares numbers by value, and other texts as ISO 8601 dates of one time zone. "largest" and "smallest" compare only
        numbers.

    Yields
    ------
    pyarrow.RecordBatch
        The same columns; the column of the values is binary.
    """
    for batch in batches:
        keys = pa.array(_simstore._value_keys(get_column(batch, moment), rule))
        at = batch.schema.get_field_index(moment)
        yield batch.set_column(at, pa.field(moment, SORT_KEY_TYPE), keys)


def _to_batch(made: Table, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a table as one batch."""
    columns = [pa.array(made[name]) for name in schema.names]
    return pa.record_batch(columns, schema=schema)
