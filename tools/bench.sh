#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Measures what watching costs. It prints these tables in an hour and a quarter: an IOC at work, with clients and
# without (tests/bench/site.py), nothing happens (quiet.py), the cost by number and length of chains (cost.py), of puts one at a time (putCost.py), loads that jump (governor.py), a saturated IOC
# (run.py), a flood of puts (storm.py), queries beside other programs (peers.py), other traffic of the host (benchWire), spans to
# collectors (spans.py). It first installs what is missing, also bpftrace, perf, strace and the tools of libbpf.
#
#   tools/bench.sh                        all tables
#   tools/bench.sh ARGUMENTS FOR run.py…  only the table of the saturated IOC; for example --rounds 8 --shape tree
set -eu
. "$(dirname "$0")/environment.sh"
export PYTHONDONTWRITEBYTECODE=1
for peer in bpftrace:bpftrace runqslower:libbpf-tools perf:linux-perf strace:strace; do
    command -v "${peer%:*}" >/dev/null || missing="${missing-} ${peer#*:}"
done
# shellcheck disable=SC2086 # several words
[ -z "${missing-}" ] || "$top/tools/installPackages.sh" bench "$EBPFMON_CACHE/bench-apt.log" $missing
cd "$top" # Python finds the modules tests.bench.* from there
[ $# = 0 ] || exec "$python" -m tests.bench.run "$@"

# Each table has a time limit. If one fails, the next ones still run.
failed=0
table() {
    echo
    echo "=== $1"
    shift
    timeout --kill-after=30 "$@" </dev/null || { echo "bench: it failed, or took longer than $1 s" >&2; failed=1; }
}
arch=$(perl "$EPICS_BASE/lib/perl/EpicsHostArch.pl" 2>/dev/null || "$EPICS_BASE/startup/EpicsHostArch")
table "an IOC at work, with clients" 600 "$python" -m tests.bench.site --clients
table "an IOC at work" 600 "$python" -m tests.bench.site
table "nothing happens" 300 "$python" -m tests.bench.quiet
table "cost by number and length of chains, and COST" 2700 "$python" -m tests.bench.cost
table "cost of puts one at a time, and COST" 600 "$python" -m tests.bench.putCost
table "the longest time in a program" 300 "$python" -m tests.bench.hold
table "loads that jump" 600 "$python" -m tests.bench.governor --minutes 6
table "a saturated IOC" 900 "$python" -m tests.bench.run
table "a flood of puts" 600 "$python" -m tests.bench.storm
table "queries beside other programs" 900 "$python" -m tests.bench.peers
table "other traffic" 300 "tests/bench/O.$arch/benchWire"
table "spans" 300 "$python" -m tests.bench.spans
exit $failed
