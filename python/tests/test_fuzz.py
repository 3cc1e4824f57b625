"""Random calls neither crash nor panic, and they end: a few of those that `scripts/fuzz-python.py` makes."""

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter

import pytest

import plain
from corpora import ROOT

SCRIPT = ROOT / "scripts/fuzz-python.py"


def fuzz(*options):
    for library in ("pandas", "polars", "pyarrow"):
        plain.optional(library)
    return subprocess.run([sys.executable, SCRIPT, *map(str, options)], capture_output=True, text=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls(seed):
    done = fuzz("--seed", seed, "--calls", 200)
    assert done.returncode == 0, done.stdout + done.stderr
    returned, raised = map(int, re.search(r"(\d+) calls returned, (\d+) raised", done.stdout).groups())
    assert returned + raised == 200 and returned > 50


@pytest.mark.parametrize(
    "then, why",
    [
        ("time.sleep(600)", "it did not end within 0.2 seconds"),
        ("os.abort()", "its process ended with the exit code -6"),
        ("print(json.dumps({'number': 5, 'broken': 'PanicException', 'raised': ''}))", "PanicException"),
    ],
)
def test_a_call_that_fails_is_reported(then, why):
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    call = {"number": 5, "call": "simstore.dedup([])"}
    code = f"import json, os, time; print({json.dumps(call)!r}, flush=True); {then}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert script.watch(process, 0.2, Counter()) == (call, why)
    assert process.returncode is not None
