#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Finds EPICS Base, or builds 7.0.8.1 once into a cache outside the tree, and prints its path.
#
# It looks, in this order, at EPICS_BASE in configure/RELEASE.local, at EPICS_BASE in the environment, and in the cache.
# The source is Debian's copy of the upstream release. apt fetches it with package lists of its own, so the lists of the
# machine do not change. It is checked against the hash below. Progress goes to stderr, one line for each stage; stdout
# has only the path.
#
#   EBPFMON_CACHE   where to build; default $XDG_CACHE_HOME/ebpfmon or ~/.cache/ebpfmon
set -eu

VERSION=7.0.8.1
SHA256=0b62bff0ed19e6aa05c81e272bd6efdf167c8f310c6e385cfcada6343d6753df
SUITE=trixie

# The options of a make that calls us must not reach the makes that we call (-n, -j of a closed job server).
unset MAKEFLAGS MFLAGS MAKELEVEL

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
base=$cache/base-$VERSION
t0=$(date +%s)

say() { printf 'base: %4ds  %s\n' $(($(date +%s) - t0)) "$*" >&2; }
die() { printf 'base: %s\n' "$*" >&2; exit 1; }

# True if this folder has a built Base: its rules and its softIoc.
usable() {
    [ -f "$1/configure/RULES_BUILD" ] || return 1
    for ioc in "$1"/bin/*/softIoc; do
        if [ -x "$ioc" ]; then return 0; fi
    done
    return 1
}

# make itself reads RELEASE.local, so macros and includes have the same meaning as in the build.
given=$(printf 'all:;@:\n-include %s/../RELEASE.local\n-include %s/configure/RELEASE.local\n$(info $(strip $(EPICS_BASE)))\n' \
        "$top" "$top" | make -s --no-print-directory -f - TOP="$top") ||
    die "make cannot read configure/RELEASE.local (see above)."
if [ -n "$given" ]; then
    usable "$given" || die "EPICS_BASE is $given (from configure/RELEASE.local or the environment), where there is no built EPICS Base. Correct it, or unset it to have one built."
    echo "$given"; exit 0
fi
if [ -f "$base/.complete" ]; then echo "$base"; exit 0; fi

mkdir -p "$cache"
# make inherits the lock. So if this script is killed and make still runs, a second script waits for it.
exec 9>"$cache/lock"
if ! flock -n 9; then
    say "another process is building EPICS Base; waiting for it"
    flock 9
fi
if [ -f "$base/.complete" ]; then echo "$base"; exit 0; fi

# Prints the Debian mirror that this machine uses, from sources in one-line or deb822 format; of a mirror list the
# first.
mirror() {
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$f" ] || sed -n -e 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' \
            -e 's/^deb[[:space:]]*\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p' "$f"
    done | while read -r u; do
        case $u in
        mirror+file:/*) sed 's/[[:space:]].*//' "${u#mirror+file:}" 2>/dev/null || : ;;
        *) echo "$u" ;;
        esac
    done | grep -E '/debian/?$' | head -n 1
}

# Fetches the source by apt, with a state of its own and one deb-src line.
fetch() {
    apt=$cache/apt
    rm -f "$cache/fetch.log"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    uri=$(mirror)
    [ -n "$uri" ] || die "no Debian mirror in /etc/apt/sources.list(.d). Install EPICS Base $VERSION by hand and set EPICS_BASE in configure/RELEASE.local."
    echo "deb-src $uri $SUITE main" >"$apt/sources.list"
    set -- -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- \
           -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" \
           -o APT::Sandbox::User= -o Acquire::Retries=3 -o APT::Update::Error-Mode=any
    apt-get "$@" update >>"$cache/fetch.log" 2>&1 &&
    src=$(apt-get "$@" source --print-uris --download-only epics-base 2>>"$cache/fetch.log" |
          sed -n "s/^'\([^']*orig\.tar\.[a-z0-9]*\)'.*/\1/p") || src=
    [ -n "$src" ] || die "apt-get could not fetch the package lists (see $cache/fetch.log). Check the network and try again, or set EPICS_BASE in configure/RELEASE.local."
    case $src in *"$VERSION"*) ;; *) die "the distribution has another release now ($src), but $VERSION is needed. Build it by hand and set EPICS_BASE in configure/RELEASE.local." ;; esac
    /usr/lib/apt/apt-helper -o APT::Sandbox::User= -o Acquire::Retries=3 \
        download-file "$src" "$cache/base.tar.xz" "SHA256:$SHA256" >>"$cache/fetch.log" 2>&1 ||
        die "the download failed or its SHA-256 is not $SHA256 (see $cache/fetch.log). Try again; nothing was kept."
}

unpack() {
    rm -rf "$base" "$base.tmp"
    mkdir "$base.tmp"
    tar xJf "$cache/base.tar.xz" -C "$base.tmp" --strip-components=1
    # Leave out Base's own tests and examples: they take half of the build time, and nothing here uses them.
    find "$base.tmp/modules" "$base.tmp/test" -type d \
        \( -name test -o -name testApp -o -name testCa -o -name example -o -name examples \) -prune |
    grep -v /src/ | while read -r d; do
        find "$d" -name Makefile | while read -r m; do
            printf 'all: ;\n.DEFAULT: ; @:\n' >"$m"
            touch -d 2000-01-01 "$m" # old, as all sources are: see resume()
        done
    done
    mv "$base.tmp" "$base"
}

# A make that was killed may leave half-written files that look up to date. So remove the files of its last minute.
resume() {
    [ -f "$cache/build.log" ] || return 0
    died=$(stat -c %Y "$cache/build.log")
    find "$base" \( -type f -o -type l \) -newermt "@$((died - 60))" -delete
}

compile() {
    rm -f "$base/.built"
    # A stage begins when make enters the folder of a module for the first time.
    (cd "$base" && LC_ALL=C make -j"$(nproc)" 2>&1 && touch .built) | tee "$cache/build.log" | {
        seen=
        while read -r line; do
            case $line in make*"Entering directory"*"/modules/"*) ;; *) continue ;; esac
            m=${line##*/modules/}; m=${m%%[/\'\`]*}
            case " $seen " in *" $m "*) ;; *) say "compiling $m"; seen="$seen $m" ;; esac
        done
    }
    [ -f "$base/.built" ]
}

if ! echo "$SHA256  $cache/base.tar.xz" | sha256sum -c --status 2>/dev/null; then
    rm -f "$cache/base.tar.xz"
    say "fetching the source of EPICS Base $VERSION"
    fetch
fi
if [ -d "$base" ]; then
    say "an earlier build of EPICS Base $VERSION was interrupted; going on with it"
    resume
else
    say "unpacking"
    unpack
fi
say "compiling EPICS Base $VERSION (about 5 minutes on two cores; log in $cache/build.log)"
if ! compile; then
    say "the build failed; building once more from the beginning"
    unpack
    compile || { tail -n 20 "$cache/build.log" >&2; die "EPICS Base does not build here: see $cache/build.log"; }
fi
touch "$base/.complete"
say "EPICS Base $VERSION is ready in $base"
echo "$base"
