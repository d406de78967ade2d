#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Puts the programs of this tree and the libraries that they need into FOLDER, as they are installed: bin/, lib/ebpfmon/.
# The folder may then be anywhere.
#
#   tools/collectPrograms.sh FOLDER [whole]
#
# The libraries are those of EPICS Base and ours. "whole": also those of this system that another distribution may have in
# another version (libbpf, libelf, SQLite, ncurses, …), with their copyright, for an archive (archive.sh). Base's
# libraries are shared ones; static ones are not possible (documentation/use/security.md).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 how=${2:-}
die() { printf 'programs: %s\n' "$*" >&2; exit 1; }
command -v patchelf >/dev/null || die "patchelf is missing. On Debian: apt-get install patchelf"
base=$("$top/tools/epicsBase.sh")
arch=$(perl "$base/lib/perl/EpicsHostArch.pl" 2>/dev/null || "$base/startup/EpicsHostArch")
[ -x "$top/bin/$arch/ebpfMon" ] || die "$top/bin/$arch/ebpfMon does not exist: run make first"

libraries=$folder/lib/ebpfmon
mkdir -p "$folder/bin" "$libraries"
set -- "$top/bin/$arch/ebpfMon" "$top/bin/$arch/ebpfMonHistory"
show=$top/bin/$arch/ebpfMonTop # not built without ncurses
[ ! -x "$show" ] || set -- "$@" "$show"
install -m 755 "$@" "$folder/bin" # EPICS makes them read-only, and patchelf writes into them
# The path of a library may lead to the same folder in another way: a link, "..", two slashes.
ours=$(realpath "$top/lib/$arch")
theirs=$(realpath "$base/lib/$arch")
found=$(ldd "$@" | awk '$3 ~ /^\// {print $1, $3}' | sort -u)
echo "$found" | while read -r name path; do
    case $(realpath "$(dirname "$path")") in
    "$ours"|"$theirs") install -m 644 "$path" "$libraries/$name" ;;
    esac
done
[ -e "$libraries/libebpfMon.so" ] || die "no libebpfMon.so: ebpfMon must be linked with shared libraries"

# What each system has, and what must be the system's own: libcurl knows where its certificates are.
is_of_each_system() {
    case $1 in
    libc.so.*|libm.so.*|ld-linux*|libgcc_s.so.*|libstdc++.so.*|libcurl.so.*|libreadline.so.*) ;;
    *) false ;;
    esac
}
list_needed() { patchelf --print-needed "$@" | sort -u; }
copy_needed() { # of this file, and what that needs
    list_needed "$1" | while read -r name; do
        if is_of_each_system "$name" || [ -e "$libraries/$name" ]; then continue; fi
        path=$(echo "$found" | awk -v name="$name" '$1 == name {print $2; exit}')
        install -m 644 "$path" "$libraries/$name"
        text=/usr/share/doc/$(dpkg -S "$(realpath "$path")" 2>/dev/null | cut -d : -f 1)/copyright
        [ ! -f "$text" ] || install -D -m 644 "$text" "$folder/copyright/$name"
        copy_needed "$path"
    done
}
if [ "$how" = whole ]; then
    for file in "$folder"/bin/* "$libraries"/*; do copy_needed "$file"; done
    strip --strip-unneeded "$folder"/bin/* "$libraries"/*
fi
patchelf --set-rpath "\$ORIGIN/../lib/ebpfmon" "$folder"/bin/*
patchelf --set-rpath "\$ORIGIN" "$libraries"/*
# The service does not have the LD_LIBRARY_PATH of the user who installs.
missing=$(env -u LD_LIBRARY_PATH ldd "$folder"/bin/* | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
[ -z "$missing" ] || die "nothing was installed, because ebpfMon would not start without ${missing% }. Libraries of EPICS Base are taken from $theirs: build ebpfMon with this Base (EPICS_BASE). Others must be where ldconfig finds them."
install -m 755 "$top/bin/$arch/ebpfMonSymbols" "$top/bin/$arch/ebpfMonReplay" "$folder/bin"
[ ! -f "$base/LICENSE" ] || install -m 644 "$base/LICENSE" "$folder/LICENSE.EPICS-Base"
