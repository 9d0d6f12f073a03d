#!/usr/bin/env bash
# clang++ with libFuzzer and its sanitizers for make fuzz, from the system's packages, if they are missing.
set -euo pipefail
links_fuzzers() {
  command -v clang++ >/dev/null || return 1
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer,address,undefined -o /dev/null - 2>/dev/null
}
links_fuzzers && exit 0
here=$(dirname "$0")
command -v clang++ >/dev/null || "$here"/install_packages.sh "make fuzz" clang
links_fuzzers && exit 0
"$here"/install_packages.sh "make fuzz" "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
links_fuzzers || { echo "clang++ cannot link libFuzzer; make fuzz cannot run" >&2; exit 1; }
