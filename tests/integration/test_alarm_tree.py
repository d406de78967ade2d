# SPDX-License-Identifier: BSD-3-Clause
"""The alarm tree has PVs of the database and displays that exist, and none is forgotten."""
import re
import xml.etree.ElementTree as ET

from tests.harness import paths

from .test_displays import DISPLAYS, OP, records, shown  # noqa: F401  a fixture, too


def test_alarm_tree(records):  # noqa: F811
    """The alarm tree has only elements that XmlModelReader of Phoebus reads."""
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
            opened = re.fullmatch(r"file:/OPI/(\w+\.bob)\?P=HOST:EBPF:", child.findtext("display/details"))
            assert opened and opened[1] in DISPLAYS, child.findtext("display/details")
            assert match[1] in shown(opened[1]), f"{match[1]} is not in {opened[1]}"
    for e in [*root.iter("guidance"), *root.iter("display")]:
        assert [c.tag for c in e] == ["title", "details"] and all(c.text for c in e)
    assert len(used) == len(set(used)) and set(used) <= set(records), set(used) - set(records)
    assert {"STATE", "PUT_BAD_ALARM", "LOST_CNT", "RULES_MSG"} <= set(used)
    latching = {pv.get("name").removeprefix("HOST:EBPF:") for pv in root.iter("pv") if pv.findtext("latching") == "true"}
    # PUT_BAD_ALARM is a pulse of a second. Without a latch the alarm server would forget it.
    assert latching == {"PUT_BAD_ALARM"}
    assert "PUT_BAD_LAST" in used  # PUT_BAD_ALARM stays at Disconnected after a restart of the monitor, and hides the next put


# Alarms that are not for operators: CPU and memory of the monitor; loads of queues, because the loss that they lead to
# has an alarm of its own; the filter, because its alarm is only an answer to the user who wrote it; and lost events of
# asyn ports, because somebody who watches ports reads the result of this command.
NOT_IN_TREE = {"CPU", "MEM", "LOG_QUEUE_LOAD", "OTLP_QUEUE_LOAD", "FILTER", "DEVICE_LOST_CNT"}


def test_alarm_tree_is_whole(records):  # noqa: F811
    """Each PV that can go into alarm is in the alarm tree, except the PVs in NOT_IN_TREE."""
    can = {n for n, (_, text) in records.items() if ":" not in n and
           re.search(r"field\(\w*SV, *\"(?:\$\(\w+=)?(MINOR|MAJOR|INVALID)", text)}
    tree = (OP / "alarm" / "ebpfMon.xml").read_text()
    assert can - set(re.findall(r'<pv name="HOST:EBPF:(\w+)">', tree)) == NOT_IN_TREE
