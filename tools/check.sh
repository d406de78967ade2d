#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every test: the unit tests by Base's runner, fuzzers, then the ones with real IOCs and clients by pytest, whose
# summary is the last line. Installs what is missing first (setup.sh).
#
#   tools/check.sh [ARGUMENTS FOR PYTEST...]
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
t0=$(date +%s)

say() { printf 'check: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'check: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

base=$("$top/tools/setup.sh")
# From the environment on purpose: Base's make refuses one from the command line.
export EPICS_BASE="$base"

python=$("$top/tools/venv.sh")

say "unit tests"
make -C "$top" runtests </dev/null || die "a unit test failed (above)."

# --- fuzzers, for a bounded time (FUZZ_SECONDS each) ---------------------------------------------------
# Asked for by what it brings: Debian has clang's runtime for them in a package of its own.
fuzzer() { echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { (void)p; (void)n; return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c - -o "$EBPFMON_CACHE/fuzzer.$$" 2>/dev/null; }
if ! fuzzer; then
    pkg=libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev
    install="apt-get install --yes --no-install-recommends $pkg"
    has apt-get || die "clang has no libFuzzer: $pkg is missing (Debian's name). Install it the way of this system."
    [ "$(id -u)" = 0 ] || die "clang has no libFuzzer: $pkg is missing. As root, run: apt-get update && $install"
    say "installing $pkg"
    DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND
    apt-get -o Acquire::Retries=3 update >"$EBPFMON_CACHE/fuzzer.log" 2>&1 || :
    $install -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 >>"$EBPFMON_CACHE/fuzzer.log" 2>&1 </dev/null ||
        die "apt-get could not install $pkg. Is the network there? The whole story: $EBPFMON_CACHE/fuzzer.log"
    fuzzer || die "clang cannot build a fuzzer with $pkg installed. Try: clang -fsanitize=fuzzer"
fi
rm -f "$EBPFMON_CACHE/fuzzer.$$"
say "fuzzers"
make -s -C "$top/tests/fuzz" run FUZZ_SECONDS="${FUZZ_SECONDS:-20}" </dev/null >&2 ||
    die "a fuzzer found something (above)."

say "integration tests"
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests/integration -q -p no:cacheprovider "$@" </dev/null
