# SPDX-License-Identifier: BSD-3-Clause
"""Files that a site loads into Prometheus, Grafana and a log server: compares documentation/use/site/ with the metrics
and log lines of a real monitor. `make site` tries them with real servers (tests/site/)."""
import datetime
import json
import re

import pytest
from tests.harness import ca, db, stores
from tests.harness.stores import SITE
from tests.harness.wait import until

from .test_logs import ACF, RECORDS

RULES = SITE / "ebpfMon.rules.yml"
TEMPLATES = {"puts": "puts.template.json", "caput": "caPutLog.template.json"}
UNEXPECTED = json.dumps({"default": "allow", "rules": [{"name": "hands off", "pv": "*Y", "users": "nobody"}]})


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    acf = tmp_path_factory.mktemp("acf") / "test.acf"
    acf.write_text(ACF)
    return module_ioc(RECORDS + db.chain("C", 2, SCAN=".1 second") +
                      db.record("calcout", "LINK", CALC="A+1", INPA="$(P)X CP", OUT="$(P)LINKED PP") +
                      db.record("ao", "LINKED"), kind="softIocPVA", acf=acf).start()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, sink, folder):
    m = module_monitor(before=[
        'epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000', f'ebpfMonOtlp "{sink.url}" "metrics"',
        f'ebpfMonJsonLog "{folder}/puts.json" 100 0 1 all', f'ebpfMonJsonLog "{folder}/bursts.json" 100 0 1 burst',
        f'ebpfMonCaPutLog "{folder}/caput.json" json all', f'ebpfMonCaPutLog "{folder}/caputBursts.json" json burst',
        'ebpfMonLogMetadata "facility" "test 1"']).start()
    m.wait_ioc(ioc)
    return m


# --- metrics ------------------------------------------------------------------------------------------------------
def metrics(sink):
    """The newest point of each metric."""
    found = {}
    for _, body in list(sink.bodies):
        for resource in json.loads(body).get("resourceMetrics", ()):
            for metric in (m for scope in resource["scopeMetrics"] for m in scope["metrics"]):
                found[metric["name"]] = metric
    return found


@pytest.fixture(scope="module")
def named(sink, monitor, ioc):
    """The names of series and labels in Prometheus."""
    ioc.put("X", 1)
    until(lambda: {"epics.root.latency", "epics.puts", "ebpfmon.lost", "epics.ioc.cpu"} <= set(metrics(sink)), 30,
          lambda: str(set(metrics(sink))))
    found = metrics(sink).values()
    return set().union(*map(stores.prometheus_names, found)), set().union(*map(stores.label_names, found))


def recorded():
    return set(re.findall(r"record: (\S+)", RULES.read_text()))


def expressions(board, kind):
    """All queries of this dashboard to data sources of this kind."""
    asks = [t for p in board["panels"] for t in p["targets"]] + board["annotations"]["list"]
    return [t["expr"] for t in asks if t["datasource"]["type"] == kind] + \
        [v["query"] for v in board["templating"]["list"] if v.get("datasource", {}).get("type") == kind]


@pytest.mark.parametrize("file", ["ebpfMon.rules.yml", "ebpfMon.rules.test.yml", "grafana.json"])
def test_metrics_named_are_sent(named, file):
    """Every metric in alerts and dashboards is sent: an alert on a series that nobody sends never fires."""
    series, labels = named
    text = (SITE / file).read_text()
    if file == "grafana.json":
        text = "\n".join(expressions(json.loads(text), "prometheus"))
    used = stores.names_in(text)
    assert len(used) > 8 and not used - series - labels - recorded(), used - series - labels - recorded()


def test_each_alert_is_tested():
    rules, tests = RULES.read_text(), (SITE / "ebpfMon.rules.test.yml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    assert len(alerts) == len(set(alerts)) >= 10
    assert not [name for name in [*alerts, *recorded()] if name not in tests]


def test_rules_with_promtool():
    if why := stores.missing_promtool():
        pytest.skip(why)
    for args in ("check", "config", "prometheus.yml"), ("check", "rules", RULES.name), \
            ("test", "rules", "ebpfMon.rules.test.yml"):
        out = stores.promtool(*args)
        assert out.returncode == 0, out.stdout + out.stderr


def test_health_in_metrics(sink, monitor, ioc):
    """The metrics that alerts watch have the same numbers as the PVs."""
    def last(name, kind="asDouble"):
        metric = metrics(sink).get(name)
        return metric and float(metric.get("gauge", metric.get("sum"))["dataPoints"][0][kind])

    until(lambda: last("ebpfmon.state") == monitor.get("STATE") == 1, 20, lambda: str(last("ebpfmon.state")))
    assert last("epics.iocs_gone") == monitor.get("IOC_GONE_CNT") == 0
    until(lambda: last("epics.ioc.memory") and last("epics.ioc.memory") ==
          pytest.approx(monitor.list("IOC_MEM_SIZES")[0] * 1e6, rel=0.5), 20, lambda: str(last("epics.ioc.memory")))
    before = last("epics.puts_unexpected", "asInt")
    rules = monitor.tmp / "rules.json"
    rules.write_text(UNEXPECTED)
    monitor.command(f'ebpfMonRules "{rules}"')
    ioc.put("Y", 3)
    until(lambda: last("epics.puts_unexpected", "asInt") == monitor.get("PUT_BAD_CNT") == before + 1, 20,
          lambda: f"{monitor.get('PUT_BAD_CNT')}, {before}, {monitor.process.output()}")


def test_dashboard():
    """Panels do not overlap, and each uses a data source that the reader chooses."""
    board = json.loads((SITE / "grafana.json").read_text())
    names = {v["name"] for v in board["templating"]["list"]}
    panels, cells = board["panels"], set()
    assert len({p["id"] for p in panels}) == len(panels) > 10
    for p in panels:
        g = p["gridPos"]
        covers = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert not covers & cells and g["x"] + g["w"] <= 24, p["title"]
        cells |= covers
        assert p["title"] and p["description"] and p["targets"]
        for t in p["targets"]:
            assert t["expr"].count("{") == t["expr"].count("}") and t["datasource"] == p["datasource"]
            assert t["datasource"]["uid"].strip("${}") in names
            assert set(re.findall(r"\$(\w+)", t["expr"])) <= names | {"__rate_interval"}, t["expr"]


# --- logs ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def lines(monitor, ioc, folder):
    """Real lines of all kinds: several writers, types and results."""
    for record, value in (("AO", 1.5), ("AO", 2.5), ("LO", -7), ("X", float("nan")), ("X", float("inf")), ("X", 4),
                          ("BO", 1), ("B1", 1), ("B1", 2), ("B1", 3)):
        ioc.put(record, value)
    for record, value in ("STR", 'a "quoted" one'), ("STR", "42"), ("STR", "2026-11-22"), ("DISABLED", 1):
        ioc.run("caput", "-c", ioc.prefix + record, value)
    ca.raw_put(ioc, ioc.prefix + "SECRET", 3, False)
    ca.put(ioc.prefix + "WF", [1.0, 2.5, 3.0])
    ioc.run("pvput", ioc.prefix + "LO", 12)
    ioc.command(f'dbpf "{ioc.prefix}LO" "5"')

    def all_came():
        texts = {f: (folder / f).read_text() for f in ("puts.json", "caput.json")}
        return all(f'{ioc.prefix}{r}"' in texts[f] for f in texts for r in
                   ("AO", "LO", "X", "BO", "STR", "WF", "SECRET", "LINKED")) and \
            all('"burst":3' in (folder / f).read_text() for f in ("bursts.json", "caputBursts.json"))

    until(all_came, 40, lambda: (folder / "puts.json").read_text()[-3000:])
    return {"puts": _read(folder, "puts.json", "bursts.json"), "caput": _read(folder, "caput.json", "caputBursts.json")}


def _read(folder, *files):
    return [line for f in files for line in (folder / f).read_text().splitlines()]


def is_number(value):
    return type(value) in (int, float)


def is_date(value, form):
    """True if the server accepts this text as a date, in one of the formats of our templates."""
    forms = {"strict_date": "%Y-%m-%d", "HH:mm:ss.SSS": "%H:%M:%S.%f"}
    if form == "strict_date_optional_time_nanos":
        return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", value)
    return len(value) == {"strict_date": 10, "HH:mm:ss.SSS": 12}[form] and datetime.datetime.strptime(value, forms[form])


def misfit(field, value):
    """The reason why the server would refuse a value, or not find it. Empty if the value fits."""
    kind = field["type"]
    if isinstance(value, list) and kind != "nested":
        return next((m for v in value if (m := misfit(field, v))), "")
    if kind in ("keyword", "text"):
        if isinstance(value, (dict, list)):
            return "is an object"
        return "is longer than it is indexed" if len(str(value).encode()) > field.get("ignore_above", 32766) else ""
    if kind == "long":
        return "" if type(value) is int and -2**63 <= value < 2**63 else "is no integer"
    if kind == "double":
        return "" if is_number(value) or field["ignore_malformed"] else "is no number"
    if kind == "boolean":
        return "" if type(value) is bool else "is no truth value"
    if kind in ("date", "date_nanos"):
        return "" if type(value) is str and is_date(value, field["format"]) else "is no such date"
    if kind == "nested":
        return next((m for v in value for k, x in v.items()
                     if (m := misfit(field["properties"][k], x))), "")
    return f"is of an unknown type {kind}"


@pytest.mark.parametrize("log", TEMPLATES)
def test_lines_fit_the_mapping(lines, log):
    """Each key is in the mapping, and each value fits. The server would drop a line that does not fit."""
    properties = json.loads((SITE / TEMPLATES[log]).read_text())["template"]["mappings"]["properties"]
    metadata = {"facility"} if log == "caput" else set()
    seen = set()
    assert len(lines[log]) > 20
    for line in lines[log]:
        for key, value in json.loads(line).items():
            if key in metadata:
                continue
            assert key in properties and properties[key]["type"] != "alias", (key, line)
            assert not misfit(properties[key], value), (key, misfit(properties[key], value), line)
            seen.add(key)
    wanted = {"puts": {"time", "pv", "value", "old", "writers", "burst", "min", "max", "result", "link", "uid", "count"},
              "caput": {"date", "time", "pv", "new", "old", "new-size", "old-size", "burst", "min", "max", "result"}}
    assert wanted[log] <= seen, wanted[log] - seen
