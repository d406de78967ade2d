#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs ebpfMon --check with different capabilities, and writes the table of capabilities in
# documentation/develop/tried.md: what the monitor can do with each of them. As root, after make. Half a minute.
#
#   tools/capabilities.sh
set -eu
. "$(dirname "$0")/environment.sh"
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m tests.harness.capabilities
