# SPDX-License-Identifier: BSD-3-Clause
"""A click on a row of a table opens the page of its IOC, record or put. The script of the displays does that (ebpfMonOpen.py); here it
runs with a replacement of Phoebus."""
import sys
import types
import unittest.mock

from .test_displays import OF_ONE, OP, PUT, display, parse  # noqa: F401  a fixture, too


class Macros(dict):
    getValue = dict.get


class Clicked:
    """Replaces a widget of Phoebus for a script (Widget, ScriptUtil, PVUtil), and records the display that the script
    opens."""

    def __init__(self, name, rows=None, ioc=None):
        self._name, self.opened, util, pv = name, [], types.ModuleType("script"), object()
        util.ScriptUtil = types.SimpleNamespace(openDisplay=lambda *a: self.opened.append(a), findWidgetByName=lambda w, n: n,
                                                getPrimaryPV=lambda w: w)
        util.PVUtil = types.SimpleNamespace(getTable=lambda p: rows, getString={"Name": ioc}.get)
        packages = "org.csstudio.display.builder.runtime.script".split(".")
        known = {".".join(packages[:i]): types.ModuleType(packages[i - 1]) for i in range(1, len(packages))}
        script = (OP / "bob" / "ebpfMonOpen.py").read_text()
        with unittest.mock.patch.dict(sys.modules, {**known, ".".join(packages): util}):
            exec(compile(script, "ebpfMonOpen.py", "exec"), {"widget": self, "pvs": [pv] if rows is not None else []})

    def getName(self):
        return self._name

    def getEffectiveMacros(self):
        return Macros(P="far:EBPF:")


def test_each_row_opens_a_page(display):
    """Each table of IOCs, records or puts writes its selected row to a local PV of this display, and has the script.
    The script opens the right display, with macros from the right columns."""
    meaning = {"IOC": "IOC", "Record": "REC", "Root record": "REC", "Asynchronous record": "REC", "Time": "TIME", "PV": "PV", "New value": "NEW",
               "Old value": "OLD", "Writer": "WRITER", "Link and cause": "ORIGIN", "Result": "RESULT", "Why unexpected": "WHY"}
    for w in display[1].iterfind("widget[@type='table']"):
        columns = [c.findtext("name") for c in w.find("columns")]
        if columns[0] in ("Name never found", "Client that searches", "Reason"):
            continue
        name = w.findtext("name")
        local = f"loc://$(DID)_{name}<VTable>"
        assert w.findtext("selection_pv") == local and w.findtext("row_selection_mode") == "true", name
        script, = w.findall("scripts/script")
        assert script.get("file") == "ebpfMonOpen.py" and script.findtext("pv_name") == local
        assert not Clicked(name, []).opened  # the state before the first click
        (_, file, target, macros), = Clicked(name, [[f"{c} of the row" for c in columns]]).opened
        assert file in OF_ONE and target == "TAB" and macros["P"] == "far:EBPF:"
        wanted = {meaning[c]: f"{c} of the row" for c in columns if c in meaning}
        if file == "ebpfMonIoc.bob":
            wanted = {"IOC": wanted["IOC"]}
        elif file == "ebpfMonRecord.bob":
            wanted = {"REC": wanted.get("REC") or wanted["PV"]}
        else:
            wanted = {n: wanted.get(n, "") for n in PUT} | {"REC": wanted["PV"]}
        assert macros == wanted | {"P": "far:EBPF:"}, name


def test_rows_of_fields_and_of_two_iocs_open_the_record():
    (_, _, _, macros), = Clicked("PutsTable", [["", "A:B.HIGH", "1", "0", "", "ioc", ""]]).opened
    assert (macros["PV"], macros["REC"]) == ("A:B.HIGH", "A:B")
    (_, file, _, macros), = Clicked("ChainTopTable", [["A:B@ioc1", 1]]).opened
    assert file == "ebpfMonRecord.bob" and macros["REC"] == "A:B"
    (_, file, _, macros), = Clicked("SubscriptionsTable", [["A:B.HIGH", "ok"]]).opened
    assert file == "ebpfMonRecord.bob" and macros["REC"] == "A:B"


def test_the_button_of_a_row_opens_its_ioc():
    w = parse("_ebpfMonIocRow.bob").find("widget[@type='action_button']")
    assert w.find("actions/action/script").get("file") == "ebpfMonOpen.py"
    (_, file, _, macros), = Clicked("Open", ioc="vac1").opened
    assert file == "ebpfMonIoc.bob" and macros == {"IOC": "vac1", "P": "far:EBPF:"}
