#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What watching costs: one table (tests/bench/run.py). Installs what is missing first, bpftrace too.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
if ! command -v bpftrace >/dev/null; then
    install="apt-get install --yes --no-install-recommends bpftrace"
    [ "$(id -u)" = 0 ] || { echo "bench: missing: bpftrace. As root, run: $install" >&2; exit 1; }
    echo "bench: installing bpftrace" >&2
    DEBIAN_FRONTEND=noninteractive $install >/dev/null </dev/null || {
        echo "bench: apt-get could not install bpftrace. Is the network there? Try: apt-get update && $install" >&2
        exit 1
    }
fi
python=/usr/bin/python3
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tests/bench/run.py" "$@"
