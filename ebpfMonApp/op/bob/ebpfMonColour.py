# SPDX-License-Identifier: BSD-3-Clause
"""Colours the rows of a table of puts: red, if nobody expects the put; orange, if it was not made as it was sent. Phoebus
runs this file (Jython: Python 2.7) when the table changes, with "widget" and the table as pvs[0]."""
from org.csstudio.display.builder.runtime.script import PVUtil

try:
    from org.phoebus.ui.color import WidgetColor
except ImportError:  # before Phoebus 5
    from org.csstudio.display.builder.model.properties import WidgetColor

MINOR, MAJOR = WidgetColor(255, 226, 180), WidgetColor(255, 205, 205)
OTHERS = "became", "denied", "fails", "lost", "answered OK"  # as isOther() of ebpfMonTop


def find_colour(cells):
    result = cells["Result"]
    if result.startswith("x"):  # of puts in one row: how many, then the result of the newest
        result = result.partition(" ")[2]
    return MAJOR if cells.get("Why unexpected") else MINOR if result.startswith(OTHERS) else None


columns = [column.name().getValue() for column in widget.propColumns().getValue()]
rows = [dict(zip(columns, ("%s" % cell for cell in row))) for row in PVUtil.getTable(pvs[0])]
widget.runtimeCellColors().setValue([[find_colour(row)] * len(columns) for row in rows])
