#!/usr/bin/env bash
# Runs simstore and other tools on the corpora of a folder, scores them by brute force, and prints Markdown tables. Passes further
# arguments to compare.py: benches/similar/run.sh ../shared/data --corpora en/win32 --similarity 0.8
set -euo pipefail
data=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${CARGO_TARGET_DIR:-target}
venv=$target/similar/venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet -r benches/similar/requirements.txt
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check ./python
cargo build --release --quiet
cargo build --release --quiet -p simstore-similar
"$venv/bin/python" benches/similar/compare.py "$data" --simstore "$target/release/simstore" \
    --truth "$target/release/simstore-similar" --folder "$target/similar" "$@"
