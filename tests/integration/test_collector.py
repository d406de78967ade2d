# SPDX-License-Identifier: BSD-3-Clause
"""A real OpenTelemetry Collector receives all logs, metrics and traces, and Jaeger gets the traces from this collector."""
import math
import os
import re
import signal

import pytest
from tests.harness import ca, collector, paths
from tests.harness.wait import until
# The tests of test_traces_across_iocs run again here, because the fixture "rotel" of this module is the collector.
from .test_traces_across_iocs import (caput, iocs, test_ca_link_to_own_ioc, test_three_iocs,  # noqa: F401
                                      test_trace_begins_with_a_scan, trace_of)
from .test_spans import send

UNITS = {"{put}", "{processing}", "{record}", "{event}", "{item}", "s", "1", "By"}


@pytest.fixture(scope="module")
def jaeger():
    j = None if collector.missing_jaeger() else collector.Jaeger().start()
    yield j
    if j:
        j.discard()


@pytest.fixture(scope="module")
def rotel(tmp_path_factory, jaeger):
    if why := collector.missing():
        pytest.skip(why)
    c = collector.Collector(tmp_path_factory.mktemp("collector"), jaeger and jaeger.url).start()
    yield c
    c.discard()


@pytest.fixture(scope="module")
def monitor(module_monitor, rotel, iocs):
    return module_monitor(before=['epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000',
                                  'epicsEnvSet OTEL_EXPORTER_OTLP_TIMEOUT 1000',
                                  'epicsEnvSet OTEL_RESOURCE_ATTRIBUTES "deployment.environment.name=lab%201,ip=10.1.2.3"',
                                  f'ebpfMonOtlp "{rotel.url}" "logs,metrics,traces"']).start().at_level("trace", *iocs)


def found(rotel, pv, val=None):
    """The newest log record of this PV: resource, scope, record, attributes."""
    def newest():
        for resource, scope, record in reversed(rotel.logs()):
            a = collector.attributes(record)
            if a["epics.pv"] == pv and val in (None, a["epics.value"]):
                return resource, scope, record, a
        return None

    return until(newest, 10, lambda: f"{pv}: {rotel.logs()[-3:]}\n{rotel.process.output(5)}")


def test_a_put(rotel, iocs, monitor):
    ioc = iocs[0]
    ioc.put("SEND.A", 2.5)
    resource, scope, record, a = found(rotel, ioc.prefix + "SEND.A")
    assert resource["service.name"] == "ebpfMon" and resource["host.name"] == paths.HOST
    assert resource["service.instance.id"] == f"{paths.HOST}:{monitor.process.pid}"
    assert resource["deployment.environment.name"] == "lab 1"
    assert scope["name"] == "ebpfMon" and scope["version"] == resource["service.version"]
    assert record["eventName"] == "epics.put" and record["severityNumber"] == 9 and record["severityText"] == "INFO"
    assert 0 <= int(record["observedTimeUnixNano"]) - int(record["timeUnixNano"]) < 10e9
    assert a["epics.value"] == "2.5" and a["epics.value_number"] == 2.5 and a["epics.ioc"] == ioc.name
    assert a["client.address"] == a["server.address"] == "127.0.0.1" and a["server.port"] == ioc.port
    assert a["process.pid"] == os.getpid() and type(a["client.port"]) is int


def test_not_numbers(rotel, iocs, monitor):
    """JSON cannot write NaN and infinities as numbers."""
    ioc = iocs[0]
    for value in math.nan, math.inf, -math.inf:
        ca.raw_put(ioc, ioc.prefix + "SEND.A", value, callback=False)
        until(lambda: str(found(rotel, ioc.prefix + "SEND.A")[3]["epics.value_number"]) == str(value), 10,
              lambda: f"{value}: {found(rotel, ioc.prefix + 'SEND.A')}")


def test_spans(rotel, iocs, monitor):
    """All spans of the tests above have ids, the resource of their IOC, and a parent that was exported."""
    def orphans():
        spans = rotel.spans()
        known = {(s["trace"], s["id"]) for s in spans}
        return [s for s in spans if s["parent"] and (s["trace"], s["parent"]) not in known]

    caput(iocs[0], "ROOT.PROC")
    trace_of(rotel, iocs[2].prefix + "IN", 10)
    until(lambda: not orphans(), 15, lambda: f"parents of {orphans()}")
    spans = rotel.spans()
    by_id = {s["id"]: s for s in spans}
    assert len(by_id) == len(spans)
    assert not [(s, by_id[s["parent"]]) for s in spans if s["parent"] and by_id[s["parent"]]["start"] > s["start"]]
    by_name = {i.name: i for i in iocs}
    for s in spans:
        assert re.fullmatch("[0-9a-f]{32}", s["trace"]) and re.fullmatch("[0-9a-f]{16}", s["id"])
        assert s["scope"]["name"] == "ebpfMon" and s["start"] <= s["end"]
        r = s["resource"]
        assert r["host.name"] == paths.HOST and r["deployment.environment.name"] == "lab 1"
        assert r["service.instance.id"] == f"{paths.HOST}:{r['process.pid']}"
        if r["service.name"] in by_name:
            assert r["process.pid"] == by_name[r["service.name"]].pid and r["epics.base.version"].startswith("7.0.")
    chain = next(s["attributes"] for s in spans if "epics.chain.cause" in s["attributes"])
    assert type(chain["thread.id"]) is int and type(chain["epics.chain.wait"]) is float


def check_histogram(point):
    counts, bounds = [int(n) for n in point["bucketCounts"]], point["explicitBounds"]
    assert len(counts) == len(bounds) + 1 and sum(counts) == int(point["count"]) and bounds == sorted(set(bounds))
    return counts, bounds


def test_metrics(rotel, iocs, monitor):
    """Units, temporality and start times must fit together. If they do not, receivers refuse the points or show wrong
    values."""
    puts = int(monitor.get("PUT_CNT"))
    until(lambda: (p := rotel.points("epics.puts")) and
          sum(int(x["asInt"]) for x in p if x["timeUnixNano"] == p[-1]["timeUnixNano"]) >= puts, 10, "its counts")
    before = {}
    for resource, scope, metric in rotel.metrics():
        assert resource["service.name"] == scope["name"] == "ebpfMon"
        assert metric["unit"] in UNITS and metric["description"], metric
        (kind, data), = ((k, metric[k]) for k in ("sum", "gauge", "histogram") if k in metric)
        assert kind == "gauge" or data["aggregationTemporality"] == 2
        assert kind != "sum" or data["isMonotonic"]
        for point in data["dataPoints"]:
            a = collector.attributes(point)
            series = metric["name"], tuple(sorted(a.items()))
            assert (kind == "gauge") == ("startTimeUnixNano" not in point)
            start, now = int(point.get("startTimeUnixNano", 0)), int(point["timeUnixNano"])
            assert start <= now
            if kind == "histogram":
                check_histogram(point)
            value = int(point["count"] if kind == "histogram" else point.get("asInt", 0))
            if kind != "gauge" and series in before and before[series][0] == start:
                assert before[series][1] < now and before[series][2] <= value, (series, before[series], point)
            before[series] = start, now, value
    assert {n for n, _ in before} >= {"epics.puts", "epics.processings", "epics.chain.latency", "epics.root.latency",
                                      "epics.records", "ebpfmon.lost"}
    memory = rotel.points("ebpfmon.mem")[-1]["asDouble"]
    assert memory == pytest.approx(monitor.get("MEM") * 1e6, rel=0.5)


def test_exemplars(rotel, iocs, monitor):
    """Each exemplar belongs to an exported trace, and to a bucket that counted it. The latency does not contain the
    asynchronous part of a chain."""
    def points(of=None):
        return [(p, e) for p in rotel.points("epics.root.latency") for e in p.get("exemplars", ())
                if of in (None, collector.attributes(p)["epics.record.name"])]

    caput(iocs[0], "ROOT.PROC")
    caput(iocs[0], "LATE.PROC")
    for record in "ROOT", "LATE":
        until(lambda: points(iocs[0].prefix + record), 10, lambda: f"{record}: {points()}")
    those = points()
    wanted = {(e["traceId"], e["spanId"]) for _, e in those}
    until(lambda: wanted <= {(s["trace"], s["id"]) for s in rotel.spans()}, 10, lambda: f"the spans {wanted}")
    spans = {(s["trace"], s["id"]): s for s in rotel.spans()}
    for point, e in those:
        a, span = collector.attributes(point), spans[e["traceId"], e["spanId"]]
        assert span["name"] == a["epics.record.name"] and span["service"] == a["epics.ioc"]
        most = (span["end"] - span["start"]) / 1e9 - span["attributes"]["epics.chain.wait"] / 1e6
        assert e["asDouble"] == pytest.approx(most) or e["asDouble"] < most and span["name"].endswith("LATE")
        counts, bounds = check_histogram(point)
        assert counts[sum(b < e["asDouble"] for b in bounds)] > 0, (point, e)
        assert int(e["timeUnixNano"]) <= int(point["timeUnixNano"])


def in_jaeger(jaeger, spans):
    """Jaeger shows the same spans with the same parents and services, without a warning."""
    def parents(of):
        return {(s["id"], s["parent"], s["service"], s["name"], s["kind"], s["start"] // 1000) for s in of}

    traces = {s["trace"] for s in spans}
    until(lambda: parents(spans) == parents(s for t in traces for s in jaeger.trace(t)), 10,
          lambda: str(parents(spans) ^ parents(s for t in traces for s in jaeger.trace(t))))
    shown = [s for t in traces for s in jaeger.trace(t)]
    assert not [s for s in shown if s["warnings"]]
    return shown


def test_jaeger(rotel, jaeger, iocs, monitor):
    if not jaeger:
        pytest.skip(collector.missing_jaeger())
    first, middle, last = iocs
    caput(first, "ROOT.PROC")
    spans = trace_of(rotel, last.prefix + "IN", 11, lambda s: len({x["service"] for x in s}) == 4)
    shown = in_jaeger(jaeger, spans)
    assert len({s["trace"] for s in shown}) == 1 and len([s for s in shown if not s["parent"]]) == 1
    assert {"caput", first.name, middle.name, last.name} <= jaeger.services()
    chain = next(s for s in shown if s["name"] == first.prefix + "ROOT" and "epics.chain.cause" in s["attributes"])
    assert chain["attributes"]["epics.chain.records"] == 2 and chain["resource"]["process.pid"] == first.pid
    assert chain["attributes"]["otel.scope.name"] == "ebpfMon"
    in_jaeger(jaeger, rotel.spans())


def test_slow_then_gone(rotel, iocs, monitor):
    """The collector hangs, is killed, and is started again. It then has every put; it may have some puts twice."""
    ioc, number = iocs[0], 0

    def put_some():
        nonlocal number
        for number in range(number + 1, number + 11):
            ioc.put("SEND.B", number)

    def all_came():
        return [n for n in range(1, number + 1) if n not in
                {int(a["epics.value"]) for a in (collector.attributes(r) for _, _, r in rotel.logs())
                 if a["epics.pv"] == ioc.prefix + "SEND.B"}]

    rotel.process.signal(signal.SIGSTOP)
    put_some()
    monitor.wait("OTLP_STATE", lambda s: s == 2, 20)
    put_some()
    rotel.process.signal(signal.SIGCONT)
    monitor.wait("OTLP_STATE", lambda s: s == 1, 60)
    until(lambda: not all_came(), 20, lambda: f"{all_came()}")
    rotel.process.kill()
    put_some()
    monitor.wait("OTLP_STATE", lambda s: s == 2, 20)
    rotel.start()
    monitor.wait("OTLP_STATE", lambda s: s == 1, 60)
    until(lambda: not all_came(), 20, lambda: f"{all_came()}")
    assert monitor.get("OTLP_LOST_CNT") == 0


def test_no_warning_of_the_collector(rotel, iocs, monitor):
    assert not rotel.complaints()
    assert not [l for l in monitor.command("ebpfMonOtlpShow 1") if re.search("refused [1-9]", l)]


@pytest.mark.parametrize("way", ["otlp", "zipkin"])
def test_jaeger_alone(jaeger, way):
    """Jaeger without a collector receives spans by OTLP and in Zipkin's format."""
    if not jaeger:
        pytest.skip(collector.missing_jaeger())
    trace, made, accepted, lost = send(jaeger.url if way == "otlp" else jaeger.zipkin_url, way)
    # Jaeger does not accept metrics
    assert made == accepted == 10 and lost == 0
    spans = until(lambda: (s := jaeger.trace(trace)) and len(s) == 10 and s, 10, lambda: str(jaeger.trace(trace)))
    root, = [s for s in spans if not s["parent"]]
    assert all(s["parent"] == root["id"] and not s["warnings"] for s in spans if s is not root)
    assert str(root["attributes"]["epics.chain.records"]) == "10" and root["end"] - root["start"] == 30000
