"""Arrays, tables, summaries and results as Python's other libraries, notebooks and pickles take them."""

import collections.abc
import json
import pickle

import numpy as np
import pytest

import plain
import simstore
from corpora import rows_of

ROWS = rows_of("en.jsonl")
TEXT = "to be or not to be that is the question"
TEXTS = ["to be or not to be", None, "something else altogether", "!!!"]


def arrays(bits):
    """With nulls, and without."""
    profile = simstore.Profile(bits=bits)
    return [profile.fingerprints(TEXTS), profile.fingerprints([TEXT, "another text"])]


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_an_array_is_a_sequence(bits):
    for array in arrays(bits):
        values = array.to_pylist()
        assert list(array) == values == [array[at] for at in range(len(array))]
        assert all(value is None or isinstance(value, int if bits == 64 else bytes) for value in values)
        assert list(array[::-1]) == values[::-1] and list(array[1::2]) == values[1::2]
        assert list(array[5:]) == [] and list(array[::-2]) == values[::-2]
        assert values[0] in array and 5 not in array
        assert isinstance(array, collections.abc.Iterable)
        assert np.asarray(array).tolist() == values and np.asarray(array).shape == (len(values),)
        assert simstore.Profile(bits=bits).fingerprint(TEXT) == arrays(bits)[1][0]


@pytest.mark.parametrize("bits", plain.WIDTHS)
def test_an_array_is_a_column_of_a_frame(bits):
    pd, pl, pa = map(plain.optional, ("pandas", "polars", "pyarrow"))
    for array in arrays(bits):
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
    one, other = profile.fingerprint(TEXT), profile.fingerprint("another text")
    assert isinstance(one, bytes) and len(one) == 16
    kinds = [one, int.from_bytes(one, "big")]
    assert [simstore.distance(a, b) for a in kinds for b in kinds] == [0] * 4
    lists = [[one, other], *(np.array([one, other], dtype=dtype) for dtype in ("S16", "V16"))]
    lists.append(profile.fingerprints([TEXT, "another text"]))
    lists.append(np.array([list(one), list(other)], dtype=np.uint8))
    with simstore.Store(tmp_path / "store", bits=128) as store:
        for fingerprints in lists:
            assert simstore.distance(fingerprints, lists[0]).tolist() == [0, 0]
            store.insert_many(fingerprints, [1, 2])
        assert len(store) == 2
        assert store.query(one)[0].fingerprint == one and one in store
        assert store.snapshot().query_many([one])["fingerprint"].to_pylist() == [one]
    with pytest.raises(ValueError, match="bytes of length 3: expected a fingerprint of 128 bits, an int, or bytes of length 16"):
        simstore.distance(b"abc", one)
    with simstore.Store(tmp_path / "narrow") as store, pytest.raises(ValueError, match="expected a fingerprint of 64 bits, an int"):
        store.insert(one, 1)
    assert simstore.clusters([None, one, one]).tolist() == [1, 2, 2]


def test_tables_are_rows():
    result = simstore.dedup(ROWS)
    for table in (result.clusters, result.kept, simstore.self_join([1, 3, 2**63]), result.clusters["document"]):
        rows = table.to_pylist()
        assert list(table) == rows
        assert str(len(rows)) in table._repr_html_() and "<td>" in table._repr_html_()
    assert list(result) == result.clusters.to_pylist()
    assert json.loads(result.clusters.to_json()) == result.clusters.to_pylist()


def test_html_shows_no_markup_of_others():
    table = simstore.dedup([{"id": "<script>", "text": TEXT}, {"id": "b", "text": TEXT}]).clusters
    assert "&lt;script&gt;" in table._repr_html_() and "<script" not in table._repr_html_()


def test_everything_is_pickled():
    result = simstore.dedup(ROWS, pairs=True)
    again = pickle.loads(pickle.dumps(result))
    for name in ("clusters", "kept", "removed", "pairs"):
        assert list(getattr(again, name)) == list(getattr(result, name))
    assert again.labels.tolist() == result.labels.tolist() and again.is_kept.tolist() == result.is_kept.tolist()
    assert dict(again.summary) == dict(result.summary) and str(again.summary) == str(result.summary)
    assert again._repr_html_() == result._repr_html_() and again.to_json() == result.to_json()
    for bits in plain.WIDTHS:
        for array in [*arrays(bits), arrays(bits)[0][1:3], simstore.sketches(TEXTS, 2)]:
            again = pickle.loads(pickle.dumps(array))
            assert (list(again), again.type) == (list(array), array.type)
    pairs = [(TEXT, TEXT + " indeed", True), (TEXT, "another text", False)]
    evaluation = simstore.evaluate(pairs, documents=2, similar=[0.8, 0.9])
    compression = simstore.compression(np.arange(1000, dtype=np.uint64) << np.uint64(40))
    for made in (evaluation, compression):
        again = pickle.loads(pickle.dumps(made))
        assert (again.to_json(), repr(again), again._repr_html_()) == (made.to_json(), repr(made), made._repr_html_())
        assert json.loads(made.to_json())
    with pytest.raises(ValueError, match="no pickled table"):
        simstore._simstore._table(b"something else")


def test_json():
    result = simstore.dedup(ROWS)
    said = json.loads(result.to_json())
    assert said["summary"] == json.loads(result.summary.to_json()) == dict(result.summary)
    assert said["removed"] == list(result.removed)
    parts = simstore.JoinParts(3, bits=128)
    packed = parts.pack(simstore.Profile(bits=128).fingerprints([TEXT]))
    assert json.loads(packed.to_json())[0]["fingerprints"] == packed.to_pylist()[0]["fingerprints"].hex()


def test_labels_are_one_array_that_nobody_changes():
    result = simstore.dedup(ROWS)
    assert result.labels is result.labels and result.is_kept is result.is_kept
    with pytest.raises(ValueError, match="read-only"):
        result.labels[0] = 5
    alone = set(range(len(ROWS))) - set(result.clusters["document"])
    assert {at for at, label in enumerate(result.labels) if label == -1} == alone


def test_what_was_handed_over_without_its_duplicates():
    pd, pl, pa = map(plain.optional, ("pandas", "polars", "pyarrow"))
    texts = [row["text"] for row in ROWS]
    expected = [row["text"] for row in simstore.dedup(ROWS).unique(ROWS)]
    handed = {
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
    for name, (rows, texts_of) in handed.items():
        result = simstore.dedup(rows)
        unique, duplicates = result.unique(rows), result.duplicates(rows)
        assert type(unique) is type(rows) and texts_of(unique) == expected, name
        assert len(texts_of(unique)) + len(texts_of(duplicates)) == len(ROWS), name
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(ROWS)
    assert simstore.dedup(dataset).unique(dataset)["text"][:] == expected
    both = datasets.DatasetDict(train=dataset.select(range(20)), test=dataset.select(range(20, len(ROWS))))
    unique = simstore.dedup(both).unique(both)
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
    several = datasets.IterableDatasetDict(train=iterable, test=iterable)
    with pytest.raises(TypeError, match="IterableDataset among other tables"):
        simstore.dedup([TEXT]).unique(several)

    class Frame(pd.DataFrame):
        pass

    frame = Frame({"text": [TEXT, "another", TEXT], "x": 1})
    assert simstore.dedup(frame).unique(frame)["text"].tolist() == [TEXT, "another"]


def test_rows_of_datasets_streams_and_iterators_are_selected(tmp_path):
    pa = plain.optional("pyarrow.parquet")
    dataset_of = plain.optional("pyarrow.dataset").dataset.dataset
    expected = [row["text"] for row in simstore.dedup(ROWS).unique(ROWS)]
    table = pa.Table.from_pylist(ROWS)
    for name, some in (("a", table[:7]), ("b", table[7:])):
        pa.parquet.write_table(some, tmp_path / f"{name}.parquet", row_group_size=5)
    dataset = dataset_of(tmp_path)
    result = simstore.dedup(dataset)
    unique = result.unique(dataset)
    assert isinstance(unique, pa.dataset.Dataset) and unique.to_table()["text"].to_pylist() == expected
    assert unique.schema == dataset.schema and result.duplicates(dataset).count_rows() == len(ROWS) - len(expected)
    parts = {name: dataset_of(tmp_path / f"{name}.parquet") for name in "ab"}
    unique = simstore.dedup(parts).unique(parts)
    assert unique["a"].to_table()["text"].to_pylist() + unique["b"].to_table()["text"].to_pylist() == expected
    for count in (len(ROWS) - 1, len(ROWS) + 1):
        with pytest.raises(ValueError, match=f"a row for each of the {count} documents, found {len(ROWS)}"):
            simstore.dedup([TEXT] * count).unique(dataset)
    # A stream that has been read is made again.
    assert simstore.dedup(table.to_reader()).unique(table.to_reader())["text"].to_pylist() == expected
    assert [row["text"] for row in simstore.dedup(row for row in ROWS).unique(row for row in ROWS)] == expected
    relation = plain.optional("duckdb").from_arrow(table)
    assert simstore.dedup(relation).unique(relation)["text"].to_pylist() == expected


def test_what_fills_nulls_is_what_was_given():
    array = arrays(64)[0]
    assert array.to_numpy(fill=7)[1] == 7
    for fill in (1.5, "7", -1):
        with pytest.raises((ValueError, OverflowError)):
            array.to_numpy(fill=fill)
    assert np.asarray(simstore.sketches([TEXT], 2)).shape == (1,)
