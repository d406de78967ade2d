#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Kills, stops and ends IOCs and the monitor at random moments of everything that they do, and judges what is left
# (tests/faults). make check has a short part of it. This is the long run: 200 faults of each kind, some two hours.
#
#   tools/faults.sh [ARGUMENTS FOR PYTEST...]    e.g. -k monitor-SIGKILL: one kind
#   FAULTS=N          so many faults of each kind; default: 200
#   FAULT_SECONDS=N   each kind ends after this time at the latest; default: 3600
#   FAULT_SEED=N      the same faults again, at moments that depend on the machine; the seed is printed
#   JOBS=N            so many kinds at the same time; default: 2
set -eu
. "$(dirname "$0")/environment.sh"

export FAULTS="${FAULTS:-200}" FAULT_SECONDS="${FAULT_SECONDS:-3600}"
cd "$top"
# -rP: what a test printed, also if it passed
PYTHONDONTWRITEBYTECODE=1 exec nice "$python" -m pytest tests/faults -q -rP -p no:cacheprovider -n "${JOBS:-2}" "$@" \
    </dev/null
