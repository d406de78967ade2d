#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the eBPF programs with each release of clang from 14 on, loads them on other kernels in emulated machines
# (tests/kernels/clangs.py), and writes the results into the table in documentation/develop/tried.md. Releases that this
# machine does not have as clang-N are unpacked into the cache (tests/harness/clangs.py), 0.4 GB each, and not
# installed. A build takes a minute of CPU time, a kernel some minutes.
#
#   tools/clangs.sh [-c NUMBER]... [KERNEL...]    NUMBER: e.g. 19; KERNEL: e.g. bookworm-security (machines.py)
set -eu
. "$(dirname "$0")/environment.sh"

need=
command -v qemu-system-x86_64 >/dev/null 2>&1 || need="$need qemu-system-x86"
command -v busybox >/dev/null 2>&1 || need="$need busybox-static"
# shellcheck disable=SC2086
[ -z "$need" ] || "$top/tools/installPackages.sh" clangs "$EBPFMON_CACHE/kernels-apt.log" $need
cd "$top"
PYTHONDONTWRITEBYTECODE=1 exec nice "$python" -m tests.kernels.clangs "$@"
