#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Kills, stops and ends IOCs and the monitor at random moments, and checks what is left (tests/faults). make check has a
# short form of it. This is the long form: 200 faults of each kind, some two hours.
#
#   tools/faults.sh [ARGUMENTS FOR PYTEST...]    e.g. -k monitor-SIGKILL: one kind
#   FAULTS=N          so many faults of each kind; default: 200
#   FAULT_SECONDS=N   each kind ends after this time at the latest; default: 3600
#   FAULT_SEED=N      the same faults as in the run that printed this seed; their moments depend on the machine
#   JOBS=N            so many kinds at the same time; default: 2
set -eu
. "$(dirname "$0")/environment.sh"

export FAULTS="${FAULTS:-200}" FAULT_SECONDS="${FAULT_SECONDS:-3600}"
cd "$top"
# -rP: shows what a test printed, also if it passed
PYTHONDONTWRITEBYTECODE=1 exec nice "$python" -m pytest tests/faults -q -rP -p no:cacheprovider -n "${JOBS:-2}" "$@" \
    </dev/null
