"""Tasks find the same documents in stores as one machine."""

import json
import subprocess

import pytest

import corpora
import plain
import simstore

pa = plain.optional("pyarrow")
stored = pytest.importorskip("simstore.tasks.stored")


def found(batches):
    return [row["stored"] for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_what_is_nearest(tmp_path, bits):
    values = plain.random_fingerprints(60, bits, seed=3)
    paths = [str(tmp_path / name) for name in ("one", "two")]
    entries = []
    for number, path in enumerate(paths):
        with simstore.Store(path, distance=4, bits=bits) as store:
            for id, value in enumerate(values[number::3]):
                name = f"page {id}" if id % 2 else None
                store.insert(value, id, name)
                entries.append((number, id, value, name or str(id)))
    asked = [*plain.random_fingerprints(40, bits, seed=4), *values[::2], None]
    of_type = pa.int64() if bits == 64 else pa.binary()
    column = [None if one is None else one - (one >> 63 << 64) if bits == 64 else one.to_bytes(16, "big") for one in asked]
    batch = pa.record_batch({"id": range(len(asked)), "fingerprint": pa.array(column, of_type)})
    rows = found(stored.nearest([batch.slice(0, 9), batch.slice(9)], paths, 4, bits=bits))
    expected = []
    for one in asked:
        near = [(one ^ value).bit_count() for _, _, value, _ in entries] if one is not None else []
        some = [(d, number, id, value, name) for d, (number, id, value, name) in zip(near, entries) if d <= 4]
        expected.append(min(some, default=None))
    assert sum(one is not None for one in expected) > 20
    for row, one in zip(rows, expected, strict=True):
        assert (row is None) == (one is None)
        if row is not None:
            distance, number, id, value, name = one
            assert (row["distance"], row["store"], row["id"], row["name"]) == (distance, number, id.to_bytes(8, "big"), name)
            assert row["bits"] == value.to_bytes(bits // 8, "big") and row["fingerprint"] in (value, value - 2**64, row["bits"])


def test_what_is_most_similar(tmp_path):
    texts = corpora.texts(5, 60, words=36) + corpora.texts(6, 40, words=80)
    path, pages = tmp_path / "similar", tmp_path / "pages.jsonl"
    lines = [json.dumps({"id": f"page {at}", "text": text}) + "\n" for at, text in enumerate(texts[::4])]
    pages.write_text("".join(lines))
    subprocess.run([corpora.binary(), "add", path, pages, "--similar", "0.8"], check=True, capture_output=True)
    machine = simstore.dedup([{"id": at, "text": text} for at, text in enumerate(texts)], against=path, similar=0.85)
    expected = {
        int(row["id"]): (row["representative"], row["similarity"]) for row in machine.clusters.to_pylist() if row["stored"]
    }
    batch = pa.record_batch({"text": [*texts, None, ""]})
    rows = found(stored.most_similar([batch.slice(0, 7), batch.slice(7)], [str(path)], 0.85))
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
