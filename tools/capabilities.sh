#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Asks the monitor what a user with some capabilities can have (ebpfMon --check), and writes the table of capabilities in
# documentation/tried.md. As root, after make. Half a minute.
#
#   tools/capabilities.sh
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m tests.harness.capabilities
