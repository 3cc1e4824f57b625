"""Compressed sizes of fingerprints, compared with the command-line program and with the lower bound."""

import math

import numpy as np
import pytest

import simstore
from corpora import run_cli


@pytest.mark.parametrize("bits", [64, 128])
def test_same_results_as_the_command_line(bits, tmp_path):
    rng = np.random.default_rng(bits)
    raw = rng.integers(0, 256, (2000, bits // 8), dtype=np.uint8)
    raw[1000:] = raw[:1000]
    raw[1000:, -1] ^= rng.integers(0, 2, 1000, dtype=np.uint8)
    (tmp_path / f"a.u{bits}").write_bytes(raw[:, ::-1].tobytes())
    lines = run_cli("compression", tmp_path / f"a.u{bits}", "--bits", bits, "--json", "--level", "3", "--block-size", "1024")
    array = raw.view(">u8").astype(np.uint64).ravel() if bits == 64 else raw
    result = simstore.compression(array, zstd_level=3, block_size=1024)
    methods = {line["method"]: line for line in lines}
    floor = methods.pop("lower bound (random)")
    assert (result.fingerprints, result.distinct) == (floor["fingerprints"], floor["distinct"]) and result.fingerprints == 2000
    assert result.floor == pytest.approx(floor["bits_per_fingerprint"], abs=1e-3)
    sizes = result.sizes.to_pylist()
    assert {size["method"]: size["bytes"] for size in sizes} == {name: line["bytes"] for name, line in methods.items()}
    assert [size["bytes"] for size in sizes] == sorted(size["bytes"] for size in sizes)
    for size in sizes:
        assert size["bits_per_fingerprint"] == size["bytes"] * 8 / result.distinct
        assert size["ratio_to_floor"] == size["bits_per_fingerprint"] / result.floor
    assert f"{result.distinct:,} distinct" in repr(result) and "lower bound (random)" in result._repr_html_()


def test_the_floor_is_that_of_a_random_set():
    count = 10_000
    result = simstore.compression(np.arange(count, dtype=np.uint64) << np.uint64(20))
    # log2 C(2^64, n) / n, approximated by the first terms of Stirling's formula.
    assert result.floor == pytest.approx(64 - math.log2(count) + 1 / math.log(2), abs=0.01)
    assert simstore.compression([1, 2, 3, 3]).distinct == 3


def test_invalid_arguments_are_refused():
    for array, options, message in [
        ([], {}, "no fingerprint"),
        ([1], {"block_size": 1000}, "power of two"),
        ([1], {"zstd_level": 99}, "expected 1 to 22"),
        ([None], {}, "null"),
    ]:
        with pytest.raises(ValueError, match=message):
            simstore.compression(array, **options)
