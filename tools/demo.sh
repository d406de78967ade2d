#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The demo: an unmodified softIoc runs, then the monitor starts and shows what happens in it. setup.sh installs what is
# missing first.
#
#   tools/demo.sh [SECONDS]      on a terminal: live, q or Ctrl-C ends it; otherwise: plain lines
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=/usr/bin/python3
[ -x "$python" ] || python=python3
# PYTHONPATH: for the package tests.harness. Python runs the folder, so that the monitor names its clients "python demo".
PYTHONPATH="$top" PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tools/demo" "$@"
