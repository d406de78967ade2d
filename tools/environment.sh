# SPDX-License-Identifier: BSD-3-Clause
# The tools that run tests or benchmarks source this file. It sets EBPFMON_CACHE, EPICS_BASE (setup.sh installs what is
# missing), "top" and "python". This Python has the packages of the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
# EPICS_BASE must be in the environment: Base's make refuses it on the command line.
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")

# What a small Debian lacks: tests run ip, and rotel is linked with Python's library.
need=
command -v ip >/dev/null || need=iproute2
library=$(ldd "${python%/bin/*}"/lib/python3*/site-packages/rotel/rotel-agent |
    sed -n 's/.*\(libpython3[.0-9]*\)\.so.* not found/\1/p')
# shellcheck disable=SC2086
[ -z "$need$library" ] || "$top/tools/installPackages.sh" tests "$EBPFMON_CACHE/tests-apt.log" $need $library
