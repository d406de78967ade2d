# SPDX-License-Identifier: BSD-3-Clause
"""Opens the page of the row that somebody clicked. Phoebus runs this file (Jython: Python 2.7), with "widget" and "pvs".

A table writes the selected rows to pvs[0]. The button of a row has no pvs; the name of its IOC is in the widget Name."""
from org.csstudio.display.builder.runtime.script import PVUtil, ScriptUtil

IOC = "ebpfMonIoc.bob", ["IOC"]
RECORD = "ebpfMonRecord.bob", ["REC"]
PUT = "ebpfMonPut.bob"
# Table -> page, and the macro of each cell of a row.
PAGES = {
    "IocsTable": IOC, "IocHealthTable": IOC, "IocDelaysTable": IOC, "ScansTable": IOC,
    "ProcTopTable": RECORD, "ChainTopTable": RECORD, "AsyncTopTable": RECORD, "SubscriptionsTable": RECORD,
    "ClientsTable": ("ebpfMonIoc.bob", [None, "IOC"]),
    "PutsTable": (PUT, ["TIME", "PV", "NEW", "OLD", "WRITER", "IOC", "RESULT", "WHY"]),
    "AutoPutsTable": (PUT, ["TIME", "PV", "NEW", "OLD", "WRITER", "ORIGIN", "IOC", "RESULT", "WHY"]),
    "HistoryTable": (PUT, ["TIME", "PV", "NEW", "OLD", "WRITER", "IOC", "RESULT"]),
    "BadPutsTable": (PUT, ["TIME", "PV", "NEW", "WRITER", "WHY"]),
}


def find_macros(names, row):
    macros = dict((name, "%s" % cell) for name, cell in zip(names, row) if name)
    if "PV" in macros:
        macros["REC"] = macros["PV"].split(".")[0]
        for name in ("OLD", "ORIGIN", "IOC", "RESULT", "WHY"):
            macros.setdefault(name, "")
    if "REC" in macros:
        macros["REC"] = macros["REC"].split("@")[0].split(".")[0]  # RECORD@IOC: two IOCs have it
    return macros


def open_page(page, names, row):
    macros = find_macros(names, row)
    macros["P"] = widget.getEffectiveMacros().getValue("P")
    ScriptUtil.openDisplay(widget, page, "TAB", macros)


if len(pvs):
    rows = PVUtil.getTable(pvs[0])
    if len(rows):
        open_page(PAGES[widget.getName()][0], PAGES[widget.getName()][1], rows[0])
else:
    name = PVUtil.getString(ScriptUtil.getPrimaryPV(ScriptUtil.findWidgetByName(widget, "Name")))
    open_page(IOC[0], IOC[1], [name])
