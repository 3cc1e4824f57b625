"""`dedup` gives the same result for files, frames, streams, iterables and arrays."""

import datetime
import decimal
import enum
import fractions
import sqlite3
import warnings

import numpy as np
import pytest

import simstore
from corpora import SAMPLES, sample_rows

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS = sample_rows("en.jsonl")
TEXT = "to be or not to be that is the question"


def result_rows(result):
    return [getattr(result, name).to_pylist() for name in ("clusters", "kept", "removed")]


EXPECTED = result_rows(simstore.dedup(SAMPLES / "en.jsonl"))


def batch_reader(rows, size=10):
    table = pa.Table.from_pylist(rows)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


def dictionary_encoded():
    table = pa.Table.from_pylist(ROWS)
    return table.set_column(table.schema.get_field_index("text"), "text", table["text"].dictionary_encode())


def table_of_type(arrow_type):
    return pa.Table.from_pylist(ROWS).cast(pa.schema([("id", arrow_type), ("text", arrow_type)]))


def row_columns():
    return {name: [row[name] for row in ROWS] for name in ("id", "text")}


def dataset_of_files():
    ds = pytest.importorskip("pyarrow.dataset")
    return ds.dataset([pa.Table.from_pylist(ROWS[:20]), pa.Table.from_pylist(ROWS[20:])])


SOURCES = {
    "path": lambda: SAMPLES / "en.jsonl",
    "text of a path": lambda: str(SAMPLES / "en.jsonl"),
    "pattern": lambda: f"{SAMPLES}/e?.jsonl",
    "list of paths": lambda: [SAMPLES / "en.jsonl"],
    "list of dicts": lambda: ROWS,
    "generator of dicts": lambda: (dict(row) for row in ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas of objects": lambda: pd.DataFrame(ROWS, dtype=object),
    "pandas with another index": lambda: pd.DataFrame(ROWS, index=range(100, 100 + len(ROWS))),
    "pandas of Arrow": lambda: pd.DataFrame(ROWS).astype("string[pyarrow]"),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars with other columns": lambda: pl.DataFrame(ROWS).with_columns(pl.lit(None).alias("x"), pl.lit(1j, pl.Object).alias("y")),
    "polars in chunks": lambda: pl.concat([pl.DataFrame(ROWS[:20]), pl.DataFrame(ROWS[20:])], rechunk=False),
    "pyarrow table": lambda: pa.Table.from_pylist(ROWS),
    "pyarrow batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "pyarrow stream": lambda: batch_reader(ROWS),
    "large strings": lambda: table_of_type(pa.large_string()),
    "views of strings": lambda: table_of_type(pa.string_view()),
    "dictionary": dictionary_encoded,
    "polars lazily": lambda: pl.LazyFrame(ROWS).with_columns(pl.lit(1).alias("x")),
    "polars in batches": lambda: pl.LazyFrame(ROWS).collect_batches(chunk_size=10),
    "list of batches": lambda: pa.Table.from_pylist(ROWS).to_batches(max_chunksize=10),
    "generator of batches": lambda: iter(pa.Table.from_pylist(ROWS).to_batches(max_chunksize=10)),
    "chunks of pandas": lambda: (pd.DataFrame(ROWS[at : at + 10]) for at in range(0, len(ROWS), 10)),
    "dataset of pyarrow": lambda: dataset_of_files(),
    "dict of columns": lambda: row_columns(),
    "dict of arrays": lambda: {name: np.array(column, dtype=object) for name, column in row_columns().items()},
    "dict of Arrow": lambda: {name: pa.array(column) for name, column in row_columns().items()},
    "dict of series": lambda: {name: pl.Series(column) for name, column in row_columns().items()},
    "dict of frames": lambda: {"train": pd.DataFrame(ROWS[:20]), "test": pl.DataFrame(ROWS[20:])},
    "sliced": lambda: pa.concat_tables([pa.Table.from_pylist(ROWS[:9] + ROWS).slice(9)]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_source_gives_the_same(name):
    result = simstore.dedup(SOURCES[name]())
    assert result_rows(result) == EXPECTED
    assert result.is_kept.dtype == bool and result.is_kept.shape == (len(ROWS),)


def test_frames_are_filtered_by_what_is_kept():
    frame = pd.DataFrame(ROWS)
    result = simstore.dedup(frame)
    kept = result.kept["id"].to_pylist()
    assert frame[result.is_kept]["id"].tolist() == kept
    assert pl.DataFrame(ROWS).filter(result.is_kept)["id"].to_list() == kept
    assert pa.Table.from_pylist(ROWS).filter(pa.array(result.is_kept))["id"].to_pylist() == kept
    assert result.labels.shape == result.is_kept.shape


def test_duckdb_and_datasets(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    frame = pl.DataFrame(ROWS)  # noqa: F841
    with duckdb.connect() as connection:
        assert result_rows(simstore.dedup(connection.sql("select id, text from frame"))) == EXPECTED
        result = simstore.dedup(SAMPLES / "en.jsonl")
        clusters = result.clusters  # noqa: F841
        counted = connection.sql("select count(distinct cluster) from clusters").fetchall()
        assert counted == [(result.summary["clusters"],)]
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    dataset = datasets.Dataset.from_list(ROWS)
    halves = datasets.DatasetDict(train=dataset.select(range(20)), test=dataset.select(range(20, len(ROWS))))
    for source in (dataset, halves, dataset.to_iterable_dataset()):
        assert result_rows(simstore.dedup(source)) == EXPECTED
    is_kept = simstore.dedup(SAMPLES / "en.jsonl").is_kept.tolist()
    assert simstore.dedup(dataset["text"]).is_kept.tolist() == is_kept


def test_pandas_without_pyarrow(monkeypatch):
    import sys

    frame = pd.DataFrame(ROWS, dtype=object)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert result_rows(simstore.dedup(frame)) == EXPECTED


@pytest.mark.parametrize("make", [pl.Series, pd.Series, lambda texts: np.array(texts, dtype=object), pa.array])
def test_arrays_of_texts_are_numbered(make):
    result = simstore.dedup(make([TEXT, "another", None, TEXT]))
    assert result.is_kept.tolist() == [True, True, True, False]
    assert result.removed["duplicate_of"].to_pylist() == [0] and result.summary["empty"] == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda values: np.array(values, dtype=np.uint64),
        lambda values: values,
        lambda values: pa.array(values, pa.uint64()),
        lambda values: pl.Series(values, dtype=pl.UInt64),
        lambda values: pd.Series(values, dtype="uint64"),
        lambda values: simstore.Profile().fingerprints(["a"])[0:0] if not values else np.array(values, np.uint64),
    ],
)
def test_arrays_of_fingerprints_are_joined_by_distance(make, tmp_path):
    values = [0, 7, 2**64 - 1, 15, 1 << 40]
    result = simstore.dedup(make(values), output=tmp_path / "kept.hex")
    assert result.is_kept.tolist() == [True, False, True, False, False]
    assert result.clusters["distance"].to_pylist() == [0, 3, 4, 1]
    assert (tmp_path / "kept.hex").read_text() == "0000000000000000\t0\nffffffffffffffff\t2\n"
    with pytest.raises(ValueError, match="option `similar` needs documents"):
        simstore.dedup(make(values), similar=0.8)


def test_several_fields_missing_texts_and_nested_fields():
    rows = [{"title": "to be", "body": {"text": "or not"}, "id": 5}, {"title": "to be\nor not", "body": None, "id": 6}]
    rows += [{"title": None, "body": {"text": None}, "id": 7}, {"id": 8}]
    names = ["title", "body.text"]
    result = simstore.dedup(rows, text=names)
    assert result.summary["empty"] == 2 and result.removed["id"].to_pylist() == [6]
    columns = pa.table({"title": [row.get("title") for row in rows], "body": [row.get("body") for row in rows]})
    assert simstore.dedup(columns, text=names).is_kept.tolist() == result.is_kept.tolist() == [True, False, True, True]
    frame = pd.DataFrame({"a": ["to be", np.nan], "b": ["or not", "to be\nor not"]})
    assert simstore.dedup(frame, text=["a", "b"]).is_kept.tolist() == [True, False]


def test_the_newest_is_kept():
    stamps = pd.to_datetime(["2024-01-01", "2025-06-01", None])
    dates = [None if stamp is pd.NaT else stamp.isoformat() for stamp in stamps]
    frame = pd.DataFrame({"text": [TEXT] * 3, "date": stamps})
    sources = [
        frame,
        pl.DataFrame({"text": [TEXT] * 3, "date": dates}),
        pl.from_pandas(frame),
        [{"text": TEXT, "date": date} for date in dates],
        [{"text": TEXT, "date": stamp} for stamp in stamps],
    ]
    for source in sources:
        with pytest.warns(simstore.SimstoreWarning, match="1 document without `date`"):
            assert simstore.dedup(source, keep="newest:date").is_kept.tolist() == [False, True, False]
    numbers = [{"text": TEXT, "date": number} for number in (9, 10, 2.5)]
    assert simstore.dedup(numbers, keep="newest:date").is_kept.tolist() == [False, True, False]


@pytest.mark.parametrize("rule", ["newest", "largest", "smallest"])
def test_numbers_of_any_type_are_compared_by_value(rule):
    types = [int, float, str, np.float64, np.float32, np.int64, np.uint8, decimal.Decimal, fractions.Fraction]
    types += [lambda number: enum.IntEnum("Size", {"A": number}).A, np.array]
    values = [convert(number) for convert, number in zip(types, [9, 10, 8, 11, 7, 12, 6, 100, 1000, 5, 2000])]
    expected_size = {"newest": 2000, "largest": 2000, "smallest": 5}[rule]
    for sizes in [values, values[::-1]]:
        sources = [[{"text": TEXT, "size": value} for value in sizes]]
        sources.append(pd.DataFrame({"text": [TEXT] * len(sizes), "size": pd.Series(sizes, dtype=object)}))
        for source in sources:
            (kept,) = np.flatnonzero(simstore.dedup(source, keep=f"{rule}:size").is_kept)
            assert int(sizes[kept]) == expected_size
    numbers = np.random.default_rng(5).choice([-np.inf, -2, -0.5, -0.0, 0.0, 1, 2.5, np.inf, np.nan], 200)
    columns = {"text": [TEXT] * 200, "size": numbers}
    best = {"newest": max, "largest": max, "smallest": min}[rule]
    expected = list(numbers).index(best(number for number in numbers if number == number))
    rows = [{"text": TEXT, "size": number} for number in numbers]
    for source in [rows, pd.DataFrame(columns), pa.table(columns), pl.DataFrame(columns)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", simstore.SimstoreWarning)
            kept = np.flatnonzero(simstore.dedup(source, keep=f"{rule}:size").is_kept)
        assert kept.tolist() == [expected]


def test_dates_booleans_and_durations_have_an_order():
    days = [np.datetime64("2024-01-01"), np.datetime64("2026-01-01", "ns"), datetime.date(2025, 1, 1)]
    booleans = [False, np.True_, 0.5]
    durations = [datetime.timedelta(1), datetime.timedelta(10), datetime.timedelta(9)]
    for values in (days, booleans, durations):
        rows = [{"text": TEXT, "at": value} for value in values]
        assert simstore.dedup(rows, keep="newest:at").is_kept.tolist() == [False, True, False]
    with pytest.warns(simstore.SimstoreWarning, match="1 document without `at`"):
        simstore.dedup([{"text": TEXT, "at": np.datetime64("NaT")}, {"text": TEXT, "at": days[0]}], keep="newest:at")


def test_a_rule_of_numbers_needs_numbers():
    rows = [{"text": TEXT, "size": "soon"}, {"text": TEXT, "size": 5}]
    with pytest.warns(simstore.SimstoreWarning, match="1 document without a number in `size`"):
        assert simstore.dedup(rows, keep="smallest:size").is_kept.tolist() == [False, True]
    with pytest.raises(simstore.Error, match="no document has a number in a field `size`"):
        simstore.dedup(rows[:1], keep="largest:size")
    with pytest.raises(ValueError, match="largest:FIELD"):
        simstore.dedup(rows, keep="largest")


def test_missing_columns_are_named():
    for frame in (pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.Table.from_pylist(ROWS)):
        with pytest.raises(ValueError, match="no column `body`: the columns are .*; select another with option `text`"):
            simstore.dedup(frame, text="body")
        with pytest.raises(ValueError, match=r"no column `txet` \(did you mean `text`\?\): the columns are"):
            simstore.dedup(frame, text="txet")
        with pytest.raises(ValueError, match="no column `url`"):
            simstore.dedup(frame, id="url")
        with pytest.raises(ValueError, match="no column `date`"):
            simstore.dedup(frame, keep="newest:date")
    with pytest.raises(TypeError, match="column `text`: expected texts, found"):
        simstore.dedup(pl.DataFrame({"text": [1]}))


def test_texts_are_texts_and_paths_are_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [TEXT, "another", TEXT, None]
    expected = [True, True, False, True]
    for source in (texts, tuple(texts), iter(texts), (text for text in texts), {"text": texts}, {"text": tuple(texts)}.copy()):
        assert simstore.dedup(source).is_kept.tolist() == expected
    assert simstore.dedup({"one text", "another one"}).summary["kept"] == 2
    assert simstore.dedup(["what?", "why?", "**", "[a]", "a*b"]).summary["documents"] == 5
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(TEXT)
    for paths in (["a.txt", "b.txt"], [tmp_path / "a.txt", "b.txt"], ["?.txt"], "*.txt", ["a.txt", "*.txt"]):
        assert simstore.dedup(paths).summary["duplicates"] == 1
    assert simstore.dedup({"text": ["a.txt", "b.txt"]}).summary["duplicates"] == 0
    with pytest.raises(ValueError, match="'a.txt' is a file, but 'c.txt' is none. For texts, give"):
        simstore.dedup(["c.txt", "a.txt"])
    with pytest.raises(ValueError, match="'a.txt' is a file, but 'to be or not .*' is none"):
        simstore.dedup(["a.txt", TEXT])
    with pytest.raises(FileNotFoundError, match="none of the strings is a file: 'c.txt'. If they are texts"):
        simstore.dedup(["c.txt", "d.txt"])
    with pytest.raises(TypeError, match="put paths in a list"):
        simstore.dedup(tmp_path.glob("*.txt"))
    with pytest.raises(ValueError, match="column `text` has 1 values, column `title` 2|column `title`"):
        simstore.dedup({"title": ["a", "b"], "text": ["c"]}, text=["title", "text"])
    with pytest.raises(ValueError, match="all items are missing"):
        simstore.dedup([None])


def test_columns_and_items_of_all_kinds():
    nan = float("nan")
    lists = ([TEXT, nan, TEXT], [nan, TEXT, TEXT], [TEXT, pd.NA, {"text": TEXT}])
    arrays = (np.array([None, TEXT, TEXT], dtype=object), pd.Series([TEXT, None, TEXT], dtype=object))
    for source in (*lists, *arrays):
        assert sorted(simstore.dedup(source).is_kept) == [False, True, True]
    struct = pa.StructArray.from_arrays([pa.array([TEXT, TEXT])], ["text"], mask=pa.array([False, True]))
    for source in (struct, pa.chunked_array([struct])):
        assert simstore.dedup(source).is_kept.tolist() == [True, True]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([TEXT]))
    nested = pa.StructArray.from_arrays([runs], ["b"], mask=pa.array([False, True]))
    assert simstore.dedup(pa.table({"a": nested}), text="a.b").is_kept.tolist() == [True, True]
    mixed = pl.DataFrame({"text": [TEXT, TEXT], "m": [{"a": 1}, {"a": 2}]}).to_dict()
    assert simstore.dedup(mixed).is_kept.tolist() == [True, False]
    values = pd.Series([2**63, 2**63 + 1, 0xFFFF], dtype=object)
    assert simstore.dedup(values).is_kept.tolist() == [True, False, True]
    assert simstore.clusters(pd.Series([1, 2**62 + 0xFF0], dtype="int64")).tolist() == [1, 2]
    empty = {"text": pd.Series([nan, nan])}
    for source in (pd.DataFrame(empty), pl.Series([None, None]), pl.DataFrame({"text": [None, None]})):
        assert simstore.dedup(source).summary["empty"] == 2
    assert simstore.Profile().fingerprints(pl.Series([None])).null_count == 1


def test_malformed_sources_are_refused(monkeypatch):
    class Broken:
        def __iter__(self):
            raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        simstore.dedup(Broken())
    with pytest.raises(ValueError, match="surrogates not allowed"):
        simstore.dedup("caf\ud800 a", skip_bad=True)
    for scalar in (np.array(TEXT), np.array(5, dtype=np.uint64), np.array(None, dtype=object)):
        with pytest.raises(TypeError, match="shape ()"):
            simstore.dedup(scalar)
        with pytest.raises(TypeError, match="shape ()"):
            simstore.Profile().fingerprints(scalar)
    with pytest.raises(ValueError, match="option `text` names no field"):
        simstore.dedup(ROWS, text=[])
    with pytest.raises(ValueError, match="fingerprints of 64 bits are 0 to"):
        simstore.clusters(pa.array([-1]))
    for call in (lambda: simstore.clusters([True, False]), lambda: simstore.dedup([True, False])):
        with pytest.raises(TypeError, match="not bool"):
            call()

    class Short(list):
        def __len__(self):
            return 9

    with pytest.raises(ValueError, match="says that it has 9 values, and gives 1"):
        simstore.dedup({"text": Short([TEXT])})
    repeated_columns = pd.DataFrame([[TEXT, TEXT], ["a", "b"], [TEXT, "c"]], columns=["text", "text"])
    for without_pyarrow in (False, True):
        if without_pyarrow:
            import sys

            monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ValueError, match="2 columns are called `text`"):
            simstore.dedup(repeated_columns)


def test_empty_sources():
    for empty in ([], iter([]), pl.DataFrame({"text": []}), pd.DataFrame({"text": []}, dtype=str), np.array([], np.uint64)):
        with pytest.warns(simstore.SimstoreWarning, match="the inputs hold nothing"):
            result = simstore.dedup(empty)
        assert result.is_kept.shape == (0,) and result.summary["documents"] == 0 and len(result.clusters) == 0


INVALID_ROWS = [
    {"text": TEXT},
    {"text": 3},
    {"text": "alone", "id": -1},
    {"text": TEXT, "id": 9},
    {"text": "x", "id": 2**64},
    {"text": "x", "id": "n" * 70_000},
]


def test_malformed_rows_raise_or_are_skipped():
    with pytest.raises(simstore.BadInputError, match="document 2: the field `text` is int") as raised:
        simstore.dedup(INVALID_ROWS)
    assert (raised.value.path, raised.value.line) == ("-", 2)
    with pytest.warns(simstore.SimstoreWarning) as warned:
        result = simstore.dedup(iter(INVALID_ROWS), skip_bad=True)
    assert [str(warning.message).split(": ")[1] for warning in warned if "-:" in str(warning.message)] == [
        "document 2",
        "document 3",
        "document 5",
        "document 6",
    ]
    assert result.is_kept.tolist() == [True, False, False, False, False, False]
    assert result.labels.tolist() == [1, -1, -1, 1, -1, -1] and result.summary["bad"] == 4
    assert result.removed.to_pylist()[0]["document"] == 3
    frame = pl.DataFrame({"id": [1, -5, None, 2], "text": [TEXT] * 4})
    with pytest.warns(simstore.SimstoreWarning):
        assert simstore.dedup(frame, skip_bad=True).is_kept.tolist() == [True, False, False, False]


@pytest.mark.parametrize("source", [3, ({"a"} for _ in range(2)), iter([b"text"]), [1.5]])
def test_invalid_sources_are_refused(source):
    with pytest.raises(TypeError, match="expected"):
        simstore.dedup(source)


def test_exceptions_of_iterators_are_raised():
    def rows(row_count):
        for _ in range(row_count):
            yield {"text": TEXT}
        raise LookupError("the source is gone")

    for row_count in (0, 1, 5000):
        with pytest.raises(LookupError, match="the source is gone"):
            simstore.dedup(rows(row_count))
    with pytest.raises(Exception, match="the source is gone"):
        schema = pa.schema([("text", pa.string())])
        batches = (pa.RecordBatch.from_pylist([row], schema) for row in rows(3))
        simstore.dedup(pa.RecordBatchReader.from_batches(schema, batches))


def test_an_iterator_belongs_to_the_thread_that_calls():
    # SQLite raises an error if another thread uses a cursor.
    with sqlite3.connect(":memory:") as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("create table pages (id integer, text)")
        connection.executemany("insert into pages values (?, ?)", [(row, TEXT) for row in range(3000)])
        rows = (dict(row) for row in connection.execute("select * from pages order by id"))
        assert simstore.dedup(rows).summary["kept"] == 1
