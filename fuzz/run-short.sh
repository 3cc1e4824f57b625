#!/bin/sh
# Runs every fuzz target for a few seconds (first argument, 10 by default), starting from the golden files.
# Needs `cargo install cargo-fuzz`; the stable toolchain will do.
set -eu
cd "$(dirname "$0")"
# Backtraces of crashes have line numbers.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
seconds=${1:-10}
golden=../format-spec/golden

# Adds a seed for targets that read a selector from the first byte: that byte, then a file.
seed() {
    mkdir -p "corpus/$1"
    { printf "$2"; cat "$3"; } >"corpus/$1/$(echo "$3" | tr -c 'A-Za-z0-9\n' _)"
}
mkdir -p corpus/table corpus/huffman
for store in "$golden"/*/; do
    # Some folders have a log and no store.
    [ -f "${store}MANIFEST" ] || continue
    for table in "$store"*.table; do
        cp "$table" "corpus/table/$(basename "$store")-$(basename "$table")"
        seed block '\000' "$table"
    done
    for file in "$store"*.ids; do if [ -f "$file" ]; then seed ids_names_manifest '\000' "$file"; fi; done
    for file in "$store"*.names; do if [ -f "$file" ]; then seed ids_names_manifest '\001' "$file"; fi; done
    for file in "$store"*.notes; do if [ -f "$file" ]; then seed ids_names_manifest '\002' "$file"; fi; done
    seed ids_names_manifest '\003' "${store}MANIFEST"
done
mkdir -p corpus/documents
printf '\000{"id": 1, "text": "To be, or not to be"}\n{"text": "\\u4f60\\ud83d\\ude00"}\n' >corpus/documents/jsonl
printf '\003000102030405060a\t7\nffffffffffffffff\tname\n' >corpus/documents/hex
printf '\011id,text\n1,"To be,\nor not"\n' >corpus/documents/csv
printf '\013WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Length: 5\r\n\r\nTo be\r\n\r\n' >corpus/documents/warc
printf '\002<p>To be<script>x</script>&amp; <!-- c -->' >corpus/documents/html

for target in table block huffman ids_names_manifest documents; do
    echo "== $target"
    cargo fuzz run -s none "$target" -- -max_total_time="$seconds" -max_len=8192 -verbosity=0
done
