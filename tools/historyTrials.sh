#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Trials of the history: kills, losses of power, what it costs, 10,000 puts a second, and what it knows beside others
# (tests/faults/history.py). Run make first; as root. Times of questions to a large file: tools/historyTrial.py.
#
#   tools/historyTrials.sh kill|power|cost|rate|day [ARGUMENT]
set -eu
. "$(dirname "$0")/environment.sh"
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m tests.faults.history "$@" </dev/null
