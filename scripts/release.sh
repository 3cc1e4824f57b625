#!/usr/bin/env bash
# Makes all files of a release in target/release-files, and checks each of them in an empty environment. docs/releasing.md explains the steps.
#
#   scripts/release.sh               all steps
#   scripts/release.sh check crates  the named steps: check, crates, binaries, wheels
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh
source scripts/venv.sh
export CARGO_INCREMENTAL=0

# In the order of their dependencies.
crates=(simstore simstore-text simstore-io simstore-corpus simstore-dedup simstore-server simstore-cli)
# Oldest glibc of the binary and the wheel: that of CentOS 7, which manylinux2014 names.
glibc=2.17
targets=(x86_64-unknown-linux-musl x86_64-unknown-linux-gnu)
# Upper limits, in MB of 1,000,000 bytes: a larger file is a mistake.
max_binary=31
max_wheel=18

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
out=$PWD/target/release-files
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step() { printf '\n== %s\n' "$*"; }
fail() { echo "release: $*" >&2; exit 1; }

# Fails if a file has more MB than it may have.
limit_size() {
    local bytes
    bytes=$(stat -c %s "$1")
    echo "$1: $bytes bytes"
    [ "$bytes" -le "$(($2 * 1000000))" ] || fail "$1 is larger than $2 MB"
}

# zig compiles C, and links, for every libc and its versions; it comes with a Python package.
install_zig() {
    [ -x "$venv/bin/cargo-zigbuild" ] || "$venv/bin/python" -m pip install --quiet -r scripts/release-requirements.txt
    PATH=$venv/bin:$PATH
}

check() {
    step "version $version, changelog, clean tree"
    grep -q "^## $version - [0-9]\{4\}-[0-9]\{2\}-[0-9]\{2\}$" CHANGELOG.md || fail "CHANGELOG.md has no dated section for $version"
    git diff --quiet HEAD -- || fail "the checkout has changes that are not committed"
    for crate in "${crates[@]}"; do
        cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
name, version = sys.argv[1:]
package = next(package for package in json.load(sys.stdin)["packages"] if package["name"] == name)
missing = [key for key in ("description", "license", "keywords", "categories") if not package[key]]
sys.exit(f"{name}: no {missing}" if missing else package["version"] != version and f"{name}: another version")' "$crate" "$version"
    done
    grep -q '^repository = ' Cargo.toml || echo "note: Cargo.toml has no repository: cargo-binstall needs one to find archives"
}

# Packs all crates, and compiles each from its package, with the others from their packages.
crates() {
    step "crates"
    cargo package "${crates[@]/#/-p}" --target-dir target/package-check "$@"
    cp target/package-check/package/*.crate "$out"
}

# One archive for each target: the program, man pages, completions, licences.
binaries() {
    install_zig
    local target name folder binary
    for target in "${targets[@]}"; do
        step "binary for $target"
        rustup target add "$target"
        local versioned=$target
        [[ $target == *-gnu ]] && versioned=$target.$glibc
        cargo zigbuild --profile dist -p simstore-cli --target "$versioned" --target-dir target/dist
        binary=target/dist/$target/dist/simstore
        limit_size "$binary" "$max_binary"
        name=simstore-$version-$target
        folder=$scratch/$name
        mkdir -p "$folder/completions"
        cp "$binary" README.md CHANGELOG.md LICENSE-* "$folder"
        for shell in bash zsh fish elvish powershell; do
            "$binary" completions "$shell" >"$folder/completions/simstore.$shell"
        done
        "$binary" man-pages "$folder/man1"
        tar -C "$scratch" -czf "$out/$name.tar.gz" "$name"
        try_binary "$out/$name.tar.gz" "$target"
    done
}

# Runs the program of an archive without environment, and the static one in a root directory that holds nothing else.
try_binary() {
    local root=$scratch/root run
    rm -rf "$root"
    mkdir -p "$root/tmp"
    tar -C "$root" --strip-components 1 -xzf "$1"
    cp -r samples "$root"
    if [[ $2 == *-musl ]] && [ "$(id -u)" = 0 ]; then
        run=(chroot "$root" /simstore)
    else
        [[ $2 == *-musl ]] && echo "note: not root, so the static program is not tried in an empty root directory"
        run=(env -i -C "$root" ./simstore)
    fi
    "${run[@]}" dedup samples/en.jsonl --output unique.jsonl
    "${run[@]}" build store samples/en.jsonl --quiet
    "${run[@]}" verify store
    [ "$(wc -l <"$root/unique.jsonl")" = 70 ] || fail "$1: another result"
}

# A wheel for an old glibc, checked by auditwheel, and a source distribution; each is installed in an environment of its own.
wheels() {
    install_zig
    step "wheel and source distribution"
    rm -rf target/wheels/release
    (cd python && maturin build --profile dist --zig --compatibility manylinux2014 --interpreter "$venv/bin/python" \
        --target x86_64-unknown-linux-gnu --target-dir ../target/dist --out ../target/wheels/release)
    (cd python && maturin sdist --out ../target/wheels/release)
    local wheel sdist
    wheel=$(ls target/wheels/release/*.whl)
    sdist=$(ls target/wheels/release/*.tar.gz)
    limit_size "$wheel" "$max_wheel"
    auditwheel show "$wheel"
    try_package "$wheel"
    step "the source distribution, compiled"
    try_package "$sdist"
    cp "$wheel" "$sdist" "$out"
}

try_package() {
    rm -rf "$scratch/venv"
    "$venv/bin/python" -m venv "$scratch/venv"
    "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$1"
    (cd "$scratch" && venv/bin/python - "$OLDPWD/samples/en.jsonl") <<'END_OF_PYTHON'
import sys

import simstore

result = simstore.dedup(sys.argv[1], similar=0.8)
assert (result.summary["documents"], result.summary["kept"]) == (77, 70), result.summary
print(simstore.__version__, result)
END_OF_PYTHON
}

[ $# -gt 0 ] || set -- check crates binaries wheels
rm -f "$out/SHA256SUMS"
for name in "$@"; do
    case $name in
        check | crates | binaries | wheels) "$name" ;;
        *) fail "unknown step $name: expected check, crates, binaries or wheels" ;;
    esac
done
step "sums"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS)
(cd "$out" && ls | xargs -r sha256sum >"$scratch/SHA256SUMS" && mv "$scratch/SHA256SUMS" .)
