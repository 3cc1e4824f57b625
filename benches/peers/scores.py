"""Scores the list of documents that a tool keeps against the known similar pairs."""

import itertools
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "similar"))

from compare import removed_by_stars
from planted import read_planted_pairs
from rivals import shingle_text


@dataclass
class Score:
    """Score of a list of kept documents.

    `recall` is the share of similar pairs with at least one document removed; None if the pairs are unknown or there are none.
    `precision` is the share of removed documents with a similar kept document; None if nothing is removed or the pairs are unknown.
    """

    recall: float | None
    precision: float | None
    kept: int
    removed: int
    # Removed documents without a similar kept document; removed documents without any similar document.
    wrong: int | None
    unlike_all: int | None

    def as_dict(self):
        return asdict(self)


class Truth:
    """The similar pairs of a corpus with the documents 0 to `count - 1`. `pairs` is None if the similar pairs are unknown."""

    def __init__(self, count, pairs):
        self.count = count
        self.pairs = None if pairs is None else sorted({(min(pair), max(pair)) for pair in pairs})
        self.similar = {}
        for a, b in self.pairs or ():
            self.similar.setdefault(a, set()).add(b)
            self.similar.setdefault(b, set()).add(a)

    def exact_score(self):
        """Returns the score of an exact comparison.

        It visits the documents in order, and removes a document if an earlier kept document is similar.
        """
        return self.score(set(range(self.count)) - removed_by_stars(self.count, self.similar))

    def score(self, kept):
        """Returns the score of a list of kept documents. Raises ValueError if one of these documents is not in the corpus."""
        kept = set(kept)
        unknown = [document for document in kept if not 0 <= document < self.count]
        if unknown:
            raise ValueError(f"{unknown[0]} is the number of no document")
        removed = set(range(self.count)) - kept
        recall = precision = wrong = unlike_all = None
        if self.pairs is not None:
            found = sum(1 for a, b in self.pairs if a in removed or b in removed)
            recall = share(found, len(self.pairs))
            wrong = len(self.wrongly_removed(removed))
            precision = share(len(removed) - wrong, len(removed))
            unlike_all = sum(1 for document in removed if document not in self.similar)
        return Score(recall, precision, len(kept), len(removed), wrong, unlike_all)

    def wrongly_removed(self, removed):
        """Returns the removed documents without a similar kept document, in ascending order."""
        return sorted(document for document in removed if self.similar.get(document, set()) <= removed)


def share(part, whole):
    return part / whole if whole else None


def read_pairs(path, similarity):
    """Yields the pairs of a file with at least this similarity, as (a, b).

    A line of the file has two document numbers and their similarity, separated by tabs.
    """
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            a, b, similar = line.rstrip("\n").split("\t")
            if float(similar) >= similarity:
                yield int(a), int(b)


def read_kept(path):
    """Returns the set of kept documents, from a file that has one document number per line."""
    with open(path, encoding="utf-8") as lines:
        return {int(line) for line in lines}


def planted_pairs(corpus, similarity):
    """Yields the similar pairs of a corpus of `benches/synth`: a copy and its original, or two copies of the same original."""
    copies = read_planted_pairs(corpus)
    original_pairs = [pair for pair, similar in copies.items() if similar >= similarity]
    return itertools.chain(original_pairs, sibling_pairs(corpus, copies, similarity))


def sibling_pairs(corpus, pairs, similarity):
    """Yields the similar pairs in which both documents are copies of one original. `pairs` has all copies, as (original, copy)."""
    families = {}
    for original, copy in pairs:
        families.setdefault(original, []).append(copy)
    families = [copies for copies in families.values() if len(copies) > 1]
    texts = dict.fromkeys(itertools.chain.from_iterable(families))
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            if '"of":' in line:
                document = json.loads(line)
                if document["id"] in texts:
                    texts[document["id"]] = document["text"]
    for copies in families:
        sets = {copy: set(shingle_text(texts[copy])) for copy in copies}
        for a, b in itertools.combinations(copies, 2):
            shared = len(sets[a] & sets[b])
            if shared / (len(sets[a]) + len(sets[b]) - shared) >= similarity:
                yield a, b
