#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzzers (tests/fuzz). If clang's runtime for fuzzers is missing, it installs it, as root. EPICS_BASE must
# name a built Base. Progress goes to stderr.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"

say() { printf 'fuzzers: %s\n' "$*" >&2; }
die() { printf 'fuzzers: %s\n' "$*" >&2; exit 1; }

# Debian has that runtime in a separate package. So compile a fuzzer to see whether it is installed.
compiles() { echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { (void)p; (void)n; return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c - -o "$cache/fuzzer.$$" 2>/dev/null; }
if ! compiles; then
    pkg=libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev
    install="apt-get install --yes --no-install-recommends $pkg"
    command -v apt-get >/dev/null 2>&1 ||
        die "clang has no libFuzzer: $pkg is missing (the name in Debian). Install it with the package manager of this system."
    [ "$(id -u)" = 0 ] || die "clang has no libFuzzer: $pkg is missing. As root, run: apt-get update && $install"
    say "installing $pkg"
    DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND
    apt-get -o Acquire::Retries=3 update >"$cache/fuzzer.log" 2>&1 || :
    $install -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 >>"$cache/fuzzer.log" 2>&1 </dev/null ||
        die "apt-get could not install $pkg. Is the network there? The whole log: $cache/fuzzer.log"
    compiles || die "clang cannot build a fuzzer with $pkg installed. Try: clang -fsanitize=fuzzer"
fi
rm -f "$cache/fuzzer.$$"
make -s -j"$(nproc)" -C "$top/tests/fuzz" all </dev/null >&2 || die "a fuzzer does not compile (above)."
