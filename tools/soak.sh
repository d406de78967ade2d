#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the long form of each test that has one (tests/harness/soak.py): hundreds of restarts, thousands of traces, many
# IOCs at once, the fuzzers with all their inputs, the interleaving checker with more preemptions. make check has the
# short form of each. Some ten minutes, and the interleaving checker up to 45. Then threads of an IOC preempt each
# other for an hour on each of two kernels, one of them a real-time one (tools/kernels.sh -r).
#
#   tools/soak.sh [ARGUMENTS FOR PYTEST...]    e.g. -k restarts
#   JOBS=N           so many processes run tests; default: one for each CPU
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest; default: 600
#   EXPLORE_SECONDS=N  each scene of the interleaving checker ends after this time at the latest; default: 120
#   PREEMPT_MINUTES=N  on each of the two kernels; 0: not at all
set -eu
. "$(dirname "$0")/environment.sh"
"$top/tools/fuzzers.sh"

export SOAK=1
cd "$top"
unset PYTHONDONTWRITEBYTECODE
PYTHONPYCACHEPREFIX="$EBPFMON_CACHE/pycache" "$python" -m pytest tests -q -p no:cacheprovider -m soak \
    -n "${JOBS:-$(nproc)}" "$@" </dev/null
[ $# -gt 0 ] || [ "${PREEMPT_MINUTES:-60}" = 0 ] ||
    exec "$top/tools/kernels.sh" -r -m "${PREEMPT_MINUTES:-60}" trixie-backports trixie-backports-rt
