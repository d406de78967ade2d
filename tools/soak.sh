#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the long form of each test that has one (tests/harness/soak.py): hundreds of restarts, thousands of traces, many
# IOCs at once, the fuzzers with all their inputs. make check has the short form of each. Some ten minutes.
#
#   tools/soak.sh [ARGUMENTS FOR PYTEST...]    e.g. -k restarts
#   JOBS=N           so many processes run tests; default: one for each CPU
#   FUZZ_SECONDS=N   each fuzzer ends after this time at the latest; default: 600
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
"$top/tools/fuzzers.sh"

export SOAK=1
cd "$top"
PYTHONPYCACHEPREFIX="$EBPFMON_CACHE/pycache" exec "$python" -m pytest tests -q -p no:cacheprovider -m soak -n "${JOBS:-$(nproc)}" "$@" </dev/null
