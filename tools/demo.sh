#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the demo: starts an unmodified softIoc, then the monitor, which shows what happens in the softIoc. setup.sh first
# installs what is missing.
#
#   tools/demo.sh [SECONDS]      on a terminal: shows a page, q or Ctrl-C ends it; otherwise: prints plain lines
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=/usr/bin/python3
[ -x "$python" ] || python=python3
# PYTHONPATH is needed for the package tests.harness. Python runs the folder, so the monitor shows its clients as
# "python demo".
PYTHONPATH="$top" PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tools/demo" "$@"
