#!/usr/bin/env bash
# Makes a table of simstore and other tools from your documents: benches/peers/run.sh FOLDER_OR_FILE [options]
# README.md has the options, the columns and the environment variables.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/table.py" "$@"
