#!/usr/bin/env python3
"""Writes a simstore store from a description in JSON.

    python3 writer.py FOLDER INPUT.json     writes the store in FOLDER, which is new or empty

The description is one object, in the forms of `reader.py --json`. Ids are decimal strings. Fingerprints, notes and values of metadata
are hexadecimal strings. Members other than bits, distance and codec may be absent; these are the defaults:

    {"bits": 64, "distance": 3, "codec": "gap", "ids": true, "profile": "", "plan": "auto",
     "block_size": 0, "span": 0, "tables": null, "segments": [], "logs": []}

A block size of 0 is 4096, and a span of 0 is 64. A segment may have a codec, block size and span of its own. With "ids": false, a pair
is a list of a fingerprint alone.

    {"pairs": [["0000000000000010", "1"]], "names": {"1": "a.html"}, "notes": {"1": "a1a2"},
     "metadata": {"feed": "2c01"}, "tombstones": [["0000000000000013", "2"]]}

A log is a list of records, and a record is a list of operations. This log has one record:

    [[["insert", "0000000000000020", "7", "b.html"], ["note", "7", "00"], ["metadata", "feed", "2d01"],
      ["delete", "0000000000000010", "1"]]]

"tables" is the plan, such as [{"prefix": [0, 1, 2], "flips": 0}]. The default is distance + 1 tables with runs of bits as prefixes.

As a library: `write_store(path, description)`. The bytes are made in the package `simstore_format.writing`.
"""

import json
import sys

from simstore_format.writing.folder import write_store

__all__ = ["write_store"]


def main(arguments):
    if len(arguments) != 2 or arguments[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    try:
        with open(arguments[1], encoding="utf-8") as file:
            description = json.load(file)
        write_store(arguments[0], description)
    except KeyError as error:
        sys.stderr.write(f"{arguments[1]}: no member {error}\n")
        return 1
    except (OSError, TypeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
