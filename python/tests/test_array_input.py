"""Input from other libraries: bytes that are not UTF-8, arrays of any layout, masks."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers
import simstore

TEXT = "to be or not to be that is the question"
VALUES = [3, 2**64 - 1, 1 << 40, 0, 7, 2**63]


def invalid_strings(values, type_name):
    """Returns bytes as an Arrow string array. Arrow does not check that they are UTF-8."""
    pa = helpers.optional_module("pyarrow")
    binary = {"string": pa.binary(), "large_string": pa.large_binary(), "string_view": pa.binary_view()}[type_name]
    string_type = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}[type_name]
    return pa.array(values, binary).view(string_type)


INVALID = [TEXT.encode(), b"the quick brown fox caf\xc3", b"another", None, TEXT.encode()]
STRING_TYPES = ["string", "large_string", "string_view"]


def column_sources(column, ids=None):
    """Yields the column in each kind of source that `dedup` reads."""
    pa = helpers.optional_module("pyarrow")
    table = pa.table({"text": column} if ids is None else {"text": column, "id": ids})
    yield table
    yield table.to_batches()
    yield pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    yield {name: table[name] for name in table.column_names}
    yield table.set_column(0, "text", table["text"].dictionary_encode()) if column.type != pa.string_view() else table


@pytest.mark.parametrize("kind", STRING_TYPES)
def test_documents_with_invalid_utf8_are_malformed(kind):
    for source in column_sources(invalid_strings(INVALID, kind)):
        with pytest.raises(simstore.BadInputError, match="document 2: the field `text` is not valid UTF-8 from byte 23 on"):
            simstore.dedup(source)
    for source in column_sources(invalid_strings(INVALID, kind)):
        with pytest.warns(simstore.SimstoreWarning) as warned:
            result = simstore.dedup(source, skip_bad=True)
        assert "document 2: the field `text` is not valid" in str(warned[0].message)
        assert result.is_kept.tolist() == [True, False, True, True, False] and result.summary["bad"] == 1
    texts = helpers.optional_module("pyarrow").array(["a", "b", "c", "d", "e"])
    for source in column_sources(texts, invalid_strings(INVALID[:3] + INVALID[:2], kind)):
        with pytest.raises(simstore.BadInputError, match="document 2: its id is not valid UTF-8"):
            simstore.dedup(source)


def test_parquet_files_with_invalid_utf8(tmp_path):
    pd, pq = helpers.optional_module("pandas"), pytest.importorskip("pyarrow.parquet")
    pa = helpers.optional_module("pyarrow")
    pq.write_table(pa.table({"text": invalid_strings(INVALID, "string")}), tmp_path / "l.parquet")
    for frame in (pd.read_parquet(tmp_path / "l.parquet"), tmp_path / "l.parquet"):
        with pytest.raises(simstore.BadInputError, match="UTF-8"):
            simstore.dedup(frame)


@pytest.mark.parametrize("kind", STRING_TYPES)
def test_calls_with_invalid_texts_change_nothing(tmp_path, kind):
    column = invalid_strings(INVALID, kind)
    five = np.arange(5, dtype=np.uint64)
    store = simstore.Store(tmp_path / "store")
    builder = simstore.Builder(tmp_path / "built")
    calls = {
        "fingerprints": lambda: simstore.Profile().fingerprints(column),
        "bands": lambda: simstore.bands(column),
        "insert_many": lambda: store.insert_many(five, five, column),
        "insert_many_if_new": lambda: store.insert_many_if_new(five, five, column),
        "build": lambda: builder.insert_many(five, five, column),
        "surrogates": lambda: store.insert_many(five, five, ["a", "b\ud800", "c", "d", "e"]),
        "objects": lambda: simstore.Profile().fingerprints(["a", "b\ud800"]),
    }
    with store.batch() as batch:
        calls["batch"] = lambda: batch.insert_many(five, five, column)
        for name, call in calls.items():
            with pytest.raises(ValueError, match="(text|name) 1 is not valid"):
                call()
                print(name)
    assert len(store) == 0
    store.insert_many(five, five, ["a", None, "c", "d", "e"])
    store.close()
    assert simstore.Snapshot(tmp_path / "store").names(five).to_pylist() == ["a", None, "c", "d", "e"]


def test_labelled_pairs_with_invalid_utf8():
    pa = helpers.optional_module("pyarrow")
    table = pa.table({"text_a": invalid_strings(INVALID[:2], "string"), "text_b": ["a", "b"]})
    rows = [{"text_a": "a", "text_b": "b"}, ("a\ud800", "b")]
    for pairs in (table, rows):
        with pytest.raises(simstore.BadInputError, match=":2: .*text_a` is not valid"):
            simstore.evaluate(pairs)
        with pytest.warns(simstore.SimstoreWarning) as warned:
            assert simstore.evaluate(pairs, skip_bad=True, documents=2).bad == 1
        assert "text_a` is not valid" in str(warned[0].message)


LAYOUTS = {
    "field of packed records": lambda a: packed_records(a)["value"],
    "recarray": lambda a: packed_records(a).view(np.recarray).value,
    "every third": lambda a: np.repeat(a, 3, axis=0)[::3],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "fields of the other byte order": lambda a: packed_records(a.astype(a.dtype.newbyteorder(">")))["value"],
    "odd offset": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
    "columns first": lambda a: np.asfortranarray(a),
    "read only": lambda a: read_only_copy(a),
    "subclass": lambda a: a.view(type("Named", (np.ndarray,), {})),
    "unmasked": lambda a: np.ma.masked_array(a),
    "objects": lambda a: a.astype(object) if a.ndim == 1 else a,
}


def packed_records(a):
    records = np.zeros(len(a), [("first", "u1"), ("value", a.dtype, a.shape[1:]), ("last", "<u2")])
    records["value"] = a
    return records


def read_only_copy(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def call_each_function(folder, lay_out, values, bits):
    """Yields the result of each function that takes an array of fingerprints or ids. `lay_out` changes the memory layout of an array."""
    fingerprints, ids = helpers.to_array(values, bits), np.arange(1, len(values) + 1, dtype=np.uint64)
    laid_out = lay_out(fingerprints)
    store = simstore.Store(folder / "store", bits=bits, distance=3)
    store.insert_many(laid_out, lay_out(ids))
    yield store.insert_many_if_new(laid_out, lay_out(ids)).tolist()
    yield store.snapshot().query_many(laid_out).to_pylist()
    yield store.snapshot().contains_many(laid_out).tolist()
    yield store.snapshot().names(lay_out(ids)).to_pylist()
    with store.batch() as batch:
        batch.insert_many(laid_out, lay_out(ids))
        batch.delete_many(laid_out[:1], lay_out(ids)[:1])
    yield store.delete_many(laid_out, lay_out(ids)).tolist()
    store.close()
    with simstore.Builder(folder / "built", bits=bits) as builder:
        builder.insert_many(laid_out, lay_out(ids))
    yield simstore.Snapshot(folder / "built").query_many(fingerprints).to_pylist()
    yield simstore.distance(laid_out, fingerprints).tolist()
    yield simstore.distance(fingerprints, laid_out).tolist()
    yield simstore.clusters(laid_out, bits=bits).tolist()
    yield simstore.self_join(laid_out, bits=bits).to_pylist()
    yield simstore.dedup(laid_out, bits=bits).clusters.to_pylist()
    yield simstore.compression(laid_out).distinct
    parts = simstore.JoinParts(3, bits=bits)
    yield parts.pack(laid_out).to_pylist()
    forest = simstore.Forest(bits)
    forest.connect(laid_out, laid_out[::-1])
    yield forest.edges().to_pylist()


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_an_array_is_the_same_array(tmp_path, layout, bits):
    for folder in ("plain", "laid out"):
        (tmp_path / folder).mkdir()
    expected = list(call_each_function(tmp_path / "plain", lambda a: a, VALUES, bits))
    found = list(call_each_function(tmp_path / "laid out", LAYOUTS[layout], VALUES, bits))
    for number, (result, expected_result) in enumerate(zip(found, expected, strict=True)):
        assert result == expected_result, number


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_strides_offsets_and_types(data):
    dtype = data.draw(st.sampled_from(["<u8", ">u8", "<i8", ">i8", "<u4", ">u4", "u1", "<u2", "i1", ">i4", "O"]), "type")
    count = data.draw(st.integers(0, 20), "count")
    max_value = 127 if dtype in ("u1", "i1") else 2**15
    values = data.draw(st.lists(st.integers(0, max_value), min_size=count, max_size=count))
    size = np.dtype(dtype).itemsize
    if dtype == "O":
        array = np.array(values + [None], dtype=object)[:-1]
    else:
        stride = data.draw(st.integers(size, size + 9), "stride") * data.draw(st.sampled_from([1, -1]), "direction")
        offset = data.draw(st.integers(0, 9), "offset") + (-stride * max(count - 1, 0) if stride < 0 else 0)
        buffer = bytearray(abs(stride) * max(count, 1) + offset + size)
        array = np.ndarray((count,), dtype, buffer, offset, (stride,))
        array[:] = values
    expected = np.array(values, dtype=np.uint64)
    assert simstore.distance(array, expected).tolist() == [0] * count
    assert simstore.clusters(array, 0).tolist() == helpers.brute_force_labels(values, 0, 64)


def test_a_mapped_file_of_records(tmp_path):
    np.save(tmp_path / "a.npy", packed_records(np.array(VALUES, dtype=np.uint64)))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert simstore.distance(mapped["value"], VALUES).tolist() == [0] * len(VALUES)


def test_masks_are_nulls_or_refused(tmp_path):
    values = np.ma.masked_array(np.array([1, 1, 8], dtype=np.uint64), mask=[False, True, False])
    with simstore.Store(tmp_path / "store") as store:
        with pytest.raises(ValueError, match="fingerprint 1 is null"):
            store.insert_many(values, range(3))
        with pytest.raises(ValueError, match="1 ids are null"):
            store.insert_many(range(3), values)
        with pytest.raises(ValueError, match="fingerprint 1 is null"):
            simstore.distance(values, values)
        with pytest.raises(ValueError, match="fingerprint 1 is null"):
            simstore.dedup(values)
        store.insert_many(values.compressed(), [1, 2])
        assert store.snapshot().contains_many(values).tolist() == [True, False, True]
    assert simstore.clusters(values).tolist() == [1, 2, 1]
    texts = np.ma.masked_array(np.array([TEXT, TEXT, TEXT], dtype=object), mask=[False, True, False])
    assert simstore.dedup(texts).is_kept.tolist() == [True, True, False]
    assert simstore.Profile().fingerprints(texts).null_count == 1
    wide = np.ma.masked_array(np.zeros((2, 16), np.uint8), mask=[[True] + [False] * 15, [False] * 16])
    assert len(simstore.self_join(wide)) == 0
    assert simstore.distance(np.ma.masked_array([1, 2]), [1, 2]).tolist() == [0, 0]
    assert simstore.clusters([1, np.ma.masked]).tolist() == [1, 2]


def test_file_name_that_is_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    with open(os.fsencode(tmp_path) + b"/b\xff.txt", "w") as file:
        file.write(TEXT)
    assert simstore.dedup(f"{tmp_path}/*.txt").summary["duplicates"] == 1
    assert simstore.dedup([f"{tmp_path}/*.t?t"]).summary["duplicates"] == 1
