#!/usr/bin/env bash
# Shows the main jobs on real documents, English and Chinese: finds near-duplicates, compares two of them, builds a store, queries it, lists sizes.
# The environment variable SIMSTORE names an existing binary; without it, the script builds one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ -z "${SIMSTORE-}" ]; then
    source scripts/setup.sh
    if [ ! -e target/demo/simstore ]; then
        echo "Compiling simstore and the libraries that it uses, some minutes on 2 cores. The next time it starts at once." >&2
    fi
    # The profile `demo` compiles fast. Parquet is left out, since the samples do not need it. Cargo shows a progress bar.
    cargo build --profile demo --no-default-features --features serve -p simstore-cli
fi
simstore=$(realpath "${SIMSTORE-target/demo/simstore}")
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/samples" "$folder"
cd "$folder"

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
say() { printf '\n$ %s\n' "$*"; }
run() {
    say simstore "$@"
    "$simstore" "$@"
}
# Prints the first lines only.
start() {
    local lines=$1
    shift
    say simstore "$@" "| head -n $lines"
    "$simstore" "$@" | head -n "$lines"
}

title "1. Which of these pages are nearly the same?"
start 13 dedup samples/en.jsonl
start 15 dedup samples/zh.jsonl

title "2. Where do two of them differ?"
run compare samples/en.jsonl --id desktop-src/direct3d10/d3dx10compileeffectfromfile.md --id desktop-src/direct3d10/d3dx10compileshaderfromfile.md

title "3. The pages without their duplicates, and a store of them"
run dedup samples/en.jsonl samples/zh.jsonl --output unique.jsonl
run add --similar 0.8 --with-texts pages unique.jsonl

title "4. What was removed? A page to look at"
run dedup samples/en.jsonl samples/zh.jsonl --report report.html --quiet

title "5. Which stored page is this new one like?"
# A sample page with one more sentence.
python3 - >new.md <<'END'
import json

pages = map(json.loads, open("samples/en.jsonl", encoding="utf-8"))
print(next(page["text"] for page in pages if page["id"] == "desktop-src/AD/forests.md"), "One more sentence, which is new.")
END
run query pages --file new.md

title "6. How small is it? 12,000 fingerprints as a store, and by other methods"
run build revisions samples/fingerprints.u64
start 7 inspect revisions
run compression samples/fingerprints.u64

# What is left to look at.
left=$root/target/demo
mkdir -p "$left"
rm -rf "$left/pages"
cp -r report.html pages "$left"
printf '\nTo see what was removed, open this page in a browser: %s\n' "$left/report.html"
printf 'To search the store in a browser, run this and open http://127.0.0.1:8120/ : %s serve %s\n' "$simstore" "$left/pages"
