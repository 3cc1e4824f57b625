"""A similarity is the same float in rows, files, Arrow tables and JSON, and it is the value compared with `similar`."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import simstore
from corpora import random_texts, run_cli

TEXT = "a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3"


def test_nine_tenths_are_nine_tenths():
    removed = simstore.dedup([TEXT, TEXT[:-3]], similar=0.9).removed
    assert removed.to_pylist()[0]["similarity"] == simstore.similarity(TEXT, TEXT[:-3]) == 0.9
    assert pa.table(removed).schema.field("similarity").type == pa.float64()
    assert removed["similarity"].to_numpy().dtype == "float64"
    assert removed.to_pandas().query("similarity >= 0.9").shape[0] == 1


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_same_everywhere(seed, tmp_path):
    documents = random_texts(seed, 60, topics=6, words=[8, 12, 24, 60][seed % 4])
    similarities = sorted({simstore.similarity(a, b) for a in documents for b in documents})
    # The threshold equals the similarity of some pairs, so a value that is rounded down falls below it.
    thresholds = [similarity for similarity in similarities if 0.5 <= similarity < 1]
    threshold = thresholds[seed % len(thresholds)]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(documents)))
    checked_outputs = set()

    def check_similarity(output, a, b, similarity):
        similarity = float(similarity)
        assert similarity == simstore.similarity(documents[int(a)], documents[int(b)]) >= threshold, output
        checked_outputs.add(output)
        return similarity

    files = {"pairs": "pairs.jsonl", "clusters": "clusters.parquet", "remove_list": "removed.csv"}
    files = {option: tmp_path / name for option, name in files.items()}
    result = simstore.dedup(source, similar=threshold, reasons=True, **files)
    list_result = simstore.dedup(documents, similar=threshold, pairs=True)
    for row in list_result.pairs:
        check_similarity("pairs", row["a"], row["b"], row["similarity"])
    assert threshold in list_result.pairs["similarity"].to_pylist()
    for found in (result, list_result):
        for row in found.removed:
            check_similarity("removed", row["id"], row["duplicate_of"], row["similarity"])
        min_similarities = {}
        for row in found.clusters:
            similarity = check_similarity("clusters", row["id"], row["representative"], row["similarity"])
            min_similarities[row["cluster"]] = min(similarity, min_similarities.get(row["cluster"], 1))
        assert {row["least_similar"] for row in found.summary["largest"]} <= set(min_similarities.values())
    for line in files["pairs"].read_text().splitlines():
        row = json.loads(line)
        check_similarity("pairs.jsonl", row["a"], row["b"], row["similarity"])
    for row in pq.read_table(files["clusters"]).to_pylist():
        check_similarity("clusters.parquet", row["id"], row["representative"], row["similarity"])
    with open(files["remove_list"], encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            check_similarity("removed.csv", row["id"], row["duplicate_of"], row["similarity"])
    for cluster in run_cli("dedup", source, "--quiet", "--json", "--similar", repr(threshold)):
        for member in cluster.get("members", []):
            check_similarity("--json", member["id"], cluster["representative"], member["similarity"])
    assert len(checked_outputs) == 7, checked_outputs
