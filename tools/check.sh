#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every test: the unit tests by Base's runner, then the ones with real IOCs and clients by pytest, whose
# summary is the last line. Installs what is missing first (setup.sh).
#
#   tools/check.sh [ARGUMENTS FOR PYTEST...]
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
t0=$(date +%s)

say() { printf 'check: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'check: %s\n' "$*" >&2; exit 1; }

base=$("$top/tools/setup.sh")
# From the environment on purpose: Base's make refuses one from the command line.
export EPICS_BASE="$base"

# --- clients and peers from PyPI, once for each list of them ------------------------------------------
python=/usr/bin/python3
"$python" -c 'import ensurepip, venv' 2>/dev/null || python=python3
list=$top/tests/requirements.txt
key=$( { "$python" -V; cat "$list"; } | cksum | cut -d ' ' -f 1)
venv=$EBPFMON_CACHE/venv-$key
if [ ! -f "$venv/.complete" ]; then
    exec 9>"$EBPFMON_CACHE/venv.lock"
    flock 9
    if [ ! -f "$venv/.complete" ]; then
        say "installing Python clients and peers from PyPI into $venv"
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list" \
            >"$EBPFMON_CACHE/pip.log" 2>&1 || {
            tail -n 8 "$EBPFMON_CACHE/pip.log" >&2
            die "pip could not install $list. Is the network there? The whole story: $EBPFMON_CACHE/pip.log"
        }
        touch "$venv/.complete"
    fi
    exec 9>&-
fi

say "unit tests"
make -C "$top" runtests </dev/null || die "a unit test failed (above)."

say "integration tests"
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m pytest tests/integration -q -p no:cacheprovider "$@" </dev/null
