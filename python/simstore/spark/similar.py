"""All pairs of similar texts."""

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
    shingles in at least one. A shingle is three successive words; a Han character or kana is a word, and punctuation is ignored. Pairs of
    exactly this similarity are found with at least the probability `recall`, and more similar pairs more often.

    Texts with the same shingles form one set. A join of the MinHash bands, as in `near_pairs`, finds candidate pairs of sets, and tasks
    compare them. Each set is sent to tasks once for each of its candidate pairs, with 8 bytes a shingle. The driver collects only the
    number of different sets.

    The bands are computed before the call returns, and are persisted (about 120 bytes a text) until `release`. The pairs are computed each
    time that the result is used.

    Parameters
    ----------
    df : DataFrame
        Read twice, for bands and for shingles.
    text : str
        The column of the texts, of type string. A text that is null or only white space is similar to no other. A text without letters and
        digits is similar only to the same text.
    id : str
        The column of the ids, of any type with an order. Each row needs its own id; none may be null.
    similar : float
        Up to 1, and at least 0.43 with the default `recall`; lower values need a smaller `recall`.
    recall : float
        Between 0 and 1.
    profile : Profile or str, optional
        The profile whose features are compared, instead of shingles.
    parts : int, optional
        As for `near_pairs`.

    Returns
    -------
    DataFrame
        With columns id_a, id_b (id_a < id_b) and similarity (double, from `similar` to 1), in no order. If n texts have the same
        shingles, there are n (n - 1) / 2 pairs of them.

    Raises
    ------
    ValueError, TypeError
        If columns are missing or of another type, or numbers are out of range. A null id ends the job.

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
        raise TypeError(f"column `{text}` is {of_text.simpleString()}: texts are string")
    rows = df.select(_columns.id_column(df, id).alias("id"), _columns.column(text).alias("text"))
    search = SimilaritySearch(rows, similar, recall, profile, parts)
    repeated = search.documents.groupBy("digest").count().where("count > 1")
    of_itself = [F.col("digest").alias("digest_a"), F.col("digest").alias("digest_b"), F.lit(1.0).alias("similarity")]
    of_sets = search.similar_set_pairs().unionByName(repeated.select(*of_itself))
    a, b = (search.documents.select(F.col("digest").alias(f"digest_{x}"), F.col("id").alias(x)) for x in "ab")
    both = of_sets.join(a, "digest_a").join(b, "digest_b")
    is_ordered = F.col("a") < F.col("b")
    # Two rows with the same set occur in both orders, others in one.
    both = both.where(is_ordered | (F.col("digest_a") != F.col("digest_b")) & (F.col("a") != F.col("b")))
    return both.select(
        F.when(is_ordered, F.col("a")).otherwise(F.col("b")).alias("id_a"),
        F.when(is_ordered, F.col("b")).otherwise(F.col("a")).alias("id_b"),
        "similarity",
    )


class SimilaritySearch:
    """The search for similar sets of features.

    Attributes
    ----------
    documents : DataFrame
        The rows that have features: all columns except the text, and digest, which identifies the set of features.
    sets : DataFrame
        The different sets: digest, features and sketches, as `simstore.tasks.similarity.sketched` returns them.
    distinct : int
        Number of different sets.
    stored : DataFrame or None
        The rows that the column stored marks as similar to a stored document. They are not in documents.
    """

    def __init__(
        self,
        rows: DataFrame,
        similar: float,
        recall: float,
        profile: simstore.Profile | str | None,
        parts: int | None,
    ) -> None:
        """Computes the bands of rows with columns id and text. Other columns are kept."""
        # Invalid values are refused before any row is read.
        _simstore._choose_sketches(similar, recall, 0)
        self._similar, self._recall, self._parts = similar, recall, parts
        self._profile = simstore.Profile(profile) if isinstance(profile, str) else profile
        self._texts = rows.select("text")
        others = [field for field in rows.schema.fields if field.name != "text"]
        sketch = partial(similarity.sketched, text="text", profile=self._profile)
        sketched = rows.mapInArrow(sketch, spark_schema(similarity.SKETCHED, *others))
        self.documents = persist(sketched.where("digest is not null"))
        sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.stored = None
        if "stored" in rows.columns:
            # Rows near stored documents count here, as on one machine, but are not compared.
            self.distinct = sets.count()
            self.stored = self.documents.where("stored is not null")
            self.documents = self.documents.where("stored is null")
            sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.sets = persist(sets)
        if self.stored is None:
            self.distinct = self.sets.count()

    def similar_set_pairs(self) -> DataFrame:
        """Returns all pairs of similar sets: digest_a, digest_b and similarity, each pair once, in either order."""
        return self._verified_pairs(self._candidate_pairs())

    def _candidate_pairs(self) -> DataFrame:
        """Returns the candidate pairs found by joining bands, each once."""
        chosen = _simstore._choose_sketches(self._similar, self._recall, self.distinct)
        joined, distance, _ = chosen
        logger.info("%s different texts: %s bands are joined, within %s bits", self.distinct, joined, distance)

        def of_sketch(sketch: int) -> DataFrame:
            value = F.col("sketches")[sketch]
            near = near_fingerprints(self.sets.select(value.alias("fingerprint")), distance, self._parts, self.distinct)
            a, b = (
                self.sets.select(
                    value.alias(x), *(F.col(name).alias(f"{name}_{x}") for name in ("digest", "features", "sketches"))
                )
                for x in "ab"
            )
            rule = partial(similarity.candidates, similar=self._similar, chosen=chosen, sketch=sketch)
            return near.join(a, "a").join(b, "b").mapInArrow(rule, spark_schema(similarity.CANDIDATES))

        return reduce(DataFrame.unionByName, map(of_sketch, range(joined)))

    def _verified_pairs(self, candidates: DataFrame) -> DataFrame:
        """Returns the similar candidates, compared by all their features."""
        candidates = persist(candidates)
        wanted = candidates.select(F.explode(F.array("digest_a", "digest_b")).alias("digest")).distinct()
        make = partial(similarity.feature_sets, text="text", profile=self._profile)
        made = self._texts.mapInArrow(make, spark_schema(similarity.FEATURE_SETS))
        members = made.join(wanted, "digest", "left_semi").dropDuplicates(["digest"])
        a, b = (members.select(F.col("digest").alias(f"digest_{x}"), F.col("members").alias(f"members_{x}")) for x in "ab")
        both = candidates.join(a, "digest_a").join(b, "digest_b")
        return both.mapInArrow(partial(similarity.compared, similar=self._similar), spark_schema(similarity.SIMILAR))
