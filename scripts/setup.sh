#!/usr/bin/env bash
# Installs a Rust toolchain new enough for Cargo.toml, a C compiler (for zstd) and Python 3 (for the independent reader of the file
# format), unless they are installed.
set -euo pipefail

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml")
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"

install() {
    if ! command -v apt-get >/dev/null; then
        echo "setup: please install $* and run this again" >&2
        exit 1
    fi
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    echo "setup: installing $*" >&2
    "${root[@]}" apt-get update -qq
    "${root[@]}" apt-get install -y -qq "$@" >&2
}

new_enough() {
    local found
    found=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
    [ -n "$found" ] && [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" = "$needed" ]
}

command -v cc >/dev/null || install gcc libc6-dev
command -v python3 >/dev/null || install python3
if ! new_enough; then
    command -v rustup >/dev/null || install rustup
    rustup toolchain install stable --profile minimal --component rustfmt,clippy >&2
    rustup default stable >&2
    new_enough || { echo "setup: Rust $needed or newer is needed" >&2; exit 1; }
fi
