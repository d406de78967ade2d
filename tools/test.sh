#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs some tests by name. It builds and installs nothing: run make first.
#
#   tools/test.sh NAME [ARGUMENTS FOR PYTEST...]
#
# NAME is a part of a name, as for pytest -k: of a test (test_budget), a module (test_health), a unit test program
# (testCa), of test_fuzz; or "test_a or test_b". With -n 4, four tests run side by side.
set -eu
[ $# -gt 0 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/epicsBase.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
name=$1
shift
cd "$top"
export PYTHONPYCACHEPREFIX="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/pycache" # not into the tree
unset PYTHONDONTWRITEBYTECODE
exec "$python" -m pytest tests -q -p no:cacheprovider -k "$name" "$@" </dev/null
