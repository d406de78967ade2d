#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prepares the fuzzers (tests/fuzz): if clang's runtime for fuzzers is missing, it installs it, as root. Progress goes to
# stderr. test_fuzz compiles them, with low priority, while other tests wait.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"

die() { printf 'fuzzers: %s\n' "$*" >&2; exit 1; }

# Debian has that runtime in a separate package. So compile a fuzzer to see whether it is installed.
compiles() { echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { (void)p; (void)n; return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c - -o "$cache/fuzzer.$$" 2>/dev/null; }
if ! compiles; then
    pkg=libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev
    "$top/tools/installPackages.sh" fuzzers "$cache/fuzzer.log" "$pkg"
    compiles || die "clang cannot build a fuzzer with $pkg installed. Try: clang -fsanitize=fuzzer"
fi
rm -f "$cache/fuzzer.$$"
