#!/usr/bin/env bash
# Makes sure that there is Java 17 or newer, which Spark needs. Comes after setup.sh; does nothing where it is there.
set -euo pipefail

# As Spark looks for it: where JAVA_HOME says, or on the path.
has_new_java() {
    local version
    version=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || true
    [ "${version:-0}" -ge 17 ]
}

if ! has_new_java; then
    # A system without apt-get is told what to install.
    command -v apt-get >/dev/null || install "Java 17 or newer"
    # Where lists of packages are not there yet, the one that every release has; that of older ones is too old.
    package=default-jre-headless
    for java in openjdk-17 openjdk-21 openjdk-25; do
        if apt-cache show "$java-jre-headless" >/dev/null 2>&1; then
            package=$java-jre-headless
            break
        fi
    done
    install "$package"
    has_new_java || { echo "setup: please install Java 17 or newer, or let JAVA_HOME name it, and run this again" >&2; exit 1; }
fi
