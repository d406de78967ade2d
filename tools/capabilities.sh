#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Asks the monitor what a user with some capabilities can have (ebpfMon --check), and writes the table of capabilities in
# documentation/tried.md. As root, after make. Half a minute.
#
#   tools/capabilities.sh
set -eu
. "$(dirname "$0")/environment.sh"
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m tests.harness.capabilities
