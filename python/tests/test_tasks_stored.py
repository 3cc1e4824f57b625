"""The tasks that query stores find the same documents as `dedup` with `against`."""

import json
import subprocess

import pytest

import corpora
import helpers
import simstore

pa = helpers.optional_module("pyarrow")
stored = pytest.importorskip("simstore.tasks.stored")


def stored_matches(batches):
    return [row["stored"] for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_nearest_stored_fingerprints(tmp_path, bits):
    values = helpers.random_fingerprints(60, bits, seed=3)
    paths = [str(tmp_path / name) for name in ("one", "two")]
    entries = []
    for number, path in enumerate(paths):
        with simstore.Store(path, distance=4, bits=bits) as store:
            for id, value in enumerate(values[number::3]):
                name = f"page {id}" if id % 2 else None
                store.insert(value, id, name)
                entries.append((number, id, value, name or str(id)))
    query_values = [*helpers.random_fingerprints(40, bits, seed=4), *values[::2], None]
    fingerprint_type = pa.int64() if bits == 64 else pa.binary()
    column = [None if query is None else query - (query >> 63 << 64) if bits == 64 else query.to_bytes(16, "big") for query in query_values]
    batch = pa.record_batch({"id": range(len(query_values)), "fingerprint": pa.array(column, fingerprint_type)})
    rows = stored_matches(stored.nearest([batch.slice(0, 9), batch.slice(9)], paths, 4, bits=bits))
    expected = []
    for query in query_values:
        distances = [(query ^ value).bit_count() for _, _, value, _ in entries] if query is not None else []
        candidates = [(d, number, id, value, name) for d, (number, id, value, name) in zip(distances, entries) if d <= 4]
        expected.append(min(candidates, default=None))
    assert sum(match is not None for match in expected) > 20
    for row, match in zip(rows, expected, strict=True):
        assert (row is None) == (match is None)
        if row is not None:
            distance, number, id, value, name = match
            assert (row["distance"], row["store"], row["id"], row["name"]) == (distance, number, id.to_bytes(8, "big"), name)
            assert row["bits"] == value.to_bytes(bits // 8, "big") and row["fingerprint"] in (value, value - 2**64, row["bits"])


def test_most_similar_stored_documents(tmp_path):
    texts = corpora.random_texts(5, 60, words=36) + corpora.random_texts(6, 40, words=80)
    path, pages = tmp_path / "similar", tmp_path / "pages.jsonl"
    lines = [json.dumps({"id": f"page {at}", "text": text}) + "\n" for at, text in enumerate(texts[::4])]
    pages.write_text("".join(lines))
    subprocess.run([corpora.cli_binary(), "add", path, pages, "--similar", "0.8"], check=True, capture_output=True)
    machine = simstore.dedup([{"id": at, "text": text} for at, text in enumerate(texts)], against=path, similar=0.85)
    expected = {
        int(row["id"]): (row["representative"], row["similarity"]) for row in machine.clusters.to_pylist() if row["stored"]
    }
    batch = pa.record_batch({"text": [*texts, None, ""]})
    rows = stored_matches(stored.most_similar([batch.slice(0, 7), batch.slice(7)], [str(path)], 0.85))
    assert {at: (row["name"], row["similarity"]) for at, row in enumerate(rows) if row is not None} == expected
    assert len(expected) > 20


def test_stores_of_another_kind_are_refused(tmp_path):
    with simstore.Store(tmp_path / "fingerprints") as store:
        store.insert(1, 1)
    batch = pa.record_batch({"text": ["a"]})
    with pytest.raises(ValueError, match="with option `similar`"):
        list(stored.most_similar([batch], [str(tmp_path / "fingerprints")], 0.8))
    with pytest.raises(simstore.Error, match="no such store"):
        list(stored.most_similar([batch], [str(tmp_path / "none")], 0.8))
