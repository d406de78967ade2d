#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The init program of the emulated machine for clangs.py. Loads the eBPF programs that each release of clang made.
. /m/common.sh
for d in /m/clang-*; do
    say "${d#/m/}"
    LD_LIBRARY_PATH=$d loadPrograms /m/queries.json 2>&1
    say "exit ${d#/m/}"; echo $?
done
say done
sync; poweroff -f
