#!/usr/bin/env python3
"""Reads simstore stores. Written from the pages beside this file alone, so it checks the crate against the pages.

    python3 reader.py STORE                 HEX<TAB>ID<TAB>NAME lines, ascending
    python3 reader.py --json STORE          all contents as one JSON object
    python3 reader.py --metadata STORE      KEY<TAB>HEX lines: the metadata of the store
    python3 reader.py --notes STORE         ID<TAB>HEX lines: the notes of documents

    python3 reader.py --similar STORE ID ID the estimated similarity of two documents, and its standard error
    python3 reader.py --shards FOLDER       HEX<TAB>ID lines, ascending, of all shards

    python3 reader.py --table FILE.table    the header, then the permuted fingerprints
    python3 reader.py --log FILE.log        the header, then the operations, each after the number of its record
    python3 reader.py --json FILE.log       the contents of a log as one JSON object

    python3 reader.py --signatures FILE     for ranges of consecutive features: their sum and bands
    python3 reader.py --shingles FILE       for runs of words with the hashes of the words: the hash of each run

Slow and strict: decodes every table, checks every checksum, and compares all tables with one another. A torn tail of the last log,
which is damage or the trace of a crash, is reported on standard error. Needs Python 3.8 or newer and only its standard library. As a
library: `Store(path)`, `Table(path)`, `Log(path)` and `Shards(path)` raise `Damaged` for an invalid file.

The files are read in the package `simstore_format`. This file has the command line.
"""

import json
import os
import sys

from simstore_format.as_json import hex_digits, log_as_json, store_as_json
from simstore_format.frame import Damaged
from simstore_format.log import Log
from simstore_format.shards import Shards
from simstore_format.signature import shingle, signature, word_hash
from simstore_format.similar import similarity
from simstore_format.store import Store
from simstore_format.table import Table

__all__ = ["Damaged", "Log", "Shards", "Store", "Table"]


def escape(name):
    """Escapes a name for a column of text: control characters as `\\t`, `\\n`, `\\r` or `\\u{hex}`."""
    known = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
    control = [c for c in set(name) if c < " " or "\x7f" <= c <= "\x9f"]
    return name.translate({ord(c): known.get(c, f"\\u{{{ord(c):x}}}") for c in control})


def print_store(path, out):
    store = Store(path)
    for value, identifier, name in store.entries:
        columns = [hex_digits(value, store.manifest.bits)]
        columns += [] if identifier is None else [str(identifier)]
        columns += [] if name is None else [escape(name)]
        out.write("\t".join(columns) + "\n")
    report_torn_tail(store)


def report_torn_tail(store):
    if store.torn_tail:
        sys.stderr.write(store.torn_tail + "\n")


def print_json(path, out):
    if path.endswith(".log") and os.path.isfile(path):
        value = log_as_json(Log(path))
    else:
        store = Store(path)
        report_torn_tail(store)
        value = store_as_json(store)
    json.dump(value, out, indent=1, ensure_ascii=False)
    out.write("\n")


def print_metadata(path, out):
    for key, value in sorted(Store(path).metadata.items()):
        out.write(f"{escape(key)}\t{value.hex()}\n")


def print_notes(path, out):
    for identifier, note in sorted(Store(path).notes.items()):
        out.write(f"{identifier}\t{note.hex()}\n")


def print_shingles(path, out):
    """Computes the hash of each run. A line has the words of a run and, after a tab, their hashes in hexadecimal."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            run, given = line.rstrip("\n").split("\t")[:2]
            hashes = [word_hash(word, int(number, 16)) for word, number in zip(run.split(" "), given.split(" "))]
            out.write(f"{run}\t{' '.join(f'{number:016x}' for number in hashes)}\t{shingle(hashes):016x}\n")


def print_signatures(path, out):
    """Computes the sum and the bands of ranges of features. A line has the first feature, a tab, and the number of features."""
    with open(path, encoding="ascii") as lines:
        for line in lines:
            first, count = map(int, line.split("\t")[:2])
            total, bands = signature([(first + i) % 2**64 for i in range(count)])
            columns = [str(first), str(count)] + [f"{number:016x}" for number in [total, *bands]]
            out.write("\t".join(columns) + "\n")


def print_similar(path, a, b, out):
    similar, error = similarity(path, Store(path), [int(a), int(b)])
    out.write(f"{similar:.6f}\t{error:.6f}\n")


def print_table(path, out):
    table = Table(path)
    for field in ["bits", "codec", "prefix_bits", "flips", "block_size", "span", "fingerprints", "permutation", "code_lengths"]:
        out.write(f"{field.replace('_', ' ')}: {getattr(table, field)}\n")
    out.write(f"blocks: {[len(block) for block in table.blocks]}\n")
    for value in table.permuted:
        out.write(hex_digits(value, table.bits) + "\n")


def print_log(path, out):
    log = Log(path)
    fields = ["number", "bits", "first_sequence", "previous", "previous_length", "sound", "closed", "torn"]
    for field in fields:
        out.write(f"{field.replace('_', ' ')}: {getattr(log, field)}\n")
    for sequence, operations in log.records:
        for kind, *fields in operations:
            if kind == "metadata":
                columns = [escape(fields[0]), fields[1].hex()]
            elif kind == "note":
                columns = [str(fields[0]), fields[1].hex()]
            else:
                columns = [hex_digits(fields[0], log.bits), str(fields[1])]
                columns += [escape(name) for name in fields[2:] if name is not None]
            out.write("\t".join([str(sequence), kind, *columns]) + "\n")


def print_shards(path, out):
    shards = Shards(path)
    for value, identifier in shards.entries:
        out.write(f"{hex_digits(value, shards.bits)}\t{identifier}\n")


COMMANDS = {
    "--json": print_json,
    "--metadata": print_metadata,
    "--notes": print_notes,
    "--similar": print_similar,
    "--signatures": print_signatures,
    "--shingles": print_shingles,
    "--table": print_table,
    "--log": print_log,
    "--shards": print_shards,
}


def main(arguments):
    option = arguments[0] if arguments and arguments[0].startswith("-") else None
    values = arguments[1:] if option else arguments
    command = COMMANDS.get(option) if option else print_store
    if not command or len(values) != (3 if option == "--similar" else 1):
        sys.stderr.write(__doc__)
        return 2
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False)
    try:
        command(*values, out)
        out.flush()
    except Damaged as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except BrokenPipeError:
        # The program that reads the output has ended. Nothing is left to write, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
