#!/usr/bin/env bash
# Runs all tests: libraries, command line, wheel, file format, documentation.
#
#   ./test.sh exactness          runs `cargo test` once with these arguments; SIMSTORE_CPU=v1 ./test.sh tests the code for older processors
#   ./test.sh python -k profile  tests only the wheel; passes the arguments to pytest
#   ./test.sh python spark       the tests of the wheel that run on Spark
#   ./test.sh browser            tests only the pages, in Chromium; passes the arguments to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh

# Builds and installs the wheel, which is tested as users install it. This also compiles the programs of cargo's tests.
make_wheel() {
    source scripts/venv.sh
    source scripts/java.sh
    rm -rf target/wheels/test
    # The profile of cargo's tests, so that both share compiled code.
    (cd python && CARGO=../scripts/cargo-all "$venv/bin/maturin" build --quiet --profile test \
        --interpreter "$venv/bin/python" --out ../target/wheels/test)
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/test/*.whl
}

test_python() {
    (cd python/tests && "$venv/bin/python" -m pytest --quiet "$@")
}

# Tests the pages in a browser, with the command line that cargo's tests have compiled.
test_browser() {
    source scripts/chromium.sh
    (cd cli/tests/browser && "$venv/bin/python" -m pytest --quiet "$@")
}

# Prints the path of the program with the engine's unit tests.
unit_tests() {
    scripts/cargo-all test --quiet --no-run --message-format json | python3 -c '
import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made["profile"]["test"] and made["target"]["kind"] == ["lib"] and made["target"]["name"] == "simstore":
        print(made["executable"])'
}

test_rust() {
    scripts/cargo-all test --quiet
    # Runs the engine's tests without the instructions of newer processors. Other packages have no code for these.
    local program
    program=$(unit_tests)
    for SIMSTORE_CPU in v1 v3; do
        export SIMSTORE_CPU
        "$program" --quiet </dev/null
        scripts/cargo-all test --quiet --test engine exactness::
    done
}

if [ "${1-}" = python ]; then
    shift
    make_wheel
    test_python "$@"
    exit
elif [ "${1-}" = browser ]; then
    shift
    source scripts/venv.sh
    cargo build --quiet -p simstore-cli
    test_browser "$@"
    exit
elif [ $# -gt 0 ]; then
    scripts/cargo-all test --quiet "$@"
    exit
fi

make_wheel
# Runs both at once: Python and Spark tests often wait, and leave cores idle. The output of the Rust tests comes at the end.
rust_output=$(mktemp)
# A process group of its own, so that the trap below can end it with all its tests.
set -m
(test_rust) >"$rust_output" 2>&1 </dev/null &
rust=$!
set +m
trap 'kill -- "-$rust" 2>/dev/null || true; rm -f "$rust_output"' EXIT
failed=0
"$venv/bin/python" -m unittest --quiet benches/peers/test_*.py || failed=$?
test_python || failed=$?
wait "$rust" || failed=$?
cat "$rust_output"
# The tests of Rust have compiled the command line.
test_browser || failed=$?
exit "$failed"
