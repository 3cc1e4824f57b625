"""Joins in parts and forests: the parts together find what the whole finds."""

import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain
import simstore

pa = pytest.importorskip("pyarrow")


def routed(parts, fingerprints, tasks=3, buckets=4):
    """The rows of each place, as tasks would send them."""
    of_bucket, of_place = defaultdict(list), defaultdict(list)
    for task in range(tasks):
        some = plain.array(fingerprints[task::tasks], parts.bits)
        for row in parts.pack(some, buckets).to_pylist():
            assert 0 <= row["place"] < buckets
            of_bucket[row["place"]].append(row)
    for rows in of_bucket.values():
        for row in parts.scatter(column(rows, "fingerprints"), column(rows, "repeated")).to_pylist():
            of_place[row["place"]].append(row)
    assert all(0 <= place < parts.tables * parts.parts for place in of_place)
    return of_place


def column(rows, name):
    return pa.array([row[name] for row in rows], pa.binary())


def number(value):
    return value if isinstance(value, int) else int.from_bytes(value, "big")


def expected(fingerprints, distance, bits):
    """Pairs of different fingerprints, and those that are there several times with themselves."""
    distinct = sorted(set(fingerprints))
    pairs = {(distinct[a], distinct[b], near) for a, b, near in plain.pairs(distinct, distance, bits)}
    return sorted(pairs | {(one, one, 0) for one in distinct if fingerprints.count(one) > 1})


def found(parts, fingerprints):
    rows = []
    for place, sent in routed(parts, fingerprints).items():
        for table in parts.pairs(place, column(sent, "fingerprints"), column(sent, "repeated")):
            rows += [(number(row["a"]), number(row["b"]), row["distance"]) for row in table.to_pylist()]
    return sorted(rows)


def connected(parts, fingerprints):
    forest = simstore.Forest(parts.bits)
    for place, sent in routed(parts, fingerprints).items():
        forest.merge(parts.forest(place, column(sent, "fingerprints"), column(sent, "repeated")))
    return forest


def clusters_of(forest):
    clusters = defaultdict(set)
    for row in forest.edges().to_pylist():
        first, member = number(row["first"]), number(row["member"])
        assert first <= member
        clusters[first] |= {first, member}
    return clusters


@pytest.mark.parametrize("bits", plain.WIDTHS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), distance=st.integers(0, 6), parts=st.sampled_from([1, 2, 8, 64]))
def test_pairs_and_forests_are_those_of_the_plain_loop(bits, data, distance, parts):
    fingerprints = data.draw(plain.fingerprints(bits))
    of = simstore.JoinParts(distance, parts=parts, bits=bits)
    pairs = expected(fingerprints, distance, bits)
    assert found(of, fingerprints) == pairs
    reference = simstore.Forest(bits)
    reference.connect(*(plain.array([pair[end] for pair in pairs], bits) for end in (0, 1)))
    assert clusters_of(connected(of, fingerprints)) == clusters_of(reference)


def test_a_crowd_is_connected_without_its_pairs():
    rng = np.random.default_rng(5)
    crowd = np.unique(rng.integers(0, 1 << 12, 5000).astype(np.uint64))
    of = simstore.JoinParts(3, parts=4)
    forest = connected(of, [int(one) for one in crowd])
    assert clusters_of(forest) == {int(crowd[0]): {int(one) for one in crowd}}


def test_pairs_come_in_batches_and_need_not_be_taken():
    crowd = np.arange(2000, dtype=np.uint64)
    of = simstore.JoinParts(16)
    packed = of.pack(crowd)
    sent = of.scatter(packed["fingerprints"], packed["repeated"])
    batches = of.pairs(0, sent["fingerprints"][:1], sent["repeated"][:1])
    first = next(batches)
    # Others are not held up by what nobody takes.
    whole = sum(len(table) for table in of.pairs(0, sent["fingerprints"][:1], sent["repeated"][:1]))
    assert len(first) < whole == 2000 * 1999 // 2


def test_what_parts_are_like():
    of = simstore.JoinParts(3, parts=5, bits=128)
    assert (of.distance, of.parts, of.tables, of.bits) == (3, 8, 4, 128)
    assert repr(of) == "JoinParts(3, parts=8, bits=128, tables=4)" == repr(pickle.loads(pickle.dumps(of)))
    few, many = (simstore.JoinParts.choose(10**9, 3, memory=memory) for memory in (10**12, 10**8))
    assert few.parts == 1 and many.parts == 512


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
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_packed_array_is_refused():
    with pytest.raises(TypeError, match="packed"):
        simstore.Forest().merge([b"1"])
    with pytest.raises(TypeError, match="Int64"):
        simstore.Forest().merge(pa.array([1]))


def test_what_does_not_fit_in_any_number_of_parts_is_refused():
    with pytest.raises(simstore.Error, match="memory"):
        simstore.JoinParts.choose(10**12, memory=10**6)
