#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prepares faults with real IOCs and clients, asks ebpfMonWhy, and compares its first line with the cause. Each fault has
# a neighbour that is not ill. Writes tests/results/why.json and the table of documentation/develop/tried.md if all were
# tried. Some twelve minutes. Run make first; as root.
#
#   tools/whyTrial.sh [FAULT...]    only faults whose name has one of these words
#   tools/whyTrial.sh -d MINUTES    instead: IOCs that wait a lot, and one with the load of a site, are stopped now and
#                                   then; no deadlock is told of, and no hang stays
#   tools/whyTrial.sh -l [WORD...]  instead: which light a shift sees in eleven situations (or those whose title has a
#                                   word), after how long, and when it is gone: the table of documentation/use/operator.md
set -eu
case ${1-} in -d|-l) ;; -*) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 2;; esac
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/epicsBase.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
export PYTHONPYCACHEPREFIX="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/pycache" # not into the tree
unset PYTHONDONTWRITEBYTECODE
cd "$top"
[ "${1-}" != -d ] || exec "$python" -m tests.faults.stops "${2:?minutes}"
[ "${1-}" != -l ] || { shift; exec "$python" -m tests.faults.lights "$@"; }
exec "$python" -m tests.faults.whyTrial "$@"
