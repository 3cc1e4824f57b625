"""`dedup`, compared with brute force and with the command-line program."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simstore
from corpora import SAMPLES, jaccard, random_texts, run_cli, sample_rows, shingles

pytestmark = pytest.mark.filterwarnings("ignore:.* too short for:simstore.SimstoreWarning")

ROW = {"text": "to be or not to be that is the question"}


def pair_scores(result, score):
    return {(pair["a_document"], pair["b_document"]): pair[score] for pair in result.pairs.to_pylist()}


@pytest.mark.parametrize("similar", [0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("words", [3, 8, 24, 100])
def test_similar_pairs_of_texts_of_any_length(words, similar):
    """The result has at least 95% of the similar pairs, all equal pairs, and no others."""
    found_count = expected_count = 0
    for seed in range(10):
        documents = random_texts(seed, 60, words=words)
        sets = [shingles(text) for text in documents]
        expected = {
            (a, b): jaccard(sets[a], sets[b])
            for a in range(len(documents))
            for b in range(a + 1, len(documents))
            if jaccard(sets[a], sets[b]) >= similar
        }
        result = simstore.dedup(({"text": text} for text in documents), similar=similar, pairs=True)
        found = pair_scores(result, "similarity")
        assert found.keys() <= expected.keys()
        assert all(found[pair] == expected[pair] for pair in found)
        assert all(pair in found for pair, similarity in expected.items() if similarity == 1)
        found_count, expected_count = found_count + len(found), expected_count + len(expected)
        # No two kept documents form a found pair. Each removed document is similar to the document that it duplicates.
        kept = np.flatnonzero(result.is_kept)
        assert not any((a, b) in found for a in kept for b in kept)
        for removed in result.removed.to_pylist():
            pair = tuple(sorted((removed["document"], removed["duplicate_of_document"])))
            assert expected[pair] == removed["similarity"] and result.is_kept[removed["duplicate_of_document"]]
        assert len(result.kept) + len(result.removed) == len(documents)
    assert found_count >= 0.95 * expected_count > 0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), distance=st.integers(0, 6), bits=st.sampled_from([64, 128]))
def test_pairs_and_components_of_fingerprints_are_those_of_brute_force(seed, distance, bits):
    rng = np.random.default_rng(seed)
    centres = [int(value) for value in rng.integers(0, 2**63, 20)]
    values = [centres[rng.integers(20)] << (bits - 64) for _ in range(80)] + [0, 2**bits - 1, 0, 1]
    for _ in range(3):
        values = [value ^ (1 << int(rng.integers(bits))) if rng.random() < 0.7 else value for value in values]
    if bits == 64:
        array = np.array(values, dtype=np.uint64)
    else:
        array = np.array([list(value.to_bytes(16, "big")) for value in values], dtype=np.uint8)
    result = simstore.dedup(array, distance=distance, pairs=True)
    count = len(values)
    expected = {
        (a, b): (values[a] ^ values[b]).bit_count()
        for a in range(count)
        for b in range(a + 1, count)
        if (values[a] ^ values[b]).bit_count() <= distance
    }
    assert pair_scores(result, "distance") == expected
    root = list(range(count))
    for a, b in sorted(expected):
        low, high = sorted((root[a], root[b]))
        root = [low if other == high else other for other in root]
    assert result.is_kept.tolist() == [root[at] == at for at in range(count)]
    labels = result.labels
    for a in range(count):
        assert (labels[a] == -1) == (root.count(root[a]) == 1)
        assert all((labels[a] == labels[b]) == (root[a] == root[b]) for b in range(count) if labels[a] >= 0)


@pytest.mark.parametrize("name", ["en.jsonl", "zh.jsonl"])
@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {}),
        (["--similar", "0.9", "--keep", "longest"], {"similar": 0.9, "keep": "longest"}),
        (["--distance", "6", "--bits", "128"], {"distance": 6, "bits": 128}),
        (["--distance", "10", "--verify-text", "0.8"], {"distance": 10, "verify_text": 0.8}),
        (
            ["--distance", "3", "--profile", "chars-4", "--keep", "none"],
            {"distance": 3, "profile": simstore.Profile("chars-4"), "keep": "none"},
        ),
    ],
)
def test_same_results_as_the_command_line(name, flags, options):
    *clusters, summary = run_cli("dedup", SAMPLES / name, "--json", *flags)
    result = simstore.dedup(SAMPLES / name, **options)
    summary.pop("seconds")
    python_summary = dict(result.summary)
    assert python_summary.pop("seconds") >= 0
    assert python_summary == summary
    rows = iter(result.clusters.to_pylist())
    for cluster in clusters:
        for member in cluster["members"]:
            row = next(rows)
            assert (row["cluster"], row["id"]) == (cluster["cluster"], member["id"])
            assert row["representative"] == cluster["representative"]
            for score in ("distance", "similarity"):
                assert row.get(score) == pytest.approx(member.get(score))
    assert next(rows, None) is None


def test_the_summary_is_a_mapping_and_reads_as_the_command_line():
    summary = simstore.dedup(SAMPLES / "en.jsonl").summary
    assert summary["documents"] == 77 and "kept" in summary and dict(summary)["kept"] == summary["kept"]
    assert list(summary) == summary.keys() and len(summary) == len(summary.values())
    assert dict(summary.items()) == dict(summary) and summary.get("kept") == summary["kept"]
    assert summary.get("nothing") is None and summary.get("nothing", 3) == 3
    with pytest.raises(KeyError, match="the keys are"):
        summary["nothing"]
    first, second, *_ = str(summary).splitlines()
    assert first.startswith("77 documents (131.7 KiB of text), 77 distinct texts, similarity >= 0.8, ")
    assert second == "13 documents in 6 clusters; 7 duplicates (9.1%), 70 kept"


def test_files_are_written_as_the_command_line_does(tmp_path):
    names = ["output.jsonl", "annotated.jsonl", "clusters.csv", "pairs.jsonl", "keep.txt", "remove.tsv"]
    flags = ["--output", "--annotated", "--clusters", "--pairs", "--keep-list", "--remove-list"]
    (tmp_path / "cli").mkdir()
    (tmp_path / "python").mkdir()
    files = [(flag, tmp_path / "cli" / name) for flag, name in zip(flags, names)]
    run_cli("dedup", SAMPLES / "zh.jsonl", "--reasons", "--cluster-field", "number", *[arg for file in files for arg in file])
    paths = [tmp_path / "python" / name for name in names]
    options = dict(zip(["output", "annotated", "clusters", "pairs", "keep_list", "remove_list"], paths))
    result = simstore.dedup(SAMPLES / "zh.jsonl", reasons=True, cluster_field="number", **options)
    for name in names:
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "cli" / name).read_bytes(), name
    lines = (SAMPLES / "zh.jsonl").read_bytes().splitlines(keepends=True)
    assert paths[0].read_bytes() == b"".join(line for line, kept in zip(lines, result.is_kept) if kept)


def test_files_appear_all_together_or_not_at_all(tmp_path):
    invalid_file = tmp_path / "bad.jsonl"
    invalid_file.write_text('{"id": 1, "text": "one"}\nno JSON\n')
    with pytest.raises(simstore.BadInputError) as raised:
        simstore.dedup(invalid_file, keep_list=tmp_path / "kept.txt")
    assert raised.value.path == str(invalid_file) and raised.value.line == 2 and isinstance(raised.value, ValueError)
    assert os.listdir(tmp_path) == ["bad.jsonl"]
    with pytest.warns(simstore.SimstoreWarning) as warned:
        result = simstore.dedup(invalid_file, keep_list=tmp_path / "kept.txt", skip_bad=True)
    messages = [str(warning.message) for warning in warned]
    assert any("bad.jsonl:2:" in message for message in messages) and "skipped 1 invalid document or unreadable file" in messages
    assert all(warning.filename == __file__ for warning in warned)
    assert result.summary["bad"] == 1 and result.is_kept.tolist() == [True]
    assert sorted(os.listdir(tmp_path)) == ["bad.jsonl", "kept.txt"]


@pytest.mark.filterwarnings("error")
def test_warnings_as_errors_leave_no_files(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"id": 1, "text": "one"}\nno JSON\n')
    with pytest.raises(simstore.SimstoreWarning):
        simstore.dedup(tmp_path / "bad.jsonl", keep_list=tmp_path / "kept.txt", skip_bad=True)
    assert os.listdir(tmp_path) == ["bad.jsonl"]


def test_a_store_is_compared_with_and_added_to(tmp_path):
    store = tmp_path / "seen.simstore"
    by_distance = partial(simstore.dedup, distance=3)
    first = by_distance(SAMPLES / "en.jsonl", against=store, add=True, keep_list=tmp_path / "kept.txt")
    assert first.summary["added"] == first.summary["kept"] and store.is_dir()
    again = by_distance(SAMPLES / "en.jsonl", against=[store], add=True, keep_list=tmp_path / "kept.txt")
    assert again.summary["added_before"] == first.summary["added"]
    assert not hasattr(again, "clusters") and "has added" in repr(again)
    compared = by_distance(sample_rows("en.jsonl"), against=store, pairs=True)
    assert not compared.is_kept.any() and compared.summary["kept"] == 0
    removed = compared.removed.to_pylist()
    assert all(row["stored"] and row["duplicate_of_document"] is None for row in removed)
    assert any(pair["stored"] and pair["b_document"] is None for pair in compared.pairs.to_pylist())
    with pytest.raises(simstore.Error, match="no such store"):
        simstore.dedup([ROW], against=tmp_path / "nothing")


def test_resume(tmp_path):
    expected = simstore.dedup(SAMPLES / "en.jsonl")
    for _ in range(2):
        result = simstore.dedup(SAMPLES / "en.jsonl", resume=tmp_path / "parts")
        assert result.clusters.to_pylist() == expected.clusters.to_pylist()
    assert any((tmp_path / "parts").iterdir())
    with pytest.raises(ValueError, match="option `resume` needs files"):
        simstore.dedup([ROW], resume=tmp_path / "parts")


def test_sharded_runs_are_joined(tmp_path):
    folder, parts = tmp_path / "corpus", tmp_path / "parts"
    folder.mkdir()
    rows = (SAMPLES / "en.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for number in range(4):
        (folder / f"{number}.jsonl").write_text("".join(rows[number * 20 : number * 20 + 20]), encoding="utf-8")
    shard_results = [simstore.dedup(folder, resume=parts, shard=f"{number}/2") for number in (1, 2)]
    assert shard_results[0].summary["left"] == shard_results[1].summary["made"] and shard_results[1].summary["left"] == 0
    assert sum(result.summary["documents"] for result in shard_results) == 77 and not hasattr(shard_results[0], "clusters")
    assert "left to other shards" in str(shard_results[0].summary)
    joined = simstore.dedup(folder, resume=parts)
    assert joined.clusters.to_pylist() == simstore.dedup(SAMPLES / "en.jsonl").clusters.to_pylist()
    for source, options, message in [
        (folder, {"resume": parts, "shard": "3/2"}, "expected I/N"),
        (folder, {"shard": "1/2"}, "option `resume`"),
        (folder, {"resume": parts, "shard": "1/2", "keep_list": tmp_path / "kept"}, "makes parts alone"),
        ([ROW], {"resume": parts, "shard": "1/2"}, "needs files"),
    ]:
        with pytest.raises(ValueError, match=message):
            simstore.dedup(source, **options)


@pytest.mark.parametrize("options", [{"memory": 150_000}, {"memory": 150_000, "distance": 3}])
def test_with_little_memory_the_answer_is_the_same(options, tmp_path):
    documents = [{"id": f"document {at}", "text": text} for at, text in enumerate(random_texts(3, 3000, topics=20_000))]
    expected = simstore.dedup(documents, pairs=True, distance=options.get("distance"))
    result = simstore.dedup(iter(documents), pairs=True, temporary=tmp_path, **options)
    assert result.summary["spilled"]["written"] > 0
    for table in ("clusters", "pairs", "kept", "removed"):
        assert getattr(result, table).to_pylist() == getattr(expected, table).to_pylist()
    assert os.listdir(tmp_path) == []


def test_a_text_is_no_path():
    for text in ("a b c d", "a text", "x" * 5000, "one\ntwo", "", "\0"):
        with pytest.raises(FileNotFoundError, match="A single string is a path: give a text in a list") as raised:
            simstore.dedup(text)
        assert raised.value.errno == 2 and raised.value.filename == text[:200]
    with pytest.raises(FileNotFoundError):
        simstore.dedup("there/is/none.jsonl")


def test_pairs_need_the_option_pairs():
    with pytest.raises(AttributeError, match="pairs=True"):
        _ = simstore.dedup([ROW, ROW]).pairs
    assert len(simstore.dedup([ROW, ROW], pairs=True).pairs) == 1


def test_documents_with_duplicate_ids():
    rows = [dict(ROW, id="a"), dict(ROW, id="a"), {"id": 18446744073709551615, "text": "alone"}]
    with pytest.warns(simstore.SimstoreWarning, match="2 documents have duplicate ids"):
        result = simstore.dedup(rows)
    assert result.clusters["place"].to_pylist() == ["documents:1", "documents:2"]
    assert result.kept["id"].to_pylist() == ["a", "18446744073709551615"]
    numeric = simstore.dedup([dict(ROW, id=2**64 - 1), dict(ROW, id=np.uint8(3))])
    assert numeric.kept["id"].type == "uint64" and numeric.removed["duplicate_of"].to_pylist() == [2**64 - 1]


def test_html_is_escaped():
    html = simstore.dedup([dict(ROW, id="<b>&"), dict(ROW, id="<i>")])._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html and ROW["text"] in html
    text = "<script>" + "word " * 100
    html = simstore.dedup([{"text": text}, {"text": text}])._repr_html_()
    assert "&lt;script&gt;word" in html and "<script>" not in html and len(html) < 1000
    for module, make in [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")]:
        frame = getattr(pytest.importorskip(module), make)({"text": [text, text]})
        assert simstore.dedup(frame)._repr_html_() == html


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similar": 0.0}, "option `similar`"),
        ({"similar": 0.8, "distance": 3}, "leave out one of them"),
        ({"cluster_by": "rows"}, "cluster_by is 'rows'"),
        ({"keep": "all"}, "keep is 'all': unknown rule: expected first"),
        ({"keep": "newest:date"}, "no document has a field `date`"),
        ({"memory": "much"}, "memory is 'much'"),
        ({"delimiter": "||"}, "delimiter is"),
        ({"encoding": "utf-9"}, "unknown encoding"),
        ({"format": "xml"}, "expected one of jsonl"),
        ({"profile": "nothing"}, "unknown text profile"),
        ({"add": True}, "needs option `against`"),
        ({"output": "unique.jsonl"}, "needs files"),
        ({"keep_list": "-"}, "`-` is no file"),
        ({"text": "words"}, "no document has a field `words`: the first has text; select another with option `text`"),
        ({"id": "key"}, "no id field `key`"),
        ({"distance": 99}, "distance 99 is too large"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises((ValueError, simstore.Error), match=message):
        simstore.dedup([ROW, ROW], **options)


def test_options_about_fingerprints_warn(tmp_path):
    # By default `dedup` compares texts. With an option about fingerprints it compares fingerprints, and warns.
    for options in [{"profile": "words-2"}, {"bits": 64}, {"verify_text": 0.5}]:
        with pytest.warns(simstore.SimstoreWarning, match=f"option `{next(iter(options))}` compares fingerprints"):
            result = simstore.dedup([ROW, ROW], **options)
        assert result.summary["distance"] == 3 and "similar" not in result.summary
    assert simstore.dedup([ROW, ROW]).summary["similar"] == 0.8
    assert simstore.dedup(np.array([0, 7], np.uint64)).summary["distance"] == 3
    with simstore.Store(tmp_path / "store", distance=6, profile=simstore.Profile()):
        pass
    for against, add in [("store", False), ("store", True)]:
        with pytest.raises(ValueError, match="give option `distance`"):
            simstore.dedup([ROW, ROW], against=tmp_path / against, add=add)
    assert simstore.dedup([ROW], against=tmp_path / "store", distance=6).summary["distance"] == 6
    assert sorted(os.listdir(tmp_path)) == ["store"]


def test_missing_files_raise_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        simstore.dedup(tmp_path / "nothing.jsonl")
    assert raised.value.filename == str(tmp_path / "nothing.jsonl")


def test_messages_name_the_options_of_python(tmp_path):
    for options, message in [({"text": "body"}, "select another with option `text`"), ({"encoding": "gb18030", "format": "xml"}, "jsonl")]:
        with pytest.raises(ValueError, match=message):
            simstore.dedup(SAMPLES / "en.jsonl", **options)
    (tmp_path / "gbk.jsonl").write_bytes('{"text": "近似重复的网页很常见"}\n'.encode("gb18030"))
    with pytest.raises(ValueError, match="give option `encoding` gb18030"):
        simstore.dedup(tmp_path / "gbk.jsonl")
    assert simstore.dedup(tmp_path / "gbk.jsonl", encoding="gb18030").summary["documents"] == 1


def test_many_threads_read_a_result_and_call_dedup():
    from concurrent.futures import ThreadPoolExecutor

    result = simstore.dedup(SAMPLES / "en.jsonl", pairs=True)
    expected = result.pairs.to_pylist()
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda _: result.pairs.to_pylist() == expected, range(40)))
        rows = sample_rows("en.jsonl")
        results = threads.map(lambda _: simstore.dedup(iter(rows), pairs=True).pairs.to_pylist(), range(12))
        assert all(pairs == expected for pairs in results)


SLOW_PROGRAM = """
import simstore, time
def rows():
    for number in range(10**9):
        {wait}
        yield {{"text": f"document {{number}} of many that say something"}}
        if number == {ready}:
            print("ready", flush=True)
def stream():
    import pyarrow
    schema = pyarrow.schema([("text", pyarrow.string())])
    batches = (pyarrow.RecordBatch.from_pylist([row], schema) for row in rows())
    return pyarrow.RecordBatchReader.from_batches(schema, batches)
simstore.dedup({source}, progress=lambda update: None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("wait", "ready", "source"),
    [
        ("time.sleep(60 if number > 3 else 0)", 3, "rows()"),
        ("pass", 3000, "rows()"),
        ("pass", 3000, "map(dict, rows())"),
        ("time.sleep(60 if number > 3 else 0)", 3, "stream()"),
    ],
)
def test_ctrl_c_ends_within_a_second(wait, ready, source):
    program = SLOW_PROGRAM.format(wait=wait, ready=ready, source=source)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    # The program sleeps for a minute or has days of work, so a slow machine does not matter.
    assert time.monotonic() - started < 30
    assert "KeyboardInterrupt" in errors and child.returncode == -signal.SIGINT
