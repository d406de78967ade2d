#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests what a site loads into its servers (documentation/site/) with the real servers, as far as this machine has them:
# three hosts, a collector, Jaeger, Prometheus, OpenSearch. Some two minutes. It downloads none of them.
#
#   tools/site.sh [ARGUMENTS FOR PYTEST...]
#   EBPFMON_OTELCOL, EBPFMON_JAEGER, EBPFMON_PROMETHEUS, EBPFMON_PROMTOOL   programs that are not on PATH
#   EBPFMON_OPENSEARCH   a program that starts OpenSearch or Elasticsearch, with -Ehttp.port=N -Epath.data=FOLDER
set -eu
. "$(dirname "$0")/environment.sh"

export SITE=1
cd "$top"
# -rs: what was skipped, and why
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest tests/site tests/integration/test_site.py \
    tests/integration/test_site_files.py -q -rs -p no:cacheprovider "$@" </dev/null
