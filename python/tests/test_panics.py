"""A bug of simstore is an exception like others, which says where it is."""

import subprocess
import sys

import numpy as np
import pytest

import simstore
from simstore import _simstore

INSIDE = ["quick", "long", "asked", "rayon", "here"]


@pytest.mark.parametrize("inside", INSIDE)
def test_a_panic_is_an_exception(inside, capfd):
    with pytest.raises(simstore.errors.InternalError, match="on_purpose.rs:[0-9]+:[0-9]+: on purpose: this is a bug of simstore") as raised:
        _simstore._panic(inside)
    assert raised.value.code == "bug" and isinstance(raised.value, Exception)
    # Who catches it says it, and nobody else.
    assert capfd.readouterr().err == ""
    assert simstore.self_join(np.arange(100, dtype=np.uint64), 1)["a"].to_numpy().size > 0


@pytest.mark.parametrize("inside", INSIDE)
def test_it_is_said_once(inside):
    code = f"from simstore import _simstore; _simstore._panic({inside!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stderr.count("on purpose") == 1, ran.stderr


def test_a_panic_inside_of_a_call_ends_it():
    def progress(told):
        _simstore._panic("quick")

    with pytest.raises(simstore.errors.InternalError, match="on purpose"):
        simstore.self_join(np.arange(100_000, dtype=np.uint64), 3, progress=progress)
