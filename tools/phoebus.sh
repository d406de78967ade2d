#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Draws the displays with the Display Builder of a real Phoebus 5, with the values of a running monitor. Prints what is
# wrong: unknown properties, PVs that do not connect, warnings, buttons and rows that open nothing or another host.
#
#   tools/phoebus.sh JARS FOLDER PREFIX [MACRO=VALUE...]
#
# JARS: the class path of Phoebus: 'PHOEBUS/lib/*' and its product-….jar, or what "mvn dependency:build-classpath"
# prints. FOLDER: gets the pictures, as PNG. PREFIX: of the PVs of the monitor. MACRO: IOC=, REC= and the macros of a
# put (PV=, TIME=, NEW=, …) for the displays of one IOC, record and put. EPICS_CA_ADDR_LIST and so on: where the monitor
# is. It needs Java 17 or later (JAVA), and a screen (DISPLAY) or Xvfb. SECONDS_SHOWN: how long each display is shown
# (6). ONLY_PICTURES=true: do not press buttons.
#
# Some modules of Phoebus suffice: in its source "mvn -am -DskipTests -pl app/display/runtime,app/display/actions,\
# app/display/representation-javafx,app/databrowser,core/pv-ca,core/pv-pva,core/formula package". Without its fonts
# (app/display/fonts, installed on the host) texts are wider than at a site.
set -eu
[ $# -ge 3 ] || { sed -n '3,16s/^# \{0,1\}//p' "$0"; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
jars=$1
folder=$2
macros="P=$3"
shift 3
given=" P"
for macro in "$@"; do
    macros="$macros&$macro"
    given="$given ${macro%%=*}"
done

mkdir -p "$folder"
set --
for file in "$top"/ebpfMonApp/op/bob/ebpfMon*.bob; do
    # draw only the displays for which all macros are given
    wanted=$(sed -n '/<macros>/,/<\/macros>/s/^ *<\([A-Z]*\)>.*/\1/p;/<\/macros>/q' "$file")
    for macro in $wanted; do
        case "$given " in *" $macro "*) ;; *) continue 2 ;; esac
    done
    set -- "$@" "$file?$macros"
done

screen=
if [ -z "${DISPLAY:-}" ]; then
    command -v xvfb-run >/dev/null ||
        { echo "phoebus: set DISPLAY, or install xvfb-run (Debian: xvfb, xauth)" >&2; exit 2; }
    screen="xvfb-run -a -s -screen\ 0\ 1400x1100x24"
fi
preferences=$(mktemp -d)
trap 'rm -rf "$preferences"' EXIT
eval "$screen" '"${JAVA:-java}"' -Djca.use_env=true -Dprism.order=sw -DebpfMon.onlyPictures="${ONLY_PICTURES:-false}" \
    '-Djava.util.prefs.userRoot="$preferences"' -cp '"$jars"' '"$top/tools/phoebus/Render.java"' '"$folder"' \
    "${SECONDS_SHOWN:-6}" '"$@"'
