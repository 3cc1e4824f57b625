#!/usr/bin/env bash
# Runs simstore and other tools on your documents and makes a table: benches/peers/run.sh FOLDER_OR_FILE [options]
# README.md explains the options, the columns and the environment variables.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/table.py" "$@"
