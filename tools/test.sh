#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Some tests by their name, as the tree is built now: it neither builds nor installs anything.
#
#   tools/test.sh NAME [ARGUMENTS FOR PYTEST...]
#
# NAME as pytest's -k has it: a test (test_budget), a module (test_health), a unit test program (testCa), test_fuzz,
# or "test_a or test_b". More than a few: add -n 4, then they run side by side.
set -eu
[ $# -gt 0 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/epicsBase.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
name=$1
shift
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests -q -p no:cacheprovider -k "$name" "$@" </dev/null
