#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the long form of each test that has one (tests/harness/soak.py): hundreds of restarts, thousands of traces, many
# IOCs at once, the fuzzers with all their inputs. make check has the short form of each. Some ten minutes.
#
#   tools/soak.sh [ARGUMENTS FOR PYTEST...]    e.g. -k restarts
#   JOBS=N           so many processes run tests; default: one for each CPU
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest; default: 600
set -eu
. "$(dirname "$0")/environment.sh"
"$top/tools/fuzzers.sh"

export SOAK=1
cd "$top"
unset PYTHONDONTWRITEBYTECODE
PYTHONPYCACHEPREFIX="$EBPFMON_CACHE/pycache" exec "$python" -m pytest tests -q -p no:cacheprovider -m soak \
    -n "${JOBS:-$(nproc)}" "$@" </dev/null
