#!/usr/bin/env python3
"""Tests a program that reads simstore stores, in any language, with the stores in `golden/` and the cases in `rejected/`.

    python3 vectors.py [--lookups] COMMAND...       for example: python3 vectors.py python3 reader.py --json

The program gets the path of a store as its last argument. For each folder of `golden/` with an `expected.json`, it must print the same
JSON value and exit with status 0. Members that it leaves out of the outer object are not compared. For each case in `rejected/*.json`,
it must exit with a status from 1 to 127. A torn tail of the last log is no error: a program may also print it as `torn_bytes`.

With --lookups, only the rules for all readers are tested. A program that only looks up fingerprints makes no full check, so it need not
find the other faults.

A file in `rejected/` has the cases of a page: {"page": "ids.md", "cases": [{"rule": "width", "kind": "reader" or "check",
"variant": "65", "base": "whole", "files": {"000001.ids": "HEX", "000001.names": null}}]}. `base` is a folder of `golden/`, or null
for an empty folder. The files replace files of the base; null removes a file.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# A program that takes longer for one store is in an endless loop.
LONGEST_SECONDS = 600
# Members of expected.json for other tests.
NOT_OUTPUT = {"queries"}


def run(command, store):
    """Returns (exit status, standard output, last line of standard error) of a program."""
    try:
        done = subprocess.run([*command, store], capture_output=True, timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        return None, b"", f"no end after {LONGEST_SECONDS} seconds"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return done.returncode, done.stdout, lines[-1] if lines else ""


def difference(expected, found, where):
    """Returns a sentence about the first difference of two JSON values, or None."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            if key not in found:
                return f"{where}.{key} is missing"
        for key in found:
            if key not in expected:
                return f"{where}.{key} is not expected"
        pairs = [(f"{where}.{key}", expected[key], found[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{where} has {len(found)} elements, expected {len(expected)}"
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, found))]
    elif type(expected) is type(found) and expected == found:
        return None
    else:
        return f"{where} is {found!r}, expected {expected!r}"
    return next(filter(None, (difference(a, b, place) for place, a, b in pairs)), None)


def golden_stores():
    golden = os.path.join(HERE, "golden")
    names = sorted(os.listdir(golden))
    return [name for name in names if os.path.exists(os.path.join(golden, name, "expected.json"))]


def test_golden(command, name):
    """Returns the failure of a program to read a store, or None, and the members that it leaves out."""
    store = os.path.join(HERE, "golden", name)
    with open(os.path.join(store, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    status, output, error = run(command, store)
    if status != 0:
        return f"golden/{name}: exit status {status}: {error}", set()
    try:
        found = json.loads(output.decode("utf-8"))
    except ValueError as problem:
        return f"golden/{name}: the output is no JSON: {problem}", set()
    if not isinstance(found, dict):
        return f"golden/{name}: the output is no JSON object", set()
    left_out = expected.keys() - NOT_OUTPUT - found.keys()
    expected = {key: value for key, value in expected.items() if key in found}
    problem = difference(expected, found, "")
    return f"golden/{name}: {problem}" if problem else None, left_out


def rejected_cases(is_lookup):
    """Returns (page, case) for each case that a program must reject."""
    folder = os.path.join(HERE, "rejected")
    cases = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                page = json.load(file)
            cases += [(page["page"], case) for case in page["cases"]]
    return [(page, case) for page, case in cases if case["kind"] == "reader" or not is_lookup]


def write_case(case, store):
    """Writes the files of a case into a new folder."""
    os.mkdir(store)
    base = os.path.join(HERE, "golden", case["base"]) if case["base"] else None
    for name in os.listdir(base) if base else []:
        if not name.endswith(".json"):
            shutil.copyfile(os.path.join(base, name), os.path.join(store, name))
    for name, data in case["files"].items():
        path = os.path.join(store, os.path.basename(name))
        if data is None:
            os.remove(path)
        else:
            with open(path, "wb") as file:
                file.write(bytes.fromhex(data))


def reports_torn_tail(output):
    """Whether the output is a store with a torn tail of the last log."""
    try:
        last = json.loads(output.decode("utf-8"))["logs"][-1]
        return last["torn_bytes"] > 0 and not last["closed"]
    except (ValueError, LookupError, TypeError):
        return False


def test_rejected(command, page, case):
    """Returns the failure of a program to reject a store, or None."""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        write_case(case, store)
        status, output, error = run(command, store)
    if status is not None and 1 <= status <= 127:
        return None
    if status == 0 and case["kind"] == "check" and reports_torn_tail(output):
        return None
    problem = "accepted" if status == 0 else f"exit status {status}: {error}"
    return f"{page}, rule {case['rule']}, variant {case['variant']}: {problem}"


def main(arguments):
    is_lookup = arguments[:1] == ["--lookups"]
    command = arguments[1:] if is_lookup else arguments
    if not command or command[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    if not shutil.which(command[0]):
        sys.stderr.write(f"{command[0]}: no such program\n")
        return 2
    stores, cases = golden_stores(), rejected_cases(is_lookup)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        read = list(threads.map(lambda name: test_golden(command, name), stores))
        rejected = list(threads.map(lambda case: test_rejected(command, *case), cases))
    failures = [failure for failure, _ in read if failure] + [failure for failure in rejected if failure]
    for failure in failures:
        print(failure)
    left_out = set().union(*(members for _, members in read))
    if left_out:
        print(f"not compared, since the program leaves them out: {', '.join(sorted(left_out))}")
    print(f"{len(stores)} stores to read, {len(cases)} to reject: {len(failures)} failures")
    if not stores and not cases:
        print("There are no stores to test with.")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
