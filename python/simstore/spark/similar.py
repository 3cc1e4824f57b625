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
from simstore.spark._schemas import schema_of
from simstore.spark.kept import keep
from simstore.spark.pairs import near_values
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
    """All pairs of rows whose texts are similar: the same pairs, bit for bit, that `simstore.dedup` finds on one machine.

    Two texts are similar if at least the share `similar` of all shingles of the two is in both; a shingle is three successive words, a
    Han character or kana is a word, and signs are nothing. Pairs of just this similarity are found with the probability `recall` or more,
    and more similar ones more surely.

    Texts of the same shingles are one from the start. Sets of shingles meet by their sketches, which are joined as `near_pairs`
    does it, and the tasks compare them; each goes to them once for each candidate it is in, as 8 bytes a shingle. Nothing is collected
    but the number of different sets.

    The sketches are made before the call returns, and are persisted (about 120 bytes a text; `release` lets go of them). The pairs are
    made when they are asked for, each time.

    Parameters
    ----------
    df : DataFrame
        Read twice, for sketches and for shingles.
    text : str
        The column of the texts: of strings. A null, and a text of white space, is similar to nothing; a text without letters
        and digits is similar to the same text alone.
    id : str
        The column of the ids, each of one row: of any type that has an order. None may be null.
    similar : float
        Up to 1, and at least 0.43 with the default `recall`; less needs a smaller `recall`.
    recall : float
        Between 0 and 1.
    profile : Profile or str, optional
        The features that are compared instead of shingles.
    parts : int, optional
        As for `near_pairs`.

    Returns
    -------
    DataFrame
        With columns id_a, id_b (id_a < id_b) and similarity (double, from `similar` to 1), in no order. Of n texts that have the same
        shingles there are n (n - 1) / 2 pairs.

    Raises
    ------
    ValueError, TypeError
        For columns that are not there or of another type, and for numbers out of range. An id that is null ends the job.

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
    of_text = _columns.type_of(df, text)
    if not isinstance(of_text, T.StringType):
        raise TypeError(f"column `{text}` is {of_text.simpleString()}: texts are string")
    rows = df.select(_columns.ids(df, id).alias("id"), _columns.column(text).alias("text"))
    search = Search(rows, similar, recall, profile, parts)
    repeated = search.documents.groupBy("digest").count().where("count > 1")
    of_itself = [F.col("digest").alias("digest_a"), F.col("digest").alias("digest_b"), F.lit(1.0).alias("similarity")]
    of_sets = search.similar_sets().unionByName(repeated.select(*of_itself))
    a, b = (search.documents.select(F.col("digest").alias(f"digest_{x}"), F.col("id").alias(x)) for x in "ab")
    both = of_sets.join(a, "digest_a").join(b, "digest_b")
    is_ordered = F.col("a") < F.col("b")
    # Two of one set meet in both orders, others in one.
    both = both.where(is_ordered | (F.col("digest_a") != F.col("digest_b")) & (F.col("a") != F.col("b")))
    return both.select(
        F.when(is_ordered, F.col("a")).otherwise(F.col("b")).alias("id_a"),
        F.when(is_ordered, F.col("b")).otherwise(F.col("a")).alias("id_b"),
        "similarity",
    )


class Search:
    """The search for similar sets of features.

    Attributes
    ----------
    documents : DataFrame
        Of each row that has features: all columns but the text, and digest, which tells the set of these from all others.
    sets : DataFrame
        Of each different set: digest, features and sketches, as `simstore.tasks.similarity.sketched` gives them.
    distinct : int
        How many these are.
    stored : DataFrame or None
        The rows whose column stored says that they are similar to something stored: they are among the others no more.
    """

    def __init__(
        self,
        rows: DataFrame,
        similar: float,
        recall: float,
        profile: simstore.Profile | str | None,
        parts: int | None,
    ) -> None:
        """Makes the sketches of rows with columns id and text, and any others."""
        # Refused before anything is read.
        _simstore._choose_sketches(similar, recall, 0)
        self._similar, self._recall, self._parts = similar, recall, parts
        self._profile = simstore.Profile(profile) if isinstance(profile, str) else profile
        self._texts = rows.select("text")
        others = [field for field in rows.schema.fields if field.name != "text"]
        sketch = partial(similarity.sketched, text="text", profile=self._profile)
        sketched = rows.mapInArrow(sketch, schema_of(similarity.SKETCHED, *others))
        self.documents = keep(sketched.where("digest is not null"))
        sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.stored = None
        if "stored" in rows.columns:
            # They count among all, as on one machine, and are compared with none.
            self.distinct = sets.count()
            self.stored = self.documents.where("stored is not null")
            self.documents = self.documents.where("stored is null")
            sets = self.documents.select(*similarity.SKETCHED.names).dropDuplicates(["digest"])
        self.sets = keep(sets)
        if self.stored is None:
            self.distinct = self.sets.count()

    def similar_sets(self) -> DataFrame:
        """All pairs of similar sets: digest_a, digest_b and similarity, each once, in one of the two orders."""
        return self._compared(self._candidates())

    def _candidates(self) -> DataFrame:
        """The pairs that sketches bring together, each once."""
        chosen = _simstore._choose_sketches(self._similar, self._recall, self.distinct)
        joined, distance, _ = chosen
        logger.info("%s different texts: %s sketches are joined, within %s bits", self.distinct, joined, distance)

        def of_sketch(sketch: int) -> DataFrame:
            value = F.col("sketches")[sketch]
            near = near_values(self.sets.select(value.alias("fingerprint")), distance, self._parts, self.distinct)
            a, b = (
                self.sets.select(
                    value.alias(x), *(F.col(name).alias(f"{name}_{x}") for name in ("digest", "features", "sketches"))
                )
                for x in "ab"
            )
            rule = partial(similarity.candidates, similar=self._similar, chosen=chosen, sketch=sketch)
            return near.join(a, "a").join(b, "b").mapInArrow(rule, schema_of(similarity.CANDIDATES))

        return reduce(DataFrame.unionByName, map(of_sketch, range(joined)))

    def _compared(self, candidates: DataFrame) -> DataFrame:
        """Those of the candidates that are similar, by all their features."""
        candidates = keep(candidates)
        wanted = candidates.select(F.explode(F.array("digest_a", "digest_b")).alias("digest")).distinct()
        make = partial(similarity.feature_sets, text="text", profile=self._profile)
        made = self._texts.mapInArrow(make, schema_of(similarity.FEATURE_SETS))
        members = made.join(wanted, "digest", "left_semi").dropDuplicates(["digest"])
        a, b = (members.select(F.col("digest").alias(f"digest_{x}"), F.col("members").alias(f"members_{x}")) for x in "ab")
        both = candidates.join(a, "digest_a").join(b, "digest_b")
        return both.mapInArrow(partial(similarity.compared, similar=self._similar), schema_of(similarity.SIMILAR))
