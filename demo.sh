#!/usr/bin/env bash
# The main job on real documents, English and Chinese: near-duplicate clusters, a store, queries, compression.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh

cargo build --release --quiet
simstore=target/release/simstore
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() {
    say simstore "$@"
    "$simstore" "$@"
}

run dedup samples/en.jsonl samples/zh.jsonl
run build "$folder/store" samples/en.jsonl samples/zh.jsonl
fingerprint=$("$simstore" dump "$folder/store" | head -n 1 | cut -f 1)
run query "$folder/store" "$fingerprint"
run inspect "$folder/store"
run verify "$folder/store"
run compression samples/fingerprints.u64
