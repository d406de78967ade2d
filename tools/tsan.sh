#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the whole monitor under ThreadSanitizer (gcc) against busy IOCs, and fails if two of its threads use the same
# memory without an order between them. It builds a second monitor in a copy of this tree, in the cache, and runs tests
# with real IOCs and clients there; this tree does not change. Base is not instrumented, so faults that are in Base
# alone are not found. This monitor has no PVA server: when a client disconnects, a thread of pvAccessCPP joins itself
# (epicsThreadMustJoin), and then the runtime of gcc 12 ends the process.
#
#   tools/tsan.sh [NAME] [ARGUMENTS FOR PYTEST...]     NAME as for tools/test.sh; default: the list below
#   JOBS=N               so many processes run tests; default: one for each CPU
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
own=$EBPFMON_CACHE/tree-$(echo "$top" | cksum | cut -d ' ' -f 1)/tsan # each clone has its own
copy=$own/tree
reports=$own/reports

# Tests in which every thread of the monitor works. The instrumented monitor is some ten times slower, so tests of cost
# and of delays are left out. Also left out: tests of memory and of the number of threads, because the runtime uses
# both; the test of SIGTERM, which the runtime delivers late; tests of tables over PV Access.
tests="(test_puts or test_counts or test_trace or test_hand_overs or test_lifecycle or test_logs or test_otlp or \
test_rules or test_pvs or test_health or test_packets or test_put_origins or test_queries or test_query_files or \
test_usage or test_inventory or test_turns or test_clients) and not \
(test_puts_table or test_three_users_in_a_row or test_table or by_pva or by_pv_access or in_tables or stand_last or \
test_cells_that_are_not_known or test_in_turns or test_it_tries_again or \
test_resources_against_proc or \
test_bounded_memory_over_restarts or test_start_that_runs_out_of_threads or SIGTERM)"
if [ $# -gt 0 ]; then
    tests=$1
    shift
fi

say() { printf 'tsan: %s\n' "$*" >&2; }
die() { printf 'tsan: %s\n' "$*" >&2; exit 1; }

EPICS_BASE=$("$top/tools/setup.sh" base)
export EPICS_BASE
python=$("$top/tools/venv.sh")

say "building an instrumented monitor in $copy"
flags="-O1 -g -fsanitize=thread"
mkdir -p "$own"
exec 9>"$own/lock"
flock 9
if [ "$(cat "$own/flags" 2>/dev/null)" != "$flags" ]; then # make does not see that flags have changed
    rm -rf "$copy"
    echo "$flags" >"$own/flags"
fi
rm -rf "$reports"
mkdir -p "$reports"
"$top/tools/copyTree.sh" "$copy" "$EPICS_BASE"
cd "$copy"
make -s -j"$(nproc)" OPT_CFLAGS_YES="$flags -include $copy/tools/tsanAtomic.h" OPT_CXXFLAGS_YES="$flags" \
    OPT_LDFLAGS_YES=-fsanitize=thread EPICS_QSRV_MAJOR_VERSION= configure ebpfMonSup ebpfMonApp iocBoot \
    </dev/null >"$reports/make.log" 2>&1 || die "the build failed: $reports/make.log"
# The IOCs and clients of the tests are not instrumented.
for folder in tests/ioc tests/bench; do
    make -s -j"$(nproc)" -C $folder </dev/null >>"$reports/make.log" 2>&1 || die "the build failed: $reports/make.log"
done

# setarch -R switches off address randomization: with too many random bits the runtime of gcc 12 does not start.
# exitcode=0: a report does not change the exit status of the monitor, so the tests check what they check without the
# runtime.
say "running tests"
status=0
TSAN_OPTIONS="log_path=$reports/report exitcode=0 ignore_noninstrumented_modules=1" \
    PYTHONDONTWRITEBYTECODE=1 setarch -R \
    "$python" -m pytest tests/integration -q -p no:cacheprovider -n "${JOBS:-$(nproc)}" -k "$tests" "$@" </dev/null ||
    status=$?

found=$(cat "$reports"/report.* 2>/dev/null | grep -c '^WARNING: ThreadSanitizer\|^ThreadSanitizer: CHECK failed') || :
if [ "$found" != 0 ]; then
    cat "$reports"/report.* | grep '^SUMMARY\|CHECK failed' | sort | uniq -c | sort -rn >&2
    die "$found reports: $reports"
fi
say "no report"
exit $status
