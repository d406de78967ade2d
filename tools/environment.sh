# SPDX-License-Identifier: BSD-3-Clause
# What tools need that run tests or benchmarks; they source it: the cache, EPICS Base (setup.sh installs what is missing), a
# Python with the packages of the tests. Sets top and python.
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
EPICS_BASE=$("$top/tools/setup.sh") # exported on purpose: Base's make refuses one from the command line
export EPICS_BASE
python=$("$top/tools/venv.sh")
