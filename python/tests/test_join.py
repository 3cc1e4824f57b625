"""`self_join`, `clusters` and `distance` of arrays, compared with brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers
import simstore


def pair_rows(table):
    return [(row["a"], row["b"], row["distance"]) for row in table.to_pylist()]


def check_join(values, distance, bits):
    array = helpers.to_array(values, bits)
    assert pair_rows(simstore.self_join(array, distance)) == helpers.brute_force_pairs(values, distance, bits)
    labels = simstore.clusters(array, distance)
    assert labels.dtype == np.int64 and labels.tolist() == helpers.brute_force_labels(values, distance, bits)


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pairs_and_clusters_are_those_of_brute_force(bits, data):
    values = data.draw(helpers.fingerprint_lists(bits), "values")
    check_join(values, data.draw(st.integers(0, bits // 4), "distance"), bits)


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_adversarial_sets(bits):
    ones = 2**bits - 1
    neighbours = [ones ^ (1 << bit) for bit in range(bits)]
    for values in ([], [0], [ones], [0, ones], [7] * 200, neighbours, neighbours + [ones] + neighbours):
        for distance in (0, 1, 2, 3, bits // 4):
            check_join(values, distance, bits)


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_a_larger_set(bits):
    values = helpers.random_fingerprints(1500, bits)
    check_join(values, 3, bits)
    found = simstore.self_join(helpers.to_array(values, bits), 8)
    assert pair_rows(found) == helpers.brute_force_pairs(values, 8, bits)
    assert [found[name].type for name in found.column_names] == ["uint32", "uint32", "uint8"]


def test_nulls_are_near_nothing():
    values = [None, 5, 5, None, 4, 1 << 50, None]
    assert pair_rows(simstore.self_join(values, 1)) == [(1, 2, 0), (1, 4, 1), (2, 4, 1)]
    assert simstore.clusters(values, 1).tolist() == [1, 2, 2, 3, 2, 4, 5]
    assert simstore.clusters([None, None]).tolist() == [1, 2]
    fingerprints = simstore.Profile().fingerprints(["to be or not to be", "", "to be or not to be!"])
    assert simstore.clusters(fingerprints).tolist() == [1, 2, 1]


def test_labels_are_numbers_of_clusters():
    """Labels in `clusters` and `dedup` begin at 1, like the `cluster` column of tables and files."""
    values = [5, 1 << 40, 5, 1 << 50, 1 << 40]
    assert simstore.clusters(values, 0).tolist() == [1, 2, 1, 3, 2]
    result = simstore.dedup(values, distance=0)
    assert result.labels.tolist() == [1, 2, 1, -1, 2]
    assert {row["document"]: row["cluster"] for row in result.clusters} == {0: 1, 2: 1, 1: 2, 4: 2}


def test_progress_is_reported_and_its_exception_ends_the_call():
    values = np.arange(1 << 16, dtype=np.uint64)
    updates = []
    simstore.clusters(values, 1, progress=updates.append)
    assert updates[-1].step == "pairs" and updates[-1].count == (1 << 16) * 16 // 2

    def refuse(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        simstore.self_join(values, 1, progress=refuse)


def test_too_large_joins_are_refused():
    with pytest.raises(ValueError, match="distance"):
        simstore.self_join([1, 2], 17)
    with pytest.raises(ValueError, match="distance"):
        simstore.clusters([1, 2], 17)
    with pytest.raises(simstore.Error, match="4999950000 pairs") as raised:
        simstore.self_join(np.zeros(100_000, dtype=np.uint64))
    assert raised.value.code == "refused"
    assert (simstore.clusters(np.zeros(100_000, dtype=np.uint64)) == 1).all()
    with pytest.raises(ValueError, match="no fingerprint of 64 bits"):
        simstore.self_join([1 << 64])
    assert pair_rows(simstore.self_join([1 << 64, 1 << 65], 2, bits=128)) == [(0, 1, 2)]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_distances_are_those_of_brute_force(bits, data):
    values = data.draw(helpers.fingerprint_lists(bits), "values")
    others = data.draw(st.permutations(values), "others")
    a, b = helpers.to_array(values, bits), helpers.to_array(others, bits)
    expected = [(x ^ y).bit_count() for x, y in zip(values, others)]
    found = simstore.distance(a, b)
    assert found.dtype == np.uint8 and found.tolist() == expected
    assert simstore.distance(values, b, bits=bits).tolist() == expected
    assert [simstore.distance(x, y) for x, y in zip(values, others)] == expected
    if values:
        to_one = [(x ^ others[0]).bit_count() for x in values]
        assert simstore.distance(a, others[0]).tolist() == simstore.distance(others[0], a).tolist() == to_one


def test_invalid_arguments_of_distance_are_refused():
    with pytest.raises(ValueError, match="arrays of 1 and 2 fingerprints"):
        simstore.distance([1], [1, 2])
    with pytest.raises(ValueError, match="fingerprint 1 is null"):
        simstore.distance([1, None], [1, 2])
    with pytest.raises(ValueError, match="expected fingerprints of 64 bits"):
        simstore.distance(np.zeros(2, dtype=np.uint64), helpers.to_array([1, 2], 128))
    with pytest.raises(ValueError, match="no fingerprint"):
        simstore.distance(1, -1)
    with pytest.raises(ValueError, match="no fingerprint of 64 bits"):
        simstore.distance(1 << 64, 1, bits=64)
    with pytest.raises(TypeError):
        simstore.distance(1, None)
    assert simstore.distance(np.uint64(3), 0) == 2
