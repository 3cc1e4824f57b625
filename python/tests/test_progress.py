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
