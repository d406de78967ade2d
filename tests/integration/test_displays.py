# SPDX-License-Identifier: BSD-3-Clause
"""Displays, alarm tree and list for the archive against the database: they are read by others, who say nothing of a PV
that does not exist or of an element that they do not know."""
import re
import xml.etree.ElementTree as ET

import pytest
from tests.harness import ca, db, loopback, paths

OP = paths.TOP / "ebpfMonApp" / "op"
DISPLAYS = sorted(p.name for p in (OP / "bob").glob("*.bob"))

PLACE = {"name", "x", "y", "width", "height"}
SHOWN = PLACE | {"pv_name", "font", "foreground_color", "border_alarm_sensitive"}
# Widgets: the version and of its properties those in use (Phoebus, app/display/model, .../widgets/*Widget.java).
WIDGETS = {
    "label": ("2.0.0", PLACE | {"text", "font"}),
    "textupdate": ("2.0.0", SHOWN | {"format", "wrap_words", "interactive"}),
    "textentry": ("3.0.0", SHOWN | {"format"}),
    "combo": ("2.0.0", SHOWN),
    "table": ("2.0.0", SHOWN | {"columns", "editable"}),
    "led": ("2.0.0", SHOWN | {"bit", "off_color", "on_color"}),
    "progressbar": ("2.0.0", SHOWN | {"limits_from_pv", "minimum", "maximum"}),
    "action_button": ("3.0.0", SHOWN | {"actions", "text"}),
    "xyplot": ("3.0.0", PLACE | {"show_legend", "x_axis", "y_axes", "traces"}),
}


@pytest.fixture(scope="module")
def records():
    """Name without prefix → type and text of the record."""
    text = (paths.DB / "ebpfMon.db").read_text()
    return {m[2]: (m[1], m[3]) for m in
            re.finditer(r'^record\((\w+), "\$\(P\)([^"]+)"\) \{$(.*?)^\}', text, re.S | re.M)}


@pytest.fixture(scope="module")
def tables(records):
    """Table → labels of its columns."""
    labels = {}
    for name, (_, text) in records.items():
        if name.endswith("_LABELS_"):
            const = re.search(r"field\(INP, +\{const:\[(.*?)\]\}\)", text)[1]
            labels[name.removesuffix("_LABELS_")] = re.findall(r'"([^"]+)"', const)
    return labels


@pytest.fixture(params=DISPLAYS)
def display(request):
    return request.param, ET.parse(OP / "bob" / request.param).getroot()


@pytest.fixture(scope="module")
def live(module_ioc, module_monitor):
    """A monitor that has seen an IOC process."""
    ioc = module_ioc(db.READY + db.chain("C", 3)).start()
    monitor = module_monitor().start()
    monitor.wait_ioc(ioc)
    ioc.put("C0.PROC", 1)
    monitor.wait("CHAIN_HIST", lambda chains: sum(chains) > 0)
    return monitor


def pvs(widget):
    return [e for e in widget.iter() if e.tag in ("pv_name", "x_pv", "y_pv") and e.text]


def test_its_widgets_are_such_as_phoebus_reads(display):
    _, root = display
    assert root.tag == "display" and root.get("version") == "2.0.0"
    assert {e.tag for e in root} == {"name", "macros", "width", "height", "widget"}
    assert [m.tag for m in root.find("macros")] == ["P"]
    width, height = int(root.findtext("width")), int(root.findtext("height"))
    names = [w.findtext("name") for w in root.findall("widget")]
    assert len(names) == len(set(names))
    boxes = []
    for w in root.findall("widget"):
        name = w.findtext("name")
        version, properties = WIDGETS[w.get("type")]
        assert w.get("version") == version and {e.tag for e in w} <= properties, name
        x, y, wide, high = (int(w.findtext(n)) for n in ("x", "y", "width", "height"))
        assert x + wide <= width and y + high <= height, name
        assert not [n for n, l, t, r, b in boxes if x < r and l < x + wide and y < b and t < y + high], name
        boxes.append((name, x, y, x + wide, y + high))


def test_its_pvs_exist(display, records, tables):
    _, root = display
    for w in root.findall("widget"):
        for e in pvs(w):
            match = re.fullmatch(r"(pva://)?\$\(P\)(\w+)(\.VAL\$)?", e.text)
            assert match, e.text
            table, name, long = match.groups()
            assert name in (tables if table else records), e.text
            assert bool(table) == (w.get("type") == "table"), e.text
            if not table:
                kind, text = records[name]
                assert bool(long) == (kind in ("lsi", "lso")), e.text
                chars = 'field(FTVL, "CHAR")' in text
                assert (w.findtext("format") == "6") == bool(long or chars), e.text


def test_columns_are_the_tables(display, tables):
    """Phoebus takes the headers from the table, and the widths from here: by number, not by name."""
    _, root = display
    for w in root.iterfind("widget[@type='table']"):
        columns = [c.findtext("name") for c in w.find("columns")]
        assert columns == tables[re.search(r"\)(\w+)", w.findtext("pv_name"))[1]]
        assert {c.findtext("editable") for c in w.find("columns")} == {"false"} == {w.findtext("editable")}


def test_what_is_written_may_be_written(display, records):
    """Phoebus disables a button whose own PV cannot be written, so one that opens a display has none."""
    _, root = display
    for w in root.findall("widget"):
        if w.get("type") == "action_button":
            actions = w.findall("actions/action")
            assert len(actions) == 1 and actions[0].get("type") in ("open_display", "write_pv")
            assert actions[0].findtext("pv_name") == w.findtext("pv_name"), w.findtext("name")
        if w.get("type") in ("action_button", "textentry", "combo"):
            for e in pvs(w):
                assert 'field(ASG,  "EBPFMON")' in records[re.search(r"\)(\w+)", e.text)[1]][1], e.text


def test_each_opens_the_others(display):
    me, root = display
    assert sorted(f.text for f in root.iterfind("widget/actions/action[@type='open_display']/file")) == \
        [d for d in DISPLAYS if d != me]


def test_it_gets_its_values(display, live):
    """As Phoebus asks for them: records by Channel Access, tables by PV Access."""
    from p4p.client.thread import Context
    _, root = display
    names = {e.text.replace("$(P)", live.prefix) for w in root.findall("widget") for e in pvs(w)}
    ca.get_many([n for n in names if not n.startswith("pva://")])
    with Context("pva", conf=loopback.pva_conf(live.port), nt=False, useenv=False) as context:
        for w in root.iterfind("widget[@type='table']"):
            table = context.get(w.findtext("pv_name").replace("pva://$(P)", live.prefix), timeout=10)
            assert list(table.labels) == [c.findtext("name") for c in w.find("columns")]


@pytest.mark.parametrize("name, shown", [
    ("ebpfMonPuts.bob", "PUTS PUT_BADS PUT_BAD_ACK PUT_BAD_LAST LOSSES SEARCHES PUT_RATE LOG_STATE LOG_MSG "
                        "LOG_LOST_CNT WIRE_STATE"),
    ("ebpfMonChains.bob", "PROC_TOP CHAIN_TOP CHAIN_SEL CHAIN_HIST CHAIN_HIST_EDGES CHAIN_SLOW IOCS FILTER_LEVEL "
                          "FILTER_STATUS OTLP_STATE OTLP_RATE OTLP_QUEUE OTLP_LOST_CNT OTLP_MSG"),
    ("ebpfMonHealth.bob", "IOC_HEALTH IOC_DELAYS SCANS IOC_EVENT IOC_EVENTS HANG_STACKS IOC_GONE_CNT IOC_HANG_CNT "
                          "STATE LOST_CNT COST"),
])
def test_it_shows_what_it_is_for(name, shown):
    root = ET.parse(OP / "bob" / name).getroot()
    assert set(shown.split()) <= {re.search(r"\)(\w+)", e.text)[1] for e in pvs(root)}


@pytest.mark.parametrize("name, pv", [("ebpfMonChains.bob", "CHAIN_SLOW"), ("ebpfMonHealth.bob", "HANG_STACKS")])
def test_a_tree_is_readable(name, pv):
    """In columns, its lines whole, with scroll bars."""
    w = ET.parse(OP / "bob" / name).getroot().find(f"widget[pv_name='$(P){pv}']")
    assert "Mono" in w.find("font/font").get("family")
    assert (w.findtext("wrap_words"), w.findtext("interactive")) == ("false", "true")


def test_alarm_tree(records):
    """What Phoebus' XmlModelReader reads, and nothing that it would skip."""
    root = ET.parse(OP / "alarm" / "ebpfMon.xml").getroot()
    assert root.tag == "config" and root.get("name")
    used = []
    for component in root:
        assert component.tag == "component" and component.get("name")
        for child in component:
            if child.tag in ("guidance", "display"):
                continue
            assert child.tag == "pv" and set(child.attrib) == {"name"}
            match = re.fullmatch(r"HOST:EBPF:(\w+)", child.get("name"))
            assert match, child.get("name")
            used.append(match.group(1))
            for e in child:
                assert e.tag in {"description", "enabled", "latching", "annunciating", "delay", "count", "filter",
                                 "guidance", "display"}
                if e.tag in ("enabled", "latching", "annunciating"):
                    assert e.text in ("true", "false")
                if e.tag in ("delay", "count"):
                    assert int(e.text) >= 0
            assert child.findtext("description") and child.findtext("guidance/details")
            shown = re.fullmatch(r"file:/OPI/(\w+\.bob)\?P=HOST:EBPF:", child.findtext("display/details"))
            assert shown and shown[1] in DISPLAYS, child.findtext("display/details")
            assert f"$(P){match[1]}" in (OP / "bob" / shown[1]).read_text(), f"{match[1]} is not in {shown[1]}"
    for e in [*root.iter("guidance"), *root.iter("display")]:
        assert [c.tag for c in e] == ["title", "details"] and all(c.text for c in e)
    assert len(used) == len(set(used)) and set(used) <= set(records), set(used) - set(records)
    assert {"STATE", "PUT_BAD_OPEN", "LOST_CNT", "RULES_MSG"} <= set(used)


def test_archive_list(records):
    """The PVs of the host with the tag for the archive, and of one record those of ebpfMonWatch.db."""
    lines = (paths.MONITOR_BOOT / "ebpfMon.archive").read_text().splitlines()
    listed = [l.removeprefix("HOST:EBPF:") for l in lines if not l.startswith("#")]
    assert len(listed) == len(set(listed))
    tagged = {n for n, (_, text) in records.items() if 'info(archive, "monitor")' in text}
    assert {n for n in listed if ":" not in n} == tagged
    watch = set(re.findall(r'"\$\(P\)\$\(N=\$\(REC\)\):(\w+)"', (paths.DB / "ebpfMonWatch.db").read_text()))
    assert "LAT_P99" in watch
    assert {n.removeprefix("RING:CURRENT:") for n in listed if ":" in n} == watch - {"PUT_LAST"}
