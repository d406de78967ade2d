#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes a Python venv in the cache with the packages of tests/requirements.txt (PyPI), which the tests and the
# benchmarks need. There is one venv for each list of packages. If java and mvn are installed, it also downloads Zipkin
# (Maven Central). It prints the path of Python. Progress goes to stderr.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cache="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
mkdir -p "$cache"
python=/usr/bin/python3
"$python" -c 'import ensurepip, venv' 2>/dev/null || python=python3
list=$top/tests/requirements.txt
key=$( { "$python" -V; cat "$list"; } | cksum | cut -d ' ' -f 1)
venv=$cache/venv-$key
if [ ! -f "$venv/.complete" ]; then
    exec 9>"$cache/venv.lock"
    flock 9
    if [ ! -f "$venv/.complete" ]; then
        echo "venv: installing Python clients and peers from PyPI into $venv" >&2
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list" >"$cache/pip.log" 2>&1 || {
            tail -n 8 "$cache/pip.log" >&2
            echo "venv: pip could not install $list. Is the network there? The whole log: $cache/pip.log" >&2
            exit 1
        }
        touch "$venv/.complete"
    fi
fi

# Tests that need Zipkin are skipped without it (tests/harness/zipkin.py).
zipkin=zipkin-server-3.6.1-slim.jar
if [ ! -f "$cache/$zipkin" ] && command -v java >/dev/null && command -v mvn >/dev/null; then
    mvn -q -B dependency:copy -Dartifact=io.zipkin:zipkin-server:3.6.1:jar:slim -DoutputDirectory="$cache" \
        >"$cache/mvn.log" 2>&1 </dev/null || echo "venv: mvn could not fetch Zipkin: see $cache/mvn.log" >&2
fi
echo "$venv/bin/python"
