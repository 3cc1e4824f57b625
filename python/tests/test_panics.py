"""A panic in simstore becomes a Python exception that names the source file and line."""

import subprocess
import sys

import numpy as np
import pytest

import simstore
from simstore import _simstore

PANIC_PLACES = ["quick", "long", "asked", "rayon", "here"]


@pytest.mark.parametrize("inside", PANIC_PLACES)
def test_a_panic_is_an_exception(inside, capfd):
    message = "panics_for_tests.rs:[0-9]+:[0-9]+: on purpose: this is a bug of simstore"
    with pytest.raises(simstore.errors.InternalError, match=message) as raised:
        _simstore._panic(inside)
    assert raised.value.code == "bug" and isinstance(raised.value, Exception)
    # The panic prints nothing, because the exception reports it.
    assert capfd.readouterr().err == ""
    assert simstore.self_join(np.arange(100, dtype=np.uint64), 1)["a"].to_numpy().size > 0


@pytest.mark.parametrize("inside", PANIC_PLACES)
def test_a_panic_is_printed_once(inside):
    program = f"from simstore import _simstore; _simstore._panic({inside!r})"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert completed.returncode == 1 and completed.stderr.count("on purpose") == 1, completed.stderr


def test_a_panic_in_a_progress_callable_ends_the_call():
    def progress(update):
        _simstore._panic("quick")

    with pytest.raises(simstore.errors.InternalError, match="on purpose"):
        simstore.self_join(np.arange(100_000, dtype=np.uint64), 3, progress=progress)
