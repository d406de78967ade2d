#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian package of this tree, and checks it with lintian. On a bare Debian, as root, it first installs what
# it needs (setup.sh, debhelper, lintian).
#
#   tools/deb.sh [FOLDER]      the package goes to FOLDER; default: deb/ in this tree
#
# Its last line is the path of the package. If lintian has an error or a warning, the script fails.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/deb}
cache=${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}
die() { printf 'deb: %s\n' "$*" >&2; exit 1; }

# The programs of a tree that was copied find their libraries in the first one, and make mixes both.
case $(readelf -d "$top"/bin/*/ebpfMon 2>/dev/null | sed -n 's/.*(RU*N*PATH).*\[\(.*\)\]/\1/p') in
''|*"$top"/*|*ORIGIN*) ;;
*) die "this tree was built in another folder: make clean, then again" ;;
esac

need=
for pair in dh:debhelper lintian:lintian; do
    command -v "${pair%%:*}" >/dev/null || need="$need ${pair##*:}"
done
# shellcheck disable=SC2086
[ -z "$need" ] || "$top/tools/installPackages.sh" deb "$cache/deb-apt.log" $need
EPICS_BASE=$("$top/tools/setup.sh" base) # debian/rules builds this tree; who builds need not be able to watch processes
export EPICS_BASE
mkdir -p "$out"
out=$(cd "$out" && pwd)

exec 9>"$top/deb.lock" # one at a time: debhelper works in debian/
flock 9
own=$cache/tree-$(echo "$top" | cksum | cut -d ' ' -f 1)
mkdir -p "$own"
exec 8>"$own/lock" # as setup.sh: only one make builds this tree
flock 8
cd "$top"
log=$out/build.log
clean() { dh_clean >>"$log" 2>&1 || :; }
trap clean EXIT
rm -f "$out"/ebpfmon_*.deb
# No second package with debug symbols, and no tests.
DEB_OUT=$out DEB_BUILD_OPTIONS="noautodbgsym nocheck parallel=$(nproc)" debian/rules binary >"$log" 2>&1 </dev/null || {
    tail -n 25 "$log" >&2
    die "the package cannot be built: see above and $log"
}
package=$(ls "$out"/ebpfmon_*.deb)
lintian --fail-on error,warning "$package" >&2 || die "lintian has found errors or warnings: see above"
echo "$package"
