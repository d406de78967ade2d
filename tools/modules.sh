#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Records of the modules that every site has: their counts, compared with what a preloaded library counts in the IOC.
#
#   tools/modules.sh [LEVEL...]     counts chains turns trace sleep budget (all of them)
#   tools/modules.sh any [SEED...]  random databases, while levels, budget and links change; no table
#   tools/modules.sh puts [SECONDS] puts (200 s), beside those that caPutLog logs
#   tools/modules.sh gateway        puts through ca-gateway
#   tools/modules.sh tls            puts over TLS: builds pvxs with TLS in the cache, or takes that in $EBPFMON_PVXS_TLS
#   tools/modules.sh qsrv2          the monitor built with this pvxs: tests of its own PVs by QSRV 2, in a copy of the tree
#
# It fetches the modules from $EBPFMON_GITHUB (https://github.com) into the cache, builds them with this machine's EPICS
# Base and an IOC with all of them, and writes tests/results/modules.json (putLogs.json, tls.json) and the table of
# documentation/develop/tried.md. Some minutes. Run make first; as root. The sequencer needs re2c, pvxs libevent-dev and
# libssl-dev before its first build.
set -eu
case ${1-} in -*) sed -n '3,16s/^# \{0,1\}//p' "$0"; exit 2;; esac
top=$(cd "$(dirname "$0")/.." && pwd)
EPICS_BASE=$("$top/tools/epicsBase.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")
cache="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/modules"
github=${EBPFMON_GITHUB:-https://github.com}
mkdir -p "$cache"

fetch() {
    [ -d "$cache/$1" ] || git clone -q --depth 1 "$github/${2-epics-modules}/$1" "$cache/$1"
}

# build NAME "RELEASE LINES" FOLDER...
build() {
    name=$1
    fetch "$name"
    [ -e "$cache/$name/built" ] && return
    echo "building $name"
    printf 'EPICS_BASE=%s\n%b' "$EPICS_BASE" "$2" >"$cache/$name/configure/RELEASE"
    shift 2
    for folder; do
        make -C "$cache/$name/$folder" >"$cache/$name.log" 2>&1 || { tail -20 "$cache/$name.log"; exit 1; }
    done
    touch "$cache/$name/built"
}

arch=$(ls "$EPICS_BASE/lib" | head -1)
if [ "${1-}" = tls ] || [ "${1-}" = qsrv2 ]; then
    pvxs=${EBPFMON_PVXS_TLS:-${cache%/modules}/pvxs-tls}
    certificates=$pvxs/test/O.$arch
    if [ ! -e "$certificates/ca.p12" ]; then
        echo "building pvxs"
        [ -d "$pvxs" ] || git clone -q --depth 1 -b tls "$github/epics-base/pvxs" "$pvxs"
        printf 'EPICS_BASE=%s\n' "$EPICS_BASE" >"$pvxs/configure/RELEASE.local"
        make -C "$pvxs" -j2 >"$cache/pvxs.log" 2>&1 || { tail -20 "$cache/pvxs.log"; exit 1; }
        "$certificates/gen_test_certs" -O "$certificates"
    fi
    cd "$top"
    [ "$1" = qsrv2 ] || exec "$python" -m tests.modules.tls "$pvxs"
    copy=${cache%/modules}/qsrv2
    "$top/tools/copyTree.sh" "$copy" "$EPICS_BASE"
    PVXS=$pvxs EBPFMON_WERROR=1 make -s -j"$(nproc)" -C "$copy" iocBoot >"$cache/qsrv2.log" 2>&1 || { tail -20 "$cache/qsrv2.log"; exit 1; }
    (cd "$top" && tar c tests/*/O.*) | tar x -C "$copy" # programs of tests; pytest wants all that have a place in its order
    cd "$copy"
    exec "$python" -m pytest tests -q -p no:cacheprovider </dev/null \
        -k "test_own_qsrv2 or test_operators or test_pvs or test_table_by or test_all_pvs_by_pvaccess or test_cells_that_are_not_known"
fi

if [ "${1-}" = gateway ]; then
    build pcas "" configure src
    fetch ca-gateway epics-extensions
    build ca-gateway "PCAS=$cache/pcas\n" configure src
    exec "$top/tools/test.sh" test_ca_gateway
fi

build sscan "" configure sscanApp
build calc "SSCAN=$cache/sscan\n" configure calcApp
build asyn "" configure makeSupport asyn
build busy "ASYN=$cache/asyn\n" configure busyApp
fetch std # without what needs the sequencer
sed -i -e '/\.st$/d; s/ seq pv$//; /delayCmd\.cpp/d; /DBD += std\(VX\)*\.dbd/d; /stdVX/d; /delayDo\.dbd/d' "$cache/std/stdApp/src/Makefile"
sed -i -e '/femto/d; /doAfterIocInit/d; /delayDo/d' "$cache/std/stdApp/src/stdSupport.dbd"
build std "ASYN=$cache/asyn\n" configure stdApp/src
build motor "ASYN=$cache/asyn\n" configure motorApp/MotorSrc motorApp/SoftMotorSrc
build iocStats "" configure devIocStats
build autosave "" configure asApp/src
build caPutLog "" configure caPutLogApp
fetch StreamDevice paulscherrerinstitute
build StreamDevice "ASYN=$cache/asyn\n" configure src
build scaler "ASYN=$cache/asyn\n" configure scalerApp/src
build sequencer "" configure src # with re2c

flags="-O2 -g -D_GNU_SOURCE -fPIC -w -I$EPICS_BASE/include -I$EPICS_BASE/include/os/Linux -I$EPICS_BASE/include/compiler/gcc"
libs="-L$EPICS_BASE/lib/$arch -Wl,-rpath,$EPICS_BASE/lib/$arch -Wl,--no-as-needed"
for module in calc sscan busy asyn std motor iocStats autosave caPutLog StreamDevice scaler sequencer; do
    flags="$flags -I$cache/$module/include"
    libs="$libs -L$cache/$module/lib/$arch -Wl,-rpath,$cache/$module/lib/$arch"
done
driver="$cache/asyn/testAsynPortDriverApp/src"
"$cache/sequencer/bin/$arch/snc" +r -o "$cache/program.c" "$top/tests/modules/program.st"
# shellcheck disable=SC2086 # words
gcc $flags -c -o "$cache/program.o" "$cache/program.c"
# shellcheck disable=SC2086
g++ $flags -I"$driver" -rdynamic -o "$cache/modulesIoc" "$top/tests/modules/modulesMain.cpp" "$driver"/testAsynPortDriver.cpp "$cache/program.o" \
    $libs -lcalc -lsscan -lbusy -lstd -lmotor -lsoftMotor -ldevIocStats -lautosave -lcaPutLog -lstream -lscaler -lseq -lpv -lasyn \
    -lqsrv -lpvAccessIOC -lpvAccess -lpvData -ldbRecStd -ldbCore -lca -lCom -lpthread
gcc -O2 -fPIC -shared -o "$cache/countCalls.so" "$top/tests/modules/countCalls.c" -ldl -lpthread
cd "$top"
[ "${1-}" != any ] || { shift; exec "$python" -m tests.modules.anyDatabase "$cache" "$@"; }
[ "${1-}" != puts ] || { shift; exec "$python" -m tests.modules.puts "$cache" "$@"; }
exec "$python" -m tests.modules.run "$cache" "$@"
