"""Progress of long calls: reported to a callable, or shown by tqdm."""

import subprocess
import sys

import numpy as np
import pytest

import simstore

TEXTS = [f"document {number} says something" for number in range(2000)]


def test_progress_callable_gets_updates_and_its_exception_ends_the_call():
    updates = []
    result = simstore.dedup(({"text": text} for text in TEXTS), progress=updates.append)
    assert len(result.is_kept) == len(TEXTS)
    steps = {progress.step for progress in updates}
    assert "documents" in steps and all(isinstance(progress, simstore.Progress) for progress in updates)
    assert 0 < max(progress.count for progress in updates if progress.step == "documents") <= len(TEXTS)

    def refuse(progress):
        raise KeyError(progress.step)

    with pytest.raises(KeyError, match="."):
        simstore.dedup(np.arange(1000, dtype=np.uint64), progress=refuse)


def test_progress_true_shows_tqdm(capsys):
    simstore.dedup(np.array(TEXTS, dtype=object), progress=True)
    shown = capsys.readouterr().err
    assert "documents" in shown or "texts" in shown
    simstore.dedup(np.array(TEXTS, dtype=object), progress=False)
    assert capsys.readouterr().err == ""


def test_without_tqdm_it_says_what_to_install():
    program = (
        "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
        "import simstore\n"
        "try: simstore.dedup([], progress=True)\n"
        "except ImportError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install tqdm" in output


def test_progress_that_is_not_callable_is_refused():
    with pytest.raises(TypeError, match="progress: expected True, None or a callable"):
        simstore.dedup([], progress=3)


def test_progress_has_totals(tmp_path):
    values = np.random.default_rng(7).integers(0, 2**64, 100_000, dtype=np.uint64)
    ids, steps = np.arange(len(values)), {}

    def record(name):
        return lambda progress: steps.setdefault(name, []).append((progress.count, progress.total))

    with simstore.Store(tmp_path / "store") as store:
        store.insert_many(values, ids, progress=record("insert_many"))
        store.insert_many_if_new(values[:5000], ids[:5000], progress=record("insert_many_if_new"))
        store.delete_many(values[:1000], ids[:1000], progress=record("delete_many"))
        store.flush()
        store.insert_many(values[:1000], ids[:1000])
        store.flush()
        store.compact(progress=record("compact"))
    simstore.Snapshot(tmp_path / "store").verify(progress=record("verify"))
    builder = simstore.Builder(tmp_path / "built")
    builder.insert_many(values, ids)
    builder.finish(progress=record("finish")).query_many(values, progress=record("query_many"))
    simstore.self_join(values, progress=record("self_join"))
    totals = {name: updates[-1][1] for name, updates in steps.items()}
    assert totals["insert_many"] == len(values) and totals["insert_many_if_new"] == 5000 and totals["delete_many"] == 1000
    for name in ("compact", "verify", "finish"):
        assert totals[name] is not None, (name, steps[name][-1])
    assert all(count <= total for updates in steps.values() for count, total in updates if total is not None)


def test_bars_show_the_total(tmp_path, capsys):
    with simstore.Store(tmp_path / "store") as store:
        store.insert_many(np.arange(100_000, dtype=np.uint64), np.arange(100_000), progress=True)
    assert "100k" in capsys.readouterr().err
