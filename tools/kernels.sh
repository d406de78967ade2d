#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests ebpfMon on other kernels, each in an emulated machine (tests/kernels), and writes the results into the table in
# documentation/develop/tried.md. It first installs what is missing. It is not part of make check, because it downloads
# 100 MB and takes some minutes for each kernel.
#
#   tools/kernels.sh [-v] [-s | -r | -H] [-a aarch64] [KERNEL...]    -s: only start the monitor; -r: only threads that preempt
#   each other; -H: only how long a real-time thread is held; KERNEL: e.g. bookworm-security or trixie-rt (machines.py)
#
# -a emulates another machine, for which tools/cross.sh builds ebpfMon. The first time this takes some ten minutes more.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"

die() { printf 'kernels: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

has apt-get || die "missing: apt-get and dpkg-deb, because the kernels come from Debian."
machine=x86_64 before=
for word; do
    if [ "$before" = -a ]; then machine=$word; fi
    before=$word
done
case $machine in
x86_64) qemu=qemu-system-x86 ;;
aarch64) qemu=qemu-system-arm ;;
*) die "no machine \"$machine\": x86_64 and aarch64 are known." ;;
esac
need=
has "qemu-system-$machine" || need="$need $qemu"
has busybox || need="$need busybox-static"
# shellcheck disable=SC2086
[ -z "$need" ] || "$top/tools/installPackages.sh" kernels "$EBPFMON_CACHE/kernels-apt.log" $need

if [ "$machine" = x86_64 ]; then
    EPICS_BASE=$("$top/tools/setup.sh")
else
    EBPFMON_BUILT=$("$top/tools/cross.sh" "$machine")
    EPICS_BASE=$(sed -n 's/^EPICS_BASE = //p' "$EBPFMON_BUILT/configure/RELEASE.local")
    export EBPFMON_BUILT EPICS_HOST_ARCH="linux-$machine"
fi
export EPICS_BASE
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 -m tests.kernels.run "$@"
