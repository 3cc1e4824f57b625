"""All pairs of rows with similar texts: candidates by MinHash bands, then exact verification (`simstore.tasks.similarity`)."""

from __future__ import annotations

import logging
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

import simstore
from simstore import _simstore
from simstore.spark import _columns
from simstore.spark._persist import persist
from simstore.spark._schemas import spark_schema
from simstore.spark.pairs import near_fingerprints
from simstore.tasks import similarity

logger = logging.getLogger("simstore.spark")


def similar_pairs(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    similar: float = 0.8,
    recall: float = 0.95,
    profile: simstore.Profile | str | None = None,
    *,
    parts: int | None = None,
) -> DataFrame:
    """Returns all pairs of rows with similar texts: the same pairs, bit for bit, as `simstore.dedup` on one machine.

    Two texts are similar if their Jaccard similarity is at least `similar`: the number of shingles in both texts, divided by the number of
    shingles in at least one of them. A shingle is three successive words. Each Han character and each kana is a word, and punctuation is
    ignored. A pair of exactly this similarity is found with a probability of at least `recall`, a more similar pair more often.

    Texts with the same shingles form one set. A join of the MinHash bands, as in `near_pairs`, finds candidate pairs of sets. Tasks then
    compute the exact similarity of each candidate. Each set is sent to a task once for each of its candidate pairs, with 8 bytes a
    shingle. The driver collects only the number of different sets.

    The bands are computed before the call returns, and are persisted (about 120 bytes a text) until `release`. The pairs are computed each
    time that the result is used.

    Parameters
    ----------
    df : DataFrame
        Read twice: once for bands and once for shingles.
    text : str
        Column of the texts, of type string. A text that is null or only white space is similar to no other text. A text without letters
        and digits is similar only to the same text.
    id : str
        Column of the ids: unique, without nulls, of any type that Spark can order.
    similar : float
        Similarity threshold. The maximum is 1. The minimum is 0.43 with the default `recall`; lower values need a smaller `recall`.
    recall : float
        Probability that a pair of exactly the threshold similarity is found; between 0 and 1.
    profile : Profile or str, optional
        Profile whose features are compared, instead of shingles.
    parts : int, optional
        See `near_pairs`.

    Returns
    -------
    DataFrame
        With columns ``id_a``, ``id_b`` (id_a < id_b) and ``similarity`` (double, from `similar` to 1), in no order. If n texts have the
        same shingles, the result has n (n - 1) / 2 pairs of these texts.

    Raises
    ------
    ValueError, TypeError
        If columns are missing or of another type, or numbers are out of range. A null id ends the job with an error.

    Examples
    --------
    >>> from simstore.spark import similar_pairs
    >>> rows = [(1, "To be, or not to be"), (2, "to be or not to be"), (3, "nothing like it")]
    >>> pages = spark.createDataFrame(rows, "id bigint, text string")
    >>> similar_pairs(pages, similar=0.8).show()
    +----+----+----------+
    |id_a|id_b|similarity|
    +----+----+----------+
    |   1|   2|       1.0|
    +----+----+----------+
    <BLANKLINE>
    """
    text_type = _columns.column_type(df, text)
    if not isinstance(text_type, T.StringType):
        raise TypeError(f"column `{text}` is {text_type.simpleString()}: texts are string")
    rows = df.select(_columns.id_column(df, id).alias("id"), _columns.column(text).alias("text"))
    search = SimilaritySearch(rows, similar, recall, profile, parts)
    repeated_sets = search.documents.groupBy("digest").count().where("count > 1")
    self_pair = [F.col("digest").alias("digest_a"), F.col("digest").alias("digest_b"), F.lit(1.0).alias("similarity")]
    set_pairs = search.similar_set_pairs().unionByName(repeated_sets.select(*self_pair))
    a, b = (search.documents.select(F.col("digest").alias(f"digest_{side}"), F.col("id").alias(side)) for side in "ab")
    pairs = set_pairs.join(a, "digest_a").join(b, "digest_b")
    is_ordered = F.col("a") < F.col("b")
    # Rows with the same set are paired in both orders, other rows in one order.
    pairs = pairs.where(is_ordered | (F.col("digest_a") != F.col("digest_b")) & (F.col("a") != F.col("b")))
    return pairs.select(
        F.when(is_ordered, F.col("a")).otherwise(F.col("b")).alias("id_a"),
        F.when(is_ordered, F.col("b")).otherwise(F.col("a")).alias("id_b"),
        "similarity",
    )


class SimilaritySearch:
    """Search for pairs of similar sets of features, by MinHash bands and exact verification.

    Attributes
    ----------
    documents : DataFrame
        Rows that have features and are not in `stored`. They have the columns of the input without ``text``, and in addition the columns
        that `simstore.tasks.similarity.sketched` adds, such as ``digest``, which identifies the set of features.
    sets : DataFrame
        One row for each distinct set of features in `documents`, with the columns that `simstore.tasks.similarity.sketched` adds.
    set_count : int
        Number of distinct sets of features in `documents` and `stored`.
    stored : DataFrame or None
        Rows that are similar to a stored document: the column ``stored`` is not null. None if the rows have no such column.
    """

    def __init__(
        self,
        rows: DataFrame,
        similar: float,
        recall: float,
        profile: simstore.Profile | str | None,
        parts: int | None,
    ) -> None:
        """Computes the MinHash bands of the texts in `rows`.

        The rows have the columns ``id`` and ``text``, and may have other columns, which remain in the attribute `documents`.
        """
        # Raises an error for invalid values before any row is read.
        _simstore._choose_bands(similar, recall, 0)
        self._similar, self._recall, self._parts = similar, recall, parts
        self._profile = simstore.Profile(profile) if isinstance(profile, str) else profile
        self._texts = rows.select("text")
        others = [field for field in rows.schema.fields if field.name != "text"]
        compute_bands = partial(similarity.sketched, text="text", profile=self._profile)
        with_bands = rows.mapInArrow(compute_bands, spark_schema(similarity.SKETCHED, *others))
        self.documents = persist(with_bands.where("digest is not null"))
        sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.stored = None
        if "stored" in rows.columns:
            # Rows similar to stored documents count for the choice of bands, as on one machine, but they are not compared with other rows.
            self.set_count = sets.count()
            self.stored = self.documents.where("stored is not null")
            self.documents = self.documents.where("stored is null")
            sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.sets = persist(sets)
        if self.stored is None:
            self.set_count = self.sets.count()

    def similar_set_pairs(self) -> DataFrame:
        """Returns each pair of similar sets of features once, with columns ``digest_a``, ``digest_b`` and ``similarity``.

        Either set of a pair may be the first.
        """
        return self._verified_pairs(self._candidate_pairs())

    def _candidate_pairs(self) -> DataFrame:
        """Joins the sets by each MinHash band, and returns the candidate pairs that the joins find, each pair once."""
        chosen = _simstore._choose_bands(self._similar, self._recall, self.set_count)
        band_count, distance, _ = chosen
        logger.info("%s different texts: %s bands are joined, within %s bits", self.set_count, band_count, distance)

        def band_candidates(band: int) -> DataFrame:
            value = F.col("sketches")[band]
            near = near_fingerprints(self.sets.select(value.alias("fingerprint")), distance, self._parts, self.set_count)
            a, b = (
                self.sets.select(
                    value.alias(side), *(F.col(name).alias(f"{name}_{side}") for name in ("digest", "features", "sketches"))
                )
                for side in "ab"
            )
            select = partial(similarity.candidates, similar=self._similar, chosen=chosen, sketch=band)
            return near.join(a, "a").join(b, "b").mapInArrow(select, spark_schema(similarity.CANDIDATES))

        return reduce(DataFrame.unionByName, map(band_candidates, range(band_count)))

    def _verified_pairs(self, candidates: DataFrame) -> DataFrame:
        """Returns the candidate pairs that the comparison of all features confirms as similar, with their exact similarity."""
        candidates = persist(candidates)
        digests = candidates.select(F.explode(F.array("digest_a", "digest_b")).alias("digest")).distinct()
        compute_sets = partial(similarity.feature_sets, text="text", profile=self._profile)
        feature_sets = self._texts.mapInArrow(compute_sets, spark_schema(similarity.FEATURE_SETS))
        feature_sets = feature_sets.join(digests, "digest", "left_semi").dropDuplicates(["digest"])
        a, b = (
            feature_sets.select(F.col("digest").alias(f"digest_{side}"), F.col("members").alias(f"members_{side}")) for side in "ab"
        )
        with_features = candidates.join(a, "digest_a").join(b, "digest_b")
        return with_features.mapInArrow(partial(similarity.compared, similar=self._similar), spark_schema(similarity.SIMILAR))
