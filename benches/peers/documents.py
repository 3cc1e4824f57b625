#!/usr/bin/env python3
"""Copies the documents of Parquet and JSON Lines files to one JSON Lines file, which all tools read.

    python3 benches/peers/documents.py FOLDER_OR_FILE --output documents.jsonl --ids ids.txt

A line is {"id": N, "text": ...}. N counts from 0, and line N of the file of ids, also from 0, has the original id as JSON. Documents
without text are skipped. Parquet needs pyarrow.
"""

import argparse
import gzip
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "similar"))

from rivals import WORD

JSON_LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz")
PARQUET = ".parquet"


def find_files(path):
    """Returns the Parquet and JSON Lines files in order of their paths, and the number of other files."""
    if os.path.isfile(path):
        return [path], 0
    files = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
    readable = [file for file in files if file.endswith((*JSON_LINES, PARQUET))]
    return readable, len(files) - len(readable)


def read_records(path, fields):
    """Yields the rows of a Parquet or JSON Lines file as dicts. Of a Parquet file, reads only the columns `fields`."""
    if path.endswith(PARQUET):
        from pyarrow.parquet import ParquetFile

        table = ParquetFile(path)
        columns = [field for field in fields if field in table.schema_arrow.names]
        for batch in table.iter_batches(batch_size=1024, columns=columns):
            yield from batch.to_pylist()
    elif path.endswith(JSON_LINES):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)
    else:
        sys.exit(f"{path}: expected Parquet or JSON Lines, by the extension {', '.join((PARQUET, *JSON_LINES))}")


def copy_documents(path, target, ids, text_field="text", id_field="id", plain_words=False):
    """Writes the documents of the files at `path` to the file `target`, and their original ids to the file `ids`.

    With `plain_words`, texts become lower-case words separated by spaces. Returns counts of documents, of documents without text, and of
    files in other formats.
    """
    files, other_files = find_files(path)
    if not files:
        sys.exit(f"{path}: no Parquet or JSON Lines file there")
    count = empty = 0
    with open(target, "w", encoding="utf-8", errors="replace") as lines, open(ids, "w", encoding="utf-8") as names:
        for file in files:
            for row, record in enumerate(read_records(file, (text_field, id_field))):
                text = record.get(text_field)
                if plain_words and isinstance(text, str):
                    text = " ".join(WORD.findall(text.lower()))
                if not isinstance(text, str) or not text.strip():
                    empty += 1
                    continue
                lines.write(json.dumps({"id": count, "text": text}, ensure_ascii=False) + "\n")
                name = record.get(id_field)
                names.write(json.dumps(f"{os.path.basename(file)}:{row}" if name is None else name, default=str) + "\n")
                count += 1
    if not count:
        sys.exit(f"{path}: no document has text in the field {text_field}; --text-field names another field")
    return {"documents": count, "without_text": empty, "other_files": other_files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--id-field", default="id")
    parser.add_argument("--plain-words", action="store_true")
    parser.add_argument("--output", required=True)
    parser.add_argument("--ids", required=True)
    arguments = parser.parse_args()
    counts = copy_documents(
        arguments.data, arguments.output, arguments.ids, arguments.text_field, arguments.id_field, arguments.plain_words
    )
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
