"""How far long calls have come is told to a callable, or shown by tqdm."""

import subprocess
import sys

import numpy as np
import pytest

import simstore

TEXTS = [f"document {number} says something" for number in range(2000)]


def test_a_callable_is_told_and_what_it_raises_ends_the_call():
    told = []
    result = simstore.dedup(({"text": text} for text in TEXTS), progress=told.append)
    assert len(result.is_kept) == len(TEXTS)
    steps = {progress.step for progress in told}
    assert "documents" in steps and all(isinstance(progress, simstore.Progress) for progress in told)
    assert 0 < max(progress.count for progress in told if progress.step == "documents") <= len(TEXTS)

    def refuse(progress):
        raise KeyError(progress.step)

    with pytest.raises(KeyError, match="."):
        simstore.dedup(np.arange(1000, dtype=np.uint64), progress=refuse)


def test_true_is_tqdm(capsys):
    simstore.dedup(np.array(TEXTS, dtype=object), progress=True)
    shown = capsys.readouterr().err
    assert "documents" in shown or "texts" in shown
    simstore.dedup(np.array(TEXTS, dtype=object), progress=False)
    assert capsys.readouterr().err == ""


def test_without_tqdm_it_says_what_to_install():
    code = (
        "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
        "import simstore\n"
        "try: simstore.dedup([], progress=True)\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install tqdm" in said


def test_what_is_no_callable_is_refused():
    with pytest.raises(TypeError, match="progress: expected True, None or a callable"):
        simstore.dedup([], progress=3)


def test_what_is_counted_has_a_total(tmp_path):
    many = np.random.default_rng(7).integers(0, 2**64, 100_000, dtype=np.uint64)
    ids, steps = np.arange(len(many)), {}

    def told(name):
        return lambda progress: steps.setdefault(name, []).append((progress.count, progress.total))

    with simstore.Store(tmp_path / "store") as store:
        store.insert_many(many, ids, progress=told("insert_many"))
        store.insert_many_if_new(many[:5000], ids[:5000], progress=told("insert_many_if_new"))
        store.delete_many(many[:1000], ids[:1000], progress=told("delete_many"))
        store.flush()
        store.insert_many(many[:1000], ids[:1000])
        store.flush()
        store.compact(progress=told("compact"))
    simstore.Snapshot(tmp_path / "store").verify(progress=told("verify"))
    builder = simstore.Builder(tmp_path / "built")
    builder.insert_many(many, ids)
    builder.finish(progress=told("finish")).query_many(many, progress=told("query_many"))
    simstore.self_join(many, progress=told("self_join"))
    totals = {name: told[-1][1] for name, told in steps.items()}
    assert totals["insert_many"] == len(many) and totals["insert_many_if_new"] == 5000 and totals["delete_many"] == 1000
    for name in ("compact", "verify", "finish"):
        assert totals[name] is not None, (name, steps[name][-1])
    assert all(count <= total for told in steps.values() for count, total in told if total is not None)


def test_bars_show_the_total(tmp_path, capsys):
    with simstore.Store(tmp_path / "store") as store:
        store.insert_many(np.arange(100_000, dtype=np.uint64), np.arange(100_000), progress=True)
    assert "100k" in capsys.readouterr().err
