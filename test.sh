#!/usr/bin/env bash
# All tests: those of the libraries, the command line, the wheel, the file format and the documentation.
#
#   ./test.sh exactness          what `cargo test` makes of these arguments, once; SIMSTORE_CPU=v1 before it for an older processor
#   ./test.sh python -k profile  the tests of the wheel alone; pytest gets the arguments
#   ./test.sh python spark       those of them that run on Spark
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh

# The wheel as it is installed, not the folder that it is made of.
test_python() {
    source scripts/venv.sh
    source scripts/java.sh
    rm -rf target/wheels/test
    # The profile of cargo's tests, so that nothing is compiled for this alone.
    (cd python && CARGO=../scripts/cargo-all "$venv/bin/maturin" build --quiet --profile test \
        --interpreter "$venv/bin/python" --out ../target/wheels/test)
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/test/*.whl
    (cd python/tests && "$venv/bin/python" -m pytest --quiet "$@")
}

# The unit tests of all libraries, as programs: with `--lib`, cargo would make one of the wheel, too.
unit_tests() {
    scripts/cargo-all test --quiet --no-run --message-format json | python3 -c '
import json, os, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made["profile"]["test"] and made["target"]["kind"] == ["lib"]:
        print(os.path.dirname(made["manifest_path"]), made["executable"])'
}

if [ "${1-}" = python ]; then
    shift
    test_python "$@"
    exit
elif [ $# -gt 0 ]; then
    scripts/cargo-all test --quiet "$@"
    exit
fi

test_python
scripts/cargo-all test --quiet
# The same answers without the instructions that only newer processors have.
export SIMSTORE_CPU
programs=$(unit_tests)
for SIMSTORE_CPU in v1 v3; do
    while read -r folder program; do
        (cd "$folder" && "$program" --quiet </dev/null)
    done <<<"$programs"
    scripts/cargo-all test --quiet --test engine exactness::
done
