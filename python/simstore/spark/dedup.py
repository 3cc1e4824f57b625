"""Near-duplicates taken out of a DataFrame."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

import simstore
from simstore.spark import _columns, _preference
from simstore.spark._schemas import schema_of
from simstore.spark._stored import STORED, Stores
from simstore.spark.clusters import EDGES, components, merged
from simstore.spark.fingerprints import fingerprint
from simstore.spark.kept import keep as keep_made
from simstore.spark.pairs import at_places, chosen, collapsed
from simstore.spark.similar import Search
from simstore.tasks import joining, similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# What the result has besides the columns of the input, and a distance or a similarity.
ADDED = ["cluster", "keep", "kept_id"]
# The id of a row while it is joined.
OF = "simstore_id"


def dedup(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    similar: float | None = None,
    distance: int | None = None,
    *,
    recall: float = 0.95,
    keep: str = "smallest-id",
    against: str | Sequence[str] | None = None,
    profile: simstore.Profile | str | None = None,
    drop_duplicates: bool = False,
    parts: int | None = None,
) -> DataFrame:
    """The rows of a DataFrame with what is near each of them; or those that are left when duplicates are taken out.

    Texts are near each other if they are similar (`similar`, 0.8 by default: `similar_pairs`), or if their fingerprints are within a
    distance (`distance`: `near_pairs`). By similarity each row goes to the most preferred one that is similar to it and is kept, as on one
    machine: all that is taken out is similar to what is kept for it. By distance, clusters are what chains of near fingerprints connect.

    What is made on the way is persisted: about 150 bytes a row by similarity, 30 by distance, until `release`. By similarity, the pairs of
    what chains of similar texts connect come to one task: up to 50 million pairs, some 40 bytes each; more end the job with an error.

    Parameters
    ----------
    df : DataFrame
        Read several times: to look for ids that are there twice, for what is near what, and by the result.
    text : str
        The column of the texts: of strings. A null, and a text of white space, is near nothing, and is kept. By distance, so
        is a text without letters and digits; by similarity, such a text is near the same text alone.
    id : str
        The column of the ids, which tell rows apart: of any type that has an order. One that is null, or is there twice, is an error.
    similar : float, optional
        As for `similar_pairs`; not together with `distance`.
    distance : int, optional
        In bits of the fingerprints, up to 16 of 64, 32 of 128.
    recall : float
        As for `similar_pairs`.
    keep : str
        Which row of a cluster is kept: "smallest-id", "longest" (of the text in bytes), "newest:COLUMN" (numbers by value, dates and
        times as ISO 8601 texts are in order), "largest:COLUMN" or "smallest:COLUMN" (numbers alone; a row without one comes last), or
        "none". Of several, the one with the smallest id. There is no "first": rows of a
        DataFrame have no order.
    against : path or list of paths, optional
        Stores, in folders that the driver and all executors see: what is near something stored is not kept. By similarity they are such
        as ``simstore add --similar`` makes: exact with texts, an estimate without. By distance they have fingerprints of the profile.
    profile : Profile or str, optional
        By similarity, what features are compared, instead of shingles; by distance, how texts become fingerprints.
    drop_duplicates : bool
        Whether only the rows that are kept are given, with the columns of `df`.
    parts : int, optional
        As for `near_pairs`.

    Returns
    -------
    DataFrame
        The rows of `df` with further columns: ``cluster``, the smallest id of the cluster; ``keep``; ``kept_id``, the id of the row that
        is kept for it, its own for that one; and ``similarity`` (double) or ``distance`` (int) to that. A row that is near no other has
        no cluster and is kept: the other three are null. With "none" nothing is kept of a cluster, and ``kept_id`` and what comes after
        are null.

        With `against` there are also ``stored``, what that is called which is stored (its name, its id, or its fingerprint in hexadecimal
        digits), and ``store``, the path of the store that has it: then nothing is kept of the cluster, ``kept_id`` is null, and the
        distance or similarity is that to what is stored.

    Raises
    ------
    ValueError, TypeError
        For columns that are not there or of another type, options that make no sense together, numbers out of range.

    Examples
    --------
    >>> from simstore.spark import dedup
    >>> rows = [(1, "To be, or not to be"), (2, "to be or not to be"), (3, "nothing like it")]
    >>> pages = spark.createDataFrame(rows, "id bigint, text string")
    >>> dedup(pages, similar=0.8).drop("text").orderBy("id").show()
    +---+-------+-----+-------+----------+
    | id|cluster| keep|kept_id|similarity|
    +---+-------+-----+-------+----------+
    |  1|      1| true|      1|       1.0|
    |  2|      1|false|      1|       1.0|
    |  3|   NULL| true|   NULL|      NULL|
    +---+-------+-----+-------+----------+
    <BLANKLINE>
    """
    how = "similarity" if distance is None else "distance"
    stores = Stores(against)
    added = [*ADDED, how, *(["stored", "store"] if stores.paths else [])]
    _check(df, text, id, similar, distance, keep, added)
    rows = _preference.ranked(df, text, id, keep)
    if distance is None:
        similar, profile, rows = stores.most_similar(rows, similar, profile, keep)
        members = _by_similarity(Search(rows, similar, recall, profile, parts), keep)
    else:
        members = _by_distance(rows, distance, stores.profile(profile), parts, stores)
    decided = _decided(members, how, keep, stores)
    found = df.join(decided, _columns.column(id) == F.col(OF), "left").drop(OF)
    found = found.withColumn("keep", F.coalesce("keep", F.lit(True)))
    return found.where("keep").select(*map(_columns.column, df.columns)) if drop_duplicates else found


def _check(
    df: DataFrame, text: str, id: str, similar: float | None, distance: int | None, keep: str, added: list[str]
) -> None:
    if similar is not None and distance is not None:
        raise ValueError(
            "option `distance` is about fingerprints, option `similar` about the texts themselves: leave out one of them"
        )
    of_text = _columns.type_of(df, text)
    if not isinstance(of_text, T.StringType):
        raise TypeError(f"column `{text}` is {of_text.simpleString()}: texts are string")
    _preference.check(keep, df)
    # Spark does not tell upper case from lower.
    names = {name.lower() for name in df.columns}
    there = [name for name in [*added, OF] if name.lower() in names]
    if there:
        raise ValueError(f"there is a column `{there[0]}`, which the result has, too: rename it before")
    ids = df.select(_columns.ids(df, id).alias("id")).groupBy("id").count()
    twice = ids.where("count > 1").first()
    if twice is not None:
        raise ValueError(f"{twice[1]} rows have the id {twice[0]!r} in column `{id}`: ids tell rows apart")


def _by_similarity(search: Search, keep: str) -> DataFrame:
    """All rows that have features: id, rank, root (what stands for the cluster) and similarity to that."""
    pairs = keep_made(search.similar_sets())
    roots = components(pairs.select(F.col("digest_a").alias("a"), F.col("digest_b").alias("b")))
    documents = search.documents.select("id", "rank", "digest")
    if keep == "none":
        led = roots.select(
            F.col("member").alias("digest"), F.col("root").alias("leader"), F.lit(1.0).alias("similarity")
        )
    else:
        in_pairs = documents.join(roots, F.col("digest") == F.col("member"))
        sets = in_pairs.groupBy("root", "digest").agg(_preference.best().alias("best"))
        best = sets.schema["best"].dataType
        of_pairs = pairs.join(roots, F.col("digest_a") == F.col("member")).select(
            "root",
            F.col("digest_a").alias("digest"),
            F.lit(None).cast(best).alias("best"),
            F.col("digest_b").alias("other"),
            "similarity",
        )
        of_sets = sets.withColumns({"other": F.lit(None).cast("binary"), "similarity": F.lit(None).cast("double")})
        # A component comes to one task: its sets first, the most preferred first, then its pairs.
        rows = of_sets.unionByName(of_pairs).repartition("root")
        rows = rows.sortWithinPartitions("root", F.col("other").isNotNull(), "best").drop("best")
        led = rows.mapInArrow(similarity.led, schema_of(similarity.LED))
    members = documents.join(led, "digest", "left").select(
        "id",
        "rank",
        F.coalesce("leader", "digest").alias("root"),
        F.coalesce("similarity", F.lit(1.0)).alias("similarity"),
        F.lit(None).cast(STORED).alias("stored"),
    )
    if search.stored is None:
        return members
    # What is similar to something stored is in a cluster with what is most similar to the same.
    root = F.concat(*(F.encode(part, "utf-8") for part in (F.lit("stored"), F.col("stored.store").cast("string"))), "stored.id")
    name = F.struct("stored.store", "stored.name").alias("stored")
    return members.unionByName(search.stored.select("id", "rank", root.alias("root"), "stored.similarity", name))


def _by_distance(
    rows: DataFrame, distance: int, profile: simstore.Profile | str | None, parts: int | None, stores: Stores
) -> DataFrame:
    """The rows that chains of near fingerprints connect, or that are near something stored: id, rank, root, fingerprint and stored."""
    made = fingerprint(rows, "text", profile).drop("text")
    made = keep_made(stores.nearest(made.where("fingerprint is not null"), distance))
    of, buckets = chosen(made, "fingerprint", distance, parts, None)
    places = at_places(collapsed(made.select("fingerprint"), of, buckets), of)
    forests = places.mapInArrow(partial(joining.connect, parts=of), EDGES)
    roots = merged(forests, _columns.width(made, "fingerprint"), None)
    members = made.join(roots, F.col("fingerprint") == F.col("member"), "left")
    return members.select("id", "rank", F.coalesce("root", "fingerprint").alias("root"), "fingerprint", "stored")


def _decided(members: DataFrame, how: str, keep: str, stores: Stores) -> DataFrame:
    """What becomes of the rows that are in clusters."""
    others = ["fingerprint"] if how == "distance" else []
    heads = members.groupBy("root").agg(
        F.count("*").alias("members"),
        F.min("id").alias("cluster"),
        _preference.best(*others).alias("best"),
        F.min("stored").alias("nearest"),
    )
    both = members.join(heads.where("members > 1 or nearest is not null"), "root")
    is_stored = F.col("nearest").isNotNull()
    near = F.col("similarity")
    if how == "distance":
        of_kept = F.when(is_stored, F.col("nearest.fingerprint")).otherwise(F.col("best.fingerprint"))
        near = _columns.distance(F.col("fingerprint"), of_kept, _columns.width(members, "fingerprint"))
    nothing = F.lit(keep == "none") | is_stored
    columns = [
        F.col("id").alias(OF),
        F.col("cluster"),
        (~nothing & (F.col("id") == F.col("best.id"))).alias("keep"),
        F.when(~nothing, F.col("best.id")).alias("kept_id"),
        F.when(is_stored | F.lit(keep != "none"), near).alias(how),
    ]
    if stores.paths:
        paths = F.array(*map(F.lit, stores.paths))
        columns += [F.col("nearest.name").alias("stored"), F.when(is_stored, F.get(paths, F.col("nearest.store"))).alias("store")]
    return both.select(*columns)
