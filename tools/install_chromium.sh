#!/usr/bin/env bash
# Headless Chromium and its driver for make test-browser, from the system's packages, if they are missing.
set -euo pipefail
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "make test-browser needs chromium and chromedriver on the PATH; install them (there is no apt-get here)" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "make test-browser needs chromium; installing it needs root or sudo" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends chromium chromium-driver
command -v chromium >/dev/null && command -v chromedriver >/dev/null || {
  echo "apt-get installed no chromium and chromedriver; make test-browser cannot run" >&2
  exit 1
}
