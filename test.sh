#!/usr/bin/env bash
# All tests: those of the library, the command line, the file format and the documentation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh
cargo test --quiet "$@"
