#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the static analysis by cppcheck, some ten seconds. Installs cppcheck first if it is missing. Each finding is an
# error. cppcheck.suppress lists the findings that are wrong, because cppcheck cannot know better.
#
#   tools/analyse.sh [FOLDER OR FILE…]     such as ebpfMonSup/export; default: all of the product
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"

command -v cppcheck >/dev/null 2>&1 ||
    tools/installPackages.sh analyse "${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}/analyse-apt.log" cppcheck
[ $# -gt 0 ] || set -- ebpfMonSup ebpfMonModules ebpfMonHistory ebpfMonTop
# Build folders (O.…) have generated code; clang compiles the programs of the kernel part (*.bpf.c) with all warnings.
find "$@" -name 'O.*' -prune -o -name '*.c' ! -name '*.bpf.c' -print | sort |
    cppcheck --file-list=- --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
        --inline-suppr --suppressions-list=tools/cppcheck.suppress -I ebpfMonModules -I ebpfMonSup -I bpf/contract \
        -D__linux__ -D__x86_64__ -D__GNUC__=12 -DEBPFMON_VERSION='"0"' '-DLIBBPF_OPTS(type,name,...)=struct type name={0}' \
        '-Dbpf_object__for_each_program(p,o)=while(((p)=0)!=(void*)0)'
echo "analyse: clean" >&2
