"""Similar texts: the tasks of a search on a cluster.

Texts of the same set of features are one from the first step on: a *digest* of 16 bytes tells the set from all others. Then sets are
brought together by their sketches (`candidates`), and compared (`compared`). `simstore.spark.similar_pairs` spreads these steps over
a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from simstore import _simstore
from simstore._simstore import Profile, Table
from simstore.tasks.columns import column_of

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
MOMENT = pa.binary()
LED = pa.schema([("digest", pa.binary()), ("leader", pa.binary()), ("nearest", pa.binary()), ("similarity", pa.float64())])


def sketched(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """Sketches of texts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    text : str
        The column of the texts; a null is one without features.
    profile : Profile, optional
        What features are taken, instead of shingles.

    Yields
    ------
    pyarrow.RecordBatch
        All columns but the text, and ``digest``, which tells the set of features from all others; ``features``, their number;
        ``sketches``, a list of 8. These are null for a text without features, which is similar to none.
    """
    for batch in batches:
        made = _batch(_simstore._sketched(column_of(batch, text), profile), SKETCHED)
        others = batch.drop_columns(text)
        schema = pa.schema([*others.schema, *SKETCHED])
        yield pa.record_batch([*others.columns, *made.columns], schema=schema)


def feature_sets(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """The sets of features of texts, to be compared.

    Parameters as for `sketched`.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest``, and ``members``: the 64-bit hashes of all features, ascending and packed. Texts without features have no row.
    """
    for batch in batches:
        made = _batch(_simstore._feature_sets(column_of(batch, text), profile), FEATURE_SETS)
        yield made.filter(pc.is_valid(made.column("digest")))


def candidates(
    batches: Batches, *, similar: float, chosen: tuple[int, int, int], sketch: int
) -> Iterator[pa.RecordBatch]:
    """Chooses the pairs of sets to compare, from the pairs that the join of a sketch has found.

    Each pair is a candidate of one sketch alone, the first that brings it together.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest``, ``features`` and ``sketches`` of each of the two, named with ``_a`` and ``_b``. Two that have the same
        sketch are there both ways round, others once.
    similar : float
        The similarity that is asked for.
    chosen : tuple of int
        Which sketches are joined, as ``choose`` says.
    sketch : int
        The number of the sketch, from 0.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a`` and ``digest_b``, the lesser first.
    """
    for batch in batches:
        a, b = (tuple(batch.column(f"{name}_{side}") for name in ("digest", "features", "sketches")) for side in "ab")
        yield _batch(_simstore._candidates(a, b, similar, chosen, sketch), CANDIDATES)


def compared(batches: Batches, *, similar: float) -> Iterator[pa.RecordBatch]:
    """Compares candidates by their features.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest_a``, ``digest_b``, and the ``members`` of both, as ``members_a`` and ``members_b``.
    similar : float
        The similarity that is asked for.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a``, ``digest_b`` and ``similarity`` of those that are similar.
    """
    for batch in batches:
        similarity = pa.array(_simstore._compared(batch.column("members_a"), batch.column("members_b"), similar))
        columns = [batch.column("digest_a"), batch.column("digest_b"), similarity]
        made = pa.record_batch([column.cast(field.type) for column, field in zip(columns, SIMILAR)], schema=SIMILAR)
        yield made.filter(pc.is_valid(similarity))


def led(batches: Batches, *, most: int = 50_000_000) -> Iterator[pa.RecordBatch]:
    """Stars: a set is a leader, unless a more preferred leader is similar to it; of several, the most preferred leads it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``root``, ``digest``, ``other`` and ``similarity``: the rows of one component (all rows with one root) after
        the other. Of each first its sets, the most preferred first, where ``other`` is null; then its pairs.
    most : int
        Pairs of a component that are in memory together; more are an error.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest`` of a set that has a leader; ``leader``, the digest of that one; ``nearest``, the digest of the most similar leader (of
        equally similar ones the most preferred), and the ``similarity`` to it.
    """
    stars = _simstore._Stars(most)
    for batch in batches:
        yield _batch(stars.push(*(batch.column(name) for name in ("root", "digest", "other", "similarity"))), LED)
    yield _batch(stars.finish(), LED)


def moments(batches: Batches, moment: str, rule: str = "newest") -> Iterator[pa.RecordBatch]:
    """Replaces values by bytes that sort as a rule of `simstore.dedup` prefers the values: a missing one last.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    moment : str
        The column, of texts.
    rule : {"newest", "largest", "smallest"}
        "newest": numbers come by their value, then others, as ISO 8601 dates of one time zone are in order. "largest" and "smallest"
        compare numbers alone.

    Yields
    ------
    pyarrow.RecordBatch
        The same columns; the column of the values is binary.
    """
    for batch in batches:
        keys = pa.array(_simstore._value_keys(column_of(batch, moment), rule))
        at = batch.schema.get_field_index(moment)
        yield batch.set_column(at, pa.field(moment, MOMENT), keys)


def _batch(made: Table, schema: pa.Schema) -> pa.RecordBatch:
    """A table as one batch."""
    columns = [pa.array(made[name]) for name in schema.names]
    return pa.record_batch(columns, schema=schema)
