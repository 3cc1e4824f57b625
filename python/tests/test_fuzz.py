"""A few hundred random calls by `scripts/fuzz-python.py` neither crash, panic nor hang."""

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter

import pytest

import helpers
from corpora import ROOT

SCRIPT = ROOT / "scripts/fuzz-python.py"


def run_fuzzer(*options):
    for library in ("pandas", "polars", "pyarrow"):
        helpers.optional_module(library)
    return subprocess.run([sys.executable, SCRIPT, *map(str, options)], capture_output=True, text=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls(seed):
    completed = run_fuzzer("--seed", seed, "--calls", 200)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    returned, raised = map(int, re.search(r"(\d+) calls returned, (\d+) raised", completed.stdout).groups())
    assert returned + raised == 200 and returned > 50


@pytest.mark.parametrize(
    "ending, reason",
    [
        ("time.sleep(600)", "it did not end within 0.2 seconds"),
        ("os.abort()", "its process ended with the exit code -6"),
        ("print(json.dumps({'number': 5, 'broken': 'PanicException', 'raised': ''}))", "PanicException"),
    ],
)
def test_a_call_that_fails_is_reported(ending, reason):
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    call = {"number": 5, "call": "simstore.dedup([])"}
    program = f"import json, os, time; print({json.dumps(call)!r}, flush=True); {ending}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert script.watch_child(process, 0.2, Counter()) == (call, reason)
    assert process.returncode is not None
