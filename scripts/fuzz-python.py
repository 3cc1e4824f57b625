#!/usr/bin/env python3
"""Calls the Python interface with random arguments, valid and invalid, and reports calls that crash, panic or hang.

    target/venv/bin/python scripts/fuzz-python.py                      1,000 calls; the seed is printed
    target/venv/bin/python scripts/fuzz-python.py --calls 100000       100,000 calls
    target/venv/bin/python scripts/fuzz-python.py --seed 7 --only 123  call 123 of seed 7 again

Calls run in child processes, each call in its own folder. Exceptions are fine, unless they report that simstore or the interpreter is
broken. A call that takes longer than --seconds is stopped with its process. If a call failed, its text is printed, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

# Memory of a child process in bytes. A call that needs more gets an error, and the machine stays usable.
MEMORY_BYTES = 8 << 30
# Seconds for a child process to import the libraries.
START_SECONDS = 300

TEXTS = [
    "to be or not to be, that is the question",
    "To be or not to be that is the question!",
    "whether it is nobler in the mind to suffer",
    "the slings and arrows of outrageous fortune",
    "不以物喜，不以己悲",
    "!!!",
    "",
    " \n",
    "x",
    "a\0b",
    "one two three four five six seven eight nine ten",
    "one two three four five six seven eight nine eleven",
    "\ud800",
    "word " * 2000,
    "0",
]
NUMBERS = ["0", "1", "2", "3", "7", "16", "17", "64", "128", "255", "1024", "4096", "65536", "10**6"]
EDGE_NUMBERS = ["-1", "2**31", "2**32", "2**63 - 1", "2**63", "2**64 - 1", "2**64", "-(2**63)", "2**128", "10**30", "-(10**30)"]
SHARES = ["0.5", "0.8", "0.9", "0.95", "1.0", "0.3", "0", "1", "1e-9", "-0.5", "1.5", "float('nan')", "float('inf')", "5e-324"]
JUNK_VALUES = [
    "None", "True", "False", "'x'", "''", "b''", "b'\\xff' * 16", "[]", "()", "{}", "set()", "object()", "object", "len", "range(3)", "...",
    "1j", "float('nan')", "-0.0", "iter([])", "(n for n in range(3))", "map(lambda n: 1 / 0, [1])", "lambda *_: None", "bytearray(16)",
    "memoryview(b'12345678')", "[None, None]", "[[1], [2]]", "{'text': None}", "{'text': 'a b c'}", "{1: 2}", "[{'text': 5}]",
    "np.zeros(3)", "np.zeros((2, 3))", "np.array(5)", "np.array(['a', None], dtype=object)", "np.arange(8, dtype='>u8')[::-2]",
    "np.datetime64(1, 's')",
    "pd.DataFrame()", "pd.DataFrame({'text': ['a b', None]})", "pl.DataFrame({'text': ['a b c']})", "pl.LazyFrame({'text': ['a b c']})",
    "pa.table({'text': ['a b c', None]})", "pa.array([1, None])", "pa.chunked_array([['a'], []])", "pa.scalar(5)", "decimal.Decimal(5)",
    "datetime.date(2026, 1, 1)", "pathlib.Path('x')", "simstore", "simstore.Profile()", "type('T', (), {'__len__': lambda s: -1})()",
    "type('T', (), {'__index__': lambda s: 10**30})()", "type('T', (str,), {})('a b c')", "['a'] * 3 + [1]", "[float('nan')] * 2",
]  # fmt: skip
# Values of string parameters by the name of the parameter.
STRING_VALUES = {
    "keep": ["first", "longest", "smallest-id", "newest:x", "largest:", "smallest:text", "none", "best", ""],
    "cluster_by": ["stars", "components", "chains"],
    "codec": ["gap", "elias-fano", "first-difference", "all-differences", "prefix-lines", "zip"],
    "plan": ["auto", "scan", "exact", "", "blocks-4"],
    "durability": ["os", "group", "sync", "none"],
    "format": ["jsonl", "csv", "text", "parquet", "warc", "archive", "x"],
    "encoding": ["auto", "utf-8", "gb18030", "utf-16", "x"],
    "delimiter": [",", ";", "tab", "", "ab", "\n"],
    "profile": ["words-3", "chars-4", "code", "main-text", "no", "", "words-3,weights=none", "shingles"],
    "id": ["id", "x", ""],
    "text": ["text", "x", ""],
    "key": ["mark", "similar", "", "x" * 300],
    "rule": ["newest", "largest"],
    "memory": ["64K", "16M", "1", "0", "x", "1K"],
}
STRING_VALUES["verify_profile"] = STRING_VALUES["profiles"] = STRING_VALUES["name"] = STRING_VALUES["profile"]
STRING_VALUES["max_document"] = STRING_VALUES["memory"]
PATHS = ["'s'", "'p'", "'new'", "'.'", "''", "'no/where'", "'a b c'", "pathlib.Path('s')", "b's'", "'\\0'", "'x' * 5000", "'in.jsonl'"]
# Parameters by the kind of argument that they take.
NUMBER_PARAMETERS = ["bits", "block_size", "buckets", "count", "distance", "documents", "limit", "max_document", "memory", "most"]
NUMBER_PARAMETERS += ["parts", "place", "size", "zstd_level"]
PATH_PARAMETERS = ["path", "output", "annotated", "clusters", "keep_list", "remove_list", "report", "resume", "temporary"]
PATH_PARAMETERS += ["dictionary", "idf", "stop_words"]
# Statements that make the objects for method calls. Stores stay open as long as their variables exist.
OBJECT_STATEMENTS = {
    "Store": "it = simstore.Store('s'); it.insert_many([1, 2, 3, 2**64 - 1], [5, 6, 7, 8])",
    "Store of names": "it = simstore.Store('s', profile=simstore.Profile()); it.insert_many(texts=TEXTS[:4], ids=['a', 'b', 'c', 'd'])",
    "Batch": "store = simstore.Store('s'); it = store.batch()",
    "Builder": "it = simstore.Builder('new'); it.insert_many([1, 2, 3], [1, 2, 3])",
    "Snapshot": "store = simstore.Store('s'); store.insert_many([1, 2, 3], [5, 6, 7]); it = store.snapshot()",
    "Snapshot of files": "simstore.dedup(TEXTS[:4], against='p', add=True); it = simstore.Snapshot('p', mmap=False)",
    "SimilarStore": "it = simstore.SimilarStore('p', with_texts=True); it.add(TEXTS[:6])",
    "SimilarStore of names": "it = simstore.SimilarStore('p'); it.add(TEXTS[:3], ['a', 'b', 'a'])",
    "Profile": "it = simstore.Profile()",
    "Deduplication": "it = simstore.dedup(TEXTS[:6], pairs=True)",
    "Evaluation": "it = simstore.evaluate([(TEXTS[0], TEXTS[1], True), (TEXTS[0], TEXTS[2], False)])",
    "Summary": "it = simstore.dedup(TEXTS[:6]).summary",
    "Table": "it = simstore.dedup(TEXTS[:6]).clusters",
    "Array": "it = simstore.Profile().fingerprints(TEXTS[:6])",
    "Compression": "it = simstore.compression(np.arange(100, dtype='u8'))",
    "JoinParts": "it = simstore.JoinParts(3, parts=4)",
    "Forest": "it = simstore.Forest()",
    "Match": "it = simstore.Match(1, 2, 3)",
    "SimilarMatch": "it = simstore.SimilarMatch(1, 'a', 0.5, 0.0)",
}
# Constructors and functions that are called, besides `dedup`.
FUNCTIONS = ["Builder", "Forest", "JoinParts", "Match", "Profile", "SimilarMatch", "SimilarStore", "Snapshot", "Store"]
FUNCTIONS += ["bands", "clusters", "compression", "distance", "evaluate", "self_join", "similarity"]
# Special methods that are called like public methods.
SPECIAL_METHODS = ["__getitem__", "__contains__", "__eq__", "__len__", "__iter__", "__reduce__", "__array__", "__arrow_c_stream__"]
SPECIAL_METHODS += ["__enter__"]


class CallGenerator:
    """Generates random calls of the Python interface, as Python code. The same seed and call number give the same code."""

    def __init__(self, seed: int, number: int):
        self.random = random.Random(f"{seed}/{number}")

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def text(self) -> str:
        return repr(self.one_of(*TEXTS[:-3]) if self.random.random() < 0.9 else self.one_of(*TEXTS))

    def texts(self) -> str:
        texts = [self.text() for _ in range(self.random.randrange(6))]
        if self.random.random() < 0.2:
            texts.append(self.one_of("None", "float('nan')", "5", "b'x'"))
        listed = f"[{', '.join(texts)}]"
        kinds = ["{}", "tuple({})", "iter({})", "(t for t in {})", "np.array({}, dtype=object)", "{{'text': {}}}"]
        return self.one_of(*kinds, "pd.Series({}, dtype=object)", "pl.Series({}, strict=False)", "pa.array({})").format(listed)

    def number(self) -> str:
        if self.random.random() < 0.85:
            return self.one_of(*NUMBERS)
        return self.one_of(*EDGE_NUMBERS, "1.5", "True", "None", "np.uint64(3)", "'3'")

    def fingerprints(self) -> str:
        listed = f"[{', '.join(self.number() for _ in range(self.random.randrange(5)))}]"
        kinds = ["{}", "tuple({})", "iter({})", "np.array({})", "np.array({}, dtype=object)"]
        kinds += ["pd.Series({})", "pa.array({})", "pl.Series({})"]
        others = ["np.arange(20, dtype='u8')", "np.zeros((3, 16), dtype='u1')", "np.arange(5, dtype='i4')"]
        others += ["[bytes(16), None]", "bytes(16)"]
        return self.one_of(*kinds, *others).format(listed)

    def documents(self) -> str:
        rows = f"[{', '.join(f'dict(text={self.text()}, id={self.number()})' for _ in range(self.random.randrange(4)))}]"
        kinds = ["{}", "iter({})", "pd.DataFrame({})", "pl.DataFrame({}, strict=False)", "pa.Table.from_pylist({})"]
        return self.one_of(self.texts(), self.fingerprints(), self.one_of(*kinds).format(rows), self.one_of(*PATHS))

    def progress(self) -> str:
        return self.one_of("None", "False", "print", "lambda p: None", "lambda p: 1 / 0", "5")

    def value(self, name: str, type_name: str) -> str:
        """Returns a random argument for the parameter `name` of the function or class `type_name`, as Python code.

        In most cases the argument is plausible for the parameter.
        """
        if self.random.random() < 0.04:
            return self.one_of(*JUNK_VALUES)
        if name == "text" and type_name != "dedup":
            return self.text()
        if name == "ids" or name == "names":
            return self.one_of(self.fingerprints(), self.texts(), "range(3)", "['a', 'b', 'a']", self.number())
        if name in STRING_VALUES and self.random.random() < 0.95:
            return repr(self.one_of(*STRING_VALUES[name]))
        if name == "texts":
            return self.texts()
        if name in ("source", "frame", "against"):
            return self.documents()
        if name in ("fingerprints", "array", "a", "b"):
            return self.fingerprints()
        if name in ("fingerprint", "id"):
            return self.one_of(self.number(), self.number(), self.number(), "bytes(16)", "'a'")
        if name in ("similar", "recall", "verify_text", "alike_from", "positive_from", "similarity", "error"):
            return self.one_of(*SHARES)
        if name in ("text_a", "text_b"):
            return self.text()
        if name == "pairs":
            return self.one_of("True", "[('a b c', 'a b c d', True)]", "[{'a': 'x y', 'b': 'x', 'label': 1}]", "'pairs.csv'")
        if name == "progress":
            return self.progress()
        if name in PATH_PARAMETERS:
            return self.one_of(*PATHS)
        if name in NUMBER_PARAMETERS:
            return self.number()
        if self.random.random() < 0.5:
            return self.one_of("True", "False")
        return self.one_of("None", "'a'", "b'x'", self.texts(), self.fingerprints())

    def arguments(self, function: Any, type_name: str) -> str:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return ", ".join(self.one_of(*JUNK_VALUES) for _ in range(self.random.randrange(3)))
        arguments = []
        optional_probability = self.one_of(0.05, 0.15, 0.4)
        for parameter in parameters:
            if parameter.name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            is_required = parameter.default is parameter.empty
            if self.random.random() > (0.97 if is_required else optional_probability):
                continue
            is_flag = isinstance(parameter.default, bool) and self.random.random() < 0.95
            value = self.one_of("True", "False") if is_flag else self.value(parameter.name, type_name)
            arguments.append(value if parameter.kind is parameter.POSITIONAL_ONLY else f"{parameter.name}={value}")
        return ", ".join(arguments)

    def statements(self, simstore: Any) -> list[str]:
        """Returns random Python statements: a call of a function, or the construction of an object and calls of its methods."""
        if self.random.random() < 0.45:
            name = self.one_of(*FUNCTIONS, *["dedup"] * 12)
            return [f"simstore.{name}({self.arguments(getattr(simstore, name), name)})"]
        name = self.one_of(*OBJECT_STATEMENTS)
        object_type = getattr(simstore, name.split()[0])
        members = [member for member in dir(object_type) if not member.startswith("_") or member in SPECIAL_METHODS]
        lines = [OBJECT_STATEMENTS[name]]
        for _ in range(self.random.randrange(1, 4)):
            member = self.one_of(*members)
            attribute = inspect.getattr_static(object_type, member)
            if callable(getattr(object_type, member)) and not inspect.isgetsetdescriptor(attribute):
                lines.append(f"it.{member}({self.arguments(getattr(object_type, member), name)})")
            else:
                lines.append(f"it.{member}")
        return lines


def is_broken(error: BaseException) -> bool:
    """Whether an exception reports a broken library or interpreter, not a wrong argument."""
    names = {error_type.__name__ for error_type in type(error).__mro__}
    return bool(names & {"PanicException", "InternalError", "SystemError"}) or not isinstance(error, Exception)


def run_calls(seed: int, first: int, end: int) -> None:
    """Runs the calls `first` to `end` - 1. Reports each call on standard output, as JSON: its text before it runs, its result after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # The calls may print, so their standard output is discarded.
    reports = os.fdopen(os.dup(1), "w")
    sys.stdout = open(os.devnull, "w")
    import datetime
    import decimal
    import pathlib

    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    import simstore

    warnings.simplefilter("ignore")
    modules = {"datetime": datetime, "decimal": decimal, "np": np, "pa": pa, "pathlib": pathlib, "pd": pd, "pl": pl}

    def report(**fields: Any) -> None:
        print(json.dumps(fields), file=reports, flush=True)

    folder = Path.cwd()
    for number in range(first, end):
        lines = CallGenerator(seed, number).statements(simstore)
        report(number=number, call="; ".join(lines))
        call_folder = folder / str(number)
        call_folder.mkdir()
        os.chdir(call_folder)
        Path("in.jsonl").write_text(json.dumps({"text": TEXTS[0]}) + "\n")
        names = {**modules, "simstore": simstore, "warnings": warnings, "TEXTS": TEXTS}
        broken, raised = None, ""
        for line in lines:
            try:
                result = eval(line, names) if line.startswith(("it.", "simstore.")) and "; " not in line[:60] else exec(line, names)
                # `repr` evaluates lazy results.
                repr(result)
            except BaseException as error:
                raised = type(error).__name__
                if is_broken(error):
                    broken = "".join(traceback.format_exception(error))
                    break
        names.clear()
        report(number=number, broken=broken, raised=raised)


def watch_child(process: subprocess.Popen[str], seconds: float, raised: Counter[str]) -> tuple[dict[str, Any] | None, str | None]:
    """Waits for a child process that runs calls. Counts the exceptions of the calls in `raised`.

    Returns (None, None) if all calls ended. Otherwise returns the last call and its failure: it took longer than `seconds`, its process
    ended, or it raised an exception that reports a broken library.
    """
    last_call, limit = None, max(seconds, START_SECONDS)
    selector = selectors.DefaultSelector()
    assert process.stdout is not None
    selector.register(process.stdout, selectors.EVENT_READ)
    buffered = b""
    while True:
        if not selector.select(limit):
            process.kill()
            process.wait()
            return last_call, f"it did not end within {limit:g} seconds"
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            break
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            message, limit = json.loads(line), seconds
            if "call" in message:
                last_call = message
            elif message["broken"]:
                process.kill()
                process.wait()
                return last_call, message["broken"]
            else:
                raised[message["raised"]] += 1
                last_call = None
    code = process.wait()
    if last_call is not None or code:
        return last_call, f"its process ended with the exit code {code}"
    return None, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="how many calls [default: 1000]")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of the random numbers [default: a new one]")
    parser.add_argument("--only", type=int, help="run the call of this number alone")
    parser.add_argument("--seconds", type=float, default=60, help="the longest that a call may take [default: 60]")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_calls(arguments.seed, *arguments.child)
        return 0
    first, end = (0, arguments.calls) if arguments.only is None else (arguments.only, arguments.only + 1)
    print(f"seed {arguments.seed}, calls {first} to {end - 1}", flush=True)
    failures, raised = 0, Counter[str]()
    while first < end:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile("w+") as error_output:
            command = [sys.executable, os.path.abspath(__file__), "--seed", str(arguments.seed), "--child", str(first), str(end)]
            environment = {**os.environ, "RUST_BACKTRACE": "1"}
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=error_output, cwd=folder, env=environment
            )
            last_call, failure = watch_child(process, arguments.seconds, raised)
            error_output.seek(0)
            error_tail = error_output.read()[-3000:]
        if failure is None:
            break
        failures += 1
        if last_call is None:
            print(f"a child process failed outside of a call: {failure}\n{error_tail}")
            return 1
        print(f"call {last_call['number']} of seed {arguments.seed} failed: {failure}\n    {last_call['call']}\n{error_tail}", flush=True)
        first = last_call["number"] + 1
    answered = raised.pop("", 0)
    print(f"{answered} calls returned, {raised.total()} raised an exception ({dict(raised.most_common(8))}), {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
