# SPDX-License-Identifier: BSD-3-Clause
"""A click on a row of a table opens the page of its IOC, record or put (ebpfMonOpen.py), and rows of puts have colours
(ebpfMonColour.py). Both scripts of the displays run here with a replacement of Phoebus."""
import re
import sys
import types
import unittest.mock

from tests.harness import paths

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
        script, *others = w.findall("scripts/script")
        assert [(s.get("file"), s.findtext("pv_name")) for s in others] == [("ebpfMonColour.py", w.findtext("pv_name"))] * ("Result" in columns)
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


def colours(names, rows):
    """The colours that the script sets for this table."""
    made, colours = {}, []
    column = lambda name: types.SimpleNamespace(name=lambda: types.SimpleNamespace(getValue=lambda: name))  # noqa: E731
    widget = types.SimpleNamespace(propColumns=lambda: types.SimpleNamespace(getValue=lambda: [column(n) for n in names]),
                                   runtimeCellColors=lambda: types.SimpleNamespace(setValue=colours.append))
    for package, content in (("model.properties", {"WidgetColor": lambda *rgb: rgb}), ("runtime.script", {"PVUtil": types.SimpleNamespace(getTable=lambda p: rows)})):
        parts = f"org.csstudio.display.builder.{package}".split(".")
        made |= {".".join(parts[:i]): types.ModuleType(parts[i - 1]) for i in range(1, len(parts) + 1)}
        vars(made[".".join(parts)]).update(content)
    with unittest.mock.patch.dict(sys.modules, made):
        exec(compile((OP / "bob" / "ebpfMonColour.py").read_text(), "ebpfMonColour.py", "exec"), {"widget": widget, "pvs": ["table"]})
    return [[c and {255: {226: "MINOR", 205: "MAJOR"}}[c[0]][c[1]] for c in row] for row in colours.pop()]


def test_rows_of_puts_have_colours():
    """Orange: the put was not made as it was sent; also if the newest of many. Red: unexpected."""
    results = {"": None, "in 1.25 ms": None, "x55 since 13:33:38 from became": None, "not seen": None, "became 200": "MINOR", "denied": "MINOR",
               "fails: putFields are disabled": "MINOR", "x3 became 7 since 13:33:38 from 1": "MINOR", "lost: the IOC never made it": "MINOR"}
    found = colours(["PV", "Result", "Why unexpected"], [["A", r, ""] for r in results])
    assert found == [[c] * 3 for c in results.values()]
    assert colours(["PV", "Result", "Why unexpected"], [["A", "denied", "not in a rule"]]) == [["MAJOR"] * 3]
    assert colours(["Result"], [["event"], ["denied"]]) == [[None], ["MINOR"]] and colours(["Result"], []) == []


def test_colours_know_all_results():
    """The words in the script, in ebpfMonTop and in the model, where results are made, are the same."""
    def words(file, before, after):
        return set(re.findall(r'"(.*?)"', (paths.TOP / file).read_text().partition(before)[2].partition(after)[0]))

    shown = words("ebpfMonApp/op/bob/ebpfMonColour.py", "OTHERS =", "#")
    assert shown == words("ebpfMonTop/topTable.c", "others[] =", ";")
    made = {w.split(":")[0] for w in words("ebpfMonSup/model/put.c", "*inLine, *brief;", "};") if w and w == w.lstrip()}
    assert {w for w in made if not w.startswith(tuple(shown))} == {"not seen"}


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
