#!/usr/bin/env bash
# Measures `simstore serve`, and the same API over Redis, on this machine, with the load generator (wrk) beside them. Prints a table.
#
#   benches/service/run.sh FOLDER [COUNT]     COUNT fingerprints are stored, 10 million by default; FOLDER takes some 2 GB
#
# Fails if simstore and Redis give different answers, if a request to simstore fails, or if simstore loses an acknowledged fingerprint.
#
# SECONDS_EACH is the time of each measurement, 15 by default. SIMSTORE and REDIS_SERVICE name programs that are compiled already.
# DOCUMENTS names files of documents (.jsonl.gz with `text`); without it, no texts are stored. Relative paths start at the root of the
# project. The ports 18120 to 18122 must be free.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup.sh
source scripts/venv.sh
command -v wrk >/dev/null || install wrk
command -v redis-server >/dev/null || install redis-server

count=${2-10000000}
folder=$(realpath -m "${1:?usage: benches/service/run.sh FOLDER [COUNT]}")/$count
seconds=${SECONDS_EACH-15}
mkdir -p "$folder"
if [ -z "${SIMSTORE-}" ]; then
    cargo build --quiet --release -p simstore-cli
    cargo build --quiet --release -p simstore-server --example redis
fi
simstore=$(realpath "${SIMSTORE-target/release/simstore}")
redis_service=$(realpath "${REDIS_SERVICE-target/release/examples/redis}")
bench() { "$venv/bin/python" "benches/service/$1.py" "${@:2}"; }

bench bodies fingerprints "$count" "$folder/stored.u64"
bench bodies queries 50000 "$count" "$folder/queries"
bench bodies arrays 500 "$count" "$folder/arrays"
rm -rf "$folder/appendonlydir" "$folder/texts"

processes=()
stop() {
    # Bash reports killed processes.
    { kill "${processes[@]}" || true; wait; } 2>/dev/null
    processes=()
}
trap stop EXIT
# Waits until the last process answers the command.
await() {
    until "$@" >/dev/null 2>&1; do
        kill -0 "${processes[-1]}" || { echo "a service has ended: see $folder" >&2; exit 1; }
        sleep 0.1
    done
}
# Serves the store $1.
serve() {
    "$simstore" serve "$1" --listen 127.0.0.1:18120 2>>"$folder/serve.log" &
    processes+=($!)
    await curl -sf http://127.0.0.1:18120/readyz
}
serve_redis() {
    redis-server --port 18122 --bind 127.0.0.1 --dir "$folder" --save "" --appendonly yes --appendfsync everysec --daemonize no \
        >>"$folder/redis.log" &
    processes+=($!)
    # While it loads its file, it answers with an error.
    await bash -c 'redis-cli -p 18122 ping | grep -q PONG'
}

# Prints a row: name, requests a second, and milliseconds at the median, the 99th percentile and the maximum; failed requests. $4 is a
# file of bodies; without it, each request stores a fingerprint.
measure() {
    local name=$1 connections=$2 address=$3
    seed=$((seed + 1))
    local row
    row=$(SEED=$seed BODIES=${4-} wrk -t 1 -c "$connections" -d "$seconds" -s benches/service/bodies.lua --timeout 60s "$address" | tail -n 1)
    printf '%s\t%s\n' "$name" "$row"
    [[ $name == Redis* ]] || [ "${row##*$'\t'}" = 0 ] || { echo "$name: failed requests" >&2; exit 1; }
}
memory() { awk '/VmRSS/ {printf "%.0f MiB", $2 / 1024}' "/proc/$1/status"; }

# Prints the answers of a service to the first queries: the distance and the fingerprint of each match.
answers() {
    head -n 1 "$folder/arrays" | curl -sf --data @- -H 'Content-Type: application/json' "$1/query" |
        "$venv/bin/python" -c 'import json, sys
for answer in json.load(sys.stdin):
    print(sorted((match["distance"], match["fingerprint"]) for match in answer["matches"]))'
}

# Each measurement has random numbers of its own.
seed=0
url=http://127.0.0.1:18120
printf 'what\trequests/s\tp50 ms\tp99 ms\tmax ms\tfailed\n'
for codec in elias-fano prefix-lines; do
    "$simstore" build "$folder/live" "$folder/stored.u64" --codec "$codec" --quiet --force
    serve "$folder/live"
    answers $url >"$folder/answers-$codec"
    measure "simstore, $codec: single queries" 32 $url/query "$folder/queries"
    measure "simstore, $codec: arrays of 1,000 queries" 4 $url/query "$folder/arrays"
    measure "simstore, $codec: if_new, os" 32 "$url/documents?durability=os"
    measure "simstore, $codec: if_new, sync" 32 "$url/documents?durability=sync"
    echo "simstore, $codec: memory $(memory "${processes[0]}"), on disk $(du -sm "$folder/live" | cut -f 1) MiB"
    stop
done
for durability in os sync; do
    serve "$folder/live"
    bench lost store "$url/documents?durability=$durability" "${processes[0]}" $((seed += 1)) "$folder/acknowledged"
    stop
    serve "$folder/live"
    printf 'simstore, killed, %s: ' "$durability"
    bench lost count $url/query "$folder/acknowledged"
    stop
done

if [ -n "${DOCUMENTS-}" ]; then
    # shellcheck disable=SC2086  # several files
    bench bodies documents "$folder/documents" $DOCUMENTS
    : >"$folder/none.jsonl"
    "$simstore" add --quiet --similar 0.8 --with-texts "$folder/texts" "$folder/none.jsonl"
    serve "$folder/texts"
    split -n r/2 "$folder/documents" "$folder/documents-"
    start=$(date +%s.%N)
    clients=()
    for part in aa ab; do
        curl -sf -X POST -T "$folder/documents-$part" -H 'Content-Type: application/x-ndjson' "$url/documents?durability=os" >"$folder/stored-$part" &
        clients+=($!)
    done
    for client in "${clients[@]}"; do wait "$client"; done
    end=$(date +%s.%N)
    cat "$folder/stored-aa" "$folder/stored-ab" | "$venv/bin/python" -c '
import collections, json, sys
results = collections.Counter(json.loads(line).get("result", "error") for line in sys.stdin)
count = sum(results.values())
print(f"texts: {count:,} documents, {count / float(sys.argv[1]) * 3.6e3 / 1e6:.2f} million an hour; {dict(results)}")' \
        "$("$venv/bin/python" -c "print($end - $start)")"
    stop
fi

serve_redis
"$redis_service" 127.0.0.1:18121 redis://127.0.0.1:18122 &
processes+=($!)
url=http://127.0.0.1:18121
"$venv/bin/python" - "$folder/stored.u64" <<'EOF' | redis-cli -p 18122 --pipe >"$folder/load.log"
import sys
import numpy as np

values = np.fromfile(sys.argv[1], dtype="<u8")
write = sys.stdout.buffer.write
for start in range(0, len(values), 100_000):
    commands = []
    for value in values[start : start + 100_000].tolist():
        member = str(value if value < 1 << 63 else value - (1 << 64)).encode()
        for block in range(4):
            key = bytes([block]) + (value >> 16 * block & 0xFFFF).to_bytes(2, "little")
            commands.append(b"*3\r\n$4\r\nSADD\r\n$3\r\n%b\r\n$%d\r\n%b\r\n" % (key, len(member), member))
    write(b"".join(commands))
EOF
answers $url >"$folder/answers-redis"
for codec in elias-fano prefix-lines; do cmp "$folder/answers-$codec" "$folder/answers-redis"; done
measure "Redis, single queries" 32 $url/query "$folder/queries"
measure "Redis, arrays of 1,000 queries" 4 $url/query "$folder/arrays"
measure "Redis, if_new, everysec" 32 "$url/documents"
echo "Redis: memory $(memory "${processes[0]}"), on disk $(du -sm "$folder/appendonlydir" | cut -f 1) MiB"
bench lost store $url/documents "${processes[0]}" $((seed += 1)) "$folder/acknowledged"
{ wait "${processes[0]}" || true; } 2>/dev/null
unset 'processes[0]'
serve_redis
printf 'Redis, killed, everysec: '
# It may lose some.
bench lost count $url/query "$folder/acknowledged" || [ $? = 1 ]
