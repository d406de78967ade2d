#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs ebpfMon on a host as a service, for a site without packages. Our Debian package uses this script, too. "make
# install" is the command of EPICS, and installs to INSTALL_LOCATION. This script installs to the folders of the system.
#
#   make install-host [prefix=/usr/local] [DESTDIR=FOLDER]      after make; as root, or with DESTDIR as any user
#
#   prefix      programs and data             /usr/local
#   DESTDIR     is put before all paths       (empty)
#   sysconfdir  configuration                 /etc
#   unitdir     units of systemd              PREFIX/lib/systemd/system
#   docdir      documentation                 PREFIX/share/doc/ebpfmon
#
# It also installs the shared libraries of EPICS Base with which the monitor was linked (PREFIX/lib/ebpfmon), because
# the monitor needs Base 7.0.8 or later, which few systems have. In an archive (archive.sh) install.sh runs this script.
# An existing configuration file does not change; if the new one differs, it is installed as NAME.new in the folder
# ebpfmon of sysconfdir.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
prefix=${prefix:-/usr/local}
DESTDIR=${DESTDIR:-}
sysconfdir=${sysconfdir:-/etc}
unitdir=${unitdir:-$prefix/lib/systemd/system}
docdir=${docdir:-$prefix/share/doc/ebpfmon}
confdir=$sysconfdir/ebpfmon
datadir=$prefix/share/ebpfmon
libdir=$prefix/lib/ebpfmon

say() { printf 'install-host: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
put() { # MODE FOLDER FILE...
    mode=$1 folder=$DESTDIR$2
    shift 2
    install -d -m 755 "$folder"
    install -m "$mode" "$@" "$folder"
}
fill() { # MODE FILE TARGET: installs a file of service/, with the real paths in place of @bindir@ and so on
    install -d -m 755 "$(dirname "$DESTDIR$3")"
    sed "s|@bindir@|$prefix/bin|g; s|@datadir@|$datadir|g; s|@confdir@|$confdir|g; s|@docdir@|$docdir|g" \
        "$top/service/$2" >"$DESTDIR$3.part"
    chmod "$1" "$DESTDIR$3.part"
    mv "$DESTDIR$3.part" "$DESTDIR$3"
}
configure() { # FILE TARGET: installs a file that a site may change. A new one always goes to our own folder: logrotate reads
              # nearly all files of its folder, and refuses a second rule for the same log
    target=$DESTDIR$2
    install -d -m 755 "$(dirname "$target")"
    if [ ! -e "$target" ]; then
        install -m 644 "$1" "$target"
    elif ! cmp -s "$1" "$target"; then
        new=$confdir/$(basename "$1").new
        install -m 644 "$1" "$DESTDIR$new"
        say "$2 stays as it is; the new one is $new"
    fi
}

# --- the programs and their libraries ------------------------------------------------------------------
# They are put together in a folder of their own. If one of them could not start, those that are installed stay.
install -d -m 755 "$DESTDIR$prefix/lib"
parts=$(mktemp -d "$DESTDIR$libdir.XXXXXX")
trap 'rm -rf "$parts"' EXIT
if [ -d "$top/programs" ]; then # this is an archive
    cp -R "$top/programs/." "$parts"
    missing=$(env -u LD_LIBRARY_PATH ldd "$parts"/bin/ebpfMon "$parts"/bin/ebpfMon[HT]* | awk '/not found/' | sort -u)
    [ -z "$missing" ] || die "nothing was installed, because ebpfMon would not start on this system:
$missing
It needs the GNU C library 2.34 or later, libcurl and readline 8. Debian, Ubuntu: apt install libcurl4 libreadline8. RHEL, Rocky, Alma: dnf install libcurl readline"
else
    "$top/tools/collectPrograms.sh" "$parts"
fi
put 755 "$prefix/bin" "$parts"/bin/*
put 644 "$libdir" "$parts"/lib/ebpfmon/*

# --- data and documentation ----------------------------------------------------------------------------
put 644 "$datadir/dbd" "$top/dbd/ebpfMon.dbd"
put 644 "$datadir/db" "$top"/db/ebpfMon*.db "$top"/db/ebpfMon*.template
put 644 "$datadir/queries" "$top"/iocBoot/iocEbpfMon/queries/*.json
put 644 "$datadir/op" "$top"/ebpfMonApp/op/bob/*.bob "$top"/ebpfMonApp/op/bob/*.py
put 644 "$datadir/alarm" "$top"/ebpfMonApp/op/alarm/*.xml
put 644 "$datadir/web" "$top"/ebpfMonApp/op/web/*.html
awk -F '"' '/^record\(/ { name = $2; sub(/^\$\(P\)/, "HOST:EBPF:", name) } # the PVs to archive, by their info tags
    /info\(archive,/ && name !~ /\$/ { print name }' "$top"/db/ebpfMon*.db | LC_ALL=C sort -u > "$parts/ebpfMon.archive"
put 644 "$datadir" "$parts/ebpfMon.archive" "$top/iocBoot/iocEbpfMon/ebpfMon.req" \
    "$top/iocBoot/iocEbpfMon/replay.cmd" "$top/iocBoot/iocEbpfMon/ebpfMon.acf"
fill 644 st.cmd "$datadir/st.cmd"
put 644 "$docdir" "$top/README.md"
(cd "$top/documentation" && find . -type f) | while read -r name; do
    put 644 "$docdir/documentation/$(dirname "$name")" "$top/documentation/$name"
done
put 644 "$docdir/examples" "$top/service/containers.conf"
[ ! -f "$parts/LICENSE.EPICS-Base" ] || put 644 "$docdir" "$parts/LICENSE.EPICS-Base"
[ ! -d "$parts/copyright" ] || put 644 "$docdir/copyright" "$parts"/copyright/*
put 644 "$prefix/share/man/man1" "$top/service/ebpfMon.1" "$top/service/ebpfMonHistory.1" \
    "$top/service/ebpfMonTop.1" "$top/service/ebpfMonSymbols.1" "$top/service/ebpfMonReplay.1"

# --- configuration and service -------------------------------------------------------------------------
for f in environment site.cmd; do
    configure "$top/service/$f" "$confdir/$f"
done
configure "$top/iocBoot/iocEbpfMon/rules.json" "$confdir/rules.json"
configure "$top/iocBoot/iocEbpfMon/ebpfMon.acf" "$confdir/ebpfMon.acf"
configure "$top/service/ebpfmon.logrotate" "$sysconfdir/logrotate.d/ebpfmon"
rm -f "$DESTDIR$sysconfdir/logrotate.d/ebpfmon.new" # of an earlier version
fill 644 ebpfmon.service "$unitdir/ebpfmon.service"
install -d -m 755 "$DESTDIR$prefix/lib/sysusers.d"
install -m 644 "$top/service/ebpfmon.sysusers" "$DESTDIR$prefix/lib/sysusers.d/ebpfmon.conf"
[ -n "$DESTDIR" ] || say "done. Now: systemd-sysusers; systemctl daemon-reload; systemctl enable --now ebpfmon"
