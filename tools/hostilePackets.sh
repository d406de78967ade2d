#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Known clients put to an IOC and to another server, while others write random, mutated, repeated and forged packets in
# five network namespaces (tests/integration/test_hostile_packets.py). Each real put must be shown once, with its own
# client, and nothing else.
#
#   tools/hostilePackets.sh [SECONDS]   default: 3600
#   HOSTILE_SEED=N                      the same random numbers again; it is printed
set -eu
. "$(dirname "$0")/environment.sh"
cd "$top"
unset PYTHONDONTWRITEBYTECODE
HOSTILE_SECONDS=${1:-3600} PYTHONPYCACHEPREFIX="$EBPFMON_CACHE/pycache" exec "$python" -m pytest tests -q -s \
    -p no:cacheprovider -k test_hostile_packets </dev/null
