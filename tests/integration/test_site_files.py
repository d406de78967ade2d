# SPDX-License-Identifier: BSD-3-Clause
"""Files that a site imports: for archivers and the alarm server, made by one command; the request file of autosave.
Most of their readers do not complain about a PV that does not exist. The Archiver Appliance refuses all names because
of one bad name."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from tests.harness import bob, ca, db, paths
from tests.harness.ioc import OURS

from .test_displays import HIGH, WIDE, WIDGETS

SCRIPT = paths.TOP / "tools" / "siteFiles.py"
# PVNames.java of the Archiver Appliance; of its releases, the one that allows the fewest names
TAKEN = re.compile(r"[a-zA-Z0-9\_\-\+\:\[\]\<\>\;\.\/\,\#\{\}]+")


def make(folder, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "-o", folder, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.chain("C", 2, SCAN=".5 second")).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(watch=[ioc.prefix + "C0"], iocs=OURS).start()
    m.wait_ioc(ioc)
    return m


@pytest.fixture(scope="module")
def folder(tmp_path_factory, monitor, ioc):
    """The files for two hosts: one with the running monitor, one without a monitor."""
    made = tmp_path_factory.mktemp("site")
    out = make(made, "-d", paths.TOP / "ebpfMonApp/op/bob/", "-r", ioc.prefix + "C0", monitor.prefix, "far:EBPF:")
    assert out.returncode == 0, out.stderr
    assert sorted(out.stdout.split()) == sorted(map(str, made.iterdir()))
    return made


@pytest.fixture(scope="module")
def requests(folder):
    return json.loads((folder / "archiver.json").read_text())


def test_archiver_takes_all_names(requests, folder):
    assert len(requests) > 100
    assert {(r["samplingmethod"], r["samplingperiod"]) for r in requests} == {("MONITOR", "1")}
    names = [r["pv"] for r in requests]
    assert len(set(names)) == len(names) and all(TAKEN.fullmatch(n) for n in names)
    assert names == (folder / "names.txt").read_text().split()
    half = len(names) // 2
    assert len([n for n in names if n.startswith("far:EBPF:")]) == half


def test_what_is_archived_exists_and_is_one_number(requests, monitor, ioc):
    names = [r["pv"] for r in requests if r["pv"].startswith(monitor.prefix)]
    assert f"{monitor.prefix}{ioc.prefix}C0:LAT_P99" in names and monitor.prefix + "AUTO_PUT_CNT" in names
    values = ca.get_many(names)
    assert len(values) == len(names) and all(ca.pv(n).count == 1 for n in names)


def test_policy_reads_the_tags(requests, folder):
    policy = {}
    exec((folder / "policies.py").read_text(), policy)
    for r in requests:
        got = policy["determinePolicy"]({"pvName": r["pv"], "eventRate": 1.0})
        assert (got["policyName"], got["samplingMethod"], got["samplingPeriod"]) == ("ebpfMon", "MONITOR", 1.0)
        assert [s.split("name=")[1][:3] for s in got["dataStores"]] == ["STS", "MTS", "LTS"]
        assert got["policyName"] in policy["getPolicyList"]()
    assert policy["determinePolicy"]({"pvName": "other"})["policyName"] == "Default"
    assert policy["ebpfMonPolicy"]({"pvName": "other"}) is None


def test_engine_configuration(requests, folder, monitor):
    """The file has only elements that XMLConfig of the archive engine reads."""
    root = ET.parse(folder / "engine.xml").getroot()
    assert root.tag == "engineconfig" and [g.findtext("name") for g in root] == [monitor.prefix, "far:EBPF:"]
    channels = root.findall("group/channel")
    assert [c.findtext("name") for c in channels] == [r["pv"] for r in requests]
    assert {tuple(e.tag for e in c) for c in channels} == {("name", "period", "monitor")}
    # a text of one character is an empty one for the engine (Phoebus' SecondsParser)
    assert {c.findtext("period") for c in channels} == {"1.0"}


def test_alarm_tree_of_two_hosts(folder, monitor):
    text = (folder / "alarm.xml").read_text()
    assert "HOST:EBPF:" not in text and "/OPI/" not in text
    root = ET.fromstring(text)
    assert [c.get("name") for c in root] == [monitor.prefix, "far:EBPF:"]
    ca.get_many([pv.get("name") for pv in root[0].iter("pv")])
    for details in root.iterfind(".//display/details"):
        file, prefix = re.fullmatch(r"file:(/.+\.bob)\?P=(.+)", details.text).groups()
        assert paths.Path(file).exists() and prefix in (monitor.prefix, "far:EBPF:")


def check_page(page):
    """The display has only widgets and properties that Phoebus knows. No widget covers another, and nothing scrolls."""
    width, height = int(page.findtext("width")), int(page.findtext("height"))
    assert page.get("version") == "2.0.0" and width < WIDE and height <= HIGH
    boxes, names = [], set()
    for w in page.findall("widget"):
        name = w.findtext("name")
        version, properties = WIDGETS[w.get("type")]
        assert w.get("version") == version and {e.tag for e in w} <= properties and name not in names, name
        x, y, wide, high = (int(w.findtext(n)) for n in ("x", "y", "width", "height"))
        assert x + wide <= width and y + high <= height, name
        assert not [n for n, l, t, r, b in boxes if x < r and l < x + wide and y < b and t < y + high], name
        boxes.append((name, x, y, x + wide, y + high))
        names.add(name)


def test_display_of_two_hosts(folder, monitor):
    """The PVs of the host with the running monitor exist. A click on its row opens its displays."""
    check_page(ET.parse(folder / "hosts.bob").getroot())
    opened = bob.open_display(folder, "hosts.bob", {})
    half = len(opened.pvs) // 2
    assert half == 12 and {p.startswith("far:EBPF:") for p in opened.pvs[half:]} == {True}
    ca.get_many(opened.pvs[:half])
    assert {monitor.prefix + "HOST_STATUS.SEVR", monitor.prefix + "HOST_STATUS_MSG.VAL$"} <= set(opened.pvs)
    assert [macros for _, macros in opened.opens] == [{"P": monitor.prefix}, {"P": "far:EBPF:"}]
    for file, macros in opened.opens:
        pvs = bob.open_display(paths.Path(file).parent, paths.Path(file).name, macros).pvs
        assert pvs and all(p.removeprefix("pva://").startswith(macros["P"]) for p in pvs)


def test_fifty_hosts_from_a_list(tmp_path):
    """Each host is on one of two pages, and each page can open the other."""
    (tmp_path / "list").write_text("# all\n\n" + "".join(f"h{i}:EBPF:  # crate {i}\n" for i in range(50)))
    out = make(tmp_path / "out", "-l", tmp_path / "list", "h7:EBPF:", "first:EBPF:")
    assert out.returncode == 0, out.stderr
    seen, others = [], []
    for file in "hosts.bob", "hosts2.bob":
        check_page(ET.parse(tmp_path / "out" / file).getroot())
        opens = bob.open_display(tmp_path / "out", file, {}).opens
        others += [f for f, macros in opens if not macros]
        seen += [macros["P"] for _, macros in opens if macros]
    assert others == ["hosts2.bob", "hosts.bob"]
    assert seen == ["h7:EBPF:", "first:EBPF:"] + [f"h{i}:EBPF:" for i in range(50) if i != 7]
    assert [c.get("name") for c in ET.parse(tmp_path / "out" / "alarm.xml").getroot()] == seen


def channels(*names):
    """An answer of ChannelFinder to a query for channels."""
    return json.dumps([{"name": n, "owner": "admin", "properties": [
        {"name": "hostName", "owner": "admin", "value": "x"}, {"name": "pvStatus", "owner": "admin", "value": status}],
        "tags": []} for n, status in names])


def test_hosts_from_channel_finder(tmp_path):
    """A host without a running monitor is also in the display, which shows that it does not run."""
    text = channels(("b:EBPF:PUT_BAD_ALARM", "Inactive"), ("a:EBPF:PUT_BAD_ALARM", "Active"), ("a:EBPF:STATE", "Active"))
    out = subprocess.run([sys.executable, SCRIPT, "-o", tmp_path, "-c", "-"], input=text, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    opens = bob.open_display(tmp_path, "hosts.bob", {}).opens
    assert [macros["P"] for _, macros in opens] == ["a:EBPF:", "b:EBPF:"]


@pytest.mark.parametrize("text, why", [("<html>", "no channels of Channel Finder"), ('{"a": 1}', "no channels of"),
                                       (channels(("a:STATE", "Active")), "there is no monitor")])
def test_answers_without_monitors_are_refused(tmp_path, text, why):
    (tmp_path / "answer.json").write_text(text)
    out = make(tmp_path / "none", "-c", tmp_path / "answer.json")
    assert out.returncode and why in out.stderr and not (tmp_path / "none").exists()


@pytest.mark.parametrize("prefix", ["bad name:", "host$:EBPF:", "h" * 60 + ":"])
def test_a_name_that_an_archiver_refuses_is_refused(tmp_path, prefix):
    out = make(tmp_path / "none", prefix)
    assert out.returncode and prefix in out.stderr and not (tmp_path / "none").exists()


def test_request_file_of_autosave(monitor):
    """The file has all PVs that operators set and that have an autosave tag, long strings with $. Each line is one
    field."""
    lines = (paths.MONITOR_BOOT / "ebpfMon.req").read_text().splitlines()
    names = [l.replace("$(P)", monitor.prefix) for l in lines if not l.startswith("#")]
    text = "".join((paths.DB / db).read_text() for db in ("ebpfMon.db", *paths.MODULE_DBS))
    tagged = set()
    for m in re.finditer(r'^record\(\w+, "\$\(P\)([^"]+)"\) \{$(.*?)^\}', text, re.S | re.M):
        for fields in re.findall(r'info\(autosaveFields(?:_pass0)?, "([^"]+)"\)', m[2]):
            tagged |= {monitor.prefix + (m[1] if fields == "VAL" else f"{m[1]}.{fields}")}
    assert set(names) == tagged and len(names) == len(tagged)
    ca.get_many(names)
