#!/usr/bin/env bash
# clang++ with libFuzzer for make fuzz, from the system's packages, if it is missing.
set -euo pipefail
command -v clang++ >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
  echo "make fuzz needs clang++ on the PATH; install it (there is no apt-get here)" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "make fuzz needs clang++; installing it needs root or sudo" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends clang
command -v clang++ >/dev/null || { echo "apt-get installed no clang++; make fuzz cannot run" >&2; exit 1; }
