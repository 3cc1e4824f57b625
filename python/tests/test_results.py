"""Tests that arrays, tables, summaries and results can be passed to other libraries, shown in notebooks, and pickled."""

import collections.abc
import json
import pickle

import numpy as np
import pytest

import helpers
import simstore
from corpora import sample_rows

ROWS = sample_rows("en.jsonl")
TEXT = "to be or not to be that is the question"
TEXTS = ["to be or not to be", None, "something else altogether", "!!!"]


def fingerprint_arrays(bits):
    """Returns two arrays of fingerprints: one with nulls, one without."""
    profile = simstore.Profile(bits=bits)
    return [profile.fingerprints(TEXTS), profile.fingerprints([TEXT, "another text"])]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_an_array_is_a_sequence(bits):
    for array in fingerprint_arrays(bits):
        values = array.to_pylist()
        assert list(array) == values == [array[at] for at in range(len(array))]
        assert all(value is None or isinstance(value, int if bits == 64 else bytes) for value in values)
        assert list(array[::-1]) == values[::-1] and list(array[1::2]) == values[1::2]
        assert list(array[5:]) == [] and list(array[::-2]) == values[::-2]
        assert values[0] in array and 5 not in array
        assert isinstance(array, collections.abc.Iterable)
        assert np.asarray(array).tolist() == values and np.asarray(array).shape == (len(values),)
        assert simstore.Profile(bits=bits).fingerprint(TEXT) == fingerprint_arrays(bits)[1][0]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_an_array_is_a_column_of_a_frame(bits):
    pd, pl, pa = map(helpers.optional_module, ("pandas", "polars", "pyarrow"))
    for array in fingerprint_arrays(bits):
        values = array.to_pylist()
        frame = pd.DataFrame({"n": range(len(array))}, index=range(7, 7 + len(array)))
        frame["fp"] = array
        assert frame["fp"].tolist() == values
        assert pd.DataFrame({"fp": array})["fp"].tolist() == values
        assert pd.Series(array, name="fp").tolist() == values
        assert frame.assign(other=array)["other"].tolist() == values
        assert pl.Series("fp", array).to_list() == values
        assert pl.DataFrame({"fp": array})["fp"].to_list() == values
        assert frame.shape == (len(array), 2)
        assert pl.DataFrame({"n": range(len(array))}).with_columns(fp=pl.Series(array))["fp"].to_list() == values
        assert array.to_polars().to_list() == values
        assert pa.table({"fp": array})["fp"].to_pylist() == values
    frame = pd.DataFrame({"text": [TEXT, TEXT + " ", "another"]})
    frame["fp"] = simstore.Profile(bits=bits).fingerprints(frame["text"])
    assert simstore.clusters(frame["fp"], bits=bits).tolist() == [1, 1, 2]
    assert simstore.dedup(frame["fp"].tolist(), bits=bits).is_kept.tolist() == [True, False, True]


def test_fingerprints_of_128_bits_are_bytes_everywhere(tmp_path):
    profile = simstore.Profile(bits=128)
    first, second = profile.fingerprint(TEXT), profile.fingerprint("another text")
    assert isinstance(first, bytes) and len(first) == 16
    kinds = [first, int.from_bytes(first, "big")]
    assert [simstore.distance(a, b) for a in kinds for b in kinds] == [0] * 4
    arrays = [[first, second], *(np.array([first, second], dtype=dtype) for dtype in ("S16", "V16"))]
    arrays.append(profile.fingerprints([TEXT, "another text"]))
    arrays.append(np.array([list(first), list(second)], dtype=np.uint8))
    with simstore.Store(tmp_path / "store", bits=128) as store:
        for fingerprints in arrays:
            assert simstore.distance(fingerprints, arrays[0]).tolist() == [0, 0]
            store.insert_many(fingerprints, [1, 2])
        assert len(store) == 2
        assert store.query(first)[0].fingerprint == first and first in store
        assert store.snapshot().query_many([first])["fingerprint"].to_pylist() == [first]
    with pytest.raises(ValueError, match="bytes of length 3: expected a fingerprint of 128 bits, an int, or bytes of length 16"):
        simstore.distance(b"abc", first)
    with simstore.Store(tmp_path / "narrow") as store, pytest.raises(ValueError, match="expected a fingerprint of 64 bits, an int"):
        store.insert(first, 1)
    assert simstore.clusters([None, first, first]).tolist() == [1, 2, 2]


def test_tables_are_rows():
    result = simstore.dedup(ROWS)
    for table in (result.clusters, result.kept, simstore.self_join([1, 3, 2**63]), result.clusters["document"]):
        rows = table.to_pylist()
        assert list(table) == rows
        assert str(len(rows)) in table._repr_html_() and "<td>" in table._repr_html_()
    assert list(result) == result.clusters.to_pylist()
    assert json.loads(result.clusters.to_json()) == result.clusters.to_pylist()


def test_html_escapes_values():
    table = simstore.dedup([{"id": "<script>", "text": TEXT}, {"id": "b", "text": TEXT}]).clusters
    assert "&lt;script&gt;" in table._repr_html_() and "<script" not in table._repr_html_()


def test_everything_is_pickled():
    result = simstore.dedup(ROWS, pairs=True)
    copy = pickle.loads(pickle.dumps(result))
    for name in ("clusters", "kept", "removed", "pairs"):
        assert list(getattr(copy, name)) == list(getattr(result, name))
    assert copy.labels.tolist() == result.labels.tolist() and copy.is_kept.tolist() == result.is_kept.tolist()
    assert dict(copy.summary) == dict(result.summary) and str(copy.summary) == str(result.summary)
    assert copy._repr_html_() == result._repr_html_() and copy.to_json() == result.to_json()
    for bits in helpers.WIDTHS:
        for array in [*fingerprint_arrays(bits), fingerprint_arrays(bits)[0][1:3], simstore.bands(TEXTS, 2)]:
            copy = pickle.loads(pickle.dumps(array))
            assert (list(copy), copy.type) == (list(array), array.type)
    pairs = [(TEXT, TEXT + " indeed", True), (TEXT, "another text", False)]
    evaluation = simstore.evaluate(pairs, documents=2, similar=[0.8, 0.9])
    compression = simstore.compression(np.arange(1000, dtype=np.uint64) << np.uint64(40))
    for report in (evaluation, compression):
        copy = pickle.loads(pickle.dumps(report))
        assert (copy.to_json(), repr(copy), copy._repr_html_()) == (report.to_json(), repr(report), report._repr_html_())
        assert json.loads(report.to_json())
    with pytest.raises(ValueError, match="no pickled table"):
        simstore._simstore._table(b"something else")


def test_json():
    result = simstore.dedup(ROWS)
    parsed = json.loads(result.to_json())
    assert parsed["summary"] == json.loads(result.summary.to_json()) == dict(result.summary)
    assert parsed["removed"] == list(result.removed)
    parts = simstore.JoinParts(3, bits=128)
    packed = parts.pack(simstore.Profile(bits=128).fingerprints([TEXT]))
    assert json.loads(packed.to_json())[0]["fingerprints"] == packed.to_pylist()[0]["fingerprints"].hex()


def test_labels_are_one_read_only_array():
    result = simstore.dedup(ROWS)
    assert result.labels is result.labels and result.is_kept is result.is_kept
    with pytest.raises(ValueError, match="read-only"):
        result.labels[0] = 5
    unclustered = set(range(len(ROWS))) - set(result.clusters["document"])
    assert {at for at, label in enumerate(result.labels) if label == -1} == unclustered


def test_unique_and_duplicates_return_the_type_of_the_source():
    pd, pl, pa = map(helpers.optional_module, ("pandas", "polars", "pyarrow"))
    texts = [row["text"] for row in ROWS]
    expected = [row["text"] for row in simstore.dedup(ROWS).unique(ROWS)]
    sources = {
        "list": (texts, list),
        "tuple": (tuple(texts), list),
        "numpy": (np.array(texts, dtype=object), list),
        "pandas": (pd.DataFrame(ROWS, index=range(5, 5 + len(ROWS))), lambda frame: frame["text"].tolist()),
        "series": (pd.Series(texts), list),
        "polars": (pl.DataFrame(ROWS), lambda frame: frame["text"].to_list()),
        "lazy": (pl.LazyFrame(ROWS), lambda frame: frame.collect()["text"].to_list()),
        "polars series": (pl.Series(texts), list),
        "pyarrow": (pa.Table.from_pylist(ROWS), lambda table: table["text"].to_pylist()),
        "array": (pa.array(texts), lambda array: array.to_pylist()),
        "columns": ({"text": texts, "n": list(range(len(texts)))}, lambda columns: columns["text"]),
        "frames": (
            {"a": pl.DataFrame(ROWS[:7]), "b": pl.DataFrame(ROWS[7:])},
            lambda frames: frames["a"]["text"].to_list() + frames["b"]["text"].to_list(),
        ),
    }
    for name, (rows, texts_of) in sources.items():
        result = simstore.dedup(rows)
        unique, duplicates = result.unique(rows), result.duplicates(rows)
        assert type(unique) is type(rows) and texts_of(unique) == expected, name
        assert len(texts_of(unique)) + len(texts_of(duplicates)) == len(ROWS), name
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(ROWS)
    assert simstore.dedup(dataset).unique(dataset)["text"][:] == expected
    dataset_dict = datasets.DatasetDict(train=dataset.select(range(20)), test=dataset.select(range(20, len(ROWS))))
    unique = simstore.dedup(dataset_dict).unique(dataset_dict)
    assert unique["train"]["text"][:] + unique["test"]["text"][:] == expected
    with pytest.raises(ValueError, match=f"a row for each of the {len(ROWS)} documents, found 3"):
        simstore.dedup(ROWS).unique([1, 2, 3])
    with pytest.raises(TypeError, match="expected a frame"):
        simstore.dedup(ROWS).unique(3)
    for rows in ([], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"a row for each of the 1 documents, found {len(rows)}"):
            simstore.dedup([TEXT]).unique(pl.LazyFrame({"t": rows}))
    parts = [pl.DataFrame({"text": [TEXT, TEXT]}), pl.DataFrame({"text": []}, schema={"text": pl.String})]
    assert [len(part) for part in simstore.dedup(parts).unique(parts)] == [1, 0]
    batches = pa.table({"text": [TEXT, TEXT]}).to_batches(max_chunksize=1)
    assert [len(part) for part in simstore.dedup(batches).unique(batches)] == [1, 0]

    iterable = dataset.to_iterable_dataset()
    unique = simstore.dedup(iterable).unique(iterable)
    assert type(unique) is type(iterable) and [row["text"] for row in unique] == expected
    with pytest.raises(ValueError, match="a row for each of the 1 documents, found 2"):
        list(simstore.dedup([TEXT]).unique(iterable))
    iterable_dict = datasets.IterableDatasetDict(train=iterable, test=iterable)
    with pytest.raises(TypeError, match="IterableDataset among other tables"):
        simstore.dedup([TEXT]).unique(iterable_dict)

    class Frame(pd.DataFrame):
        pass

    frame = Frame({"text": [TEXT, "another", TEXT], "x": 1})
    assert simstore.dedup(frame).unique(frame)["text"].tolist() == [TEXT, "another"]


def test_rows_of_datasets_streams_and_iterators_are_selected(tmp_path):
    pa = helpers.optional_module("pyarrow.parquet")
    open_dataset = helpers.optional_module("pyarrow.dataset").dataset.dataset
    expected = [row["text"] for row in simstore.dedup(ROWS).unique(ROWS)]
    table = pa.Table.from_pylist(ROWS)
    for name, rows in (("a", table[:7]), ("b", table[7:])):
        pa.parquet.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=5)
    dataset = open_dataset(tmp_path)
    result = simstore.dedup(dataset)
    unique = result.unique(dataset)
    assert isinstance(unique, pa.dataset.Dataset) and unique.to_table()["text"].to_pylist() == expected
    assert unique.schema == dataset.schema and result.duplicates(dataset).count_rows() == len(ROWS) - len(expected)
    parts = {name: open_dataset(tmp_path / f"{name}.parquet") for name in "ab"}
    unique = simstore.dedup(parts).unique(parts)
    assert unique["a"].to_table()["text"].to_pylist() + unique["b"].to_table()["text"].to_pylist() == expected
    for count in (len(ROWS) - 1, len(ROWS) + 1):
        with pytest.raises(ValueError, match=f"a row for each of the {count} documents, found {len(ROWS)}"):
            simstore.dedup([TEXT] * count).unique(dataset)
    # A stream can be read only once, so `unique` gets a new one.
    assert simstore.dedup(table.to_reader()).unique(table.to_reader())["text"].to_pylist() == expected
    assert [row["text"] for row in simstore.dedup(row for row in ROWS).unique(row for row in ROWS)] == expected
    relation = helpers.optional_module("duckdb").from_arrow(table)
    assert simstore.dedup(relation).unique(relation)["text"].to_pylist() == expected


def test_fill_values_of_nulls():
    array = fingerprint_arrays(64)[0]
    assert array.to_numpy(fill=7)[1] == 7
    for fill in (1.5, "7", -1):
        with pytest.raises((ValueError, OverflowError)):
            array.to_numpy(fill=fill)
    assert np.asarray(simstore.bands([TEXT], 2)).shape == (1,)


def page_data(page):
    start = '<script type="application/json" id="data">'
    return json.loads(page.split(start)[1].split("</script>")[0])


def test_a_report_page_is_written_by_the_result_or_by_the_run(tmp_path):
    hostile = "</script><b>"
    rows = [{"id": f"{hostile}{number}", "text": f"{TEXT} {hostile} {'more' if number > 1 else ''}"} for number in range(3)]
    result = simstore.dedup(rows, similar=0.5, report=True)
    result.report(tmp_path / "result.html")
    page = (tmp_path / "result.html").read_text(encoding="utf-8")
    data = page_data(page)
    assert [cluster["id"] for cluster in data["clusters"]] == [f"{hostile}0"]
    assert len(data["comparisons"]) == 2 and page.count("</script>") == 2
    simstore.dedup(rows, similar=0.5, report=tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == page
    pickle.loads(pickle.dumps(result)).report(str(tmp_path / "pickled.html"))
    assert (tmp_path / "pickled.html").read_text(encoding="utf-8") == page
    with pytest.raises(AttributeError, match="report=True"):
        simstore.dedup(rows).report(tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()
    with pytest.raises(FileNotFoundError):
        result.report(tmp_path / "missing" / "page.html")
    # Fingerprints have no texts to compare.
    numbers = simstore.dedup(np.array([1, 2, 1 << 40], dtype=np.uint64), distance=2, report=True)
    numbers.report(tmp_path / "numbers.html")
    assert page_data((tmp_path / "numbers.html").read_text(encoding="utf-8"))["comparisons"] == []
