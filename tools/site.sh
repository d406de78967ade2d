#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests the files that a site loads into its servers (documentation/use/site/): three hosts, a collector, Jaeger, Loki,
# Prometheus and OpenSearch. It uses the real servers that this machine has, and downloads none. Some two minutes.
#
#   tools/site.sh [ARGUMENTS FOR PYTEST...]
#   EBPFMON_OTELCOL, EBPFMON_JAEGER, EBPFMON_LOKI, EBPFMON_PROMETHEUS, EBPFMON_PROMTOOL   programs that are not on PATH
#   EBPFMON_OPENSEARCH   a program that starts OpenSearch or Elasticsearch, with -Ehttp.port=N -Epath.data=FOLDER
set -eu
. "$(dirname "$0")/environment.sh"

export SITE=1
cd "$top"
# -rs: shows what was skipped, and why
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests/site tests/integration/test_site.py \
    tests/integration/test_site_files.py -q -rs -p no:cacheprovider "$@" </dev/null
