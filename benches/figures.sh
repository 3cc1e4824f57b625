#!/usr/bin/env bash
# Prints figures of the command line: compression of real fingerprints, and deduplication of real corpora.
# Needs the corpora of ../shared/data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=../shared/data
cargo build --release --quiet
simstore=target/release/simstore
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for set in win32-rev sqldocs-rev; do
    echo "## compression of $set"
    "$simstore" compression "$data/fingerprints/$set.u64"
    for codec in first-difference gap elias-fano; do
        "$simstore" build --quiet --force --no-ids --codec "$codec" --plan scan "$folder/store" "$data/fingerprints/$set.u64"
        "$simstore" inspect --json "$folder/store" | sed -n 2p
    done
done
for corpus in en/win32 zh/sql-docs zh/dotnet-docs; do
    echo "## dedup of $corpus"
    "$simstore" dedup "$data/$corpus.jsonl.gz" >/dev/null
done
