"""Tests of scores.py and documents.py: `python3 -m unittest benches/peers/test_scores.py`."""

import gzip
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from documents import copy_documents
from scores import Truth, planted_pairs, read_pairs

# 0, 1 and 2 are a chain: 0 and 2 are not similar. 3 and 4 are a pair. 5 and 6 have no similar document.
CHAIN = Truth(7, [(0, 1), (2, 1), (3, 4), (4, 3)])


class Scores(unittest.TestCase):
    def test_pairs_are_counted_once(self):
        self.assertEqual(CHAIN.pairs, [(0, 1), (1, 2), (3, 4)])

    def test_the_exact_comparison_is_right(self):
        score = CHAIN.exact_score()
        # 2 stays: the one document similar to it is removed.
        self.assertEqual((score.recall, score.precision, score.kept, score.removed, score.wrong), (1, 1, 5, 2, 0))

    def test_all_documents_kept(self):
        score = CHAIN.score(range(7))
        self.assertEqual((score.recall, score.precision, score.kept, score.removed, score.wrong), (0, None, 7, 0, 0))

    def test_a_cluster_of_a_chain_removes_too_much(self):
        # 0 is kept for 1 and 2, but 2 is similar to 1 only.
        score = CHAIN.score([0, 3, 4, 5, 6])
        self.assertAlmostEqual(score.recall, 2 / 3)
        self.assertEqual((score.precision, score.removed, score.wrong, score.unlike_all), (0.5, 2, 1, 0))

    def test_a_document_without_any_similar_document_is_wrongly_removed(self):
        score = CHAIN.score([0, 2, 3, 6])
        self.assertEqual((score.recall, score.removed, score.wrong, score.unlike_all), (1, 3, 1, 1))
        self.assertAlmostEqual(score.precision, 2 / 3)

    def test_both_documents_of_a_pair_removed(self):
        score = CHAIN.score([0, 1, 2, 5, 6])
        self.assertAlmostEqual(score.recall, 1 / 3)
        self.assertEqual((score.precision, score.wrong), (0, 2))

    def test_unknown_pairs_give_counts_alone(self):
        score = Truth(3, None).score([0, 2])
        self.assertEqual((score.recall, score.precision, score.kept, score.removed, score.wrong), (None, None, 2, 1, None))

    def test_no_pair(self):
        score = Truth(2, []).score([0])
        self.assertEqual((score.recall, score.precision, score.wrong), (None, 0, 1))

    def test_a_number_of_no_document_is_refused(self):
        with self.assertRaises(ValueError):
            CHAIN.score([7])


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)

    def test_pairs_below_the_threshold_do_not_count(self):
        self.write("pairs.tsv", ["0\t1\t0.8", "1\t2\t0.79", "2\t3\t1"])
        self.assertEqual(list(read_pairs(self.path("pairs.tsv"), 0.8)), [(0, 1), (2, 3)])

    def test_planted_copies_and_copies_of_one_original(self):
        words = " ".join(map(str, range(100)))
        documents = [
            {"id": 0, "text": words},
            {"id": 1, "text": words, "of": 0, "similarity": 0.9},
            {"id": 2, "text": words + " more", "of": 0, "similarity": 0.7},
            {"id": 3, "text": "others"},
        ]
        self.write("corpus.jsonl", map(lambda document: json.dumps(document, separators=(",", ":")), documents))
        self.assertEqual(list(planted_pairs(self.path("corpus.jsonl"), 0.8)), [(0, 1), (1, 2)])

    def test_a_folder_becomes_one_file(self):
        os.mkdir(self.path("data"))
        self.write("data/b.jsonl", ['{"name": "x", "body": "One, two."}', '{"body": " "}', "", '{"name": "y"}'])
        with gzip.open(self.path("data/a.jsonl.gz"), "wt", encoding="utf-8") as file:
            file.write('{"body": "漢 three"}\n')
        self.write("data/notes.txt", ["no document"])
        out, ids = self.path("documents.jsonl"), self.path("ids.txt")
        counts = copy_documents(self.path("data"), out, ids, "body", "name")
        self.assertEqual(counts, {"documents": 2, "without_text": 2, "other_files": 1})
        with open(out, encoding="utf-8") as lines:
            self.assertEqual(list(map(json.loads, lines)), [{"id": 0, "text": "漢 three"}, {"id": 1, "text": "One, two."}])
        with open(ids, encoding="utf-8") as lines:
            self.assertEqual(list(map(json.loads, lines)), ["a.jsonl.gz:0", "x"])
        copy_documents(self.path("data"), out, ids, "body", "name", plain_words=True)
        with open(out, encoding="utf-8") as lines:
            self.assertEqual([json.loads(line)["text"] for line in lines], ["漢 three", "one two"])


if __name__ == "__main__":
    unittest.main()
