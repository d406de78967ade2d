# SPDX-License-Identifier: BSD-3-Clause
"""A real OpenTelemetry Collector, which writes all that it receives to a file and sends traces on to a real Jaeger. The
tests use both if they are installed; no script downloads them."""
import json
import os
import shutil
import urllib.error
import urllib.request

from . import loopback
from .process import Process
from .wait import until

KINDS = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]


def _find(name, variable):
    return os.environ.get(variable) or shutil.which(name)


def missing():
    """Why no collector can be used; empty if one can."""
    return "" if _find("otelcol", "EBPFMON_OTELCOL") else \
        "no OpenTelemetry Collector: otelcol is not on PATH, EBPFMON_OTELCOL names none"


def missing_jaeger():
    return "" if _find("jaeger-all-in-one", "EBPFMON_JAEGER") else \
        "no Jaeger: jaeger-all-in-one is not on PATH, EBPFMON_JAEGER names none"


def value(any_value):
    """An AnyValue of OTLP's JSON, as a value of Python."""
    (kind, content), = any_value.items()
    return int(content) if kind == "intValue" else float(content) if kind == "doubleValue" else content


def attributes(owner):
    pairs = [(a["key"], value(a["value"])) for a in owner.get("attributes", ())]
    assert len(dict(pairs)) == len(pairs), f"an attribute twice: {pairs}"
    return dict(pairs)


class Collector:
    """"forward": the base URL of another receiver (Jaeger), to which it sends traces on; None: none."""

    def __init__(self, tmp, forward=None):
        self.port = loopback.take_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.file, self.conf = tmp / "collected.json", tmp / "collector.yaml"
        exporters = {"file": {"path": str(self.file), "append": True, "flush_interval": "100ms"}}
        if forward:
            exporters["otlphttp"] = {"endpoint": forward, "compression": "none"}
        self.conf.write_text(json.dumps({  # JSON is YAML, too
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.port}"}}}},
            "exporters": exporters,
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {signal: {"receivers": ["otlp"],
                                       "exporters": list(exporters) if signal == "traces" else ["file"]}
                              for signal in ("logs", "metrics", "traces")}}}))
        self.process = None

    def start(self):
        self.process = Process([_find("otelcol", "EBPFMON_OTELCOL"), "--config", self.conf], os.environ.copy())
        until(lambda: "Everything is ready" in self.process.output(), 20, lambda: self.process.output())
        return self

    def complaints(self):
        """Its log messages of level warning and higher."""
        return [line for line in self.process.lines
                if ("\twarn\t" in line or "\terror\t" in line) and "alias is deprecated" not in line]

    def _items(self, signal, items):
        """Yields (resource, scope, item)."""
        text = self.file.read_text() if self.file.exists() else ""
        for line in text[:text.rfind("\n") + 1].splitlines():
            for owner in json.loads(line).get("resource" + signal, ()):
                for scope in owner["scope" + signal]:
                    for item in scope[items]:
                        yield attributes(owner["resource"]), scope["scope"], item

    def logs(self):
        """Resource, scope, log record."""
        return list(self._items("Logs", "logRecords"))

    def metrics(self):
        """Resource, scope, metric."""
        return list(self._items("Metrics", "metrics"))

    def points(self, name):
        """All points of a metric, the oldest first."""
        return [p for _, _, m in self.metrics() if m["name"] == name
                for kind in ("sum", "gauge", "histogram") for p in m.get(kind, {}).get("dataPoints", ())]

    def spans(self):
        """Spans as from Rotel.spans(), and their resource."""
        return [{"service": resource["service.name"], "trace": s["traceId"], "id": s["spanId"],
                 "parent": s.get("parentSpanId", ""), "name": s["name"], "kind": "SPAN_KIND_" + KINDS[s["kind"]],
                 "start": int(s["startTimeUnixNano"]), "end": int(s["endTimeUnixNano"]),
                 "attributes": attributes(s), "resource": resource, "scope": scope}
                for resource, scope, s in self._items("Spans", "spans")]

    def discard(self):
        if self.process:
            self.process.kill()
        loopback.give_port(self.port)


class Jaeger:
    """Jaeger, with its correction of clocks: it compares spans with their parents, and warns if they do not fit."""

    def __init__(self):
        self.otlp, self.zipkin, self.query = (loopback.take_port() for _ in range(3))
        self.url = f"http://127.0.0.1:{self.otlp}"
        self.zipkin_url = f"http://127.0.0.1:{self.zipkin}/api/v2/spans"
        self.base = f"http://127.0.0.1:{self.query}"
        self.process = None

    def start(self):
        unused = ["collector.otlp.grpc", "collector.http-server", "collector.grpc-server", "query.grpc-server",
                  "admin.http", "http-server"]
        self.process = Process(
            [_find("jaeger-all-in-one", "EBPFMON_JAEGER"), "--query.max-clock-skew-adjustment=1s",
             f"--collector.otlp.http.host-port=127.0.0.1:{self.otlp}",
             f"--collector.zipkin.host-port=127.0.0.1:{self.zipkin}",
             f"--query.http-server.host-port=127.0.0.1:{self.query}",
             *(f"--{name}.host-port=127.0.0.1:0" for name in unused),
             *(f"--processor.{name}.server-host-port=127.0.0.1:0"
               for name in ("jaeger-binary", "jaeger-compact", "zipkin-compact"))],
            {**os.environ, "SPAN_STORAGE_TYPE": "memory"})
        until(lambda: self.get("/api/services") is not None, 20, lambda: self.process.output())
        return self

    def get(self, path):
        """The data of an answer; None if there is none."""
        try:
            with urllib.request.urlopen(self.base + path, timeout=5) as answer:
                return json.load(answer)["data"] or []
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def services(self):
        return set(self.get("/api/services"))

    def trace(self, trace):
        """The spans of a trace as from Collector.spans(), with the "warnings" of Jaeger."""
        found = []
        for t in self.get(f"/api/traces/{trace}") or ():
            for s in t["spans"]:
                process = t["processes"][s["processID"]]
                parents = [r["spanID"] for r in s["references"] if r["refType"] == "CHILD_OF" and r["traceID"] == trace]
                tags = {tag["key"]: tag["value"] for tag in s["tags"]}
                found.append({"service": process["serviceName"], "trace": s["traceID"], "id": s["spanID"],
                              "parent": parents[0] if parents else "", "name": s["operationName"],
                              "kind": "SPAN_KIND_" + tags.pop("span.kind", "internal").upper(),
                              "start": s["startTime"] * 1000, "end": (s["startTime"] + s["duration"]) * 1000,
                              "attributes": tags, "warnings": (s.get("warnings") or []) + (t.get("warnings") or []),
                              "resource": {tag["key"]: tag["value"] for tag in process["tags"]}})
        return found

    def discard(self):
        if self.process:
            self.process.kill()
        for port in (self.otlp, self.zipkin, self.query):
            loopback.give_port(port)


class SiteCollector:
    """A collector with the shipped configuration (documentation/use/site/collector.yaml). It sends logs on as JSON,
    which we can read, and not as protobuf."""

    def __init__(self, tmp, conf, traces, logs):
        self.port, self.metrics = loopback.take_port(), loopback.take_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.more = tmp / "more.yaml"
        plain = {"encoding": "json", "compression": "none"}
        self.more.write_text(json.dumps({"exporters": {"otlp_http/logs": plain}, "service": {
            "telemetry": {"metrics": {"level": "none"}}}}))
        self.argv = [_find("otelcol", "EBPFMON_OTELCOL"), "--config", conf, "--config", self.more]
        self.environ = {**os.environ, "EBPFMON_PORT": str(self.port), "EBPFMON_METRICS_PORT": str(self.metrics),
                        "EBPFMON_TRACES": traces, "EBPFMON_LOGS": logs, "EBPFMON_QUEUE": str(tmp / "queue")}
        self.process = None

    def start(self):
        self.process = Process(self.argv, self.environ)
        until(lambda: "Everything is ready" in self.process.output() or not self.process.running, 60,
              lambda: self.process.output())
        assert self.process.running, self.process.output()
        return self

    def kill(self):
        self.process.kill()

    def discard(self):
        if self.process:
            self.process.kill()
        for port in self.port, self.metrics:
            loopback.give_port(port)
