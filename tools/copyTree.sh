#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies the sources of this tree to FOLDER, for a build beside this tree that has other options or another compiler.
# Objects that are in FOLDER stay there: each source keeps its time, so make builds only what has changed. Sources that
# this tree does not have any more are removed from FOLDER.
#
#   tools/copyTree.sh FOLDER BASE      BASE: the EPICS Base of this build
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
copy=$1 base=$2
mkdir -p "$copy"

# What the build makes, and settings of this tree, are not sources.
sources() {
    find . \( -name 'O.*' -o -name .git -o -path ./bin -o -path ./lib -o -path ./dbd -o -path ./db -o -path ./include \
        -o -path ./cfg -o -name __pycache__ -o -name '*.local' -o -name RELEASE.env \) -prune -o -type f -print0
}

(cd "$copy" && sources) | (cd "$top" && xargs -0 sh -c 'for f; do [ -f "$f" ] || printf "%s\0" "$f"; done' sh) |
    (cd "$copy" && xargs -0 rm -f)
(cd "$top" && sources | tar c --null -T -) | tar x -C "$copy"
echo "EPICS_BASE = $base" >"$copy/configure/RELEASE.local"
