"""`JoinParts` and `Forest`: the parts of a distributed join find the same pairs and clusters as one join."""

import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers
import simstore

pa = pytest.importorskip("pyarrow")


def route(parts, fingerprints, tasks=3, buckets=4):
    """Returns the rows that distributed tasks would send to each place of the join, by place. A place is one part of one table."""
    bucket_rows, place_rows = defaultdict(list), defaultdict(list)
    for task in range(tasks):
        task_fingerprints = helpers.to_array(fingerprints[task::tasks], parts.bits)
        for row in parts.pack(task_fingerprints, buckets).to_pylist():
            assert 0 <= row["place"] < buckets
            bucket_rows[row["place"]].append(row)
    for rows in bucket_rows.values():
        for row in parts.scatter(column(rows, "fingerprints"), column(rows, "repeated")).to_pylist():
            place_rows[row["place"]].append(row)
    assert all(0 <= place < parts.tables * parts.parts for place in place_rows)
    return place_rows


def column(rows, name):
    return pa.array([row[name] for row in rows], pa.binary())


def to_int(value):
    return value if isinstance(value, int) else int.from_bytes(value, "big")


def expected_pairs(fingerprints, distance, bits):
    """Returns rows (a, b, distance) of different fingerprints, and (a, a, 0) for each fingerprint that occurs several times."""
    distinct = sorted(set(fingerprints))
    pairs = {(distinct[a], distinct[b], pair_distance) for a, b, pair_distance in helpers.brute_force_pairs(distinct, distance, bits)}
    return sorted(pairs | {(fingerprint, fingerprint, 0) for fingerprint in distinct if fingerprints.count(fingerprint) > 1})


def joined_pairs(parts, fingerprints):
    rows = []
    for place, received in route(parts, fingerprints).items():
        for table in parts.pairs(place, column(received, "fingerprints"), column(received, "repeated")):
            rows += [(to_int(row["a"]), to_int(row["b"]), row["distance"]) for row in table.to_pylist()]
    return sorted(rows)


def joined_forest(parts, fingerprints):
    forest = simstore.Forest(parts.bits)
    for place, received in route(parts, fingerprints).items():
        forest.merge(parts.forest(place, column(received, "fingerprints"), column(received, "repeated")))
    return forest


def forest_clusters(forest):
    clusters = defaultdict(set)
    for row in forest.edges().to_pylist():
        root, member = to_int(row["first"]), to_int(row["member"])
        assert root <= member
        clusters[root] |= {root, member}
    return clusters


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), distance=st.integers(0, 6), part_count=st.sampled_from([1, 2, 8, 64]))
def test_pairs_and_forests_are_those_of_brute_force(bits, data, distance, part_count):
    fingerprints = data.draw(helpers.fingerprint_lists(bits))
    parts = simstore.JoinParts(distance, parts=part_count, bits=bits)
    pairs = expected_pairs(fingerprints, distance, bits)
    assert joined_pairs(parts, fingerprints) == pairs
    reference = simstore.Forest(bits)
    reference.connect(*(helpers.to_array([pair[end] for pair in pairs], bits) for end in (0, 1)))
    assert forest_clusters(joined_forest(parts, fingerprints)) == forest_clusters(reference)


def test_a_dense_group_is_connected_without_its_pairs():
    rng = np.random.default_rng(5)
    dense_group = np.unique(rng.integers(0, 1 << 12, 5000).astype(np.uint64))
    parts = simstore.JoinParts(3, parts=4)
    forest = joined_forest(parts, [int(fingerprint) for fingerprint in dense_group])
    assert forest_clusters(forest) == {int(dense_group[0]): {int(fingerprint) for fingerprint in dense_group}}


def test_pairs_come_in_batches_that_may_stay_unread():
    dense_group = np.arange(2000, dtype=np.uint64)
    parts = simstore.JoinParts(16)
    packed = parts.pack(dense_group)
    received = parts.scatter(packed["fingerprints"], packed["repeated"])
    batches = parts.pairs(0, received["fingerprints"][:1], received["repeated"][:1])
    first = next(batches)
    # The unread batches of the first iterator do not block a second one.
    pair_count = sum(len(table) for table in parts.pairs(0, received["fingerprints"][:1], received["repeated"][:1]))
    assert len(first) < pair_count == 2000 * 1999 // 2


def test_attributes_of_join_parts():
    parts = simstore.JoinParts(3, parts=5, bits=128)
    assert (parts.distance, parts.parts, parts.tables, parts.bits) == (3, 8, 4, 128)
    assert repr(parts) == "JoinParts(3, parts=8, bits=128, tables=4)" == repr(pickle.loads(pickle.dumps(parts)))
    large_memory, small_memory = (simstore.JoinParts.choose(10**9, 3, memory=memory) for memory in (10**12, 10**8))
    assert large_memory.parts == 1 and small_memory.parts == 512


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simstore.JoinParts(17), "17"),
        (lambda: simstore.JoinParts(3, parts=0), "parts"),
        (lambda: simstore.JoinParts(3, bits=32), "`bits` is 32"),
        (lambda: simstore.Forest(1), "`bits` is 1"),
        (lambda: simstore.JoinParts(3).pack([1], 0), "bucket"),
        (lambda: simstore.JoinParts(3).pairs(4, pa.array([b""]), pa.array([b""])), "no place 4"),
        (lambda: simstore.JoinParts(3).scatter(pa.array([b"123"]), pa.array([b""])), "3 bytes"),
        (lambda: simstore.Forest().merge(pa.array([b"12345678"])), "two fingerprints"),
        (lambda: simstore.Forest().connect([1], [1, 2]), "1 and 2"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_arrays_that_are_not_packed_are_refused():
    with pytest.raises(TypeError, match="packed"):
        simstore.Forest().merge([b"1"])
    with pytest.raises(TypeError, match="Int64"):
        simstore.Forest().merge(pa.array([1]))


def test_join_that_fits_in_no_number_of_parts_is_refused():
    with pytest.raises(simstore.Error, match="memory"):
        simstore.JoinParts.choose(10**12, memory=10**6)
