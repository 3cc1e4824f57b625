#!/usr/bin/env bash
# Kills `simstore add` at each system call that changes the disk. Checks that the store then verifies, that it has the first documents
# and no others, and that another run adds the rest.
#
#   scripts/kill-at-every-syscall.sh [SIMSTORE [DOCUMENTS]]      default: target/debug/simstore 600
#
# strace counts the calls of each thread separately: the kill is at the n-th call of the first thread that reaches n.
set -euo pipefail

simstore=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/simstore}")
documents=${2:-600}
if ! command -v strace > /dev/null; then
    echo "skipped: strace is not installed" >&2
    exit 0
fi
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT

seq "$documents" | while read -r i; do printf '%s\n' "$i" | md5sum | cut -c1-16; done > input.hex
"$simstore" add whole input.hex > /dev/null 2>&1
"$simstore" dump whole | sort > whole.tsv

add() {
    # A small memtable, so that segments are flushed and merged; documents one by one.
    # Without this, the shell reports each killed run.
    { "$@" "$simstore" add --if-new --memtable 16K store input.hex > /dev/null 2> log; } 2> /dev/null
}

fail() {
    echo "killed at $1, call $2: $3; the store is $PWD/store" >&2
    cat log >&2
    trap - EXIT
    exit 1
}

for call in write fsync fdatasync rename unlink; do
    kills=0 step=1
    # The writes of single documents are all alike: later ones are sampled.
    for ((n = 1; ; n += step)); do
        if [[ $call == write && $n -ge 100 ]]; then step=37; fi
        rm -rf store
        if add strace -f -qqq -o /dev/null -e "trace=$call" -e "inject=$call:signal=SIGKILL:when=$n"; then
            break
        fi
        kills=$((kills + 1))
        if [[ -e store/MANIFEST ]]; then
            "$simstore" verify store > log 2>&1 || fail "$call" "$n" "it does not verify"
            "$simstore" dump store 2> log | sort > part.tsv
            [[ -z $(comm -23 part.tsv whole.tsv) ]] || fail "$call" "$n" "it has what was not added"
            cut -f2 part.tsv | sort -n | awk '$1 != NR - 1 { exit 1 }' || fail "$call" "$n" "there is a hole"
        fi
        add env || fail "$call" "$n" "another run does not carry on"
        "$simstore" dump store 2> log | sort | cmp -s - whole.tsv || fail "$call" "$n" "another run adds something else"
    done
    echo "$call: $kills kills, all well"
done
