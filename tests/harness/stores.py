# SPDX-License-Identifier: BSD-3-Clause
"""The servers in which a site keeps metrics and logs: Prometheus, and OpenSearch or Elasticsearch. The tests use them
if they are installed; no script downloads them. Also: the names that a collector gives to metrics of OTLP for
Prometheus."""
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from . import loopback, paths
from .process import Process
from .wait import until

SITE = paths.TOP / "documentation" / "use" / "site"
TEMPLATES = ("puts.template.json", "caPutLog.template.json")


def _find(name, variable):
    return os.environ.get(variable) or shutil.which(name)


def missing_promtool():
    """Why rules cannot be checked here; empty if they can."""
    return "" if _find("promtool", "EBPFMON_PROMTOOL") else \
        "no promtool (Debian: prometheus): it is not on PATH, EBPFMON_PROMTOOL names none"


def missing_prometheus():
    return "" if _find("prometheus", "EBPFMON_PROMETHEUS") else \
        "no Prometheus: it is not on PATH, EBPFMON_PROMETHEUS names none"


def missing_search():
    return "" if os.environ.get("EBPFMON_OPENSEARCH") else \
        "no OpenSearch: EBPFMON_OPENSEARCH names no program that starts one (or an Elasticsearch) with -Ehttp.port=N"


def missing_loki():
    return "" if _find("loki", "EBPFMON_LOKI") else "no Loki: it is not on PATH, EBPFMON_LOKI names none"


def promtool(*args):
    return subprocess.run([_find("promtool", "EBPFMON_PROMTOOL"), *args], cwd=SITE, capture_output=True, text=True,
                          timeout=120)


# --- names ----------------------------------------------------------------------------------------------------------
# The rules of OpenTelemetry's compatibility with Prometheus ("OTLP metric points to Prometheus", metric metadata): dots
# become underscores, units become suffixes, sums end in _total. Units in braces are no suffix.
UNITS = {"s": "seconds", "By": "bytes"}


def prometheus_names(metric):
    """The names of the series of a metric in OTLP's JSON."""
    name = metric["name"].replace(".", "_")
    unit = metric["unit"]
    if unit in UNITS and not name.endswith("_" + UNITS[unit]):
        name += "_" + UNITS[unit]
    if "gauge" in metric:
        return {name + "_ratio" if unit == "1" else name}
    if "sum" in metric:
        return {name + "_total"}
    return {name + suffix for suffix in ("_bucket", "_count", "_sum")}


def label_names(metric):
    points = metric.get("sum", metric.get("gauge", metric.get("histogram")))["dataPoints"]
    return {a["key"].replace(".", "_") for p in points for a in p.get("attributes", ())}


def names_in(text):
    """All words that look like one of our metrics, labels or recorded series."""
    return set(re.findall(r"(?<![\w:])(?:instance:)?(?:epics|ebpfmon)_\w+(?::\w+)?", text))


# --- stores -----------------------------------------------------------------------------------------------------------
def ask(url, data=None, kind="application/json", method=None):
    """The JSON that a server answers. None if there is none."""
    body = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": kind} if body is not None else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        if e.code == 503:
            return None  # it starts
        raise AssertionError(f"{url}: {e.code} {e.read()[:1000]}") from None
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


class Prometheus:
    """Prometheus with the shipped configuration and rules, which fetches from this port, more often."""

    def __init__(self, tmp, metrics_port):
        self.port = loopback.take_port()
        self.folder = tmp / "prometheus"
        self.folder.mkdir()
        conf = (SITE / "prometheus.yml").read_text()
        assert "127.0.0.1:9464" in conf and "15s" in conf
        (self.folder / "prometheus.yml").write_text(
            conf.replace("127.0.0.1:9464", f"127.0.0.1:{metrics_port}").replace("15s", "1s"))
        shutil.copy(SITE / "ebpfMon.rules.yml", self.folder)
        self.process = None

    def start(self):
        self.process = Process([
            _find("prometheus", "EBPFMON_PROMETHEUS"), f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}",
            "--enable-feature=exemplar-storage"], os.environ.copy())
        until(lambda: self.query("vector(1)"), 60, lambda: self.process.output())
        return self

    def get(self, path):
        answer = ask(f"http://127.0.0.1:{self.port}/api/v1/{path}")
        return answer and answer["data"]

    def query(self, expression):
        """Labels and value of each series."""
        answer = self.get("query?" + urllib.parse.urlencode({"query": expression}))
        return [(r["metric"], float(r["value"][1])) for r in answer["result"]] if answer else []

    def discard(self):
        if self.process:
            self.process.kill()
        loopback.give_port(self.port)


class Search:
    """OpenSearch or Elasticsearch with the shipped templates."""

    def __init__(self, tmp):
        self.port, self._transport, self.folder = loopback.take_port(), loopback.take_port(), tmp / "search"
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        self.process = Process([
            os.environ["EBPFMON_OPENSEARCH"], f"-Ehttp.port={self.port}", f"-Etransport.port={self._transport}",
            f"-Epath.data={self.folder}", "-Enetwork.host=127.0.0.1", "-Ediscovery.type=single-node"], os.environ.copy())
        # it answers before it takes anything: until a manager is elected, with 503
        until(lambda: (ask(f"{self.url}/_cluster/health") or {}).get("status") in ("green", "yellow") or
              not self.process.running, 120, lambda: self.process.output())
        assert self.process.running, self.process.output()
        for template in TEMPLATES:
            assert ask(f"{self.url}/_index_template/{template.partition('.')[0].lower()}",
                       json.loads((SITE / template).read_text()), method="PUT"), self.process.output()
        return self

    def add(self, index, lines):
        """Each line is a JSON object. Returns what was refused."""
        body = "".join('{"index":{}}\n' + line + "\n" for line in lines)
        answer = ask(f"{self.url}/{index}/_bulk?refresh=true", body.encode(), "application/x-ndjson")
        return [item["index"]["error"] for item in answer["items"] if "error" in item["index"]]

    def find(self, index, query):
        answer = ask(f"{self.url}/{index}/_search", {"query": query, "size": 1000})
        return [hit["_source"] for hit in answer["hits"]["hits"]]

    def discard(self):
        if self.process:
            self.process.kill()
        for port in self.port, self._transport:
            loopback.give_port(port)


class Loki:
    """Grafana Loki as one process, with its files in a folder. It takes OTLP."""

    def __init__(self, tmp):
        self.port, self._grpc = loopback.take_port(), loopback.take_port()
        self.url = f"http://127.0.0.1:{self.port}"
        store = {"filesystem": {"chunks_directory": f"{tmp}/chunks", "rules_directory": f"{tmp}/rules"}}
        self._conf = tmp / "loki.json"  # JSON is YAML
        self._conf.write_text(json.dumps({
            "auth_enabled": False, "analytics": {"reporting_enabled": False},
            "server": {"http_listen_address": "127.0.0.1", "http_listen_port": self.port,
                       "grpc_listen_address": "127.0.0.1", "grpc_listen_port": self._grpc},
            "common": {"instance_addr": "127.0.0.1", "path_prefix": str(tmp), "storage": store, "replication_factor": 1,
                       "ring": {"instance_addr": "127.0.0.1", "kvstore": {"store": "inmemory"}}},
            "schema_config": {"configs": [{"from": "2020-10-24", "store": "tsdb", "object_store": "filesystem",
                                           "schema": "v13", "index": {"prefix": "index_", "period": "24h"}}]}}))
        self.process = None

    def start(self):
        self.process = Process([_find("loki", "EBPFMON_LOKI"), f"-config.file={self._conf}"], os.environ.copy())

        def is_ready():
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as answer:
                    return answer.status == 200
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return False

        until(lambda: is_ready() or not self.process.running, 120, lambda: self.process.output())
        assert self.process.running, self.process.output()
        return self

    def query(self, expression):
        """Labels (with the structured metadata) and line of each record of the last hour."""
        answer = ask(f"{self.url}/loki/api/v1/query_range?" + urllib.parse.urlencode({"query": expression, "limit": 1000}))
        return [(s["stream"], v[1]) for s in (answer or {"data": {"result": []}})["data"]["result"] for v in s["values"]]

    def discard(self):
        if self.process:
            self.process.kill()
        for port in self.port, self._grpc:
            loopback.give_port(port)
