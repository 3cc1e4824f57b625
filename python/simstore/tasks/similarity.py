"""Search for similar texts in many tasks. `simstore.spark.similar_pairs` shows how the steps are combined.

Texts with the same set of features count as one text in all steps: a *digest* of 16 bytes identifies the set. `sketched` computes the
MinHash bands of each text. A join of the bands (`simstore.tasks.joining`) finds pairs of sets, and `candidates` selects the candidate
pairs. `feature_sets` computes the features of each set, and `compared` the exact similarity of each candidate. `led` assigns each set to a
representative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from simstore import _simstore
from simstore._simstore import Profile, Table
from simstore.tasks.columns import get_column

Batches = Iterable[pa.RecordBatch]

#: Schema of the columns that `sketched` adds. A sketch is one MinHash band of 64 bits.
SKETCHED = pa.schema(
    [
        ("digest", pa.binary()),
        ("features", pa.int32()),
        ("sketches", pa.list_(pa.int64())),
    ]
)
#: Schema of the batches of `feature_sets`.
FEATURE_SETS = pa.schema([("digest", pa.binary()), ("members", pa.binary())])
#: Schema of the batches of `candidates`.
CANDIDATES = pa.schema([("digest_a", pa.binary()), ("digest_b", pa.binary())])
#: Schema of the batches of `compared`.
SIMILAR = pa.schema([*CANDIDATES, ("similarity", pa.float64())])
#: Type of the sort keys that replace values in `moments`.
SORT_KEY_TYPE = pa.binary()
#: Schema of the batches of `led`.
LED = pa.schema([("digest", pa.binary()), ("leader", pa.binary()), ("nearest", pa.binary()), ("similarity", pa.float64())])


def sketched(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """Computes the MinHash bands of texts.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    text : str
        Column of the texts. A null has no features.
    profile : Profile, optional
        Profile of the features, instead of shingles.

    Yields
    ------
    pyarrow.RecordBatch
        The columns of the input without the text, followed by the columns of `SKETCHED`: ``digest``, which identifies the set of
        features; ``features``, the number of features; and ``sketches``, a list of the 8 bands. These three are null for a text without
        features, which is similar to no other text.
    """
    for batch in batches:
        bands = _to_batch(_simstore._minhash_bands(get_column(batch, text), profile), SKETCHED)
        others = batch.drop_columns(text)
        schema = pa.schema([*others.schema, *SKETCHED])
        yield pa.record_batch([*others.columns, *bands.columns], schema=schema)


def feature_sets(batches: Batches, text: str, *, profile: Profile | None = None) -> Iterator[pa.RecordBatch]:
    """Computes the sets of features of texts, for `compared`.

    The parameters are the same as for `sketched`.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest``, and ``members``: the 64-bit hashes of all features, ascending and packed. Texts without features have no row.
    """
    for batch in batches:
        sets = _to_batch(_simstore._feature_sets(get_column(batch, text), profile), FEATURE_SETS)
        yield sets.filter(pc.is_valid(sets.column("digest")))


def candidates(
    batches: Batches, *, similar: float, chosen: tuple[int, int, int], sketch: int
) -> Iterator[pa.RecordBatch]:
    """Selects candidate pairs of feature sets from the pairs that the join of one MinHash band found.

    If the joins of several bands find the same pair, only the call for the first of these bands selects it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest``, ``features`` and ``sketches`` of both sets, with suffixes ``_a`` and ``_b``. A pair whose two values of
        the joined band are equal must be in the batches in both orders. All other pairs must be there in one order.
    similar : float
        Similarity threshold, from 0 to 1.
    chosen : tuple of int
        Number of joined bands, maximum distance in one band, and maximum distance in all bands together, in bits.
    sketch : int
        Index of the joined band, from 0.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a`` and ``digest_b``, with ``digest_a`` less than ``digest_b``.
    """
    for batch in batches:
        a, b = (tuple(batch.column(f"{name}_{side}") for name in ("digest", "features", "sketches")) for side in "ab")
        yield _to_batch(_simstore._candidates(a, b, similar, chosen, sketch), CANDIDATES)


def compared(batches: Batches, *, similar: float) -> Iterator[pa.RecordBatch]:
    """Computes the exact similarity of each candidate pair of feature sets, and yields the similar pairs.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``digest_a`` and ``digest_b``, and ``members_a`` and ``members_b``: the column ``members`` of each set, which has
        the hashes of all features.
    similar : float
        Similarity threshold, from 0 to 1.

    Yields
    ------
    pyarrow.RecordBatch
        ``digest_a``, ``digest_b`` and ``similarity`` of the pairs whose similarity is at least `similar`.
    """
    for batch in batches:
        similarity = pa.array(_simstore._candidate_similarities(batch.column("members_a"), batch.column("members_b"), similar))
        columns = [batch.column("digest_a"), batch.column("digest_b"), similarity]
        pairs = pa.record_batch([column.cast(field.type) for column, field in zip(columns, SIMILAR)], schema=SIMILAR)
        yield pairs.filter(pc.is_valid(similarity))


def led(batches: Batches, *, most: int = 50_000_000) -> Iterator[pa.RecordBatch]:
    """Assigns each set of features to a representative set, which is called its *leader* here. A leader and its sets form a star.

    A set is a leader unless a more preferred leader is similar to it. Otherwise its leader is the most preferred of the leaders that are
    similar to it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With columns ``root``, ``digest``, ``other`` and ``similarity``. The rows of a component have the same ``root`` and are contiguous.
        First there is a row for each set, the most preferred set first, with ``other`` and ``similarity`` null. Then there is a row for
        each pair of similar sets, ``digest`` and ``other``.
    most : int
        Maximum number of pairs of a component, which are all in memory at once. A component with more pairs is an error.

    Yields
    ------
    pyarrow.RecordBatch
        One row for each set that is not a leader: its ``digest``; ``leader``, the digest of its leader; ``nearest``, the digest of the most
        similar leader (among equally similar leaders, the most preferred); and ``similarity``, the similarity to ``nearest``.
    """
    stars = _simstore._ComponentStars(most)
    for batch in batches:
        yield _to_batch(stars.push(*(batch.column(name) for name in ("root", "digest", "other", "similarity"))), LED)
    yield _to_batch(stars.finish(), LED)


def moments(batches: Batches, moment: str, rule: str = "newest") -> Iterator[pa.RecordBatch]:
    """Replaces the values of a column by sort keys for the rule of option ``keep`` of `simstore.dedup`.

    A sort key is a binary value. The smallest key belongs to the most preferred value; missing values come last.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    moment : str
        Column of the values, which are texts.
    rule : {"newest", "largest", "smallest"}
        "newest" compares numbers by value, and other texts as ISO 8601 dates of one time zone. "largest" and "smallest" compare only
        numbers.

    Yields
    ------
    pyarrow.RecordBatch
        The same columns. The column `moment` has the sort keys.
    """
    for batch in batches:
        keys = pa.array(_simstore._value_keys(get_column(batch, moment), rule))
        index = batch.schema.get_field_index(moment)
        yield batch.set_column(index, pa.field(moment, SORT_KEY_TYPE), keys)


def _to_batch(table: Table, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the columns of `schema` as one batch."""
    columns = [pa.array(table[name]) for name in schema.names]
    return pa.record_batch(columns, schema=schema)
