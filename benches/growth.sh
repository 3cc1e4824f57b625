#!/usr/bin/env bash
# Measures query time and size for several numbers of fingerprints, and prints the rows of simstore for benches/growth.tsv:
# n, index, us a query, bytes a fingerprint. Usage: benches/growth.sh [COUNT...]. Stores are written to TMPDIR.
# scripts/growth.py draws benches/growth.tsv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
counts=("$@")
if ((${#counts[@]} == 0)); then counts=(100000 1000000 10000000 100000000); fi

measure() {
    cargo bench --quiet --bench model -- "${counts[@]}" "$@"
}
{
    measure --plans=probe-2 --codecs=first-difference
    measure --plans=probe-2,paper-4 --codecs=elias-fano
} | awk -F ' *[|] *' -v OFS='\t' '$2 ~ /^[0-9]+$/ { print $2, $3 " " $4, $6, $5 }' | sort -t $'\t' -k 2,2 -k 1,1n
