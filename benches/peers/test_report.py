"""Tests of report.py, which makes a table and a plot: `python3 -m unittest benches/peers/test_report.py`."""

import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import report

SCORE = {"recall": 0.99996, "precision": None, "kept": 9000, "removed": 0, "wrong": 0, "failure": None}
TIMES = {"seconds": 1.25, "cpu_seconds": 2.5, "memory_mib": 1234.5}
TOOL = {"name": "simstore", "title": "simstore 0.1.0", "settings": "defaults", "words": "its own", "load": 0.5}


def figures(*tools, truth="brute force", pairs=10):
    data = {"documents": 9000, "mib": 2.5, "without_text": 1, "other_files": 0, "plain_words": False}
    data |= {"truth": truth, "similar_pairs": pairs}
    machine = {"cores": 2, "processor": "A & B", "memory_gib": 8, "system": "Linux x86_64", "python": "3.11.7"}
    limits = {"runs": 1, "limit_gib": 16, "timeout_minutes": 30}
    run = {"date": "2026-01-02T03:04:05+00:00", "command": "benches/peers/run.sh data", "similar": 0.8}
    return {**run, **limits, "data": data, "machine": machine, "exact": {"title": "exact comparison", **SCORE}, "tools": tools}


class Report(unittest.TestCase):
    def test_a_row(self):
        row = report.table_row({**TOOL, **SCORE, **TIMES})
        self.assertEqual(row, "| simstore 0.1.0 | 0.9999 | unknown | 9,000 | 0 | 1.2 | 2.5 | 1,234 |")

    def test_a_failed_tool_has_a_row_of_the_same_width(self):
        row = report.table_row({**TOOL, "failure": "exit code 1: a | b"})
        self.assertEqual(row.count("|"), len(report.COLUMNS) + 1)
        self.assertIn("failed: exit code 1: a / b", row)

    def test_the_table_names_what_was_skipped(self):
        text = report.format_table(figures({**TOOL, **SCORE, **TIMES}))
        self.assertIn("9,000 documents, 2.5 MiB of JSON Lines; skipped documents without text: 1", text)
        self.assertIn("load average when each tool started: 0.5 to 0.5", text)

    def test_unknown_pairs(self):
        unknown = {**TOOL, **SCORE, **TIMES, "recall": None, "wrong": None}
        text = report.format_table(figures(unknown, truth=None, pairs=None))
        self.assertIn("not known: too many documents", text)
        xml.etree.ElementTree.fromstring(report.draw_plot(figures(unknown, truth=None, pairs=None)))

    def test_the_plot_has_a_bar_for_each_figure(self):
        failed = {**TOOL, "name": "gaoya", "title": "gaoya <1>", "failure": "more than 30 minutes"}
        picture = xml.etree.ElementTree.fromstring(report.draw_plot(figures({**TOOL, **SCORE, **TIMES}, failed)))
        texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
        self.assertEqual(sum(element.tag.endswith("rect") for element in picture), len(report.PANELS))
        self.assertEqual(texts.count("failed"), len(report.PANELS))
        self.assertIn("gaoya <1>", texts)
        # Never rounded up to 100.
        self.assertIn("99.9", texts)

    def test_ticks(self):
        self.assertEqual(report.ticks(100), [0, 50, 100])
        self.assertEqual(report.ticks(0), [0])
        self.assertEqual(report.ticks(7), [0, 2, 4, 6])


if __name__ == "__main__":
    unittest.main()
