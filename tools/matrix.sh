#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Watches an IOC of each release and build of EPICS Base that this machine has, and writes what works into the table in
# documentation/develop/tried.md. About a minute for each row.
#
#   tools/matrix.sh [ARGUMENTS FOR PYTEST...]    e.g. -k 3.15
#   EBPFMON_RELEASES=DIR   their folder: DIR/3.15.9, DIR/7.0.3.1-static, each a built Base. Default: "releases" in the
#                          cache (EBPFMON_CACHE). See tests/harness/releases.py; tools/buildRelease.sh builds some
#
# The rows of other builds do not change.
set -eu
. "$(dirname "$0")/environment.sh"

export SOAK=1
cd "$top"
found=$(mktemp)
trap 'rm -f "$found"' EXIT
export PYTHONDONTWRITEBYTECODE=1
"$python" -m pytest tests/integration/test_releases.py -q -p no:cacheprovider \
    --junitxml="$found" "$@" </dev/null >&2 || :
"$python" -m tests.harness.tables releases "$found" "$(uname -r | cut -d- -f1)"
