#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Draws the pictures of the documentation again, as SVG: the demo in a terminal, and all displays, with the values of a
# monitor that watches the IOCs of the demo. After the build it takes a minute.
#
#   tools/pictures.sh [FOLDER]      default: documentation/pictures
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
PYTHONPATH="$top" PYTHONDONTWRITEBYTECODE=1 exec "$python" "$top/tools/demo" --pictures "${1:-$top/documentation/pictures}"
