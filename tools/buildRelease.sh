#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the softIoc of a release 7.0 of EPICS Base with static libraries, for `make matrix`. The program exports nothing,
# so a stripped copy of it has no name of any function. One to five minutes of CPU time.
#
#   tools/buildRelease.sh SOURCE RELEASE [COMPILER [OPTIMISATION]]
#   tools/buildRelease.sh ~/.cache/ebpfmon/base.tar.xz 7.0.8.1 clang -O2
#
# SOURCE is an archive of the sources, as upstream and Debian have it (apt-get source --download-only epics-base). COMPILER is
# gcc (the default) or clang, OPTIMISATION -O3 (the default) or another. The build is a folder in "releases" of the cache, or in
# EBPFMON_RELEASES: 7.0.8.1-static for the defaults, else 7.0.8.1-static-clang-O2. Prints its path. JOBS: as make -j.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL

die() { printf 'buildRelease: %s\n' "$*" >&2; exit 1; }
[ $# -ge 2 ] || die "SOURCE RELEASE [COMPILER [OPTIMISATION]]"
source=$1 release=$2 compiler=${3:-gcc} level=${4:--O3}
case $compiler in
gcc) cxx=g++ ;;
clang) cxx=clang++ ;;
*) die "no compiler \"$compiler\": gcc and clang are known." ;;
esac

folder=${EBPFMON_RELEASES:-${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/releases}
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
