#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds ebpfMon for another architecture on this machine. It uses Debian's cross compiler. It unpacks the libraries of
# that architecture into a folder of the cache (a sysroot), and installs none of them here. Then it builds EPICS Base,
# and a copy of this tree in the cache; this tree does not change. It prints the path of the copy. Progress goes to
# stderr.
#
# Base and the monitor are built without PV Access, which takes most of the time, and which does not depend on the
# architecture.
#
#   tools/cross.sh [aarch64]
#   EBPFMON_WERROR=1, EBPFMON_CACHE   as in other builds
#
# The exit code is 77 if the compiler or the libraries are missing and cannot be installed.
set -eu
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
t0=$(date +%s)

say() { printf 'cross: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'cross: %s\n' "$*" >&2; exit 1; }
lacks() { printf 'cross: %s\n' "$*" >&2; exit 77; }
has() { command -v "$1" >/dev/null 2>&1; }

case ${1:-aarch64} in
aarch64) arch=aarch64 debian=arm64 gnu=aarch64-linux-gnu ;;
*) die "no architecture \"$1\": aarch64 is known." ;;
esac
target=linux-$arch
cross=$EBPFMON_CACHE/$arch
sysroot=$cross/sysroot
log=$cross/log
mkdir -p "$cross"
exec 9>"$cross/lock"
flock 9

# --- the compiler --------------------------------------------------------------------------------------
if ! has $gnu-gcc || ! has $gnu-g++; then
    "$top/tools/installPackages.sh" cross "$log-apt" gcc-$gnu g++-$gnu || exit 77
fi

# --- the libraries of the target -------------------------------------------------------------------------
# They are of the Debian release of this machine, as the cross compiler is. The file .complete has the list of
# libraries, so they are fetched again when the list changes.
want="libc6-dev libbpf-dev libelf-dev zlib1g-dev liblzma-dev libsqlite3-dev libcurl4-openssl-dev libreadline-dev libncurses-dev"
if [ "$(cat "$sysroot/.complete" 2>/dev/null)" != "$want" ]; then
    say "fetching the libraries for $debian"
    rm -rf "$sysroot"
    mkdir -p "$sysroot/usr/lib" "$sysroot/usr/bin" "$sysroot/usr/sbin"
    for d in lib bin sbin; do ln -s "usr/$d" "$sysroot/$d"; done
    # shellcheck disable=SC2086
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top /usr/bin/python3 -m tests.harness.debian "$debian" "$sysroot" $want \
        >"$log-libraries" 2>&1 || {
        tail -n 5 "$log-libraries" >&2
        lacks "the libraries for $debian could not be fetched: see $log-libraries"
    }
    echo "$want" >"$sysroot/.complete"
fi
# Debian 13's EPICS Base for this architecture, hardened and stripped. It is only read (tests/unit/testAarch64.c).
if [ ! -f "$cross/epics-base/.complete" ]; then
    say "fetching Debian's EPICS Base for $debian"
    rm -rf "$cross/epics-base"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top /usr/bin/python3 -m tests.harness.debian -s trixie "$debian" \
        "$cross/epics-base" epics-base >"$log-epics" 2>&1 ||
        lacks "EPICS Base for $debian could not be fetched: see $log-epics"
    touch "$cross/epics-base/.complete"
fi

# --- EPICS Base ------------------------------------------------------------------------------------------
native=$("$top/tools/epicsBase.sh")
host=$(perl "$native/lib/perl/EpicsHostArch.pl" 2>/dev/null || "$native/startup/EpicsHostArch")
base=$cross/$(basename "$native")
if [ ! -f "$base/.$arch" ]; then
    say "compiling EPICS Base for $target (some minutes on two cores; log in $log-base)"
    if [ ! -f "$base/.copied" ]; then
        rm -rf "$base"
        cp -a --reflink=auto "$native" "$base" # its tools run on this machine; only the target's files are built
        # without these files other modules see that it has no PV Access
        rm -f "$base"/cfg/CONFIG_QSRV_VERSION "$base"/cfg/CONFIG_NTYPES_VERSION "$base"/cfg/CONFIG_PV*
        cat >"$base/configure/os/CONFIG_SITE.$host.$target" <<EOF
GNU_TARGET = $gnu
GNU_DIR = /usr
SHARED_LIBRARIES = YES
STATIC_BUILD = NO
OP_SYS_CPPFLAGS += --sysroot=$sysroot
OP_SYS_LDFLAGS += --sysroot=$sysroot
EOF
        echo "CROSS_COMPILER_TARGET_ARCHS = $target" >"$base/configure/CONFIG_SITE.local"
        touch "$base/.copied"
    fi
    : >"$log-base"
    for module in libcom ca database; do
        nice -n 10 make -C "$base/modules/$module" -j"$(nproc)" "install.$target" >>"$log-base" 2>&1 </dev/null || {
            tail -n 20 "$log-base" >&2; die "EPICS Base does not build for $target: see $log-base"; }
    done
    touch "$base/.$arch"
fi

# --- this tree -------------------------------------------------------------------------------------------
say "compiling ebpfMon for $target (log in $log)"
tree=$EBPFMON_CACHE/tree-$(echo "$top" | cksum | cut -d ' ' -f 1)/$arch # each clone has its own
"$top/tools/copyTree.sh" "$tree" "$base"
# Do what Base's rules do (RULES_ARCHS), but only for the target. The rules themselves would also build for this
# machine.
: >"$log"
export EPICS_BASE="$base" EPICS_HOST_ARCH="$host"
compile() { # FOLDER [PROGRAM]: with PROGRAM only this test program is built
    d=$1; shift
    case $d in */*) up=../.. ;; *) up=.. ;; esac
    (cd "$tree/$d" && mkdir -p O.Common && perl "$base/bin/$host/makeMakefile.pl" "O.$target" "$up/." &&
     nice -n 10 make -C "O.$target" -f ../Makefile -j"$(nproc)" TOP="$up/.." T_A="$target" \
          ${1:+"TESTPROD=$1" TESTPROD_IOC_Linux=} install) >>"$log" 2>&1 </dev/null || {
        tail -n 25 "$log" >&2; die "ebpfMon does not build for $target: see $log"; }
}
for d in configure ebpfMonSup ebpfMonModules/shared; do compile $d; done
for d in "$tree"/ebpfMonModules/*/Makefile; do
    d=${d%/Makefile} d=ebpfMonModules/${d##*/}
    [ $d = ebpfMonModules/shared ] || compile $d
done
compile ebpfMonApp/src
compile tests/ioc latencyIoc
say "ebpfMon for $target is in $tree"
echo "$tree"
