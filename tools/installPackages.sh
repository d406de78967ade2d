#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs packages of Debian, for the other tools. Says so on stderr. If it cannot, it says what to do, and fails.
#
#   tools/installPackages.sh TOOL LOG PACKAGE...      TOOL: the name of the tool that needs them, for messages
set -eu
tool=$1 log=$2
shift 2
die() { printf '%s: %s\n' "$tool" "$*" >&2; exit 1; }
install="apt-get install --yes --no-install-recommends $*"

command -v apt-get >/dev/null 2>&1 ||
    die "missing: $* (names of Debian). Install them with the package manager of this system."
[ "$(id -u)" = 0 ] || die "missing: $*. As root, run: apt-get update && $install"
printf '%s: installing %s\n' "$tool" "$*" >&2
mkdir -p "$(dirname "$log")"
DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND
# If apt-get update fails for one source, the packages may come from another one. So only the install decides.
apt-get -o Acquire::Retries=3 update >"$log" 2>&1 || :
$install -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 >>"$log" 2>&1 </dev/null || {
    grep '^[EW]:' "$log" | tail -n 8 >&2
    die "apt-get could not install $*. Is the network there? The whole log: $log"
}
