#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds ebpfMon and makes an archive of the programs, for hosts with neither a compiler nor EPICS: any Linux of this architecture with the GNU
# C library of this system or a later one (2.34 if it is made on Debian 12). On the host: unpack it anywhere, run install.sh.
# And, from the archive, an RPM.
#
#   tools/archive.sh [rpm] [FOLDER]      the result goes to FOLDER; default: archive/ in this tree
#
# Its last line is the path of what it made.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us
umask 022
top=$(cd "$(dirname "$0")/.." && pwd)
die() { printf 'archive: %s\n' "$*" >&2; exit 1; }
kind=archive
if [ "${1:-}" = rpm ]; then kind=rpm; shift; fi
out=${1:-$top/archive}
cache=${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}
[ $kind = archive ] || command -v rpmbuild >/dev/null || "$top/tools/installPackages.sh" archive "$cache/archive-apt.log" rpm
EPICS_BASE=$("$top/tools/setup.sh" base)
export EPICS_BASE
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")
name=ebpfmon-$version-$(uname -m)
mkdir -p "$out"
out=$(cd "$out" && pwd)

# A build beside this tree, linked with a libcurl whose symbols have no versions: Debian names one, CURL_OPENSSL_4, that others
# do not have. The program then takes the libcurl of the host, which knows where the host's certificates are.
copy=$cache/archive-$(echo "$top" | cksum | cut -d ' ' -f 1)
"$top/tools/copyTree.sh" "$copy" "$EPICS_BASE"
mkdir -p "$copy/O.curl"
curl=$(ldconfig -p | awk '/libcurl\.so\.4 / {print $NF; exit}')
objdump -T "$curl" | awk '/ CURL_/ {print "void " $NF "(void) {}"}' |
    gcc -shared -fPIC -Wno-builtin-declaration-mismatch -Wl,-soname,libcurl.so.4 -x c - -o "$copy/O.curl/libcurl.so"
make -s -C "$copy" -j"$(nproc)" USR_LDFLAGS="-L$copy/O.curl" configure ebpfMonSup ebpfMonModules ebpfMonApp ebpfMonHistory ebpfMonTop \
    iocBoot </dev/null >"$out/build.log" 2>&1 || { tail -n 25 "$out/build.log" >&2; die "the build failed: see above and $out/build.log"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tree=$work/$name
mkdir "$tree"
"$copy/tools/collectPrograms.sh" "$tree/programs" whole
cd "$copy"
tar c --exclude-vcs --exclude='O.*' --exclude=envPaths --exclude=__pycache__ README.md LICENSE documentation service dbd/ebpfMon.dbd db \
    iocBoot/iocEbpfMon ebpfMonApp/op tools/installHost.sh | tar x -C "$tree"
cat >"$tree/install.sh" <<'END'
#!/bin/sh
# Installs ebpfMon as a service: prefix=/usr/local ./install.sh. All settings: tools/installHost.sh. Documentation:
# documentation/use/installation.md.
exec "$(dirname "$0")/tools/installHost.sh"
END
chmod 755 "$tree/install.sh"
need=$(objdump -T "$tree"/programs/bin/ebpfMon* "$tree"/programs/lib/ebpfmon/* 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
echo "archive: it needs the GNU C library ${need#GLIBC_} or later" >&2
tar c -C "$work" --owner=0 --group=0 --sort=name "$name" | gzip -9n >"$out/$name.tar.gz"
if [ $kind = archive ]; then
    echo "$out/$name.tar.gz"
    exit
fi
rpmbuild -bb --define "_topdir $work/rpm" --define "_sourcedir $out" --define "_rpmdir $out" --define "archive $name" \
    --define "version_of_ebpfmon $version" "$top/service/ebpfmon.spec" >"$out/rpm.log" 2>&1 || {
    tail -n 25 "$out/rpm.log" >&2
    die "the package cannot be built: see above and $out/rpm.log"
}
ls "$out/$(uname -m)/ebpfmon-$version"-*.rpm
