#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Finds EPICS Base, or builds 7.0.8.1 once into a cache outside the tree, and prints its path.
#
# Found, in this order: EPICS_BASE in configure/RELEASE.local, EPICS_BASE in the environment, the cache.
# The source is Debian's own copy of the upstream release, fetched by apt with a private state (the
# machine's lists are not touched) and checked against the hash below. Progress goes to stderr, one line
# a stage; stdout has the path alone.
#
#   EBPFMON_CACHE   where to build; default $XDG_CACHE_HOME/ebpfmon or ~/.cache/ebpfmon
set -eu

VERSION=7.0.8.1
SHA256=0b62bff0ed19e6aa05c81e272bd6efdf167c8f310c6e385cfcada6343d6753df
SUITE=trixie

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}
base=$cache/base-$VERSION
t0=$(date +%s)

say() { printf 'base: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'base: %s\n' "$*" >&2; exit 1; }

usable() { [ -f "$1/configure/RULES_BUILD" ] && [ -x "$1/startup/EpicsHostArch" ] || [ -f "$1/configure/RULES_BUILD" ] && [ -f "$1/startup/EpicsHostArch.pl" ]; }

for f in "$top/configure/RELEASE.local" "$top/../RELEASE.local"; do
    [ -f "$f" ] || continue
    local_base=$(sed -n 's/^[[:space:]]*EPICS_BASE[[:space:]]*=[[:space:]]*//p' "$f" | tail -n 1)
    [ -n "$local_base" ] || continue
    usable "$local_base" || die "$f says EPICS_BASE = $local_base, where there is no built EPICS Base. Correct that line or remove it."
    echo "$local_base"; exit 0
done
if [ -n "${EPICS_BASE:-}" ]; then
    usable "$EPICS_BASE" || die "the environment says EPICS_BASE=$EPICS_BASE, where there is no built EPICS Base. Correct or unset it."
    echo "$EPICS_BASE"; exit 0
fi
if [ -f "$base/.complete" ]; then echo "$base"; exit 0; fi

mkdir -p "$cache"
exec 9>"$cache/lock"
if ! flock -n 9; then
    say "another process is building EPICS Base; waiting for it"
    flock 9
fi
if [ -f "$base/.complete" ]; then echo "$base"; exit 0; fi

# apt with a state of its own: a deb-src line for $SUITE at the mirror that this machine uses.
fetch() {
    apt=$cache/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    uri=$( { cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p'
             cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
                 sed -n 's/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p'
           } | grep -E '/debian/?$' | head -n 1)
    [ -n "$uri" ] || die "no Debian mirror in /etc/apt/sources.list(.d). Install EPICS Base $VERSION by hand and set EPICS_BASE in configure/RELEASE.local."
    echo "deb-src $uri $SUITE main" >"$apt/sources.list"
    opts="-o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$apt/lists -o Dir::Cache=$apt/cache"
    # shellcheck disable=SC2086
    apt-get $opts update >"$cache/fetch.log" 2>&1 &&
    src=$(apt-get $opts source --print-uris --download-only epics-base 2>>"$cache/fetch.log" |
          sed -n "s/^'\([^']*orig\.tar\.[a-z0-9]*\)'.*/\1/p") || src=
    [ -n "$src" ] || die "the package lists could not be had (see $cache/fetch.log). Is the network there? Try again, or set EPICS_BASE in configure/RELEASE.local."
    case $src in *"$VERSION"*) ;; *) die "the distribution has another release now ($src), $VERSION is wanted. Build it by hand and set EPICS_BASE in configure/RELEASE.local." ;; esac
    /usr/lib/apt/apt-helper download-file "$src" "$cache/base.tar.xz" "SHA256:$SHA256" >>"$cache/fetch.log" 2>&1 ||
        die "the download failed or its SHA-256 is not $SHA256 (see $cache/fetch.log). Try again; nothing was kept."
}

unpack() {
    rm -rf "$base" "$base.tmp"
    mkdir "$base.tmp"
    tar xJf "$cache/base.tar.xz" -C "$base.tmp" --strip-components=1
    # Base's own tests and examples take half of its build time and nothing here uses them.
    find "$base.tmp/modules" "$base.tmp/test" -type d \
        \( -name test -o -name testApp -o -name testCa -o -name example -o -name examples \) -prune |
    grep -v /src/ | while read -r d; do
        find "$d" -name Makefile | while read -r m; do printf 'all: ;\n.DEFAULT: ; @:\n' >"$m"; done
    done
    mv "$base.tmp" "$base"
}

compile() {
    # Stages are told by the directories that make enters first.
    (cd "$base" && LC_ALL=C make -j"$(nproc)" 2>&1) | tee "$cache/build.log" | {
        last=
        while read -r line; do
            case $line in
            make*"Entering directory"*"/modules/"*)
                m=${line##*/modules/}; m=${m%%[/\'\`]*}
                if [ "$m" != "$last" ]; then
                    case " $seen " in *" $m "*) ;; *) say "compiling $m"; seen="$seen $m" ;; esac
                    last=$m
                fi ;;
            esac
        done
    }
    [ -x "$base"/bin/*/softIocPVA ]
}

seen=
if [ ! -f "$cache/base.tar.xz" ] || ! echo "$SHA256  $cache/base.tar.xz" | sha256sum -c --status 2>/dev/null; then
    rm -f "$cache/base.tar.xz"
    say "fetching the source of EPICS Base $VERSION"
    fetch
fi
if [ -d "$base" ]; then
    say "an earlier build of EPICS Base $VERSION was interrupted; going on with it"
else
    say "unpacking"
    unpack
fi
say "compiling EPICS Base $VERSION (about 5 minutes on two cores; log in $cache/build.log)"
if ! compile; then
    say "the build failed; once more from the start"
    unpack
    compile || { tail -n 20 "$cache/build.log" >&2; die "EPICS Base does not build here: see $cache/build.log"; }
fi
touch "$base/.complete"
say "EPICS Base $VERSION is ready in $base"
echo "$base"
