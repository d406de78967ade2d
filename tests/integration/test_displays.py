# SPDX-License-Identifier: BSD-3-Clause
"""Compares the displays with the database, and checks the displays that links of alarms open. Phoebus does not complain
about a PV that does not exist, or about an unknown element. The alarm tree itself: test_alarm_tree.py."""
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from tests.harness import bob, ca, db, loopback, paths
from tests.harness.wait import until

OP = paths.TOP / "ebpfMonApp" / "op"
QUERY = "ebpfMonQuery.bob"  # display of one query: it has one more macro, and no other display opens it
FILES = sorted(p.name for p in (OP / "bob").glob("*.bob") if p.name != QUERY)
EMBEDDED = [f for f in FILES if f.startswith("_")]  # parts of other displays
DISPLAYS = [f for f in FILES if f not in EMBEDDED]
# Displays of one record, IOC or put: their macros and the default values.
PUT = {"TIME": "", "PV": "RING:CURRENT", "REC": "RING:CURRENT", "NEW": "", "OLD": "", "WRITER": "", "ORIGIN": "", "IOC": "ioc", "RESULT": "", "WHY": ""}
OF_ONE = {"ebpfMonRecord.bob": {"REC": "RING:CURRENT"}, "ebpfMonIoc.bob": {"IOC": "ioc"}, "ebpfMonPut.bob": PUT}
MAIN = [f for f in DISPLAYS if f not in OF_ONE]

PLACE = {"name", "x", "y", "width", "height"}
SHOWN = PLACE | {"pv_name", "font", "foreground_color", "border_alarm_sensitive", "tooltip"}
WIDE, HIGH = 1280, 900  # of 1,024 pixels, as menu, tabs and tool bar of Phoebus take about 100; a wider screen: "Zoom to fit"
# Widgets: version, and the properties that we use (Phoebus, app/display/model, .../widgets/*Widget.java).
WIDGETS = {
    "image": ("2.0.0", SHOWN | {"color_map", "color_bar", "x_axis", "y_axis", "data_width", "data_height", "interpolation",
                                "autoscale", "log_scale", "minimum", "maximum"}),
    "label": ("2.0.0", PLACE | {"text", "font", "class"}),
    "rectangle": ("2.0.0", PLACE | {"line_width", "line_color", "background_color", "corner_width", "corner_height"}),
    "textupdate": ("2.0.0", SHOWN | {"format", "precision", "wrap_words", "interactive", "show_units", "horizontal_alignment", "vertical_alignment",
                                     "rules"}),
    "textentry": ("3.0.0", SHOWN | {"format"}),
    "combo": ("2.0.0", SHOWN),
    "table": ("2.0.0", SHOWN | {"columns", "editable", "row_selection_mode", "selection_pv", "scripts"}),
    "multi_state_led": ("2.0.0", SHOWN | {"states", "fallback_label"}),
    "progressbar": ("2.0.0", SHOWN | {"limits_from_pv", "minimum", "maximum"}),
    "action_button": ("3.0.0", SHOWN | {"actions", "text"}),
    "embedded": ("2.0.0", PLACE | {"macros", "file", "resize", "rules"}),
    "stripchart": ("2.1.0", PLACE | {"title", "show_toolbar", "show_legend", "start", "y_axes", "traces"}),
    "xyplot": ("3.0.0", PLACE | {"show_legend", "x_axis", "y_axes", "traces", "marker"}),
}


@pytest.fixture(scope="module")
def records():
    """Name without prefix → type and text of the record. In names of PVs of one record or IOC, the macro has its
    default."""
    text = "".join((paths.DB / f).read_text() for f in ("ebpfMon.db", *paths.MODULE_DBS, "ebpfMonWatch.db", "ebpfMonIoc.db"))
    for macros in OF_ONE.values():
        for macro, value in macros.items():
            text = text.replace(f"$(N=$({macro}))", value)
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


def parse(name):
    return ET.parse(OP / "bob" / name).getroot()


@pytest.fixture(params=FILES)
def display(request):
    return request.param, parse(request.param)


@pytest.fixture(scope="module")
def live(module_ioc, module_monitor):
    """A monitor that watches an IOC with processing records."""
    ioc = module_ioc(db.READY + db.chain("C", 3)).start()
    load = f'dbLoadRecords("{paths.DB / "ebpfMonIoc.db"}", "P=$(EBPFMON_P),IOC={ioc.name}")'
    monitor = module_monitor(watch=[ioc.prefix + "C0"], before=[load]).start()
    monitor.macros = {"P": monitor.prefix, "REC": ioc.prefix + "C0", "IOC": ioc.name}
    monitor.wait_ioc(ioc)
    ioc.put("C0.PROC", 1)
    monitor.wait("CHAIN_HIST", lambda chains: sum(chains) > 0)
    return monitor


def pvs(widget):
    return [e for e in widget.iter() if e.tag in ("pv_name", "x_pv", "y_pv") and e.text]


def shown(name):
    """Names of the PVs in the display, without prefix."""
    return {re.match(r"(pva://)?P:([\w:]+)", n)[2] for n in bob.open_display(OP / "bob", name, {"P": "P:"}).pvs}


def test_widgets_are_valid_for_phoebus(display):
    check_widgets(*display, ["P", *OF_ONE.get(display[0], ())])


def check_widgets(me, root, macros):
    assert root.tag == "display" and root.get("version") == "2.0.0"
    own = set() if me in EMBEDDED else {"macros"}  # an embedded file gets its macros from the display
    assert {e.tag for e in root} == {"name", "width", "height", "widget"} | own
    if own:
        assert [m.tag for m in root.find("macros")] == macros
    width, height = int(root.findtext("width")), int(root.findtext("height"))
    assert width < WIDE and height <= HIGH, "nothing scrolls"
    names = [w.findtext("name") for w in root.findall("widget")]
    assert len(names) == len(set(names))
    boxes = []
    for w in root.findall("widget"):
        name = w.findtext("name")
        version, properties = WIDGETS[w.get("type")]
        assert w.get("version") == version and {e.tag for e in w} <= properties, name
        x, y, wide, high = (int(w.findtext(n)) for n in ("x", "y", "width", "height"))
        assert x + wide <= width and y + high <= height, name
        assert name == "Background" or not [n for n, l, t, r, b in boxes if x < r and l < x + wide and y < b and t < y + high], name
        if name == "Background":
            continue
        boxes.append((name, x, y, x + wide, y + high))


def test_embedded_files_exist_and_fit(display):
    """Phoebus shows an error instead of a file that it does not find, and cuts a file that is too large."""
    _, root = display
    for w in root.iterfind("widget[@type='embedded']"):
        parts = [parse(name) for name in bob.files(w)]
        name = w.findtext("file")
        assert set(bob.files(w)) <= set(EMBEDDED)
        for part in parts:
            assert [w.findtext(n) for n in ("width", "height")] == [part.findtext(n) for n in ("width", "height")], name
        part = parts[-1]
        used = {m for e in part.iter() for m in re.findall(r"\$\((\w+)\)", e.text or "")} - {"pv_name", "pv_value", "DID"}
        given = {m.tag: m.text for m in w.find("macros")}
        if any("$(P)" in text for macro, text in given.items() if macro != "P"):  # Phoebus calls P=$(P) recursive then; it inherits P
            assert set(given) == used - {"P"}, name
        else:
            assert set(given) == used and given["P"] == "$(P)", name


def test_all_have_the_same_header():
    for name in DISPLAYS:
        header = parse(name).findall("widget")[0]
        assert header.findtext("file") == "_ebpfMonHeader.bob", name
        assert header.findtext("x") == header.findtext("y") == "0", name
    assert EMBEDDED == ["_ebpfMonHeader.bob", "_ebpfMonIocRow.bob", "_ebpfMonRecordUnwatched.bob", "_ebpfMonRecordWatched.bob", "_ebpfMonTile.bob"]


def test_each_says_where_one_is():
    for name in DISPLAYS:
        title = parse(name).find("widget[name='PageTitle']")
        assert title.findtext("text") and title.find("font/font").get("name") == "Header 1", name


def test_classes_are_those_of_phoebus(display):
    """Phoebus warns about a class that is not in its class file, and its class TITLE moves a label to 0, 0
    (app/display/model, examples/classes.bcf). Names and sizes of fonts are those of Phoebus' font.def. A site may have
    files of its own."""
    _, root = display
    sizes = {"Default Bold": "14.0", "Comment": "14.0", "Header 1": "22.0", "Header 3": "16.0"}
    for w in root.findall("widget"):
        assert w.findtext("class") in (None, "SECTION", "COMMENT"), w.findtext("name")
        for font in w.iter("font"):
            assert font.get("name") is None or sizes[font.get("name")] == font.get("size"), w.findtext("name")


def test_dollar_signs_are_escaped(display):
    """Phoebus warns about each "$" that is neither escaped nor a macro."""
    for e in display[1].iter("pv_name"):
        assert not re.search(r"(?<!\\)\$(?!\()", e.text or ""), e.text


# PVs with tooltips that tell more than the record's description.
TIPS = {"PROC_HEAT", "CHAIN_HEAT", "CHAIN_TIMED"}
TIP_LENGTH = 200  # Phoebus cuts longer tooltips (app/display/representation, tooltip_length)


def test_tooltips_are_descriptions(records):
    """A tooltip is the description, the name of the PV and its value. For a long string it has the name of the record,
    because Phoebus would take the $ at the end of the PV name as the begin of a macro."""
    checked = 0
    for name in DISPLAYS:
        for w, macros in bob.widgets(OP / "bob", name, {"P": "", **OF_ONE.get(name, {})}):
            raw = w.findtext("pv_name")
            if not raw or w.findtext("name") in ("Light", "Note") or \
                    w.get("type") not in ("textupdate", "textentry", "combo", "multi_state_led", "progressbar", "image"):
                continue
            about, shown, value = w.findtext("tooltip").split("\n")
            assert (shown, value) == (raw[:-len(r".VAL\$")] if raw.endswith("$") else "$(pv_name)", "$(pv_value)"), raw
            assert len(bob.expand(about, macros)) < TIP_LENGTH / 2, about
            pv = bob.expand(raw, macros).removesuffix(".VAL$")
            if pv in records and pv not in TIPS and about != "$(TIP)":
                assert about == re.search(r'field\(DESC, +"([^"]*)"\)', records[pv][1])[1], pv
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("name", DISPLAYS)
def test_pvs_exist(name, records, tables):
    for w, macros in bob.widgets(OP / "bob", name, {"P": "P:"}):
        for text in bob.pvs(w, macros):
            match = re.fullmatch(r"(pva://)?P:([\w:]+)(?:(\.VAL\$)|\.SEVR)?", text)  # also each PV of a formula
            assert match, text
            table, pv, long = match.groups()
            assert pv in (tables if table and pv not in records else records), text
            if text != "pva://P:WATCH_NAMES":  # 40 kB, more than CA sends to a Java client by default (EPICS_CA_MAX_ARRAY_BYTES)
                assert bool(table) == (w.get("type") == "table"), text
            if not table:
                kind, fields = records[pv]
                assert bool(long) == (kind in ("lsi", "lso")), text
                chars = 'field(FTVL, "CHAR")' in fields
                ruling = w.findtext("rules/rule/pv_name") == f"$(P){pv}"
                assert ruling or (w.findtext("format") == "6") == bool(long or chars), text


def test_columns_fit_the_tables(display, tables):
    """Phoebus takes the column headers from the table and the widths from the display. It matches them by number, not
    by name."""
    _, root = display
    for w in root.iterfind("widget[@type='table']"):
        columns = [c.findtext("name") for c in w.find("columns")]
        assert columns == tables[re.search(r"\)(\w+)", w.findtext("pv_name"))[1]]
        assert {c.findtext("editable") for c in w.find("columns")} == {"false"} == {w.findtext("editable")}


# Widths of bold letters in thousandths of their height: those of Liberation Sans are those of Helvetica.
LETTERS = {**dict.fromkeys("ijl .,I", 278), **dict.fromkeys("ft:", 333), "r": 389, **dict.fromkeys("aceksvxy0123456789J", 556),
           "w": 778, "m": 889, "%": 889, **dict.fromkeys("ESPVXY", 667), **dict.fromkeys("ABCDHKNRU", 722),
           **dict.fromkeys("GOQ", 778), "M": 833, "W": 944}


def header_width(text):
    """Pixels that JavaFX needs for the header of a column, with its margin. A wider header ends in "..."."""
    return 12 + sum(LETTERS.get(c, 611) for c in text) * 12 / 1000


def test_labels_are_not_cut(display):
    """Also where the site has another font than Liberation Sans: some are a tenth wider."""
    cut = []
    for w in display[1].iter("widget"):
        text = w.findtext("text") or ""
        if w.get("type") in ("label", "action_button") and "$(" not in text:
            size = float(w.find("font/font").get("size")) if w.find("font/font") is not None else 14
            bold = w.find("font/font") is not None and "BOLD" in w.find("font/font").get("style")
            needs = sum(LETTERS.get(c, 611) for c in text) * size / 1000 * (1.1 if bold else 1.02)
            if needs > int(w.findtext("width")) - (8 if w.get("type") == "action_button" else 0):
                cut.append((w.findtext("name"), text, round(needs), w.findtext("width")))
    assert not cut


# As long as such a line gets at a site, and a bit longer.
PUT_LINE = ("2026-11-29 16:53:31.855156 SR12C-VA{GaugeController:COLDCATH-07}P-SP.HIHI 1.4507129841e-07 -> 1.3999999871e-07 by operator07@"
            "control-room-console4 python3 night_shift_ramp.py[1048576] (CA 192.168.104.217:44294 uid operator07) [denied]")
LONG = {"PUT_LAST": PUT_LINE, "PUT_BAD_LAST": PUT_LINE,
        "PUT_BAD_REASON": 'rule "interlock limits": 1.3999999871e-07 is not 1e-07 or less',
        "AUTO_PUT_LAST": "2026-11-29 16:54:22.591502 SR12C-VA{GaugeController:COLDCATH-07}P-SP.PROC 1 -> 1 by thread cbMedium (link SR12C-VA{GaugeContr"
                         "oller:COLDCATH-07}Seq-Calc.LNK2, chain of SR12C-VA{GaugeController:COLDCATH-07}Seq-Trig, scan 2 second)",
        "IOC_EVENT_LAST": "2026-11-29 16:54:14.227 IOC sr12c-vacuum-gauges (pid 1048576): thread scan-0.1 (tid 1048599) in record SR12C-VA{GaugeController"
                          ":COLDCATH-07}P-Raw hangs since 7 s",
        "HOST_STATUS_MSG": "4 causes: IOC sr12c-vacuum-gauges gone since 13:41 (signal 11, core dump); IOC sr12c-motion-04 stands still: stopped by "
                           "a signal; unexpected put to SR12C-VA{Gauge:COLDCATH-07}P-SP (and 1 more); history: not written: database or disk is full"}


def test_long_texts_are_whole(display):
    """In a widget of two lines Phoebus wraps a text between its words."""
    checked = 0
    for w in display[1].iter("widget"):
        name = re.fullmatch(r"\$\(P\)(?:\$\(REC\):)?(\w+)\.VAL\\\$", w.findtext("pv_name") or "")
        if name and name[1] in LONG:
            width, height = int(w.findtext("width")) - 6, int(w.findtext("height"))
            assert len(bob.wrap(LONG[name[1]], 14, width)) <= max(1, height // 18), name[1]
            checked += 1
    assert checked or display[0] not in ("_ebpfMonHeader.bob", "ebpfMon.bob", "ebpfMonPuts.bob", "ebpfMonHealth.bob", "_ebpfMonRecordWatched.bob")


def test_tables_do_not_scroll_sideways(display):
    """The columns fit into the table, beside its own scroll bar. 80 is the width of a column whose width was not set: JavaFX makes
    such a column as wide as its cells need."""
    _, root = display
    for w in root.iterfind(".//widget[@type='table']"):
        widths = {c.findtext("name"): int(c.findtext("width")) for c in w.find("columns")}
        assert sum(widths.values()) <= int(w.findtext("width")) - 18, (w.findtext("name"), sum(widths.values()))
        assert 80 not in widths.values(), (w.findtext("name"), widths)
        small = {name: round(header_width(name)) for name, width in widths.items() if header_width(name) > width}
        assert not small, (w.findtext("name"), small, widths)


# Usual texts of cells by the column of the table, at most as long as those of a site with long names.
PV, RULE = "SR12C-VA:CCG07:PRESSURE:HIHI", 'rule "currents": 450 is not 200 or less'
CELLS = {**dict.fromkeys(("PV", "Record", "Root record", "Asynchronous record", "Slowest record", "By chain of", "Name never found"), PV),
         "Writer": "root@host python caput[12345]", "Time": "10:03:56.482", "New value": "shift 57: all is well", "Old value": "shift 48: all is well",
         "IOC": "sr12c-vacuum", "Why unexpected": RULE, "Result": "x55 since 10:02:48 from 1", "Note": 'scan ".1 second" takes 0.171 s',
         "Scan": "10 second", "Process": "4194304", "Base": "7.0.8.1", "Level": "records", "Client": "root@127.0.0.1:39298", "Command": "camonitor",
         "Since": "2026-11-30 10:02:44.599", "Last client": "192.168.104.217:44294 PVA", "Client that searches": "192.168.104.217:44294 PVA",
         **dict.fromkeys(("Mean ms", "99 % ms", "Max ms", "Lock wait ms", "Longest s", "Period s"), "1234.567")}
# The page of the put, which a click on the row opens, has them whole.
CUT = {("AutoPutsTable", c) for c in ("New value", "Old value", "Link and cause", "Why unexpected")}
CELL = {("AutoPutsTable", "Writer"): "root@vm caput[12345]", ("HistoryTable", "Time"): "2026-11-30 10:02:54.040",
        ("HistoryTable", "Result"): "unexpected: " + RULE, ("SubscriptionsTable", "Process"): "camonitor (12345)"}


def test_usual_cells_are_whole(display):
    """JavaFX ends a text that is wider than its cell in "...". A cell has a margin of 6 pixels at each side, its font 12."""
    _, root = display
    for w in root.iterfind(".//widget[@type='table']"):
        table = w.findtext("name")
        widths = {c.findtext("name"): int(c.findtext("width")) for c in w.find("columns")}
        needs = {c: 12 + bob.text_width(CELL.get((table, c), CELLS.get(c, "")), 12) for c in widths if (table, c) not in CUT}
        assert not {c: (widths[c], round(n)) for c, n in needs.items() if n > widths[c]}, table


def test_written_pvs_are_writable(display, records):
    """Phoebus disables a button if the PV of the button is not writable. So a button that opens a display has no PV."""
    _, root = display
    for w in root.findall("widget"):
        if w.get("type") == "action_button":
            actions = w.findall("actions/action")
            assert len(actions) == 1 and actions[0].get("type") in ("open_display", "write_pv", "execute")
            assert actions[0].findtext("pv_name") == w.findtext("pv_name"), w.findtext("name")
        if w.get("type") in ("action_button", "textentry", "combo"):
            for e in pvs(w):
                assert 'field(ASG,  "EBPFMON")' in records[re.search(r"\)(\w+)", e.text)[1]][1], e.text


@pytest.mark.parametrize("name", DISPLAYS)
def test_each_display_opens_all_displays(name):
    assert sorted({file for file, _ in bob.open_display(OP / "bob", name, {}).opens} - set(OF_ONE)) == MAIN


def reached(file, macros):
    """All displays that the buttons open, each with its macros."""
    todo, seen = [(file, macros)], {}
    while todo:
        file, macros = todo.pop()
        key = file, tuple(sorted(macros.items()))
        if key not in seen:
            seen[key] = bob.open_display(OP / "bob", file, macros)
            todo += seen[key].opens
    return {file: opened for (file, _), opened in seen.items()}


def alarm_links(prefix):
    """The display links of the alarm tree, with the prefix that a site has written into it."""
    text = (OP / "alarm" / "ebpfMon.xml").read_text().replace("HOST:EBPF:", prefix)
    return [bob.link(e.text) for e in ET.fromstring(text).findall(".//display/details")]


@pytest.mark.parametrize("name", DISPLAYS)
def test_displays_show_the_host_of_their_opener(name):
    """All displays that their buttons open do so, too."""
    displays = reached(name, {"P": "far:EBPF:"})
    assert set(displays) - set(OF_ONE) == {*MAIN} and name in displays
    for file, opened in displays.items():
        names = [n.removeprefix("pva://") for n in opened.pvs]
        assert names and not [n for n in names if not n.startswith("far:EBPF:") or "$" in n.removesuffix(".VAL$")], file


def test_alarm_links_show_the_host_of_the_alarm():
    links = alarm_links("far:EBPF:")
    assert links
    for file, macros in links:
        for opened in reached(file, macros).values():
            assert all(n.removeprefix("pva://").startswith("far:EBPF:") for n in opened.pvs), file


@pytest.mark.parametrize("name", DISPLAYS)
def test_displays_without_an_opener_show_this_host(name):
    """A display that is opened by a double click on its file gets no macro."""
    for opened in reached(name, {}).values():
        assert all(n.removeprefix("pva://").startswith("localhost:EBPF:") for n in opened.pvs), name


@pytest.mark.parametrize("name", DISPLAYS)
def test_all_values_arrive(name, live):
    """Values come by the protocol that Phoebus uses: records by Channel Access, tables by PV Access."""
    names = set(bob.open_display(OP / "bob", name, live.macros).pvs)
    ca.get_many([n for n in names if not n.startswith("pva://")])
    with loopback.pva_context(live.port, nt=False) as context:
        for w in parse(name).iterfind("widget[@type='table']"):
            table = context.get(w.findtext("pv_name").replace("pva://$(P)", live.prefix), timeout=60)
            assert list(table.labels) == [c.findtext("name") for c in w.find("columns")]


def test_pictures_of_all_displays(live, tmp_path):
    """The script that draws the pictures finds each value and can draw each widget."""
    values = PUT | {"WRITER": "somebody", "NEW": "7", "REC": live.macros["REC"], "PV": live.macros["REC"], "IOC": live.macros["IOC"]}
    macros = [a for name, value in values.items() for a in ("-m", f"{name}={value}")]
    out = subprocess.run([sys.executable, paths.TOP / "tools" / "renderDisplays.py", "-s", "1", *macros, live.prefix, tmp_path],
                         capture_output=True, text=True, env=loopback.client(live.port))
    assert out.returncode == 0, out.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == [f.replace(".bob", ".svg") for f in DISPLAYS]
    for name in DISPLAYS:
        picture = ET.parse(tmp_path / name.replace(".bob", ".svg")).getroot()
        texts = " ".join(picture.itertext())
        assert f"ebpfMon {live.prefix}" in texts and "Running" in texts, name
        assert live.macros["IOC"] in texts or name in ("ebpfMonClients.bob", "ebpfMonHistory.bob", "ebpfMonPuts.bob", "ebpfMonRecord.bob",
                                                       "ebpfMonActivity.bob"), name


def test_one_ioc(live, module_ioc):
    """The PVs of one IOC are those of its rows."""
    name = live.macros["IOC"]
    live.wait(f"{name}:MEM_SIZE", lambda mb: mb > 1, 10)
    assert live.get(f"{name}:PID") in live.list("IOC_PIDS") and live.text(f"{name}:VERSION").startswith("7.")
    assert live.text(f"{name}:LEVEL") == "chains" and live.get(f"{name}:THREAD_CNT") > 5
    assert live.get(f"{name}:LOCK_HELD_TIME.SEVR") == 0


@pytest.mark.parametrize("name, wanted", [
    ("ebpfMonActivity.bob", "PROC_HEAT PROC_HEAT_NAMES CHAIN_HEAT CHAIN_HIST CHAIN_P50 CHAIN_P99 CHAIN_MAX"),
    ("ebpfMon.bob", "IOC_CNT IOC_GONE_CNT IOC_STILL_CNT HANG_CNT PUT_BAD_OPEN_CNT LOST_CNT COST CPU LOG_STATE OTLP_STATE PACKET_STATE "
                    "PUTS IOC_NAMES IOC_NOTES IOC_CPU_LOADS IOC_LOCK_HELD_TIMES PROC_TOP CHAIN_TOP PUT_RATE PROC_RATE PUT_LAST"),
    ("ebpfMonPuts.bob", "PUTS AUTO_PUTS AUTO_PUT_LAST BAD_PUTS PUT_BAD_ACK PUT_BAD_ALARM PUT_BAD_LAST LOSSES UNFOUND PUT_RATE LOG_STATE LOG_MSG "
                        "LOG_LOST_CNT PACKET_STATE"),
    ("ebpfMonChains.bob", "PROC_TOP CHAIN_TOP CHAIN_HIST_ROOT CHAIN_HIST CHAIN_HIST_EDGES CHAIN_P99 ASYNC_TOP ASYNC_HIST ASYNC_BUSY_MAX CHAIN_LOG IOCS FILTER_LEVEL "
                          "FILTER_STATUS OTLP_STATE OTLP_RATE OTLP_QUEUE_LOAD OTLP_LOST_CNT OTLP_MSG "
                          "RECSYNC_STATE RECSYNC_IOC_CNT RECSYNC_MSG"),
    ("ebpfMonClients.bob", "CLIENTS CLIENT_FILTER_IOC CLIENT_FILTER_PV CLIENT_CNT CLIENT_UNREAD_CNT USAGE_STATE USAGE_MSG "
                           "USAGE_LOST_CNT SUBSCRIPTIONS SUBSCRIPTION_STALLED_CNT SUBSCRIPTION_MERGE_RATE WHY_PV WHY_TEXT"),
    ("ebpfMonHistory.bob", "HISTORY HISTORY_FROM HISTORY_TO HISTORY_PV HISTORY_USER HISTORY_FOUND_MSG HISTORY_TEXT HISTORY_MSG"),
    ("ebpfMonHealth.bob", "IOC_HEALTH IOC_DELAYS SCANS IOC_EVENT_LAST IOC_EVENTS HANG_STACKS IOC_GONE_CNT HANG_CNT "
                          "STATE LOST_CNT COST"),
])
def test_main_pvs_are_shown(name, wanted):
    assert set(wanted.split()) <= shown(name)


@pytest.mark.parametrize("name, pv", [("ebpfMonChains.bob", "CHAIN_LOG"), ("ebpfMonHealth.bob", "HANG_STACKS")])
def test_trace_text_is_readable(name, pv):
    """In a font with fixed width, without line breaks, with scroll bars."""
    w = parse(name).find(f"widget[pv_name='$(P){pv}']")
    assert "Mono" in w.find("font/font").get("family")
    assert (w.findtext("wrap_words"), w.findtext("interactive")) == ("false", "true")


def has_value(live, name):
    """True if this formula has a value for something that is in the lists. None: it has a test, and no value at all."""
    own = {n: n.removeprefix("pva://").removeprefix(live.prefix) for n in bob.inputs(name)}
    values = {n: live.get(pv) for n, pv in own.items()}
    values = {n: live.list(own[n]) if hasattr(v, "__len__") else v for n, v in values.items()}
    value = bob.evaluate(name, values.get)
    test, has_test, _ = name.partition(" ? ")  # the test is true if the name is not in the list
    if not has_test or "arrayIndex" not in test:
        return value is not None
    return None if value is None else {0: True, 1: False}.get(bob.evaluate(test, values.get))


def test_formulas_have_values(live):
    """Each formula of the displays of one IOC and one record, and of a row, has a value if the IOC or record is in the
    lists."""
    for file, missing in (("ebpfMonIoc.bob", set()), ("ebpfMon.bob", set()),
                          ("ebpfMonRecord.bob", {"TopPutTime", "TopPutValue", "TopPutWriter", "TopPutResult"})):  # no client wrote to it
        for w, macros in bob.widgets(OP / "bob", file, live.macros):
            for name in bob.names(w, macros):
                if name.startswith("="):
                    # not at the first look: another IOC of the host may be in one list already, and not yet in the other
                    until(lambda n=name, w=w, missing=missing: has_value(live, n) == (w.findtext("name") not in missing), 5,
                          lambda n=name, f=file: f"a value, or none: {f}, {n}")
    shown = {w.findtext("name"): bob.names(w, m)[0] for w, m in bob.widgets(OP / "bob", "ebpfMonIoc.bob", live.macros)
             if w.get("type") == "textupdate" and bob.names(w, m)[0].startswith("=")}
    value = {k: bob.evaluate(v, lambda n: live.list(n.removeprefix(live.prefix))) for k, v in shown.items()}
    name = live.macros["IOC"]
    assert value["IOCPID"] == live.get(f"{name}:PID") and value["IOCVERSION"] == live.text(f"{name}:VERSION")
    assert value["IOCLEVEL"] == "chains" and value["IOCRECORD_CNT"] == live.get(f"{name}:RECORD_CNT")


def test_rows_are_hidden_where_there_is_no_ioc():
    rows = [w for w in parse("ebpfMon.bob").iterfind("widget[@type='embedded']") if w.findtext("file") == "_ebpfMonIocRow.bob"]
    assert len(rows) == 9
    for i, w in enumerate(rows):
        rule = w.find("rules/rule")
        assert w.findtext("macros/ROW") == str(i) and rule.get("prop_id") == "visible"
        assert rule.find("exp").get("bool_exp") == f"pv0 <= {i}" and rule.findtext("exp/value") == "false"
        assert rule.findtext("pv_name") == "=`$(P)IOC_CNT` + `$(P)IOC_GONE_CNT`"  # those that are gone stand first


def test_no_latency_of_records_that_are_not_asynchronous():
    """ASYNC_MEAN and so on are NaN and INVALID until the record has completed once: not shown, or each record looks broken."""
    ruled = {w.findtext("pv_name"): w.find("rules/rule") for w in parse("_ebpfMonRecordWatched.bob").iterfind("widget")
             if w.find("rules/rule") is not None}
    assert set(ruled) == {f"$(P)$(REC):ASYNC_{name}" for name in ("MEAN", "P99", "MAX")}
    for rule in ruled.values():
        assert rule.get("prop_id") == "visible" and rule.findtext("pv_name") == "$(P)$(REC):ASYNC_CNT"
        assert rule.find("exp").get("bool_exp") == "pv0 <= 0" and rule.findtext("exp/value") == "false"


def test_heat_maps_have_the_size_of_their_pvs(records):
    for w in parse("ebpfMonActivity.bob").iterfind("widget[@type='image']"):
        text = records[re.search(r"\)(\w+)", w.findtext("pv_name"))[1]][1]
        size = int(w.findtext("data_width")) * int(w.findtext("data_height"))
        assert f'field(NELM, "{size}")' in text, w.findtext("name")


def test_no_light_is_green_without_values():
    """Phoebus takes a formula that is not a number for 0, without an alarm. So 0 is "not known", and green is 1."""
    lights = [(w, m) for name in DISPLAYS for w, m in bob.widgets(OP / "bob", name, {"P": "P:", "ROW": "0", **OF_ONE.get(name, {})})
              if w.get("type") == "multi_state_led"]
    for w, macros in lights:
        states = {s.findtext("value"): s.find("color/color").get("name") for s in w.findall("states/state")}
        formula, = bob.names(w, macros)
        assert states["0"] == "INVALID" and states["1"] == "OK" and formula.startswith("="), (w.findtext("name"), formula)
        value = bob.evaluate(formula, lambda _: math.nan)
        assert value is None or math.isnan(value), (formula, value)
        if "elementAt" not in formula:  # severities NO_ALARM to INVALID; off
            assert [states[str(bob.evaluate(formula, lambda n, s=s: s if n.endswith("SEVR") else 1))] for s in range(4)] == \
                ["OK", "MINOR", "MAJOR", "INVALID"], formula
    assert len(lights) > 40


def test_lights_of_tiles_are_of_what_stands_beside_them():
    """The light of a tile is the severity of its two numbers, no more and no less."""
    tiles = 0
    for w, macros in bob.widgets(OP / "bob", "ebpfMon.bob", {"P": "P:"}):
        if w.findtext("file") == "_ebpfMonTile.bob":
            inside = {i.findtext("name"): bob.pvs(i, m) for i, m in bob.widgets(OP / "bob", "_ebpfMonTile.bob", macros)}
            lights = {pv.removesuffix(".SEVR") for pv in inside["Light"] if pv.endswith(".SEVR")}
            assert lights == {*inside["Value"], *inside["Note"]}, macros["TITLE"]
            tiles += 1
    assert tiles == 8


def test_percentiles_are_marked():
    for name in ("ebpfMonChains.bob", "ebpfMonActivity.bob"):
        plot = parse(name).find("widget[@type='xyplot']")
        marks = [m.findtext("pv_name") for m in plot.findall("marker/marker")]
        assert marks == ["=`$(P)CHAIN_P50` / 1000", "=`$(P)CHAIN_P99` / 1000", "=`$(P)CHAIN_MAX` / 1000"]
        assert plot.findtext("x_axis/title") == "latency, ms" and plot.findtext("traces/trace/x_pv") == "=scale(`$(P)CHAIN_HIST_EDGES`, 0.001)"
        assert plot.findtext("x_axis/log_scale") == "true"


def test_display_of_a_query():
    """Compares the widgets, the PVs and the columns of the table with ebpfMonQuery.template,
    ebpfMonQueryEvents.template and ebpfMonQueryRows.template."""
    root = parse(QUERY)
    check_widgets(QUERY, root, ["P", "Q"])
    header, embedded = parse(EMBEDDED[0]), root.find("widget[@type='embedded']")
    assert [embedded.findtext(n) for n in ("width", "height")] == [header.findtext(n) for n in ("width", "height")]
    text = "".join((paths.DB / f"ebpfMonQuery{part}.template").read_text() for part in ("", "Events", "Rows"))
    records = {name: kind for kind, name in re.findall(r'^record\((\w+), "\$\(P\)\$\(Q\)_(\w+)"\)', text, re.M)}
    shown = set()
    for w in root.findall("widget"):
        for pv in [pv for e in pvs(w) for pv in bob.inputs(e.text)]:
            table, name, long = re.fullmatch(r"(pva://)?\$\(P\)\$\(Q\)_(\w+?)(\.VAL\\\$)?", pv).groups()
            assert name in ("TABLE", "EVENTS") if table else bool(long) == (records[name] == "lsi"), pv
            shown.add(name)
    labels = [re.findall(r'"([^"]+)"', found) for found in re.findall(r"\{const:\[(.*?)\]\}", text)]
    assert [[c.findtext("name") for c in w.find("columns")] for w in root.findall("widget[@type='table']")] == labels
    assert {"STATE", "MSG", "COST", "EVENT_CNT", "DROPPED_CNT", "KEY_CNT", "RUN", "HIST", "HIST_EDGES", "HEAT", "HEAT_EDGES", "HEAT_STEP", "TABLE", "EVENTS",
            "RATE", "SUM_RATE", "MEAN", "MAX", "REST_CNT", "ROW_HISTS"} <= shown
