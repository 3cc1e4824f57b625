#!/usr/bin/env bash
# Makes target/venv, the virtual environment of the Python tests, with the packages of python/tests/requirements.txt. Installs Python 3.11
# or newer if it is missing and the system has a package. Does nothing if all is up to date. Source setup.sh first.
set -euo pipefail

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Finds the first Python that is new enough: `python3`, or a versioned one beside an older `python3`.
find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        is_new_enough "$python" && return
    done
    return 1
}

if ! find_python; then
    echo "setup: the wheel needs Python 3.11 or newer; found $(python3 --version 2>&1)" >&2
    for python in python3.14 python3.13 python3.12 python3.11; do
        # Without apt-get, reports the package to install.
        command -v apt-get >/dev/null || install "Python 3.11 or newer"
        if apt-cache show "$python" >/dev/null 2>&1; then
            install "$python" "$python-venv"
            break
        fi
    done
    find_python || { echo "setup: please install Python 3.11 or newer and run this again" >&2; exit 1; }
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    install "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
fi

venv=$PWD/target/venv
requirements=python/tests/requirements.txt
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    # Copied last: if this file exists, all its packages are installed.
    cp "$requirements" "$venv/requirements.txt"
fi
