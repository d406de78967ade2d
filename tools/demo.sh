#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shows the main job: a running, unmodified softIoc, and then the monitor that tells what happens in it.
# Installs what is missing first (setup.sh).
#
#   tools/demo.sh [SECONDS]      on a terminal: live, q or Ctrl-C ends it; otherwise: plain lines
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=/usr/bin/python3
[ -x "$python" ] || python=python3
# PYTHONPATH: for the package tests.harness. The folder as a program: so its clients show up as "python demo".
PYTHONPATH="$top" PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tools/demo" "$@"
