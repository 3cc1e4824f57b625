#!/usr/bin/env bash
# All tests: those of the libraries, the command line, the wheel, the file format and the documentation.
#
#   ./test.sh exactness          what `cargo test` makes of these arguments, once; SIMSTORE_CPU=v1 before it for an older processor
#   ./test.sh python -k profile  the tests of the wheel alone; pytest gets the arguments
#   ./test.sh python spark       those of them that run on Spark
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh

# The wheel as it is installed, not the folder that it is made of; with it, the programs of cargo's tests are compiled.
make_wheel() {
    source scripts/venv.sh
    source scripts/java.sh
    rm -rf target/wheels/test
    # The profile of cargo's tests, so that nothing is compiled for this alone.
    (cd python && CARGO=../scripts/cargo-all "$venv/bin/maturin" build --quiet --profile test \
        --interpreter "$venv/bin/python" --out ../target/wheels/test)
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/test/*.whl
}

test_python() {
    (cd python/tests && "$venv/bin/python" -m pytest --quiet "$@")
}

# The unit tests of the engine, as a program.
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
    # The same answers without the instructions that only newer processors have; only the engine has code for these.
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
elif [ $# -gt 0 ]; then
    scripts/cargo-all test --quiet "$@"
    exit
fi

make_wheel
# Both at once: Python and Spark wait for one another much of the time, and leave cores idle. What the one says comes at the end.
said=$(mktemp)
# A group of its own: it can be interrupted, as its tests are, and is ended with this one.
set -m
(test_rust) >"$said" 2>&1 </dev/null &
rust=$!
set +m
trap 'kill -- "-$rust" 2>/dev/null || true; rm -f "$said"' EXIT
failed=0
"$venv/bin/python" -m unittest --quiet benches/peers/test_*.py || failed=$?
test_python || failed=$?
wait "$rust" || failed=$?
cat "$said"
exit "$failed"
