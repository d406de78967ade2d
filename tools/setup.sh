#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prepares ebpfMon on a bare Debian 12 or 13: installs packages, builds EPICS Base and ebpfMon, and checks the kernel.
# Prints the path of EPICS Base. Progress goes to stderr, one line for each stage; if there is nothing to do, no line.
# Outside the tree it writes only to the cache (EBPFMON_CACHE, see epicsBase.sh).
#
#   tools/setup.sh [base]      base: only packages and EPICS Base, no build of this tree
set -eu
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us
PATH=$PATH:/usr/sbin:/sbin       # for bpftool: not every user has these in PATH

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
own=$EBPFMON_CACHE/tree-$(echo "$top" | cksum | cut -d ' ' -f 1) # a clone's own logs and stamps
t0=$(date +%s)

say() { printf 'setup: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
header() { echo "#include <$1>" | gcc -E -x c - >/dev/null 2>&1; }

# --- packages ----------------------------------------------------------------------------------------
# Look for programs and headers, not for packages: a compiler may come from elsewhere.
need=
want() { pkg=$1; shift; "$@" || need="$need $pkg"; }
want make has make
want gcc has gcc
want g++ has g++
want perl perl -MPod::Usage -e 1 2>/dev/null
want xz-utils has xz
want clang has clang
want bpftool has bpftool
want python3-venv /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null
want libc6-dev header stdio.h
want libbpf-dev header bpf/libbpf.h
want libelf-dev header libelf.h
want libcurl4-openssl-dev header curl/curl.h
want liblzma-dev header lzma.h
want libsqlite3-dev header sqlite3.h
want zlib1g-dev header zlib.h
want patchelf has patchelf
want libncurses-dev header ncurses.h # for ebpfMonTop
want libreadline-dev header readline/readline.h # a shell with history, for Base and for us

mkdir -p "$own"
# shellcheck disable=SC2086
[ -z "$need" ] || "$top/tools/installPackages.sh" setup "$own/apt.log" $need

clang=$(clang -dumpversion 2>/dev/null || echo 0)
[ "${clang%%.*}" -ge 14 ] ||
    die "clang is version $clang, but 14 or later is needed to compile the eBPF programs. Install a later one (Debian: apt-cache search '^clang-[0-9]') and put it first in PATH."

# --- EPICS Base and the build ------------------------------------------------------------------------
base=$("$top/tools/epicsBase.sh")
if [ "${1:-}" = base ]; then echo "$base"; exit 0; fi
arch=$(perl "$base/lib/perl/EpicsHostArch.pl" 2>/dev/null || "$base/startup/EpicsHostArch")

# True if ebpfMon was built with this Base, and no file or folder of the sources changed since then. A folder also
# changes by __pycache__ and so on; then make runs and has nothing to do.
current() {
    [ -x "$top/bin/$arch/ebpfMon" ] && [ "$(cat "$own/built" 2>/dev/null)" = "$base" ] &&
    [ -z "$(cd "$top" && find Makefile configure bpf ebpfMonSup ebpfMonApp ebpfMonTop iocBoot tests \
            -name 'O.*' -prune -o -newer "$own/built" -print 2>/dev/null | head -n 1)" ]
}
exec 9>"$own/lock"
flock 9
if ! current; then
    say "building ebpfMon"
    rm -f "$own/built"
    # EPICS_BASE must be in the environment: Base's make refuses it on the command line.
    if ! EPICS_BASE="$base" make -C "$top" -j"$(nproc)" >"$own/build.log" 2>&1 </dev/null; then
        tail -n 25 "$own/build.log" >&2
        die "ebpfMon does not build: see above and $own/build.log"
    fi
    echo "$base" >"$own/built"
    say "ebpfMon is built"
fi

# --- the kernel --------------------------------------------------------------------------------------
[ -r /sys/kernel/btf/vmlinux ] ||
    die "built, but this kernel cannot be used: no type information in /sys/kernel/btf/vmlinux. Run a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian 11 and later have it)."
[ -r /sys/bus/event_source/devices/uprobe/type ] ||
    die "built, but this kernel cannot be used: no uprobes in /sys/bus/event_source/devices. Run a kernel with CONFIG_UPROBE_EVENTS=y (Debian's have it), and in a container mount /sys."
case $(cat /sys/kernel/security/lockdown 2>/dev/null || :) in *'[confidentiality]'*)
    die "built, but the kernel is locked down (confidentiality), which forbids BPF to read memory. Boot without lockdown=confidentiality." ;;
esac
# CAP_SYS_ADMIN is enough; without it CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are needed.
cap=$((0x$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)))
rights=$(((1 << 39) | (1 << 38) | (1 << 19)))
if [ $((cap >> 21 & 1)) = 0 ] && [ $((cap & rights)) != $rights ]; then
    die "built, but this user may not watch other processes. Run as root, or with the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE."
fi
echo "$base"
