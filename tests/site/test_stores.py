# SPDX-License-Identifier: BSD-3-Clause
"""Three hosts as a site has them: each with its IOC and its monitor, one collector with the shipped configuration, and
behind it Jaeger, Prometheus with the shipped rules, a receiver of logs as Loki is, and OpenSearch with the shipped
templates. `make site` runs this. Each server is optional (tests/harness/collector.py, stores.py).

The hosts are network namespaces. The monitors see all processes of the machine, and each watches the IOC of its host."""
import json
import re
import subprocess
import urllib.parse

import pytest
from tests.harness import badlink, collector, db, loopback, paths, stores
from tests.harness.far import FarIoc
from tests.harness.ioc import OURS
from tests.harness.lan import Lan
from tests.harness.otlp import Sink
from tests.harness.wait import until
from tests.integration.conftest import sink  # noqa: F401
from tests.integration.test_site import TEMPLATES, expressions, folder, ioc, lines, monitor  # noqa: F401

NAMES = ("vm1", "vm2", "vm3")
RULES = {"default": "allow", "rules": [{"name": "hands off", "pv": "*FORBIDDEN", "users": "nobody"}]}
PUTS = 20
BOARD = json.loads((stores.SITE / "grafana.json").read_text())


@pytest.fixture(scope="module")
def lan():
    with Lan() as made:
        yield made


@pytest.fixture(scope="module")
def iocs(lan, tmp_path_factory):
    """A put to SET of the first one goes on to END of the third one. The second one has neither."""
    tmp, made = tmp_path_factory.mktemp("iocs"), []

    def start(number, text, to=None):
        environ = {"EPICS_CA_ADDR_LIST": f"{to.address}:{to.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"} if to else {}
        made.append(FarIoc(tmp, lan, end=lan.hosts[number], db=db.READY + text, environ=environ,
                           name=f"{OURS[:-1]}{NAMES[number]}").start())
        return made[-1]

    last = start(2, db.record("ao", "END"))
    middle = start(1, db.record("ao", "SET"))
    first = start(0, db.record("ao", "SET", OUT=f"{last.prefix}END CA PP") + db.record("ao", "FORBIDDEN") +
                  db.record("ao", "COUNT"), last)
    yield first, middle, last
    for i in made:
        i.discard()


@pytest.fixture(scope="module")
def jaeger():
    if why := collector.missing_jaeger():
        pytest.skip(why)
    j = collector.Jaeger().start()
    yield j
    j.discard()


@pytest.fixture(scope="module")
def loki():
    """It takes OTLP as Loki does, and keeps it."""
    s = Sink()
    yield s
    s.discard()


@pytest.fixture(scope="module")
def traces(request):
    """The URL of Jaeger. Without Jaeger: of a receiver that takes the traces."""
    if not collector.missing_jaeger():
        yield request.getfixturevalue("jaeger").url
        return
    s = Sink()
    yield s.url
    s.discard()


@pytest.fixture(scope="module")
def site(traces, loki, tmp_path_factory):
    if why := collector.missing():
        pytest.skip(why)
    c = collector.SiteCollector(tmp_path_factory.mktemp("collector"), stores.SITE / "collector.yaml", traces,
                                loki.url + "/otlp").start()
    yield c
    c.discard()


@pytest.fixture(scope="module")
def monitors(site, iocs, module_monitor, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("puts")
    rules = tmp / "rules.json"
    rules.write_text(json.dumps(RULES))
    made = []
    for name, i in zip(NAMES, iocs):
        m = module_monitor(iocs=i.name, before=[
            f'epicsEnvSet OTEL_RESOURCE_ATTRIBUTES "host.name={name}"', "epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000",
            f'ebpfMonOtlp "{site.url}" "logs,metrics,traces"', f'ebpfMonRules "{rules}"',
            f'ebpfMonJsonLog "{tmp}/{name}.json" 100 0 1 all']).start().at_level("trace", i)
        m.lines = tmp / f"{name}.json"
        made.append(m)
    return made


@pytest.fixture(scope="module")
def prometheus(site, monitors, tmp_path_factory):
    if why := stores.missing_prometheus():
        pytest.skip(why)
    p = stores.Prometheus(tmp_path_factory.mktemp("prometheus"), site.metrics).start()
    yield p
    p.discard()


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    if why := stores.missing_search():
        pytest.skip(why)
    s = stores.Search(tmp_path_factory.mktemp("search")).start()
    yield s
    s.discard()


def whole_trace(jaeger, trace):
    """Its spans. A message that two monitors have sent is that of the sender's host: a monitor of another host would not
    see that process."""
    spans = jaeger.trace(trace)
    inner = {s["id"] for s in spans if s["parent"]}
    return [s for s in spans if s["parent"] or s["id"] not in inner]


def caput(ioc, record, *values):
    """A client at the host of the IOC."""
    environ = {**loopback.client(ioc.port), "EPICS_CA_ADDR_LIST": f"{ioc.address}:{ioc.port}"}
    for value in values:
        done = subprocess.run(badlink.in_namespace(ioc.end, [paths.BASE_BIN / "caput", "-t", ioc.prefix + record, value]),
                              env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


def logged(loki, pv):
    return [(a["epics.value"], resource["host.name"]) for a, resource in loki.logs() if a["epics.pv"] == pv]


@pytest.fixture(scope="module")
def put(iocs, monitors):
    """The first puts may come before the links are connected."""
    until(lambda: (caput(iocs[0], "SET", 777), "777" in "".join(iocs[2].command(f'dbgf "{iocs[2].prefix}END"')))[1], 60,
          lambda: iocs[2].process.output())
    return 777


def test_put_is_in_the_logs(put, iocs, loki):
    """By PV name: what the client wrote at the first host, and what arrived at the third one."""
    for i, record, host in (iocs[0], "SET", "vm1"), (iocs[2], "END", "vm3"):
        until(lambda: ("777", host) in logged(loki, i.prefix + record), 60, lambda: f"{record}: {loki.logs()[-5:]}")


def test_put_is_one_trace(put, iocs, jaeger):
    """Found by the name of the record at which the chain ends: the trace begins with the client at the first host."""
    first, _, last = iocs
    query = urllib.parse.urlencode({"service": last.name, "lookback": "1h", "limit": 20,
                                    "tags": json.dumps({"epics.record.name": last.prefix + "END"})})

    def whole():
        for trace in jaeger.get(f"/api/traces?{query}") or ():
            spans = whole_trace(jaeger, trace["traceID"])
            if {s["resource"]["host.name"] for s in spans} >= {"vm1", "vm3"} and {first.name, last.name, "caput"} <= \
                    {s["service"] for s in spans} and len({s["id"] for s in spans if not s["parent"]}) == 1:
                return spans
        return None

    spans = until(whole, 60, lambda: str([[(s["service"], s["name"], s["id"], s["parent"], s["resource"]["host.name"]) for s in
                                           jaeger.trace(t["traceID"])] for t in jaeger.get(f"/api/traces?{query}")]))
    assert not [s for s in spans if s["warnings"] and "parent" in str(s["warnings"])]
    begin = next(s for s in spans if not s["parent"])  # each monitor of this machine may see the client
    assert begin["attributes"]["epics.pv"] == first.prefix + "SET" and begin["service"] == "caput"


def test_put_is_in_prometheus(put, iocs, prometheus):
    series = f'epics_root_latency_seconds_count{{epics_record_name="{iocs[0].prefix}SET"}}'
    (labels, count), = until(lambda: prometheus.query(series), 60, lambda: str(prometheus.query("epics_puts_total")))
    assert labels["instance"] == "vm1" and labels["job"] == "ebpfMon" and labels["epics_ioc"] == iocs[0].name and count > 0
    until(lambda: {l["instance"] for l, _ in prometheus.query("ebpfmon_state == 1")} == set(NAMES), 60,
          lambda: str(prometheus.query("ebpfmon_state")))


def test_put_is_in_the_index(put, iocs, monitors, search):
    """As a program that reads files (Filebeat, Fluent Bit) sends the lines."""
    for m in monitors:
        assert not search.add("ebpfmon-puts-site", m.lines.read_text().splitlines())
    hits = search.find("ebpfmon-puts-site", {"bool": {"filter": [
        {"term": {"pv": iocs[0].prefix + "SET"}}, {"term": {"value.number": 777}}, {"range": {"@timestamp": {"gte": "now-1d"}}}]}})
    assert hits and all(h["ioc"] == iocs[0].name and h["command"] == "caput" for h in hits)


@pytest.mark.parametrize("log", TEMPLATES)
def test_index_takes_all_lines(lines, search, log):  # noqa: F811
    index = {"puts": "ebpfmon-puts-lines", "caput": "caputlog-lines"}[log]
    assert not search.add(index, lines[log])
    number = {"puts": ("value.number", 1.5), "caput": ("new.number", 1.5)}[log]
    hit = search.find(index, {"term": {number[0]: number[1]}})
    assert hit and hit[0]["pv"].endswith("AO")
    assert search.find(index, {"nested": {"path": "writers", "query": {"term": {"writers.count": 3}}}})


def test_rules_and_dashboard_have_values(put, prometheus):
    """Prometheus evaluates each rule; each metric that rules and dashboard name is in it."""
    groups = until(lambda: (g := prometheus.get("rules")["groups"]) and
                   all(r["health"] == "ok" for x in g for r in x["rules"]) and g, 60,
                   lambda: str(prometheus.get("rules")))
    assert sum(len(g["rules"]) for g in groups) == 17
    used = stores.names_in("\n".join(expressions(BOARD, "prometheus") + [(stores.SITE / "ebpfMon.rules.yml").read_text()]))
    labels = set(prometheus.get("labels"))

    def missing():
        return used - set(prometheus.get("label/__name__/values")) - labels

    until(lambda: not missing(), 90, lambda: str(missing()))


def test_unexpected_put_is_an_alert(put, iocs, prometheus):
    before = prometheus.query('epics_puts_unexpected_total{instance="vm1"}')
    assert before[0][1] == 0
    caput(iocs[0], "FORBIDDEN", 1)

    def firing():
        return [a for a in prometheus.get("alerts")["alerts"] if a["state"] == "firing" and
                a["labels"]["alertname"] == "EpicsPutUnexpected"]

    until(firing, 60, lambda: str(prometheus.get("alerts")))
    assert [a["labels"]["instance"] for a in firing()] == ["vm1"]


def test_each_panel_has_values(put, iocs, prometheus):
    """Each query of the dashboard gives numbers, for all hosts and for a chosen one; some are compared with the truth."""
    queries = [e for e in expressions(BOARD, "prometheus") if not e.startswith("label_values(")]
    assert len(queries) > 18

    def ask_with(hosts):
        return {e: [(labels, value) for labels, value in
                    prometheus.query(e.replace("$host", hosts).replace("$__rate_interval", "1m")) if value == value]
                for e in queries}

    def answered(hosts):
        """An increase within the last minute needs a put in it."""
        caput(iocs[0], "FORBIDDEN", 1)
        found = ask_with(hosts)
        return found if all(found.values()) else None

    for hosts, count in (".*", 3), ("vm1|vm3", 2), ("vm1", 1):
        found = until(lambda: answered(hosts), 60, lambda: str([e for e, found in ask_with(hosts).items() if not found]))
        assert {labels["instance"] for v in found.values() for labels, _ in v if "instance" in labels} <= set(NAMES)
        shown = {panel["title"]: found[panel["targets"][0]["expr"]] for panel in BOARD["panels"]
                 if panel["targets"][0]["expr"] in found}
        assert [v for _, v in shown["Hosts"]] == [count] and shown["IOCs"][0][1] >= count
        assert [v for _, v in shown["IOCs gone"]] == [0] and shown["Unexpected puts, 1 h"][0][1] > 0
        assert {labels["epics_ioc"] for labels, _ in shown["Puts by IOC, the ten busiest"]} >= {iocs[0].name}
    assert set(prometheus.get("label/instance/values?" + urllib.parse.urlencode({"match[]": "ebpfmon_state"}))) == set(NAMES)


def test_nothing_is_lost_when_collector_and_stores_die(put, site, iocs, monitors, loki, request):
    """The stores are down; the collector is killed with a full queue; puts go on; all come back, one after the other."""
    jaeger_here = None if collector.missing_jaeger() else request.getfixturevalue("jaeger")
    first, _, last = iocs
    loki.accepts = False
    if jaeger_here:
        jaeger_here.process.kill()
    caput(first, "COUNT", *range(1000, 1000 + PUTS))
    until(lambda: monitors[0].get("OTLP_QUEUE_LOAD") == 0, 30, "the monitor has sent them")
    site.kill()
    caput(first, "COUNT", *range(1000 + PUTS, 1000 + 2 * PUTS))
    monitors[0].wait("OTLP_STATE", lambda s: s == 2, 60)
    site.start()
    caput(first, "COUNT", *range(1000 + 2 * PUTS, 1000 + 3 * PUTS))
    loki.accepts = True
    if jaeger_here:
        jaeger_here.start()
    wanted = {str(n) for n in range(1000, 1000 + 3 * PUTS)}

    def missing():
        return wanted - {value for value, _ in logged(loki, first.prefix + "COUNT")}

    until(lambda: not missing(), 120, lambda: f"{sorted(missing())}\n{site.process.output()}")
    query = urllib.parse.urlencode({"service": first.name, "lookback": "1h", "limit": 1000,
                                    "tags": json.dumps({"epics.record.name": first.prefix + "COUNT"})})

    def untraced():
        found = [t for trace in jaeger_here.get(f"/api/traces?{query}") or () for s in trace["spans"] for t in s["tags"]]
        return wanted - {t["value"] for t in found if t["key"] == "epics.record.value"}

    if jaeger_here:
        until(lambda: not untraced(), 120, lambda: f"{sorted(untraced())}\n{site.process.output()}")
    assert [m.get("OTLP_LOST_CNT") for m in monitors] == [0, 0, 0]


def test_no_complaint_of_the_collector(site):
    """But those that its stores were down."""
    assert not [l for l in site.process.lines if re.search(r"\t(error|warn)\t", l) and
                not re.search("Exporting failed|deprecated|connection refused", l)]
