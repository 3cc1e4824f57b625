#!/usr/bin/env bash
# Runs the experiment of section 4 of Manku, Jain and Das Sarma (2007): a batch of queries against a table of random fingerprints.
# Usage: benches/paper.sh COUNT QUERIES [FOLDER]     (8 billion and 1 million in the paper)
# CODEC names the codec (default: first-difference). The store is written to FOLDER (default: TMPDIR) and removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
count=${1:?usage: benches/paper.sh COUNT QUERIES [FOLDER]}
queries=${2:?usage: benches/paper.sh COUNT QUERIES [FOLDER]}
base=${3:-${TMPDIR:-/tmp}}
codec=${CODEC:-first-difference}

cargo build --release --quiet -p simstore-cli -p simstore-synth
simstore=${CARGO_TARGET_DIR:-target}/release/simstore
need=$("$simstore" plan --count "$count" --json | python3 -c '
import json, sys
plans = [json.loads(line) for line in sys.stdin]
each = next(plan["bytes_per_fingerprint"] for plan in plans if plan.get("plan") == "probe-1")
print(int(float(sys.argv[1]) * each * 1.02 + 2e6 + 17 * float(sys.argv[2])))' "$count" "$queries")
free=$(df --output=avail -B1 "$base" | tail -1)
if [ "$free" -lt "$need" ]; then
    echo "$base has $free bytes free; $count fingerprints take about $need" >&2
    exit 1
fi
folder=$(mktemp -d -p "$base")
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='    wall %R s, core-seconds %U user + %S system'

echo "## $count random fingerprints, $codec"
time "${simstore%simstore}synth" fingerprints "$folder/store" --count "$count" --codec "$codec" \
    --queries "$queries" --queries-file "$folder/queries.u64"
"$simstore" inspect --json "$folder/store" | python3 -c '
import json, sys
store = json.loads(sys.stdin.readline())
each = store["bytes"] / store["fingerprints"]
print("    {:,} bytes: {:.3f} each, {:.1%} of 8".format(store["bytes"], each, each / 8))'

echo "## a batch of $queries queries, half of them near stored fingerprints"
for round in first second; do
    echo "$round time:"
    time "$simstore" query --batch --method stream "$folder/store" "$folder/queries.u64" >"$folder/matches"
done
