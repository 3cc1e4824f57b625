#!/usr/bin/env bash
# All tests: those of the library, the command line, the file format and the documentation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh
cargo test --quiet --features parquet "$@"
# The same answers without the instructions that only newer processors have. All packages are selected, as above: for
# one alone, dependencies have other features, and are compiled again.
for level in v1 v3; do
    SIMSTORE_CPU=$level cargo test --quiet --features parquet --lib "$@"
    SIMSTORE_CPU=$level cargo test --quiet --features parquet --test engine "$@" exactness::
done
