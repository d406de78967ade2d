# SPDX-License-Identifier: BSD-3-Clause
"""Puts and counts arrive at a real OTLP receiver (rotel), with their attributes. Nothing is lost while the receiver
is down."""
import os
import re

import pytest
from tests.harness import ca, db
from tests.harness.queries import load
from tests.harness.wait import until

RECORDS = (
    db.READY + db.record("ao", "AO", VAL="1", DRVH="200") + db.record("stringout", "STR") +
    db.record("ao", "SECRET", ASG="NOBODY") + db.record("ao", "TARGET") +
    db.record("calcout", "SOURCE", CALC="A", OUT="$(P)TARGET PP")
)
ACF = """UAG(nobody) { nosuchuser }
ASG(DEFAULT) { RULE(1, WRITE) }
ASG(NOBODY) { RULE(1, READ) RULE(1, WRITE) { UAG(nobody) } }
"""


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    acf = tmp_path_factory.mktemp("acf") / "test.acf"
    acf.write_text(ACF)
    return module_ioc(RECORDS, acf=acf).start()


PUT_TIME = {"name": "PUT_TIME", "title": "How long dbPut takes", "source": {"function": "dbPut", "when": "duration"},
            "keys": ["ioc", {"arg": 1, "at": [0], "as": "record"}], "histogram": "log2", "metrics": 1, "budget": 100, "start": True}


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, rotel, tmp_path_factory):
    m = module_monitor(before=[*load(tmp_path_factory.mktemp("queries"), [PUT_TIME]),
                               'epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000',
                               'epicsEnvSet OTEL_SERVICE_NAME "hall 3"',
                               f'ebpfMonOtlp "{rotel.url}" "logs,metrics" "X-Lab=B2"']).start()
    m.wait_ioc(ioc)
    return m


def find(rotel, pv, seconds=10, **more):
    """The newest log record of this PV. Waits until there is one."""
    def newest():
        found = [r for r in rotel.logs() if r.get("epics.pv") == pv and all(r.get(k) == v for k, v in more.items())]
        return found[-1] if found else None

    return until(newest, seconds, lambda: f"{pv} {more}: {rotel.logs()[-3:]}\n{rotel.process.output(20)}")


def test_puts_arrive(ioc, monitor, rotel):
    ioc.put("AO", 250)
    r = find(rotel, ioc.prefix + "AO")
    assert r["epics.ioc"] == ioc.name and r["epics.value"] == "250" and r["epics.value_number"] == 250
    assert r["epics.value_old"] == "1" and r["epics.value_after"] == "200"
    assert r["epics.put.through"] == "CA" and r["epics.put.result"] == "ok"
    assert r["client.address"] == "127.0.0.1" and 0 < r["client.port"] < 65536
    assert r["process.pid"] == os.getpid() and r["process.real_user.id"] == os.getuid()
    assert r["SeverityText"] == "INFO" and re.fullmatch(r"\d{19}", r["Timestamp"])
    assert r["Body"].startswith("Str(20") and f"{ioc.prefix}AO 1 -> 250" in r["Body"]
    assert "     -> service.name: Str(hall 3)" in rotel.process.lines
    text = "caf\u00e9 \u2192 \"x\""
    ioc.put("STR", text)
    assert find(rotel, ioc.prefix + "STR")["epics.value"] == text


def test_a_denied_put_is_a_warning(ioc, monitor, rotel):
    ca.raw_put(ioc, ioc.prefix + "SECRET", 5.0, callback=False)
    r = find(rotel, ioc.prefix + "SECRET")
    assert r["epics.put.result"] == "denied" and r["SeverityText"] == "WARN"


def test_a_put_by_a_link(ioc, monitor, rotel):
    ioc.put("SOURCE.A", 7)
    r = find(rotel, ioc.prefix + "TARGET")
    assert r["epics.put.through"] == "link" and r["epics.put.link"] == ioc.prefix + "SOURCE.OUT"
    assert r["epics.put.root"] == ioc.prefix + "SOURCE" and "put by" in r["epics.put.cause"]
    assert r["process.pid"] == os.getpid(), "the process whose put started the chain"


def test_metrics(ioc, monitor, rotel):
    ioc.put("AO", 3)
    puts = monitor.wait("PUT_CNT", lambda n: n > 0)
    until(lambda: f"Value: {int(puts)}" in rotel.metric("epics.puts"), 10, lambda: str(rotel.metric("epics.puts")))
    assert "     -> IsMonotonic: true" in rotel.metric("epics.puts")
    assert f"     -> epics.ioc: Str({ioc.name})" in rotel.metric("epics.records")
    assert "     -> ebpfmon.reason: Str(queue full)" in rotel.metric("ebpfmon.otlp.lost")
    until(lambda: any(re.match(r"Count: [1-9]", l) for l in rotel.metric("epics.chain.latency")), 10,
          lambda: str(rotel.metric("epics.chain.latency")))
    starts = {l for b in rotel.blocks("Metric #") if "     -> Name: epics.puts" in b
              for l in b if l.startswith("StartTimestamp")}
    assert len(starts) == 1
    assert monitor.get("OTLP_STATE", as_string=True) == "Ok" and monitor.get("OTLP_LOST_CNT") == 0
    assert monitor.get("OTLP_SENT_CNT") > 0
    shown = "\n".join(monitor.command("ebpfMonOtlpShow 1"))
    assert "logs: " in shown and "queue full 0" in shown


def test_metrics_of_a_query(ioc, monitor, rotel):
    """The metrics of the first of two rows: the values of the PVs, in seconds."""
    until(lambda: "looks at 1 IOC" in monitor.text("PUT_TIME_MSG"), 20, lambda: monitor.text("PUT_TIME_MSG"))
    for value in range(5):
        ioc.put("TARGET", value)
    ioc.put("STR", "once")
    until(lambda: len(monitor.list("PUT_TIME_CNTS")) >= 2 and monitor.list("PUT_TIME_CNTS")[0] >= 5, 20,
          lambda: f"two rows: {monitor.list('PUT_TIME_CNTS')}")
    until(lambda: f"Value: {int(monitor.list('PUT_TIME_CNTS')[0])}" in rotel.metric("epics.query.PUT_TIME.events"), 20,
          lambda: str(rotel.metric("epics.query.PUT_TIME.events")))
    events = rotel.metric("epics.query.PUT_TIME.events")
    assert f"     -> epics.ioc: Str({ioc.name})" in events and f"     -> epics.record.name: Str({ioc.prefix}TARGET)" in events
    assert "     -> IsMonotonic: true" in events and sum(line.startswith("Value:") for line in events) == 1

    def seconds(part):
        line, = [line for line in rotel.metric(f"epics.query.PUT_TIME.{part}") if line.startswith("Value:")]
        return float(line.split()[1])

    until(lambda: seconds("sum") == pytest.approx(monitor.list("PUT_TIME_SUMS")[0] * 1e-6), 20, lambda: str(seconds("sum")))
    assert seconds("max") == pytest.approx(monitor.list("PUT_TIME_MAXS")[0] * 1e-6)
    assert seconds("p99") == pytest.approx(monitor.list("PUT_TIME_P99S")[0] * 1e-6)
    assert "     -> Unit: s" in rotel.metric("epics.query.PUT_TIME.sum")


def test_histogram_of_a_query(ioc, monitor, rotel):
    """The bars of the first row, with their bounds: each value is in one of them, the longest in the last that is not
    empty. The query runs since the test before."""
    def point():
        lines = rotel.metric("epics.query.PUT_TIME.histogram")
        numbers = {name: float(line.split()[-1]) for line in lines for name in ("Count", "Sum", "Min", "Max")
                   if line.startswith(name + ":")}
        bounds = [float(line.split()[-1]) for line in lines if line.startswith("ExplicitBounds #")]
        counts = [int(line.split()[-1]) for line in lines if line.startswith("Buckets #")]
        return numbers, bounds, counts

    def agrees():
        count = monitor.list("PUT_TIME_CNTS")[0]
        return count >= 5 and point()[0].get("Count") == count

    until(agrees, 20, lambda: f"{point()} {monitor.list('PUT_TIME_CNTS')}")
    numbers, bounds, counts = point()
    assert f"     -> epics.record.name: Str({ioc.prefix}TARGET)" in rotel.metric("epics.query.PUT_TIME.histogram")
    assert len(counts) == len(bounds) + 1 and bounds == sorted(bounds) and sum(counts) == numbers["Count"]
    assert numbers["Sum"] == pytest.approx(monitor.list("PUT_TIME_SUMS")[0] * 1e-6)
    first, last = min(i for i, n in enumerate(counts) if n), max(i for i, n in enumerate(counts) if n)
    assert bounds[first - 1] < numbers["Min"] <= bounds[first] and bounds[last - 1] < numbers["Max"] <= bounds[last]


def test_receiver_killed_and_restarted(ioc, monitor, rotel):
    rotel.process.kill()
    ioc.put("AO", 11)
    monitor.wait("OTLP_STATE", lambda s: s == 2, 20)
    assert "start the collector" in monitor.text("OTLP_MSG")
    assert monitor.get("OTLP_STATE.SEVR") == 1 and monitor.text("OTLP_MSG").startswith(monitor.get("OTLP_STATE.AMSG")[:34] or "?")
    for value in range(12, 40):
        ioc.put("AO", value)
    rotel.start()
    monitor.wait("OTLP_STATE", lambda s: s == 1, 60)
    assert (monitor.get("OTLP_STATE.SEVR"), monitor.get("OTLP_STATE.AMSG")) == (0, "")
    find(rotel, ioc.prefix + "AO", **{"epics.value": "39"})
    got = [int(r["epics.value"]) for r in rotel.logs() if r.get("epics.pv") == ioc.prefix + "AO"]
    assert got == list(range(11, 40)), "each put while the receiver was down, once and in order"
    assert monitor.get("OTLP_LOST_CNT") == 0


def test_end_sends_the_queue(ioc, new_monitor, rotel):
    m = new_monitor(before=[f'ebpfMonOtlp "{rotel.url}" logs']).start()
    m.wait_ioc(ioc)
    ioc.put("STR", "the last one")
    m.wait("PUT_CNT", lambda n: n >= 1)
    m.stop()
    find(rotel, ioc.prefix + "STR", **{"epics.value": "the last one"})


@pytest.mark.parametrize("variables, expected", [
    (["OTEL_EXPORTER_OTLP_ENDPOINT http://127.0.0.1:1"], "start the collector"),
    (["OTEL_EXPORTER_OTLP_ENDPOINT {ioc}"], "does not speak HTTP|HTTP status|collector"),
    (["OTEL_EXPORTER_OTLP_ENDPOINT {rotel}/nowhere"], "the path is wrong"),
    (["OTEL_EXPORTER_OTLP_ENDPOINT {rotel}", "OTEL_EXPORTER_OTLP_PROTOCOL grpc"], "only http/json"),
])
def test_wrong_endpoint_is_reported_and_blocks_nothing(ioc, new_monitor, rotel, variables, expected):
    m = new_monitor(before=["epicsEnvSet " + v.format(rotel=rotel.url, ioc=f"http://127.0.0.1:{ioc.port}")
                            for v in variables]).start()
    m.wait_ioc(ioc)
    ioc.put("AO", 77)
    m.wait("PUT_CNT", lambda n: n >= 1)
    m.wait("OTLP_STATE", lambda s: s == 2, 20)
    m.wait_text("OTLP_MSG", lambda text: re.search(expected, text))
    m.wait_state("Running")


def test_command_refuses(monitor):
    for line, why in [("ebpfMonOtlp", "give the URL"), ("ebpfMonOtlp ftp://x", "http://HOST:PORT"),
                      ("ebpfMonOtlp http://h puts", "logs,metrics,traces"),
                      ("ebpfMonOtlp http://h logs nonsense", "Header=value")]:
        assert why in "\n".join(monitor.command(line)), line
