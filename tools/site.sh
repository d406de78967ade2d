#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests what a site loads into its servers (documentation/site/) with the real servers, as far as this machine has them:
# three hosts, a collector, Jaeger, Prometheus, OpenSearch. Some two minutes. It downloads none of them.
#
#   tools/site.sh [ARGUMENTS FOR PYTEST...]
#   EBPFMON_OTELCOL, EBPFMON_JAEGER, EBPFMON_PROMETHEUS, EBPFMON_PROMTOOL   programs that are not on PATH
#   EBPFMON_OPENSEARCH   a program that starts OpenSearch or Elasticsearch, with -Ehttp.port=N -Epath.data=FOLDER
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that calls us

top=$(cd "$(dirname "$0")/.." && pwd)
export EBPFMON_CACHE="${EBPFMON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ebpfmon}"
EPICS_BASE=$("$top/tools/setup.sh")
export EPICS_BASE
python=$("$top/tools/venv.sh")

export SITE=1
cd "$top"
# -rs: what was skipped, and why
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests/site tests/integration/test_site.py \
    tests/integration/test_site_files.py -q -rs -p no:cacheprovider "$@" </dev/null
