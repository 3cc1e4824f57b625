#!/usr/bin/env bash
# Installs Chromium and its driver, for the tests of pages in a browser, unless they are installed. Source setup.sh first.
set -euo pipefail

{ command -v chromium && command -v chromedriver; } >/dev/null || install chromium chromium-driver
