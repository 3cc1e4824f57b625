#!/usr/bin/env bash
# Installs Java 17 or newer, which Spark needs, unless it is installed. Source setup.sh first.
set -euo pipefail

# The Java that Spark uses: JAVA_HOME, or the first on the path.
has_new_java() {
    local version
    version=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || true
    [ "${version:-0}" -ge 17 ]
}

if ! has_new_java; then
    # Without apt-get, reports the package to install.
    command -v apt-get >/dev/null || install "Java 17 or newer"
    # Without package lists, the default package is the only known name; older releases have a Java that is too old.
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
