#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds ebpfMon for another architecture on this machine: Debian's cross compiler, the architecture's libraries unpacked
# into the cache (a sysroot; nothing foreign is installed here), EPICS Base for the target, and then this tree, whose files
# go to bin/linux-aarch64 and lib/linux-aarch64. Prints the path of that EPICS Base. Progress goes to stderr.
#
#   tools/cross.sh [aarch64]
#   EBPFMON_WERROR=1, EBPFMON_CACHE   as in other builds
#
# The exit code is 77 if the compiler or the libraries cannot be had here.
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
    install="apt-get install --yes --no-install-recommends gcc-$gnu g++-$gnu"
    has apt-get || lacks "missing: $gnu-gcc and $gnu-g++. Install them the way of this system, then try again."
    [ "$(id -u)" = 0 ] || lacks "missing: $gnu-gcc, $gnu-g++. As root, run: apt-get update && $install"
    say "installing gcc-$gnu and g++-$gnu"
    DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND
    apt-get -o Acquire::Retries=3 update >"$log-apt" 2>&1 || :
    # shellcheck disable=SC2086
    $install -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 >>"$log-apt" 2>&1 </dev/null ||
        lacks "apt-get could not install them. Is the network there? The whole log: $log-apt"
fi

# --- the libraries of the target -------------------------------------------------------------------------
# Of the release that this machine runs, as the cross compiler is. The stamp has their list, so that a longer one counts.
want="libc6-dev libbpf-dev libelf-dev zlib1g-dev liblzma-dev libsqlite3-dev libcurl4-openssl-dev libreadline-dev libncurses-dev"
if [ "$(cat "$sysroot/.complete" 2>/dev/null)" != "$want" ]; then
    say "fetching the libraries for $debian"
    rm -rf "$sysroot"
    mkdir -p "$sysroot/usr/lib" "$sysroot/usr/bin" "$sysroot/usr/sbin"
    for d in lib bin sbin; do ln -s "usr/$d" "$sysroot/$d"; done
    # shellcheck disable=SC2086
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top /usr/bin/python3 -m tests.harness.debian "$debian" "$sysroot" $want \
        >"$log-libraries" 2>&1 || { tail -n 5 "$log-libraries" >&2; lacks "the libraries for $debian cannot be had: see $log-libraries"; }
    echo "$want" >"$sysroot/.complete"
fi
# Debian 13's EPICS Base for this architecture: hardened and stripped, to read (tests/unit/testAarch64.c).
if [ ! -f "$cross/epics-base/.complete" ]; then
    say "fetching Debian's EPICS Base for $debian"
    rm -rf "$cross/epics-base"
    mkdir -p "$cross/epics-base"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top /usr/bin/python3 -m tests.harness.debian -s trixie "$debian" \
        "$cross/epics-base" epics-base >"$log-epics" 2>&1 ||
        lacks "EPICS Base for $debian cannot be had: see $log-epics"
    touch "$cross/epics-base/.complete"
fi

# --- EPICS Base ------------------------------------------------------------------------------------------
native=$("$top/tools/epicsBase.sh")
base=$cross/$(basename "$native")
if [ -f "$native/lib/$target/libdbCore.so" ]; then
    base=$native # the site's own is built for it
elif [ ! -f "$base/.$arch" ]; then
    say "compiling EPICS Base for $target (some ten minutes on two cores; log in $log-base)"
    if [ ! -f "$base/.copied" ]; then
        rm -rf "$base"
        cp -a --reflink=auto "$native" "$base" # its tools run here; only the target's files are to be made
        cat >"$base/configure/os/CONFIG_SITE.linux-x86_64.$target" <<EOF
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
    nice -n 10 make -C "$base" -j"$(nproc)" "install.$target" >"$log-base" 2>&1 </dev/null || {
        tail -n 20 "$log-base" >&2; die "EPICS Base does not build for $target: see $log-base"; }
    touch "$base/.$arch"
fi

# --- this tree -------------------------------------------------------------------------------------------
"$top/tools/setup.sh" >/dev/null # the tools of this machine, and what both builds have in common
say "compiling ebpfMon for $target"
EPICS_BASE="$base" nice -n 10 make -C "$top" -j"$(nproc)" "install.$target" >"$log" 2>&1 </dev/null || {
    tail -n 25 "$log" >&2; die "ebpfMon does not build for $target: see $log"; }
say "ebpfMon for $target is in bin/$target"
echo "$base"
