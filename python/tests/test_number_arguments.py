"""Numeric arguments out of range, such as too small memory limits, raise errors that name the argument."""

from functools import partial

import pytest

import simstore


def test_too_small_memory_limits_are_refused(tmp_path):
    texts = [f"text number {number} and more words {number * number}" for number in range(1000)]
    for memory in (1, 64, 1024, 65_535, "1K"):
        with pytest.raises(ValueError, match=r"option `memory` is \d+ bytes: expected 65536 \(64 KiB\) or more.* For \d+ MiB give \d+M"):
            simstore.dedup(texts, memory=memory, temporary=tmp_path)
        with pytest.raises(ValueError, match=r"option `memory` is \d+ bytes: expected 16777216 \(16 MiB\) or more"):
            simstore.Builder(tmp_path / "built", memory=memory)
        with pytest.raises(ValueError, match=r"option `memory` is \d+ bytes: expected 16777216 \(16 MiB\) or more"):
            simstore.Store(tmp_path / "store", memory=memory)
    for memory in (0, -1, 2**64, "0", "much", ""):
        calls = [partial(simstore.dedup, texts), partial(simstore.Builder, tmp_path / "built"), partial(simstore.Store, tmp_path / "s")]
        for call in calls:
            with pytest.raises(ValueError, match="memory is"):
                call(memory=memory)
    assert list(tmp_path.iterdir()) == []
    assert simstore.dedup(texts, memory=1 << 16, temporary=tmp_path).summary["kept"] == 1000
    with simstore.Store(tmp_path / "store", memory="16M") as store:
        store.insert(1, 1)
    assert simstore.JoinParts.choose(10**9, memory="64M").parts == simstore.JoinParts.choose(10**9, memory=64 << 20).parts


def test_smallest_allowed_similarity(tmp_path):
    texts = ["one two three four five six", "one two three four five seven"]
    for recall, min_similar in ((None, 0.43), (0.5, 0.34)):
        assert len(simstore.dedup(texts, similar=min_similar, recall=recall).kept) in (1, 2)
        simstore.SimilarStore(tmp_path / f"store-{min_similar}", min_similar, recall).close()
        for call in (partial(simstore.dedup, texts), partial(simstore.SimilarStore, tmp_path / "store")):
            with pytest.raises(ValueError, match=f"give option `similar` {min_similar} or more, or a smaller option `recall`"):
                call(similar=min_similar - 0.01, recall=recall)
            for similar in (0, -0.5, 1.1, float("nan")):
                with pytest.raises(ValueError, match="option `similar`: expected a number above 0, up to 1"):
                    call(similar=similar, recall=recall)


def test_numbers_out_of_range_are_refused_by_name():
    for call in (
        lambda: simstore.dedup(["a text"], distance=-1),
        lambda: simstore.self_join([1], 2**32),
        lambda: simstore.clusters([1], distance=-(2**70)),
    ):
        with pytest.raises(ValueError, match=r"distance is -?\d+: expected 0 to 2\*\*32 - 1"):
            call()
    with pytest.raises(ValueError, match="bits is -64"):
        simstore.dedup([1], bits=-64)
    with pytest.raises(ValueError, match="count is -1"):
        simstore.bands(["a text"], count=-1)
    with pytest.raises(ValueError, match="documents is -1"):
        simstore.evaluate([("a b", "a b", True)], documents=-1)
