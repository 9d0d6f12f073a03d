#!/usr/bin/env bash
# install_packages.sh WHO PACKAGE…: installs packages of the system by apt-get, for the target WHO of the Makefile.
set -euo pipefail
who=$1
shift
if ! command -v apt-get >/dev/null; then
  echo "$who needs $*; install them (there is no apt-get here)" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "$who needs $*; installing them needs root or sudo" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "$@"
