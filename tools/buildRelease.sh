#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the softIoc of a release 7.0 of EPICS Base with static libraries, for `make matrix`. The program exports nothing,
# so a stripped copy of it has no name of any function. One to five minutes of CPU time.
#
#   tools/buildRelease.sh SOURCE RELEASE [COMPILER [OPTIMISATION]]
#   tools/buildRelease.sh ~/.cache/ebpfmon/base.tar.xz 7.0.8.1 clang -O2
#   tools/buildRelease.sh wheel                 the softIoc of this machine's Base on the libraries of epicscorelibs (PyPI),
#                                               with QSRV 2 of pvxslibs
#
# SOURCE is an archive of the sources, as upstream and Debian have it (apt-get source --download-only epics-base). COMPILER is
# gcc (the default) or clang, OPTIMISATION -O3 (the default) or another. The build is a folder in "releases" of the cache, or in
# EBPFMON_RELEASES: 7.0.8.1-static for the defaults, else 7.0.8.1-static-clang-O2. Prints its path. JOBS: as make -j.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL

die() { printf 'buildRelease: %s\n' "$*" >&2; exit 1; }
folder=${EBPFMON_RELEASES:-${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/releases}

if [ "${1-}" = wheel ]; then
    top=$(cd "$(dirname "$0")/.." && pwd)
    base=$("$top/tools/epicsBase.sh")
    arch=$(ls "$base/lib" | head -1)
    wheel=$("$("$top/tools/venv.sh")" -c "import os, epicscorelibs as e; print(os.path.dirname(e.__file__))")
    pvxs=$(dirname "$wheel")/pvxslibs
    release=$(sed -n 's/#define EPICS_VERSION_SHORT *"\(.*\)"/\1/p' "$wheel/include/epicsVersion.h")
    made=$folder/$release
    [ ! -e "$made" ] || die "$made exists already."
    mkdir -p "$made.tmp/bin/$arch" "$made.tmp/lib" "$made.tmp/dbd"
    cp -r "$wheel/lib" "$made.tmp/lib/$arch"
    cp "$pvxs"/lib/*.so* "$made.tmp/lib/$arch"
    perl -CSD "$base/bin/$arch/dbdExpand.pl" -I "$wheel/dbd" -I "$pvxs/dbd" -o "$made.tmp/dbd/softIoc.dbd" base.dbd pvxsIoc.dbd
    # What the wheel leaves out of libCom, the commands of Base, and one that prints what its servers say of themselves.
    echo '#define EPICS_BASE ""' >"$made.tmp/epicsInstallDir.h"
    cat >"$made.tmp/softIoc.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dbServer.h>
#include <iocsh.h>
void iocshRegisterCommon(void);
int registerAllRecordDeviceDrivers(void *base);
static const iocshFuncDef command = {"dbServerStats", 0, NULL};
static void callDbServerStats(const iocshArgBuf *args)
{
    unsigned channels = 0, clients = 0;
    int servers = dbServerStats(NULL, &channels, &clients);

    printf("%d servers, %u channels, %u clients\n", servers, channels, clients);
}
int softIoc_registerRecordDeviceDriver(void *base)
{
    iocshRegisterCommon();
    iocshRegister(&command, callDbServerStats);
    return registerAllRecordDeviceDrivers(base);
}
char *epicsGetExecDir(void)
{
    char *path = calloc(1, 4096);

    if (readlink("/proc/self/exe", path, 4095) > 0)
        strrchr(path, '/')[1] = 0;
    return path;
}
END
    include="-I$wheel/include -I$wheel/include/os/Linux -I$wheel/include/compiler/gcc -I$made.tmp"
    # shellcheck disable=SC2086 # words
    gcc -O2 -g -c $include -o "$made.tmp/softIoc.o" "$made.tmp/softIoc.c"
    # shellcheck disable=SC2046,SC2086 # words
    g++ -O2 -g -w -rdynamic $include -o "$made.tmp/bin/$arch/softIoc" \
        "$base/modules/database/src/std/softIoc/softMain.cpp" "$made.tmp/softIoc.o" -L"$made.tmp/lib/$arch" \
        -Wl,-rpath,"\$ORIGIN/../../lib/$arch" -Wl,--no-as-needed \
        $(cd "$made.tmp/lib/$arch" && printf ' -l:%s' libdbRecStd.so.* libdbCore.so.* libca.so.* libCom.so.* libpvxsIoc.so.* libpvxs.so.* \
            libevent_*.so.*)
    mv "$made.tmp" "$made"
    echo "$made"
    exit
fi
[ $# -ge 2 ] || die "SOURCE RELEASE [COMPILER [OPTIMISATION]]"
source=$1 release=$2 compiler=${3:-gcc} level=${4:--O3}
case $compiler in
gcc) cxx=g++ ;;
clang) cxx=clang++ ;;
*) die "no compiler \"$compiler\": gcc and clang are known." ;;
esac

name=$release-static
[ "$compiler$level" = gcc-O3 ] || name=$name-$compiler$level
log=$folder/$name.log
[ ! -e "$folder/$name" ] || die "$folder/$name exists already."

mkdir -p "$folder/$name.tmp"
tar xf "$source" -C "$folder/$name.tmp" --strip-components=1
cd "$folder/$name.tmp"
echo 'SUBMODULES =' >modules/Makefile.local # no PV Access
# Base's own tests and examples take half of the time.
find modules test -type d \( -name test -o -name testApp -o -name testCa -o -name 'example*' \) | grep -v /src/ |
while read -r d; do
    find "$d" -name Makefile | while read -r m; do printf 'all: ;\n.DEFAULT: ; @:\n' >"$m"; done
done
make -j"${JOBS:-$(nproc)}" CMPLR_CLASS="$compiler" CC="$compiler" CCC="$cxx" OPT_CFLAGS_YES="$level -g" OPT_CXXFLAGS_YES="$level -g" \
    STATIC_BUILD=YES SHARED_LIBRARIES=NO OP_SYS_LDFLAGS=-Wl,--build-id >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    die "Base does not build: see $log"
}
cd ..
mv "$name.tmp" "$name"
echo "$folder/$name"
