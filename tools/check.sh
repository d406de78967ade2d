#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs all tests: the unit test programs, the fuzzers, and the tests with real IOCs and clients. pytest runs them side
# by side (tests/harness/schedule.py). The last lines are the summary. setup.sh installs what is missing first.
#
#   tools/check.sh [ARGUMENTS FOR PYTEST...]
#   JOBS=N           so many processes run tests; default: two for each CPU, because tests wait most of the time
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest (tests/fuzz/Makefile)
#
# Some tests by name: tools/test.sh.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"

say() { printf 'check: %s\n' "$*" >&2; }
die() { printf 'check: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

base=$("$top/tools/setup.sh")
# From the environment on purpose: Base's make refuses one from the command line.
export EPICS_BASE="$base"

python=$("$top/tools/venv.sh")

# Debian has clang's runtime for fuzzers in a separate package. So compile a fuzzer to see whether it is installed.
fuzzer() { echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { (void)p; (void)n; return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c - -o "$EBPFMON_CACHE/fuzzer.$$" 2>/dev/null; }
if ! fuzzer; then
    pkg=libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev
    install="apt-get install --yes --no-install-recommends $pkg"
    has apt-get || die "clang has no libFuzzer: $pkg is missing (the name in Debian). Install it with the package manager of this system."
    [ "$(id -u)" = 0 ] || die "clang has no libFuzzer: $pkg is missing. As root, run: apt-get update && $install"
    say "installing $pkg"
    DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND
    apt-get -o Acquire::Retries=3 update >"$EBPFMON_CACHE/fuzzer.log" 2>&1 || :
    $install -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 >>"$EBPFMON_CACHE/fuzzer.log" 2>&1 </dev/null ||
        die "apt-get could not install $pkg. Is the network there? The whole log: $EBPFMON_CACHE/fuzzer.log"
    fuzzer || die "clang cannot build a fuzzer with $pkg installed. Try: clang -fsanitize=fuzzer"
fi
rm -f "$EBPFMON_CACHE/fuzzer.$$"
make -s -j"$(nproc)" -C "$top/tests/fuzz" all </dev/null >&2 || die "a fuzzer does not compile (above)."

# A test that waits for a scan or for a delay can fail because the other tests leave it no CPU. So if a few fail, their
# modules run once more, alone, and that counts: a whole module, because some tests judge what those before them did.
# A stop-gap: the last whole runs had two or three such failures each, and a verdict should need no second look.
again=10 # more than these is no accident
cd "$top"
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
run() { PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -o cache_dir="$cache" "$@" </dev/null; }

status=0
run tests -n "${JOBS:-$((2 * $(nproc)))}" "$@" || status=$?
[ $status = 1 ] || exit $status
failed=$("$python" -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' "$cache/v/cache/lastfailed")
count=$(printf '%s\n' "$failed" | wc -l)
[ "$count" -le $again ] || exit $status
say "$count failed beside other tests. Their modules run once more, alone:"
printf '%s\n' "$failed" >&2
# shellcheck disable=SC2046 # no module has a blank in its name
run $(printf '%s\n' "$failed" | sed 's/::.*//' | sort -u) "$@"
say "passed alone; $count failed beside other tests:"
printf '%s\n' "$failed" >&2
