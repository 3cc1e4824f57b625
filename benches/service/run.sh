#!/usr/bin/env bash
# Measures `simstore serve`, and the same API over Redis, on this machine, with the load generator (wrk) beside them. Prints a table.
#
#   benches/service/run.sh FOLDER [COUNT]     COUNT fingerprints are stored, 10 million by default; FOLDER takes some 2 GB
#
# SECONDS_EACH is the time of each measurement, 15 by default. SIMSTORE and REDIS_SERVICE name programs that are compiled already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup.sh
source scripts/venv.sh
command -v wrk >/dev/null || install wrk
command -v redis-server >/dev/null || install redis-server

folder=$(realpath "$1")
count=${2-10000000}
seconds=${SECONDS_EACH-15}
mkdir -p "$folder"
if [ -z "${SIMSTORE-}" ]; then
    cargo build --quiet --release -p simstore-cli
    cargo build --quiet --release -p simstore-server --example redis
fi
simstore=$(realpath "${SIMSTORE-target/release/simstore}")
redis_service=$(realpath "${REDIS_SERVICE-target/release/examples/redis}")
bodies() { "$venv/bin/python" benches/service/bodies.py "$@"; }

[ -e "$folder/stored.u64" ] || bodies fingerprints "$count" "$folder/stored.u64"
[ -e "$folder/queries" ] || bodies queries $((count > 100000 ? 1000000 : 10000)) "$count" "$folder/queries"
[ -e "$folder/arrays" ] || bodies arrays $((count > 100000 ? 500 : 5)) "$count" "$folder/arrays"
for durability in os sync redis; do
    # Each measurement inserts fingerprints of its own.
    first=$(((1 << 41) + ($(printf '%d' "'$durability") << 24)))
    [ -e "$folder/inserts-$durability" ] ||
        bodies inserts $((count > 100000 ? 2000000 : 20000)) "$first" "$folder/inserts-$durability"
done
[ -e "$folder/store" ] || "$simstore" build "$folder/store" "$folder/stored.u64" --codec elias-fano --quiet

rm -rf "$folder/live" "$folder/appendonlydir"
cp -r "$folder/store" "$folder/live"

processes=()
trap 'for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done; wait' EXIT
await() { until curl -sf "http://127.0.0.1:$1" >/dev/null; do sleep 0.1; done; }

# Prints a row: name, answers a second, and milliseconds at the median, the 99th percentile and the maximum; failed requests.
measure() {
    local name=$1 connections=$2 file=$3 address=$4
    printf '%s\t' "$name"
    THREADS=1 BODIES=$file wrk -t 1 -c "$connections" -d "$seconds" -s benches/service/bodies.lua --latency "$address" | tail -n 1
}
memory() { awk '/VmRSS/ {printf "%.0f MiB", $2 / 1024}' "/proc/$1/status"; }

# Prints the answers of a service to the first queries: the distance and the fingerprint of each match.
answers() {
    head -n 1 "$folder/arrays" | curl -sf --data @- -H 'Content-Type: application/json' "$1/query" |
        "$venv/bin/python" -c 'import json, sys
for answer in json.load(sys.stdin):
    print(sorted((match["distance"], match["fingerprint"]) for match in answer["matches"]))'
}

printf 'what\trequests/s\tp50 ms\tp99 ms\tmax ms\tfailed\n'
"$simstore" serve "$folder/live" --listen 127.0.0.1:8120 2>"$folder/serve.log" &
processes+=($!)
await 8120/readyz
url=http://127.0.0.1:8120
answers "$url" >"$folder/answers-simstore"
measure "simstore, single queries" 32 "$folder/queries" "$url/query"
measure "simstore, arrays of 1,000 queries" 4 "$folder/arrays" "$url/query"
measure "simstore, if_new, os" 32 "$folder/inserts-os" "$url/documents?durability=os"
measure "simstore, if_new, sync" 32 "$folder/inserts-sync" "$url/documents?durability=sync"
echo "simstore: memory $(memory "${processes[0]}"), on disk $(du -sm "$folder/live" | cut -f 1) MiB"
kill "${processes[0]}"
wait "${processes[0]}" || true
processes=()

redis-server --port 8122 --bind 127.0.0.1 --dir "$folder" --save "" --appendonly yes --appendfsync everysec --daemonize no >"$folder/redis.log" &
processes+=($!)
until redis-cli -p 8122 ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
"$redis_service" 127.0.0.1:8121 redis://127.0.0.1:8122 &
processes+=($!)
url=http://127.0.0.1:8121
    "$venv/bin/python" - "$folder/stored.u64" <<'EOF' | redis-cli -p 8122 --pipe >"$folder/load.log"
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
answers "$url" >"$folder/answers-redis"
cmp "$folder/answers-simstore" "$folder/answers-redis"
measure "Redis, single queries" 32 "$folder/queries" "$url/query"
measure "Redis, arrays of 1,000 queries" 4 "$folder/arrays" "$url/query"
measure "Redis, if_new, everysec" 32 "$folder/inserts-redis" "$url/documents"
echo "Redis: memory $(memory "${processes[0]}"), on disk $(du -sm "$folder/appendonlydir" | cut -f 1) MiB"
