#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Writes how the structs of a release of EPICS Base lie in memory (tools/layoutNumbers.h) to bpf/contract/layout*.h.
#
#   tools/layout.sh SOURCE [FOLDER]
#
# SOURCE is a source tree of Base, built or only unpacked. Nothing is written into it: headers that Base generates are
# generated in a folder of their own, by the tools of the Base that tools/epicsBase.sh finds. Numbers that differ
# between releases make a line in layouts.h; if there is a line with the same numbers, it is for this release, too.
# Numbers that all releases share are in layoutAll.h, or in a module: it fails, and names the number, if one is another
# in this release.
# What belongs to subscriptions (EVENTS) and to queues (QUEUES) goes to ebpfMonModules/subscriptions/events.h and
# ebpfMonModules/queues/queueLayouts.h in the same way. FOLDER is another folder than these.
set -eu
die() { printf 'layout: %s\n' "$*" >&2; exit 1; }

[ $# -ge 1 ] && [ -f "$1/configure/CONFIG_BASE_VERSION" ] || die "give the folder of a source tree of EPICS Base."
source=$(cd "$1" && pwd)
tools=$(cd "$(dirname "$0")" && pwd)
to=${2:-$tools/../bpf/contract}
base=$("$tools/epicsBase.sh")
perl=$(dirname "$(ls "$base"/bin/*/dbdToMenuH.pl | head -n 1)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

part() { sed -n "s/^EPICS_$1 *= *//p" "$source/configure/CONFIG_BASE_VERSION"; }
version=$(part VERSION) revision=$(part REVISION) modification=$(part MODIFICATION) patch=$(part PATCH_LEVEL)
release=$version.$revision.$modification$([ "$patch" = 0 ] || echo ".$patch")$(part DEV_SNAPSHOT)
number=$((version * 1000000 + revision * 10000 + modification * 100 + patch))

find "$source" -name O.\* -prune -o \( -name 'dbCommon*.dbd*' -o -name 'menu*.dbd*' \) -exec cp {} "$work" \;
for f in "$work"/*.dbd.pod; do [ ! -e "$f" ] || perl "$perl/podRemove.pl" -o "${f%.pod}" "$f"; done
[ -e "$work/dbCommon.dbd.pod" ] || cp "$work/dbCommon.dbd" "$work/dbCommon.dbd.pod" # generated files include it so
rm -f "$work/menuGlobal.dbd" # it includes the others
for f in "$work"/menu*.dbd; do perl "$perl/dbdToMenuH.pl" -o "${f%.dbd}.h" "$f"; done
perl "$perl/dbdToRecordtypeH.pl" -I "$work" -o "$work/dbCommon.h" "$work/dbCommonRecord.dbd"
for stem in libCom dbCore; do perl "$perl/makeAPIheader.pl" -o "$work/${stem}API.h" "$stem"; done

# In the order of Base's rules: what Linux has of its own comes before what systems have in common.
folders=$(find "$source" \( -name '*.h' -o -name dbScan.c -o -name epicsRingBytes.c -o -name errlog.c \) ! -path '*/O.*' ! -path '*/test/*' ! -path '*/pv*' \
          ! -path "$source/include/*" -printf '%h\n' | sed 's,/valgrind$,,' | sort -u)
includes=-I$work
for end in os/Linux os/posix os/default compiler/gcc compiler/default; do
    for folder in $(echo "$folders" | grep "/$end\$"); do includes="$includes -I$folder"; done
done
for folder in $(echo "$folders" | grep -vE '/(os|compiler)/'); do includes="$includes -I$folder"; done

compile() { # COMPILER LANGUAGE OPTION...
    compiler=$1 language=$2
    shift 2
    # shellcheck disable=SC2086 # a list of folders
    "$compiler" -x "$language" "$@" -S -o - -w -DBASE=$number -D_GNU_SOURCE -Dlinux -DUNIX $includes \
        "$tools/layoutNumbers.h" 2>"$work/log" >"$work/asm" ||
        { head -n 20 "$work/log" >&2; die "the structs of $source are not as tools/layoutNumbers.h says."; }
    sed -n 's/^=//p' "$work/asm" >>"$work/numbers"
}
compile gcc c
compile gcc c -DSCAN
compile gcc c -DEVENT
compile gcc c -DNOTIFY
compile gcc c -DQUEUE
compile g++ c++ -fno-access-control -fpermissive

begin() { # FILE WHAT
    printf '/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */\n/* %s. Made by tools/layout.sh. */\n' \
        "$2" >"$1"
}

[ -e "$to/layoutAll.h" ] || begin "$to/layoutAll.h" "What all releases of EPICS Base have in common"
grep -vE '^(LAYOUT|EVENTS|QUEUES)' "$work/numbers" >"$work/all"
while read -r line; do
    known=$(grep -F "${line% *} " "$to/layoutAll.h") || { echo "$line" >>"$to/layoutAll.h"; continue; }
    [ "$known" = "$line" ] || die "$release has $line, other releases have $known: code must learn to choose."
done <"$work/all"

widen() { # RANGE: with this release
    printf '%s\n' "${1% to *}" "${1#* to }" "$release" | sort -V | sed -n '1p;$p' | uniq | paste -sd ' ' | sed 's/ / to /'
}

# One line a kind of releases, in the order of tools/layoutNumbers.h.
keepLines() { # KIND FILE WHAT SEPARATOR
    [ -e "$2" ] || begin "$2" "How $3 lie in releases of EPICS Base"
    numbers=$(sed -n "s/^$1(.*, \(.*\))/\1/p" "$work/numbers" | paste -sd , | sed "s/,/$4/g")
    known=$(sed -n "s/^$1(\"\(.*\)\", $numbers)/\1/p" "$2")
    sed -i "/^$1(.*, $numbers)/d" "$2"
    range=$(widen "${known:-$release}")
    echo "$1(\"$range\", $numbers)" >>"$2"
    grep "^$1" "$2" | sort -rV >"$work/lines"
    begin "$2" "How $3 lie in releases of EPICS Base"
    names=$(sed -n "s/^$1(\(.*\), .*)/\1/p" "$work/numbers" | sed 's/, /./' | paste -sd , | sed 's/,/, /g' | fold -sw 115)
    printf '/* The numbers behind the release are:\n%s */\n' "$names" | sed 's/ *$//; 2,$s/^/ * /' >>"$2"
    cat "$work/lines" >>"$2"
    echo "$2: $range"
}
modules=$tools/../ebpfMonModules
keepLines LAYOUT "$to/layouts.h" "members of structs" ,
keepLines EVENTS "${2-$modules/subscriptions}/events.h" subscriptions ", "
keepLines QUEUES "${2-$modules/queues}/queueLayouts.h" queues ,
