#!/usr/bin/env bash
# Headless Chromium and its driver for make test-browser, from the system's packages, if they are missing.
set -euo pipefail
is_there() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
is_there && exit 0
"$(dirname "$0")"/install_packages.sh "make test-browser" chromium chromium-driver
is_there || { echo "apt-get installed no chromium and chromedriver; make test-browser cannot run" >&2; exit 1; }
