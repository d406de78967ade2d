#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Which lines of the support library the unit test programs run, by gcov. It builds an instrumented library and the
# programs in a copy of this tree, in the cache; this tree does not change. The tests with real IOCs are not counted,
# so a room that only they test has a low number here.
#
#   tools/coverage.sh [LIMIT]      prints each room, and the sources of which less than LIMIT % are run; default: 60
#   tools/coverage.sh lines FILE   prints a source, for example put/author.c, with how often each line was run the last time
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
own=$EBPFMON_CACHE/tree-$(echo "$top" | cksum | cut -d ' ' -f 1)/coverage # each clone has its own
copy=$own/tree
results=$own/results

say() { printf 'coverage: %s\n' "$*" >&2; }
die() { printf 'coverage: %s\n' "$*" >&2; exit 1; }

EPICS_BASE=$("$top/tools/setup.sh" base)
export EPICS_BASE
arch=$("$EPICS_BASE/startup/EpicsHostArch")
objects=$copy/ebpfMonSup/O.$arch

if [ "${1:-}" = lines ]; then
    [ $# = 2 ] && [ -f "$top/ebpfMonSup/$2" ] || die "which file of ebpfMonSup?"
    [ -f "$objects/$(basename "$2" .c).gcda" ] || die "no results: first run tools/coverage.sh"
    cd "$objects"
    exec gcov -t "$(basename "$2" .c).gcda"
fi
limit=${1:-60}

say "building in $copy"
mkdir -p "$results"
exec 9>"$own/lock"
flock 9
flags="-O1 -g --coverage -fprofile-update=atomic"
if [ "$(cat "$own/flags" 2>/dev/null)" != "$flags" ]; then # make does not see that flags have changed
    rm -rf "$copy"
    echo "$flags" >"$own/flags"
fi
"$top/tools/copyTree.sh" "$copy" "$EPICS_BASE"
cd "$copy"
make -s -j"$(nproc)" OPT_CFLAGS_YES="$flags" OPT_CXXFLAGS_YES="$flags" OPT_LDFLAGS_YES=--coverage \
    configure ebpfMonSup </dev/null >"$results/make.log" 2>&1 || die "the build failed: $results/make.log"
for folder in tests/unit tests/ioc; do # a program reads an executable of tests/ioc
    make -s -j"$(nproc)" -C $folder </dev/null >>"$results/make.log" 2>&1 || die "the build failed: $results/make.log"
done

say "running the unit test programs"
find "$objects" -name '*.gcda' -delete
cd "tests/unit/O.$arch"
# shellcheck disable=SC2016
ls -- *.t | sed 's/\.t$//' | HARNESS_ACTIVE=1 xargs -P "$(nproc)" -I NAME sh -c \
    './NAME >"$1/NAME.log" 2>&1 </dev/null || echo "coverage: NAME failed: $1/NAME.log" >&2' sh "$results"

# gcov prints the name of each file, and "Lines executed:75.00% of 40"; at the end such a line for all. Headers are left out,
# because each object has some of them.
cd "$objects"
gcov -n ./*.gcda 2>/dev/null | awk -v limit="$limit" '
    /^File / { name = $2; gsub(/\047/, "", name); known = sub(/^.*ebpfMonSup\//, "", name) || sub(/^(\.\.\/)+/, "", name) }
    /^Lines executed:/ && known && name ~ /^[a-z].*\/.*\.(c|cpp)$/ && name !~ /^O\./ {
        split($2, part, /[:%]/); count = $4; ran = part[2] * count / 100
        room = name; sub(/\/[^\/]*$/, "", room)
        lines[room] += count; runs[room] += ran; files[room]++; all += count; allRuns += ran; n++; known = 0
        if (part[2] < limit) { low[room]++; printf "%5.1f %% of %4d  %s\n", part[2], count, name | "sort -n" }
    }
    END {
        close("sort -n")
        printf "\n%-16s %8s %8s %8s %12s\n", "room", "sources", "lines", "run", "below " limit " %"
        for (r in lines) printf "%-16s %8d %8d %6.1f %% %10d\n", r, files[r], lines[r], 100 * runs[r] / lines[r], low[r] | "sort"
        close("sort")
        printf "%-16s %8d %8d %6.1f %%\n", "all", n, all, 100 * allRuns / all
    }'
