"""Near-duplicate removal for DataFrames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

import simstore
from simstore.spark import _columns, _keep_rule
from simstore.spark._persist import persist
from simstore.spark._reference_stores import STORED_TYPE, ReferenceStores
from simstore.spark._schemas import spark_schema
from simstore.spark.clusters import EDGES, components, merge_forests
from simstore.spark.fingerprints import fingerprint
from simstore.spark.pairs import choose_join, pack_by_bucket, scatter_to_places
from simstore.spark.similar import SimilaritySearch
from simstore.tasks import joining, similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# Columns that the result adds to the user's rows. The column `similarity` or `distance` follows.
ADDED_COLUMNS = ["cluster", "is_kept", "representative", "duplicate_of"]
# Temporary column with the id of a row. The decisions are joined with the user's rows by this column.
ROW_ID = "simstore_id"


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
    """Finds near-duplicate rows. Returns all rows with columns that describe them, or only the rows without near-duplicates.

    Texts are near each other if they are similar (option `similar`, 0.8 by default; see `similar_pairs`), or if their fingerprints are
    within a distance (option `distance`; see `near_pairs`). By similarity, each row joins the cluster of the most preferred kept row that
    is similar to it, as on one machine. So every removed row is similar to a kept row. By distance, clusters are chains of near
    fingerprints.

    Intermediate rows are persisted until `release`: about 150 bytes a row by similarity, 30 bytes by distance. By similarity, a component
    is a group of texts connected by chains of similar texts. All pairs of a component go to one task: up to 50 million pairs, about 40
    bytes each. A larger component ends the job with an error.

    Parameters
    ----------
    df : DataFrame
        Read several times: to look for repeated ids, to find near rows, and for the result.
    text : str
        Column of the texts, of type string. If a text is null or only white space, it is near no other text, and its row is kept. By
        distance, this also applies to a text without letters and digits. By similarity, such a text is near only the same text.
    id : str
        Column of the ids, of any type that Spark can order. Null and repeated ids are errors.
    similar : float, optional
        Similarity threshold; see `similar_pairs`. Cannot be combined with `distance`.
    distance : int, optional
        Maximum distance, in bits: up to 16 for fingerprints of 64 bits, and 32 for 128 bits.
    recall : float
        See `similar_pairs`.
    keep : str
        Rule that chooses the kept row of a cluster. Among equally preferred rows, the row with the smallest id is kept.

        - "smallest-id": the row with the smallest id;
        - "longest": the row with the longest text, in bytes;
        - "newest:COLUMN": the row with the largest value. Numbers are compared by value; dates and times sort correctly as ISO 8601 texts;
        - "largest:COLUMN" or "smallest:COLUMN": the row with the largest or the smallest number. Rows without a number come last;
        - "none": no row of a cluster is kept.

        There is no "first", because rows of a DataFrame have no order.
    against : path or list of paths, optional
        Paths of stores that the driver and all executors can read. Rows near a stored document are not kept. By similarity, use stores of
        similar documents, as ``simstore add --similar`` and `simstore.SimilarStore` make them. Similarities to stored documents are exact
        if the store has texts, otherwise estimates. By distance, use stores of fingerprints of the same profile.
    profile : Profile or str, optional
        By similarity, the profile whose features are compared, instead of shingles. By distance, the profile of the fingerprints.
    drop_duplicates : bool
        Whether to return only the kept rows, with the columns of `df`.
    parts : int, optional
        See `near_pairs`.

    Returns
    -------
    DataFrame
        The rows of `df` with additional columns, named as in the tables of `simstore.dedup`:

        - ``cluster``: the smallest id of the cluster. If a row is near no other row, this column and all columns below except ``is_kept``
          are null;
        - ``is_kept``: whether the row is kept;
        - ``representative``: the id of the cluster's kept row, or the smallest id of the cluster if `keep` is "none";
        - ``duplicate_of``: for a removed row, the id of the nearest kept row. By similarity, this is the representative of another cluster
          if that is more similar. Among equally similar rows, it is the most preferred;
        - ``similarity`` (double) or ``distance`` (int) to ``duplicate_of``: null for a kept row, and if `keep` is "none".

        With `against` there are two more columns: ``stored``, the name of the near stored document (or its id, or its fingerprint in
        hexadecimal digits), and ``store``, the path of its store. If a row of a cluster is near a stored document, no row of the cluster
        is kept, ``representative`` and ``duplicate_of`` are null, and the similarity or distance refers to the stored document.

    Raises
    ------
    ValueError, TypeError
        If columns are missing or of another type, options contradict each other, or numbers are out of range.

    Examples
    --------
    >>> from simstore.spark import dedup
    >>> rows = [(1, "To be, or not to be"), (2, "to be or not to be"), (3, "nothing like it")]
    >>> pages = spark.createDataFrame(rows, "id bigint, text string")
    >>> dedup(pages, similar=0.8).drop("text").orderBy("id").show()
    +---+-------+-------+--------------+------------+----------+
    | id|cluster|is_kept|representative|duplicate_of|similarity|
    +---+-------+-------+--------------+------------+----------+
    |  1|      1|   true|             1|        NULL|      NULL|
    |  2|      1|  false|             1|           1|       1.0|
    |  3|   NULL|   true|          NULL|        NULL|      NULL|
    +---+-------+-------+--------------+------------+----------+
    <BLANKLINE>
    """
    metric = "similarity" if distance is None else "distance"
    stores = ReferenceStores(against)
    added = [*ADDED_COLUMNS, metric, *(["stored", "store"] if stores.paths else [])]
    _check_arguments(df, text, id, similar, distance, keep, added)
    rows = _keep_rule.with_ranks(df, text, id, keep)
    if distance is None:
        similar, profile, rows = stores.with_most_similar(rows, similar, profile, keep)
        members = _members_by_similarity(SimilaritySearch(rows, similar, recall, profile, parts), keep)
    else:
        members = _members_by_distance(rows, distance, stores.common_profile(profile), parts, stores)
    decisions = _decide(members, metric, keep, stores)
    result = df.join(decisions, _columns.column(id) == F.col(ROW_ID), "left").drop(ROW_ID)
    # Rows without a near row have no decision.
    result = result.withColumn("is_kept", F.coalesce("is_kept", F.lit(True)))
    return result.where("is_kept").select(*map(_columns.column, df.columns)) if drop_duplicates else result


def _check_arguments(
    df: DataFrame, text: str, id: str, similar: float | None, distance: int | None, keep: str, added: list[str]
) -> None:
    if similar is not None and distance is not None:
        raise ValueError(
            "option `distance` compares fingerprints, option `similar` compares texts: leave out one of them"
        )
    text_type = _columns.column_type(df, text)
    if not isinstance(text_type, T.StringType):
        raise TypeError(f"column `{text}` is {text_type.simpleString()}: texts are string")
    _keep_rule.check_rule(keep, df)
    # Column names in Spark ignore case.
    names = {name.lower() for name in df.columns}
    conflicts = [name for name in [*added, ROW_ID] if name.lower() in names]
    if conflicts:
        raise ValueError(f"there is a column `{conflicts[0]}`, which the result has, too: rename it before")
    id_counts = df.select(_columns.id_column(df, id).alias("id")).groupBy("id").count()
    repeated = id_counts.where("count > 1").first()
    if repeated is not None:
        raise ValueError(f"{repeated[1]} rows have the id {repeated[0]!r} in column `{id}`: ids tell rows apart")


def _members_by_similarity(search: SimilaritySearch, keep: str) -> DataFrame:
    """Returns the rows that have features, with these columns:

    - ``id`` of the row, and ``rank``, its rank by the keep rule;
    - ``root``: the digest of the feature set that represents the row's cluster;
    - ``nearest``: the digest of the representative that is most similar to the row, of its own cluster or of another one;
    - ``similarity``: the similarity to ``nearest``;
    - ``stored``: the most similar stored document, or null.

    If `keep` is "none", all rows of a connected component form a cluster without a representative. Then ``root`` and ``nearest`` are a
    digest that identifies the component, and ``similarity`` is 1.

    For any `keep`, if the row is similar to a stored document, ``root`` identifies this document, ``nearest`` is null, and ``similarity``
    is the similarity to this document.
    """
    pairs = persist(search.similar_set_pairs())
    roots = components(pairs.select(F.col("digest_a").alias("a"), F.col("digest_b").alias("b")))
    documents = search.documents.select("id", "rank", "digest")
    if keep == "none":
        assignments = roots.select(
            F.col("member").alias("digest"),
            F.col("root").alias("leader"),
            F.col("root").alias("nearest"),
            F.lit(1.0).alias("similarity"),
        )
    else:
        in_pairs = documents.join(roots, F.col("digest") == F.col("member"))
        sets = in_pairs.groupBy("root", "digest").agg(_keep_rule.most_preferred().alias("best"))
        best_type = sets.schema["best"].dataType
        pair_rows = pairs.join(roots, F.col("digest_a") == F.col("member")).select(
            "root",
            F.col("digest_a").alias("digest"),
            F.lit(None).cast(best_type).alias("best"),
            F.col("digest_b").alias("other"),
            "similarity",
        )
        set_rows = sets.withColumns({"other": F.lit(None).cast("binary"), "similarity": F.lit(None).cast("double")})
        # One task receives a whole component: first its sets, the most preferred first, then its pairs.
        rows = set_rows.unionByName(pair_rows).repartition("root")
        rows = rows.sortWithinPartitions("root", F.col("other").isNotNull(), "best").drop("best")
        assignments = rows.mapInArrow(similarity.led, spark_schema(similarity.LED))
    # A set without a similar set has no assignment: it is a cluster of its own.
    members = documents.join(assignments, "digest", "left").select(
        "id",
        "rank",
        F.coalesce("leader", "digest").alias("root"),
        F.coalesce("nearest", "digest").alias("nearest"),
        F.coalesce("similarity", F.lit(1.0)).alias("similarity"),
        F.lit(None).cast(STORED_TYPE).alias("stored"),
    )
    if search.stored is None:
        return members
    # Rows with the same most similar stored document form a cluster.
    root = F.concat(*(F.encode(part, "utf-8") for part in (F.lit("stored"), F.col("stored.store").cast("string"))), "stored.id")
    name = F.struct("stored.store", "stored.name").alias("stored")
    stored = search.stored.select("id", "rank", root.alias("root"), F.lit(None).cast("binary").alias("nearest"), "stored.similarity", name)
    return members.unionByName(stored)


def _members_by_distance(
    rows: DataFrame, distance: int, profile: simstore.Profile | str | None, parts: int | None, stores: ReferenceStores
) -> DataFrame:
    """Returns the rows that have a fingerprint, with these columns:

    - ``id``, ``rank`` and ``fingerprint`` of the row;
    - ``root``: a fingerprint that identifies the row's cluster;
    - ``stored``: the nearest stored document, or null.
    """
    documents = fingerprint(rows, "text", profile).drop("text")
    documents = persist(stores.with_nearest(documents.where("fingerprint is not null"), distance))
    join_parts, buckets = choose_join(documents, "fingerprint", distance, parts, None)
    places = scatter_to_places(pack_by_bucket(documents.select("fingerprint"), join_parts, buckets), join_parts)
    forests = places.mapInArrow(partial(joining.connect, parts=join_parts), EDGES)
    roots = merge_forests(forests, _columns.fingerprint_bits(documents, "fingerprint"), None)
    members = documents.join(roots, F.col("fingerprint") == F.col("member"), "left")
    return members.select("id", "rank", F.coalesce("root", "fingerprint").alias("root"), "fingerprint", "stored")


def _decide(members: DataFrame, metric: str, keep: str, stores: ReferenceStores) -> DataFrame:
    """Returns the rows that are near another row or a stored document: the columns that `dedup` adds to `df`, and the column `ROW_ID`.

    `members` is the result of `_members_by_similarity` or `_members_by_distance`, and `metric` is "similarity" or "distance" accordingly.
    """
    best_columns = ["fingerprint"] if metric == "distance" else []
    clusters = members.groupBy("root").agg(
        F.count("*").alias("members"),
        F.min("id").alias("cluster"),
        _keep_rule.most_preferred(*best_columns).alias("best"),
        F.min("stored").alias("nearest_stored"),
    )
    rows = members.join(clusters.where("members > 1 or nearest_stored is not null"), "root")
    is_stored = F.col("nearest_stored").isNotNull()
    if metric == "distance":
        # All rows near a row are in its cluster, and a cluster has one kept row.
        nearest_id = F.col("best.id")
        nearest_fingerprint = F.when(is_stored, F.col("nearest_stored.fingerprint")).otherwise(F.col("best.fingerprint"))
        bits = _columns.fingerprint_bits(members, "fingerprint")
        measure = _columns.hamming_distance(F.col("fingerprint"), nearest_fingerprint, bits)
    else:
        kept = clusters.select(F.col("root").alias("nearest"), F.col("best.id").alias("nearest_id"))
        rows = rows.join(kept, "nearest", "left")
        nearest_id, measure = F.col("nearest_id"), F.col("similarity")
    is_kept = F.lit(keep != "none") & ~is_stored & (F.col("id") == F.col("best.id"))
    is_duplicate = F.lit(keep != "none") & ~is_stored & ~is_kept
    columns = [
        F.col("id").alias(ROW_ID),
        F.col("cluster"),
        is_kept.alias("is_kept"),
        F.when(~is_stored, F.col("best.id")).alias("representative"),
        F.when(is_duplicate, nearest_id).alias("duplicate_of"),
        F.when(is_stored | is_duplicate, measure).alias(metric),
    ]
    if stores.paths:
        paths = F.array(*map(F.lit, stores.paths))
        store = F.when(is_stored, F.get(paths, F.col("nearest_stored.store")))
        columns += [F.col("nearest_stored.name").alias("stored"), store.alias("store")]
    return rows.select(*columns)
