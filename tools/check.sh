#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs all tests: the unit test programs, the fuzzers, and the tests with real IOCs and clients. pytest runs them side
# by side (tests/harness/schedule.py). The last lines are the summary. setup.sh installs what is missing first.
#
#   tools/check.sh [ARGUMENTS FOR PYTEST...]
#   JOBS=N           so many processes run tests; default: two for each CPU, because tests wait most of the time
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest; default: 40
#
# Some tests by name: tools/test.sh. The long form of dear tests: tools/soak.sh.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
# From the environment on purpose: Base's make refuses one from the command line.
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
"$top/tools/fuzzers.sh"

cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests -q -p no:cacheprovider -n "${JOBS:-$((2 * $(nproc)))}" "$@" </dev/null
