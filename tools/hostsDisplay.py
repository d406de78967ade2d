# SPDX-License-Identifier: BSD-3-Clause
"""The display of all hosts, a row each, for siteFiles.py. A click on a row opens the displays of that host.

Phoebus has no widget that repeats a row for each entry of a list, so the rows are written out."""
import xml.etree.ElementTree as ET

ROWS = 37           # of a page: it fits in Phoebus on a screen of 1280 x 1024, and nothing scrolls
TOP, LINE = 64, 22  # where the first row begins; from row to row
# Label, PV, x, width, whether it is a text. The header of a column stands where its values do.
COLUMNS = (("State", "STATE", 230, 90, True), ("IOCs", "IOC_CNT", 325, 50, False),
           ("Gone", "IOC_GONE_CNT", 380, 50, False), ("Hang", "HANG_CNT", 435, 50, False),
           ("Late", "SCAN_LATE_NOW", 490, 60, False), ("Puts/s", "PUT_RATE", 555, 70, False),
           ("Proc/s", "PROC_RATE", 630, 80, False), ("Cost %", "COST", 715, 60, False),
           ("Lost", "LOST_CNT", 780, 60, False), ("Bad", "PUT_BAD_OPEN_CNT", 845, 45, False),
           ("Worst cause", "HOST_STATUS_MSG.VAL\\$", 895, 335, True))
# The colour of a light, by the severity of its PV.
LIGHT = (("OK", 0, 255, 0), ("MINOR", 255, 128, 0), ("MAJOR", 255, 0, 0), ("INVALID", 255, 0, 255))


def add(parent, tag, text):
    ET.SubElement(parent, tag).text = str(text)


def place(widget, x, y, width, height=20):
    for tag, value in (("x", x), ("y", y), ("width", width), ("height", height)):
        add(widget, tag, value)


def new_widget(root, kind, name, version="2.0.0"):
    widget = ET.SubElement(root, "widget", type=kind, version=version)
    add(widget, "name", name)
    return widget


def add_label(root, name, text, x, y, width):
    widget = new_widget(root, "label", name)
    add(widget, "text", text)
    place(widget, x, y, width)


def add_button(root, name, text, opens, macros, tip, x, y, width):
    widget = new_widget(root, "action_button", name, "3.0.0")
    action = ET.SubElement(ET.SubElement(widget, "actions"), "action", type="open_display")
    add(action, "file", opens)
    if macros:
        inner = ET.SubElement(action, "macros")
        for key, value in macros.items():
            add(inner, key, value)
    add(action, "target", "tab")
    add(action, "description", text)
    add(widget, "text", text)
    add(widget, "tooltip", tip)
    place(widget, x, y, width)


def add_row(root, number, prefix, displays, y):
    add_button(root, f"Open{number}", prefix, f"{displays}/ebpfMon.bob", {"P": prefix},
               "Opens the displays of this host", 10, y, 195)
    light = new_widget(root, "multi_state_led", f"Host{number}")
    add(light, "pv_name", prefix + "HOST_STATUS.SEVR")
    states = ET.SubElement(light, "states")
    for value, (name, red, green, blue) in enumerate(LIGHT):
        state = ET.SubElement(states, "state")
        add(state, "value", value)
        add(state, "label", "")
        ET.SubElement(ET.SubElement(state, "color"), "color", name=name, red=str(red), green=str(green), blue=str(blue))
    add(light, "fallback_label", "")
    add(light, "tooltip", "The whole host in one light\n$(pv_name)\n$(pv_value)")
    place(light, 208, y, 18, 18)
    for label, pv, x, width, is_text in COLUMNS:
        name, _, is_long = pv.partition(".")
        widget = new_widget(root, "textupdate", f"{name}{number}")
        add(widget, "pv_name", prefix + pv)
        if is_long:
            add(widget, "format", 6)  # an array of characters is a text
        add(widget, "show_units", "false")
        if not is_text:
            add(widget, "horizontal_alignment", 2)
        add(widget, "tooltip", f"{label}\n{prefix + name if is_long else '$(pv_name)'}\n$(pv_value)")
        place(widget, x, y, width)
        add(widget, "border_alarm_sensitive", "true")


def file_of(page):
    return "hosts.bob" if page == 0 else f"hosts{page + 1}.bob"


def make_page(prefixes, page, pages, displays):
    root = ET.Element("display", version="2.0.0")
    add(root, "name", "ebpfMon hosts" + (f" {page + 1}/{pages}" if pages > 1 else ""))
    add(root, "width", 1240)
    rows = prefixes[page * ROWS:(page + 1) * ROWS]
    add(root, "height", TOP + LINE * len(rows) + 10)
    title = new_widget(root, "label", "PageTitle")
    add(title, "class", "TITLE")
    add(title, "text", f"ebpfMon: {len(prefixes)} hosts")
    font = ET.SubElement(title, "font", use_class="true")
    ET.SubElement(font, "font", name="Header 1", family="Liberation Sans", style="BOLD", size="22.0")
    place(title, 10, 6, 400, 28)
    for other in range(pages):
        if other != page:
            last = min(len(prefixes), (other + 1) * ROWS)
            add_button(root, f"Page{other + 1}", f"{other * ROWS + 1}-{last}", file_of(other), {}, "Other hosts",
                       420 + 70 * other, 8, 65)
    add_label(root, "HostLabel", "Host", 10, 40, 195)
    for label, pv, x, width, _ in COLUMNS:
        add_label(root, f"{pv.partition('.')[0]}Label", label, x, 40, width)
    for i, prefix in enumerate(rows):
        add_row(root, i + 1, prefix, displays, TOP + LINE * i)
    return root


def make_pages(prefixes, displays):
    """File name → display. The displays of one host are in the folder "displays"."""
    pages = (len(prefixes) + ROWS - 1) // ROWS
    return {file_of(page): make_page(prefixes, page, pages, displays) for page in range(pages)}
