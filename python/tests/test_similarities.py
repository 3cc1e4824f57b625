"""A similarity is one number: the one that is compared with `similar` is the one in rows, files, tables, Arrow and JSON."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import simstore
from corpora import run, texts

TEXT = "a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3"


def test_nine_tenths_are_nine_tenths():
    removed = simstore.dedup([TEXT, TEXT[:-3]], similar=0.9).removed
    assert removed.to_pylist()[0]["similarity"] == simstore.similarity(TEXT, TEXT[:-3]) == 0.9
    assert pa.table(removed).schema.field("similarity").type == pa.float64()
    assert removed["similarity"].to_numpy().dtype == "float64"
    assert removed.to_pandas().query("similarity >= 0.9").shape[0] == 1


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_same_everywhere(seed, tmp_path):
    made = texts(seed, 60, topics=6, words=[8, 12, 24, 60][seed % 4])
    every = sorted({simstore.similarity(a, b) for a in made for b in made})
    # The threshold is a similarity that some pairs have, so that what is rounded down falls below it.
    likely = [similarity for similarity in every if 0.5 <= similarity < 1]
    least = likely[seed % len(likely)]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(made)))
    checked = set()

    def check(where, a, b, similarity):
        similarity = float(similarity)
        assert similarity == simstore.similarity(made[int(a)], made[int(b)]) >= least, where
        checked.add(where)
        return similarity

    files = {"pairs": "pairs.jsonl", "clusters": "clusters.parquet", "remove_list": "removed.csv"}
    files = {option: tmp_path / name for option, name in files.items()}
    result = simstore.dedup(source, similar=least, reasons=True, **files)
    handed = simstore.dedup(made, similar=least, pairs=True)
    for row in handed.pairs:
        check("pairs", row["a"], row["b"], row["similarity"])
    assert least in handed.pairs["similarity"].to_pylist()
    for found in (result, handed):
        for row in found.removed:
            check("removed", row["id"], row["duplicate_of"], row["similarity"])
        shares = {}
        for row in found.clusters:
            share = check("clusters", row["id"], row["representative"], row["similarity"])
            shares[row["cluster"]] = min(share, shares.get(row["cluster"], 1))
        assert {row["least_similar"] for row in found.summary["largest"]} <= set(shares.values())
    for line in files["pairs"].read_text().splitlines():
        row = json.loads(line)
        check("pairs.jsonl", row["a"], row["b"], row["similarity"])
    for row in pq.read_table(files["clusters"]).to_pylist():
        check("clusters.parquet", row["id"], row["representative"], row["similarity"])
    with open(files["remove_list"], encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            check("removed.csv", row["id"], row["duplicate_of"], row["similarity"])
    for cluster in run("dedup", source, "--quiet", "--json", "--similar", repr(least)):
        for member in cluster.get("members", []):
            check("--json", member["id"], cluster["representative"], member["similarity"])
    assert len(checked) == 7, checked
