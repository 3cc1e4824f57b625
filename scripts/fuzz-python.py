#!/usr/bin/env python3
"""Calls the Python interface with random arguments, valid and invalid, and reports calls that crash, panic or hang.

    target/venv/bin/python scripts/fuzz-python.py                      1,000 calls; the seed is printed
    target/venv/bin/python scripts/fuzz-python.py --calls 100000       more of them
    target/venv/bin/python scripts/fuzz-python.py --seed 7 --only 123  one call again, as it is printed

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
MEMORY = 8 << 30
# Seconds for a child process to import the libraries.
STARTING = 300

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
EDGES = ["-1", "2**31", "2**32", "2**63 - 1", "2**63", "2**64 - 1", "2**64", "-(2**63)", "2**128", "10**30", "-(10**30)"]
SHARES = ["0.5", "0.8", "0.9", "0.95", "1.0", "0.3", "0", "1", "1e-9", "-0.5", "1.5", "float('nan')", "float('inf')", "5e-324"]
JUNK = [
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
WORDS = {
    "keep": ["first", "longest", "smallest-id", "newest:x", "largest:", "smallest:text", "none", "best", ""],
    "cluster_by": ["stars", "components", "chains"],
    "codec": ["gap", "elias-fano", "first-difference", "all-differences", "zip"],
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
WORDS["verify_profile"] = WORDS["profiles"] = WORDS["name"] = WORDS["profile"]
WORDS["max_document"] = WORDS["memory"]
PATHS = ["'s'", "'p'", "'new'", "'.'", "''", "'no/where'", "'a b c'", "pathlib.Path('s')", "b's'", "'\\0'", "'x' * 5000", "'in.jsonl'"]
NUMBERED = ["bits", "block_size", "buckets", "count", "distance", "documents", "limit", "max_document", "memory", "most", "parts", "place"]
NUMBERED += ["size", "zstd_level"]
OF_PATHS = ["path", "output", "annotated", "clusters", "keep_list", "remove_list", "resume", "temporary", "dictionary", "idf", "stop_words"]
# Statements that make the objects for method calls. Stores stay open as long as their variables exist.
OBJECTS = {
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
CALLED = ["Builder", "Forest", "JoinParts", "Match", "Profile", "SimilarMatch", "SimilarStore", "Snapshot", "Store"]
CALLED += ["clusters", "compression", "distance", "evaluate", "self_join", "similarity", "sketches"]
# Special methods that are called too.
SPECIAL = ["__getitem__", "__contains__", "__eq__", "__len__", "__iter__", "__reduce__", "__array__", "__arrow_c_stream__", "__enter__"]


class Calls:
    """Random calls, reproducible from a seed and a number."""

    def __init__(self, seed: int, number: int):
        self.random = random.Random(f"{seed}/{number}")

    def one_of(self, *several: Any) -> Any:
        return self.random.choice(several)

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
        return self.one_of(*NUMBERS) if self.random.random() < 0.85 else self.one_of(*EDGES, "1.5", "True", "None", "np.uint64(3)", "'3'")

    def fingerprints(self) -> str:
        listed = f"[{', '.join(self.number() for _ in range(self.random.randrange(5)))}]"
        kinds = ["{}", "tuple({})", "iter({})", "np.array({})", "np.array({}, dtype=object)"]
        kinds += ["pd.Series({})", "pa.array({})", "pl.Series({})"]
        made = ["np.arange(20, dtype='u8')", "np.zeros((3, 16), dtype='u1')", "np.arange(5, dtype='i4')", "[bytes(16), None]", "bytes(16)"]
        return self.one_of(*kinds, *made).format(listed)

    def documents(self) -> str:
        rows = f"[{', '.join(f'dict(text={self.text()}, id={self.number()})' for _ in range(self.random.randrange(4)))}]"
        kinds = ["{}", "iter({})", "pd.DataFrame({})", "pl.DataFrame({}, strict=False)", "pa.Table.from_pylist({})"]
        return self.one_of(self.texts(), self.fingerprints(), self.one_of(*kinds).format(rows), self.one_of(*PATHS))

    def progress(self) -> str:
        return self.one_of("None", "False", "print", "lambda p: None", "lambda p: 1 / 0", "5")

    def value(self, name: str, kind: str) -> str:
        """Returns an argument: mostly a plausible one, chosen by its name and its class."""
        if self.random.random() < 0.04:
            return self.one_of(*JUNK)
        if name == "text" and kind != "dedup":
            return self.text()
        if name == "ids" or name == "names":
            return self.one_of(self.fingerprints(), self.texts(), "range(3)", "['a', 'b', 'a']", self.number())
        if name in WORDS and self.random.random() < 0.95:
            return repr(self.one_of(*WORDS[name]))
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
        if name in OF_PATHS:
            return self.one_of(*PATHS)
        if name in NUMBERED:
            return self.number()
        if self.random.random() < 0.5:
            return self.one_of("True", "False")
        return self.one_of("None", "'a'", "b'x'", self.texts(), self.fingerprints())

    def arguments(self, what: Any, kind: str) -> str:
        try:
            parameters = list(inspect.signature(what).parameters.values())
        except (TypeError, ValueError):
            return ", ".join(self.one_of(*JUNK) for _ in range(self.random.randrange(3)))
        given = []
        share = self.one_of(0.05, 0.15, 0.4)
        for parameter in parameters:
            if parameter.name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            is_needed = parameter.default is parameter.empty
            if self.random.random() > (0.97 if is_needed else share):
                continue
            is_flag = isinstance(parameter.default, bool) and self.random.random() < 0.95
            value = self.one_of("True", "False") if is_flag else self.value(parameter.name, kind)
            given.append(value if parameter.kind is parameter.POSITIONAL_ONLY else f"{parameter.name}={value}")
        return ", ".join(given)

    def statements(self, simstore: Any) -> list[str]:
        """Returns the statements to run: a call of a function, or the construction of an object and calls of its methods."""
        if self.random.random() < 0.45:
            name = self.one_of(*CALLED, *["dedup"] * 12)
            return [f"simstore.{name}({self.arguments(getattr(simstore, name), name)})"]
        name = self.one_of(*OBJECTS)
        kind = getattr(simstore, name.split()[0])
        members = [member for member in dir(kind) if not member.startswith("_") or member in SPECIAL]
        lines = [OBJECTS[name]]
        for _ in range(self.random.randrange(1, 4)):
            member = self.one_of(*members)
            what = inspect.getattr_static(kind, member)
            if callable(getattr(kind, member)) and not inspect.isgetsetdescriptor(what):
                lines.append(f"it.{member}({self.arguments(getattr(kind, member), name)})")
            else:
                lines.append(f"it.{member}")
        return lines


def is_broken(error: BaseException) -> bool:
    """Whether an exception reports a broken library or interpreter, not a wrong argument."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"PanicException", "InternalError", "SystemError"}) or not isinstance(error, Exception)


def child(seed: int, first: int, end: int) -> None:
    """Runs calls. Reports the text of each call on standard output before it runs, and its result."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Output of the calls is discarded.
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

    def report(**what: Any) -> None:
        print(json.dumps(what), file=reports, flush=True)

    folder = Path.cwd()
    for number in range(first, end):
        lines = Calls(seed, number).statements(simstore)
        report(number=number, call="; ".join(lines))
        here = folder / str(number)
        here.mkdir()
        os.chdir(here)
        Path("in.jsonl").write_text(json.dumps({"text": TEXTS[0]}) + "\n")
        names = {**modules, "simstore": simstore, "warnings": warnings, "TEXTS": TEXTS}
        broken, raised = None, ""
        for line in lines:
            try:
                made = eval(line, names) if line.startswith(("it.", "simstore.")) and "; " not in line[:60] else exec(line, names)
                # Evaluates lazy results.
                repr(made)
            except BaseException as error:
                raised = type(error).__name__
                if is_broken(error):
                    broken = "".join(traceback.format_exception(error))
                    break
        names.clear()
        report(number=number, broken=broken, raised=raised)


def watch(process: subprocess.Popen[str], seconds: float, raised: Counter[str]) -> tuple[dict[str, Any] | None, str | None]:
    """Returns the last call of a child process and its failure, or None if all calls ended. Counts the exceptions raised by calls."""
    last, limit = None, max(seconds, STARTING)
    selector = selectors.DefaultSelector()
    assert process.stdout is not None
    selector.register(process.stdout, selectors.EVENT_READ)
    buffered = b""
    while True:
        if not selector.select(limit):
            process.kill()
            process.wait()
            return last, f"it did not end within {limit:g} seconds"
        some = os.read(process.stdout.fileno(), 1 << 16)
        if not some:
            break
        *lines, buffered = (buffered + some).split(b"\n")
        for line in lines:
            told, limit = json.loads(line), seconds
            if "call" in told:
                last = told
            elif told["broken"]:
                process.kill()
                process.wait()
                return last, told["broken"]
            else:
                raised[told["raised"]] += 1
                last = None
    code = process.wait()
    if last is not None or code:
        return last, f"its process ended with the exit code {code}"
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
        child(arguments.seed, *arguments.child)
        return 0
    first, end = (0, arguments.calls) if arguments.only is None else (arguments.only, arguments.only + 1)
    print(f"seed {arguments.seed}, calls {first} to {end - 1}", flush=True)
    failures, raised = 0, Counter[str]()
    while first < end:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile("w+") as said:
            command = [sys.executable, os.path.abspath(__file__), "--seed", str(arguments.seed), "--child", str(first), str(end)]
            environment = {**os.environ, "RUST_BACKTRACE": "1"}
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, cwd=folder, env=environment)
            last, why = watch(process, arguments.seconds, raised)
            said.seek(0)
            ending = said.read()[-3000:]
        if why is None:
            break
        failures += 1
        if last is None:
            print(f"a child process failed outside of a call: {why}\n{ending}")
            return 1
        print(f"call {last['number']} of seed {arguments.seed} failed: {why}\n    {last['call']}\n{ending}", flush=True)
        first = last["number"] + 1
    answered = raised.pop("", 0)
    print(f"{answered} calls returned, {raised.total()} raised an exception ({dict(raised.most_common(8))}), {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
