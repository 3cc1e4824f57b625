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
# The first lines only.
start() {
    local lines=$1
    shift
    say simstore "$@" "| head -n $lines"
    "$simstore" "$@" | head -n "$lines"
}

start 15 dedup samples/en.jsonl
start 17 dedup samples/zh.jsonl
run build "$folder/pages" samples/en.jsonl samples/zh.jsonl
# A document that has a near-duplicate.
fingerprint=$("$simstore" dedup --distance 3 --quiet --json samples/en.jsonl | sed -n '1s/.*"fingerprint":"\([0-9a-f]*\)".*/\1/p')
run query "$folder/pages" "$fingerprint"
run verify "$folder/pages"
run build "$folder/revisions" samples/fingerprints.u64
start 43 inspect "$folder/revisions"
run compression samples/fingerprints.u64
