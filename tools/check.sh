#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests: the unit test programs, the fuzzers, and the tests with real IOCs and clients. pytest runs them side
# by side (tests/harness/schedule.py). The last lines are the summary. setup.sh installs what is missing first.
#
#   tools/check.sh [ARGUMENTS FOR PYTEST...]
#   JOBS=N           so many processes run tests at most; default: nine for each CPU. Five of them, because tests wait
#                    most of the time; the others only while the CPUs have room (tests/harness/schedule.py)
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest; default: 40
#
# Tests that are marked as long run with "-m long" (make checkLong), the others without. Some tests by name:
# tools/test.sh. The long form of tests that take much time: tools/soak.sh.
set -eu
. "$(dirname "$0")/environment.sh"
# Each process of pytest reads all tests, and many tests start Python. So keep the code that Python compiles, but not in the
# tree. Otherwise each start of Python compiles hundreds of files.
export PYTHONPYCACHEPREFIX="$EBPFMON_CACHE/pycache"
unset PYTHONDONTWRITEBYTECODE
"$top/tools/fuzzers.sh"

# A test that waits for a scan or for a delay can fail because the other tests leave it no CPU. So if only a few tests
# fail, they run once more, alone, and this result counts. A test may need what those before it in its module did: if it
# fails again, and the tests of its module share IOCs and a monitor, the whole module runs. This should not be needed: a
# test should not depend on the load. If the clock of this host was set meanwhile, all that failed run once more.
again=10 # if tests of more modules fail, load is not the reason. (All tests of a module fail if its monitor does not start.)
cd "$top"
cache=$(mktemp -d)
"$python" -m tests.harness.hostClock >"$cache/clock" &
clock=$!
trap 'kill $clock || :; rm -rf "$cache"' EXIT
run() { "$python" -m pytest -q -o cache_dir="$cache" "$@" </dev/null; }

lastFailed=$cache/v/cache/lastfailed
list_failed() { [ ! -f "$lastFailed" ] || "$python" -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' "$lastFailed"; }

status=0
run tests -m "not long" -n "${JOBS:-$((9 * $(nproc)))}" "$@" || status=$?
[ $status = 1 ] || exit $status
failed=$(list_failed)
if [ -z "$failed" ]; then
    echo "check: a test process crashed (\"node down\" above). Its tests ran again in another process, and passed" >&2
    exit 0
fi
count=$(printf '%s\n' "$failed" | wc -l)
failedModules=$(printf '%s\n' "$failed" | sed 's/::.*//' | sort -u | wc -l)
if [ -s "$cache/clock" ]; then
    echo "check: somebody set the clock of this host, so the monitors marked their counts:" >&2
    cat "$cache/clock" >&2
elif [ "$failedModules" -gt $again ]; then
    exit $status
fi
echo "check: $count failed beside other tests. They run once more, alone:" >&2
printf '%s\n' "$failed" >&2
IFS='
' # one name on each line, because names of tests have blanks and brackets
set -f
# shellcheck disable=SC2086
if ! run $failed "$@"; then
    modules=$("$python" -m tests.harness.schedule "$lastFailed")
    [ "$modules" != "$(list_failed)" ] || exit 1
    printf 'check: some failed again. Their modules run whole:\n%s\n' "$modules" >&2
    run $modules "$@"
fi
echo "check: passed alone; $count failed beside other tests:" >&2
printf '%s\n' "$failed" >&2
