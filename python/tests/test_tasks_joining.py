"""The tasks of a distributed join, run one after another in one process."""

from collections import defaultdict
from functools import partial

import pytest

import helpers
import simstore

pa = pytest.importorskip("pyarrow")

from simstore.tasks import joining  # noqa: E402


def value_batches(fingerprints, bits, type=None):
    values = helpers.to_array(fingerprints, bits)
    if bits == 128:
        array = pa.array([row.tobytes() for row in values], type or pa.binary())
    else:
        array = pa.array(values).view(type or pa.int64())
    return pa.table({"value": array}).to_batches(max_chunksize=100) or [pa.record_batch({"value": array})]


def shuffle(results):
    """Groups the rows of batches by the column ``place``. Returns the batches of each place: an empty one, and one for each row."""
    batches_by_place = defaultdict(lambda: [pa.RecordBatch.from_pylist([], joining.SENT)])
    for batch in results:
        for row in range(batch.num_rows):
            batches_by_place[batch.column("place")[row].as_py()].append(batch.slice(row, 1))
    return batches_by_place


def pack_and_scatter(fingerprints, parts, tasks=3):
    """Runs `pack` and `scatter` on fingerprints in several tasks. Returns the resulting batches by their ``place``."""
    packed = []
    for task in range(tasks):
        batches = value_batches(fingerprints[task::tasks], parts.bits)
        packed += joining.pack(iter(batches), parts, "value", buckets=5)
    scattered = [batch for batches in shuffle(packed).values() for batch in joining.scatter(iter(batches), parts)]
    return shuffle(scattered)


def batch_rows(batches, *names):
    def to_int(value):
        return int.from_bytes(value, "big") if isinstance(value, bytes) else value

    rows = [row for batch in batches for row in batch.select(list(names)).to_pylist()]
    return [tuple(to_int(row[name]) for name in names) for row in rows]


@pytest.mark.parametrize("bits", helpers.WIDTHS)
def test_pairs_and_cluster_members(bits):
    fingerprints = helpers.random_fingerprints(700, bits)
    parts = simstore.JoinParts(3, parts=4, bits=bits)
    places = pack_and_scatter(fingerprints, parts)
    # A task may get one place or several.
    grouped = [[batch for place in places if place % 3 == task for batch in places[place]] for task in range(3)]
    distinct = sorted(set(fingerprints))
    expected = {(distinct[a], distinct[b], pair_distance) for a, b, pair_distance in helpers.brute_force_pairs(distinct, 3, bits)}
    expected |= {(fingerprint, fingerprint, 0) for fingerprint in distinct if fingerprints.count(fingerprint) > 1}
    for groups in (grouped, list(places.values())):
        found = [row for group in groups for row in batch_rows(joining.near(iter(group), parts), "a", "b", "distance")]
        unsigned = [(a % 2**bits, b % 2**bits, distance) for a, b, distance in found]
        assert sorted(unsigned) == sorted(expected)

    forests = [batch for group in grouped for batch in joining.connect(iter(group), parts)]
    merged = [batch for forest_batches in (forests[::2], forests[1::2]) for batch in joining.merge(iter(forest_batches), bits)]
    found = [(a % 2**bits, b % 2**bits) for a, b in batch_rows(joining.members(iter(merged), bits), "member", "root")]
    labels = helpers.brute_force_labels(distinct, 3, bits)
    smallest = {}
    for value, label in zip(distinct, labels):
        smallest.setdefault(label, value)
    shared_labels = {label for label in labels if labels.count(label) > 1}
    in_clusters = {
        (value, smallest[label])
        for value, label in zip(distinct, labels)
        if label in shared_labels or fingerprints.count(value) > 1
    }
    assert sorted(found) == sorted(in_clusters)
    edges = [pa.table(pa.Table.from_batches([*forests]))]
    assert sum(len(table) for table in edges) == len(batch_rows(forests, "edges"))


def test_pairs_are_connected():
    batches = [pa.record_batch({"a": pa.array([1, 5, 9], pa.int64()), "b": pa.array([-1, 5, 1], pa.int64())})]
    forest = list(joining.connect_pairs(iter(batches)))
    assert sorted(batch_rows(joining.members(iter(forest)), "member", "root")) == [(-1, 1), (1, 1), (5, 5), (9, 1)]
    assert sorted(batch_rows(joining.unpack(iter(forest)), "node", "other")) == [(-1, 1), (5, 5), (9, 1)]


@pytest.mark.parametrize("task", [joining.pack, joining.scatter, joining.near, joining.connect])
def test_empty_input_gives_empty_output(task):
    assert [batch for batch in task(iter([]), simstore.JoinParts()) if batch.num_rows] == []
    assert [batch for batch in joining.members(iter([])) if batch.num_rows] == []
    assert [batch for batch in joining.merge(iter([])) if batch.num_rows] == []


@pytest.mark.parametrize(
    ("array", "bits", "error"),
    [
        (pa.array([1.0]), 64, TypeError),
        (pa.array([b"1" * 16]), 64, TypeError),
        (pa.array([1]), 128, TypeError),
        (pa.array([b"1"]), 128, ValueError),
    ],
)
def test_columns_of_other_types_are_refused(array, bits, error):
    with pytest.raises(error):
        list(joining.pack(iter([pa.record_batch({"value": array})]), simstore.JoinParts(bits=bits), "value"))
    with pytest.raises(ValueError, match="no column `other`: the columns are value"):
        list(joining.pack(iter([pa.record_batch({"value": array})]), simstore.JoinParts(bits=bits), "other"))


@pytest.mark.parametrize("type", [pa.int64(), pa.uint64()])
def test_sliced_batches_and_nulls(type):
    array = pa.array([7, None, 5, 7, 7]).cast(type)
    batch = pa.record_batch({"value": array}).slice(1, 3)
    (packed,) = joining.pack(iter([batch]), simstore.JoinParts(), "value")
    assert packed.column("fingerprints").to_pylist() == [b"".join(value.to_bytes(8, "little") for value in (5, 7))]
    assert packed.column("repeated").to_pylist() == [None]


def test_many_are_packed_in_pieces(monkeypatch):
    monkeypatch.setattr(joining, "PACK_FINGERPRINTS", 150)
    packed = list(joining.pack(iter(value_batches(list(range(1000)), 64)), simstore.JoinParts(), "value"))
    assert len(packed) == 5 and partial(batch_rows, packed)("place") == [(0,)] * 5
