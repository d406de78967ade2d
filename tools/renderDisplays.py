#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the displays with the values of a running monitor, each as an SVG file, for the documentation.

  tools/venv.sh prints a Python that has p4p; with that:
  PYTHON tools/renderDisplays.py [-s SECONDS] [-m NAME=VALUE]... PREFIX FOLDER [FILE...]

It knows the widgets and properties that our displays use, and draws them in its own way: it is not Phoebus. All values
come over PV Access (EPICS_PVA_ADDR_LIST and others say where). Strip charts show what came in SECONDS (5). -m: macros for
displays of one IOC or record. Without FILE: all displays that need no macro but P."""
import argparse
import html
import math
import re
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

from p4p.client.thread import Context

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))
from tests.harness import bob  # noqa: E402  macros as Phoebus replaces them

FOLDER = TOP / "ebpfMonApp" / "op" / "bob"
BORDERS = {1: "#ffa500", 2: "#ff0000", 3: "#c000c0", 4: "#c000c0"}  # by severity; 4: not connected
HEADER = 28  # of a table, with its font of 12 pixels, as Phoebus has them
LINE = 24


def ticks(low, up, log=False, most=5):
    """The places of an axis that a person would name, between low and up: 1, 2, 5, 10 … apart, or powers of ten."""
    if not up > low or log and low <= 0:
        return []
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(up) + 1e-9)
        return [10.0 ** n for n in range(first, last + 1, max(1, math.ceil((last - first) / most)))]
    step = 10.0 ** math.floor(math.log10((up - low) / most))
    step = next(step * n for n in (1, 2, 5, 10) if step * n * most >= up - low - step * 1e-6)
    return [n * step for n in range(math.ceil(low / step - 1e-6), math.floor(up / step + 1e-6) + 1)]


def tick_text(value):
    for least, unit in ((1e6, "M"), (1e5, "k")):
        if abs(value) >= least:
            return f"{value / (1e6 if unit == 'M' else 1e3):g} {unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}" if abs(value) >= 1e-9 else "0"


class Values:
    """What each PV had, newest last, with its time."""

    def __init__(self, names, seconds):
        self.lock = threading.Lock()
        self.seen = {n: [] for n in names}
        with Context("pva", nt=False) as context:
            ends, again = time.monotonic() + 60, time.monotonic() + 5
            subscribed = [self.subscribe(context, n) for n in names]
            while time.monotonic() < ends and not all(self.seen.values()):
                time.sleep(0.1)  # a tool for people: nothing waits for it
                if time.monotonic() > again:  # p4p 4.3 loses an update that comes before monitor() has returned
                    subscribed += [self.subscribe(context, n) for n in names if not self.seen[n]]
                    again += 5
            time.sleep(seconds)
            for s in subscribed:
                s.close()
        self.missing = [n for n in names if not self.seen[n]]

    def subscribe(self, context, name):
        return context.monitor(name.removeprefix("pva://"), lambda value: self.add(name, value))

    def add(self, name, value):
        if not isinstance(value, Exception):
            with self.lock:
                self.seen[name].append((time.monotonic(), value))

    def last(self, name):
        if name.startswith("="):
            return self.formula(name)
        return self.seen[name][-1][1] if self.seen.get(name) else None

    def formula(self, name):
        """Of the present values; its severity is the highest one."""
        used = [self.last(n) for n in bob.inputs(name)]
        if None in used:
            return None
        value = bob.evaluate(name, lambda n: plain(self.last(n).value))
        if value is None:
            return SimpleNamespace(value="NaN", alarm=SimpleNamespace(severity=3), display=())
        return SimpleNamespace(value=value, alarm=SimpleNamespace(severity=max(u.alarm.severity for u in used)), display=())

    def course(self, name):
        """(time, number) of a PV, or of a formula as its first PV changes and the others stay."""
        if name.startswith("="):
            first, *others = bob.inputs(name)
            if not all(self.seen.get(n) for n in (first, *others)):
                return []
            course = [(when, bob.evaluate(name, lambda n, v=v: plain(v.value if n == first else self.last(n).value)))
                      for when, v in self.seen[first]]
            return [(when, number) for when, number in course if isinstance(number, (int, float))]
        return [(when, float(v.value)) for when, v in self.seen.get(name, [])]


def plain(value):
    """An array as a list, a choice as its number."""
    if hasattr(value, "choices"):
        return value.index
    return value.tolist() if hasattr(value, "tolist") else value


def unit(value):
    """The unit of a trace, as Phoebus writes it behind the name."""
    found = value.display.units if value is not None and "units" in value.display else ""
    return f" [{found}]" if found else ""


def severity(value):
    return 4 if value is None else value.alarm.severity


def text(value, units, precision=None):
    """As a textupdate shows it."""
    if value is None:
        return ""
    v = value.value
    if hasattr(v, "choices"):
        return v.choices[v.index]
    if hasattr(v, "dtype") and v.dtype.itemsize == 1:
        return bytes(v.astype("uint8")).split(b"\0")[0].decode(errors="replace")
    if isinstance(v, (list, tuple)) or hasattr(v, "dtype"):
        return "\n".join(map(str, v))
    if isinstance(v, float):
        v = f"{v:.{precision or (value.display.precision if 'precision' in value.display else 2)}f}"
    return f"{v} {value.display.units}".strip() if units and "display" in value else str(v)


def colour(element, default):
    c = element.find("color") if element is not None else None
    return default if c is None else "rgb({},{},{})".format(*(c.get(k) for k in ("red", "green", "blue")))


def colour_of(section):
    """The colour of a part of a map; of a map that has a name its first one."""
    return viridis(0) if section is None else "rgb({},{},{})".format(*(section.get(k) for k in ("red", "green", "blue")))


def viridis(part):
    """The colour map of this name, by some of its colours."""
    points = [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)]
    at = min(max(part, 0), 1) * (len(points) - 1)
    i = min(int(at), len(points) - 2)
    return "#" + "".join(f"{round(a + (b - a) * (at - i)):02x}" for a, b in zip(points[i], points[i + 1]))


class Picture:
    def __init__(self, values):
        self.values = values
        self.parts = []

    def add(self, tag, content=None, **attributes):
        attributes = "".join(f' {k.replace("_", "-")}="{html.escape(str(v))}"' for k, v in attributes.items())
        self.parts.append(f"<{tag}{attributes}/>" if content is None else f"<{tag}{attributes}>{content}</{tag}>")

    def box(self, at, fill="none", line="none", width=1, corner=0):
        x, y, w, h = at
        self.add("rect", x=x, y=y, width=w, height=h, fill=fill, stroke=line, stroke_width=width, rx=corner)

    def words(self, at, lines, font=None, fill="#000", anchor="start", pad=3):
        """Lines of text, cut at the edge."""
        x, y, w, h = at
        size = float(font.get("size")) if font is not None else 14.0
        style = font.get("style") if font is not None else ""
        family = "monospace" if font is not None and "Mono" in font.get("family") else "Liberation Sans, Arial, sans-serif"
        at_x = {"start": pad, "middle": w / 2, "end": w - pad}[anchor]
        shown = lines[:max(1, int(h // (size * 1.25)))]
        first = (h + size * 0.7) / 2 if h < 2 * size * 1.25 else size
        spans = "".join(f'<tspan x="{at_x}" y="{first + i * size * 1.25:.1f}">{html.escape(line)}</tspan>'
                        for i, line in enumerate(shown))
        inner = (f'<text xml:space="preserve" font-family="{family}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
                 f'{" font-weight=" + chr(34) + "bold" + chr(34) if "BOLD" in style else ""}'
                 f'{" font-style=" + chr(34) + "italic" + chr(34) if "ITALIC" in style else ""}>{spans}</text>')
        self.add("svg", inner, x=x, y=y, width=w, height=h)

    def upright(self, x, y, words):
        """The title of an axis, around this place."""
        self.add("text", html.escape(words), x=x, y=y, transform=f"rotate(-90 {x} {y})", text_anchor="middle", font_size=11,
                 font_family="Liberation Sans, Arial, sans-serif")

    # --- widgets --------------------------------------------------------------------------------------------------------
    def widget(self, w, macros, dx, dy):
        own = bob.with_own(macros, w)
        get = lambda tag, default="": bob.expand(w.findtext(tag) or default, own)  # noqa: E731
        at = (int(get("x")) + dx, int(get("y")) + dy, int(get("width")), int(get("height")))
        if not self.is_visible(w, own):
            return
        if w.get("type") == "embedded":
            rule = w.find("rules/rule[@prop_id='file']")
            value = None if rule is None else self.values.last(bob.expand(rule.findtext("pv_name"), own))
            self.display(bob.files(w)[value is not None and value.value >= 0], own, at[0], at[1])
        else:
            getattr(self, "draw_" + w.get("type"))(w, get, at, own)

    def is_visible(self, w, macros):
        """By its rule: "pv0 <= 3" of one PV."""
        rule = w.find("rules/rule[@prop_id='visible']")
        if rule is None:
            return True
        value = self.values.last(bob.expand(rule.findtext("pv_name"), macros))
        limit = re.fullmatch(r"pv0 <= (\d+)", rule.find("exp").get("bool_exp"))[1]
        return value is not None and value.value > int(limit)

    def draw_label(self, w, get, at, _):
        self.words(at, [get("text")], w.find("font/font"), pad=0)

    def draw_rectangle(self, w, get, at, _):
        self.box(at, colour(w.find("background_color"), "#fff"), colour(w.find("line_color"), "none"), 1,
                 get("corner_width", "0"))

    def draw_action_button(self, w, get, at, _):
        self.box(at, "#d7dde3", "#8a949e", corner=4)
        self.words(at, [get("text")], w.find("font/font"), anchor="middle")

    def draw_textupdate(self, w, get, at, _, fill="#f3f3f3"):
        value = self.values.last(get("pv_name"))
        bad = BORDERS.get(severity(value)) if get("border_alarm_sensitive") == "true" else None
        self.box(at, fill, bad or "none", 2)
        anchor = {"1": "middle", "2": "end"}.get(get("horizontal_alignment"), "start")
        lines = text(value, get("show_units") == "true", get("precision")).split("\n")
        if get("wrap_words") != "false" and at[3] > 30:
            lines = [part for line in lines for part in bob.wrap(line, 14, at[2] - 6)]
        self.words(at, lines, w.find("font/font"), anchor=anchor)

    def draw_textentry(self, w, get, at, own):
        self.draw_textupdate(w, get, at, own, "#e0f5ff")

    draw_combo = draw_textentry

    def draw_multi_state_led(self, w, get, at, _):
        value = self.values.last(get("pv_name"))
        x, y, width, height = at
        colours = {int(state.findtext("value")): colour(state.find("color"), "#888") for state in w.findall("states/state")}
        fill = "#c000c0" if value is None else colours[int(plain(value.value))]
        self.add("circle", cx=x + width / 2, cy=y + height / 2, r=min(width, height) / 2 - 1, fill=fill, stroke="#444")

    def draw_progressbar(self, w, get, at, _):
        value = self.values.last(get("pv_name"))
        x, y, width, height = at
        self.box(at, "#e4e4e4", "#888")
        low, high = float(get("minimum", "0")), float(get("maximum", "100"))
        part = 0 if value is None else min(1, max(0, (float(value.value) - low) / (high - low)))
        self.box((x, y, width * part, height), "#5b9bd5")

    def draw_table(self, w, get, at, _):
        value = self.values.last(get("pv_name"))
        x, y, width, height = at
        self.box(at, "#fff", "#8a949e")
        if value is None:
            return
        cells = [list(c) for c in value.value.todict().values()]
        left = x
        fill = colour(w.find("foreground_color"), "#000")
        font = ET.fromstring('<font family="Sans" size="12" style=""/>')
        for label, column, width in zip(value.labels, cells, [int(c.findtext("width")) for c in w.find("columns")]):
            self.box((left, y, width, HEADER), "#e8ebee", "#c4cad0")
            self.words((left, y, width, HEADER), [label], font, anchor="middle")
            numbers = not column or not isinstance(column[0], str)
            for i, cell in enumerate(column[:int((height - HEADER) // LINE)]):
                shown = "" if isinstance(cell, float) and math.isnan(cell) else str(cell)
                self.words((left, y + HEADER + i * LINE, width, LINE), [shown], font, fill, "end" if numbers else "start")
            left += width

    # --- plots ----------------------------------------------------------------------------------------------------------
    def plot(self, at, title, traces, x_range, y_log, x_log, x_title, y_title="", marks=()):
        """Traces: name, colour, points, whether it has steps. Marks: x and colour of a line upright."""
        x, y, w, h = at
        self.box(at, "#fff", "#8a949e")
        left, top, wide, high = x + 50, y + 24, w - 62, h - 62
        points = [p for _, _, ps, _ in traces for p in ps if math.isfinite(p[1])]
        most = max([p[1] for p in points if p[1] > 0], default=1)
        least = min([p[1] for p in points if p[1] > 0], default=0.1) if y_log else 0
        if y_log:  # whole decades
            least, most = 10.0 ** math.floor(math.log10(least)), 10.0 ** math.ceil(math.log10(most) + 1e-9)
        else:
            most *= 1.05

        def place(value, low, up, log):
            if log:
                value, low, up = (math.log10(max(v, 1e-9)) for v in (value, low, up))
            return min(1, max(0, (value - low) / (up - low))) if up > low else 0

        self.words((x, y + 2, w, 20), [title], ET.fromstring('<font family="Sans" size="14" style="BOLD"/>'), anchor="middle")
        small = ET.fromstring('<font family="Sans" size="11" style=""/>')
        for value in ticks(least, most, y_log):
            at_y = top + high * (1 - place(value, least, most, y_log))
            self.add("line", x1=left, y1=round(at_y, 1), x2=left + wide, y2=round(at_y, 1), stroke="#e0e0e0")
            self.words((x, at_y - 8, 46, 16), [tick_text(value)], small, anchor="end")
        for value in ticks(*x_range, x_log, 9):
            at_x = left + wide * place(value, *x_range, x_log)
            at_x = min(at_x, x + w - 4 - 3.3 * len(tick_text(value)))  # the last one stays inside
            self.words((at_x - 30, top + high + 2, 60, 16), [tick_text(value)], small, anchor="middle")
        self.upright(x + 11, top + high / 2, y_title)
        for at_x, fill in marks:
            at_x = left + wide * place(at_x, *x_range, x_log)
            self.add("line", x1=round(at_x, 1), y1=top, x2=round(at_x, 1), y2=top + high, stroke=fill, stroke_width=2)
        self.words((left, y + h - 20, wide * 0.45, 16), [x_title], small)
        for i, (name, fill, line, steps) in enumerate(traces):
            places = [(left + wide * place(px, *x_range, x_log), top + high * (1 - place(py, least, most, y_log)))
                      for px, py in line if math.isfinite(py)]
            path = "".join(f"{'L' if k else 'M'}{px:.1f} {py:.1f}" if not steps or not k else f"H{px:.1f}V{py:.1f}"
                           for k, (px, py) in enumerate(places))
            if path:
                self.add("path", d=path, fill="none", stroke=fill, stroke_width=2)
            self.words((left + wide * (0.45 + 0.55 * i / len(traces)), y + h - 20, wide * 0.55 / len(traces), 16), [name],
                       small, fill)

    def draw_xyplot(self, w, get, at, own):
        traces = []
        for t in w.findall("traces/trace"):
            xs, ys = (self.values.last(bob.expand(t.findtext(n), own)) for n in ("x_pv", "y_pv"))
            line = [] if xs is None or ys is None else list(zip(map(float, xs.value), map(float, ys.value)))
            traces.append((t.findtext("name"), colour(t.find("color"), "#00f"), line, True))
        axis = w.find("x_axis")
        marks = [(self.values.last(bob.expand(m.findtext("pv_name"), own)), colour(m.find("color"), "#888"))
                 for m in w.findall("marker/marker")]
        self.plot(at, "", traces, (float(axis.findtext("minimum")), float(axis.findtext("maximum"))),
                  w.findtext("y_axes/y_axis/log_scale") == "true", axis.findtext("log_scale") == "true",
                  axis.findtext("title"), w.findtext("y_axes/y_axis/title"),
                  [(float(v.value), c) for v, c in marks if v is not None and v.alarm.severity < 3])

    def draw_image(self, w, get, at, _):
        """Each cell as a rectangle; what is not known has the first colour of the map, as in Phoebus."""
        value = self.values.last(get("pv_name"))
        x, y, wide, high = at
        bottom = 36 if get("x_axis/visible") == "true" else 0
        left = 46 if get("y_axis/visible") == "true" else 0
        columns, rows, right = int(get("data_width")), int(get("data_height")), 62
        self.box(at, "#fff", "#8a949e")
        if value is None:
            return
        cells = [float(v) for v in value.value]
        least, most = float(get("minimum")), float(get("maximum"))
        width, height = (wide - left - right) / columns, (high - bottom) / rows

        def part(cell):
            if cell <= 0:
                return 0
            if get("log_scale") == "true":
                return math.log(cell / least) / math.log(most / least)
            return (cell - least) / (most - least)

        for i, cell in enumerate(cells[:columns * rows]):
            self.add("rect", x=round(x + left + i % columns * width, 1), y=round(y + i // columns * height, 1),
                     width=round(width + 0.3, 1), height=round(height + 0.3, 1),
                     fill=viridis(part(cell)) if math.isfinite(cell) else colour_of(w.find("color_map/section")))
        small = ET.fromstring('<font family="Sans" size="11" style=""/>')
        for i in range(20):
            self.box((x + wide - 50, y + (high - bottom) * (1 - (i + 1) / 20), 14, (high - bottom) / 20 + 0.5), viridis((i + 0.5) / 20))
        for value in (most, least):
            self.words((x + wide - 35, y + (0 if value == most else high - bottom - 14), 35, 14), [tick_text(value)], small, pad=0)
        if bottom:
            low, up = float(get("x_axis/minimum")), float(get("x_axis/maximum"))
            for value in ticks(low, up):
                at_x = x + left + (wide - left - right) * (value - low) / (up - low)
                self.words((at_x - 40, y + high - bottom + 2, 80, 16), [tick_text(value)], small, anchor="middle")
            self.words((x + left, y + high - 18, wide - left - right, 16), [get("x_axis/title")], small, anchor="middle")
        if left:
            low, up = float(get("y_axis/minimum")), float(get("y_axis/maximum"))
            for value in ticks(low, up):
                self.words((x, y + (high - bottom) * (1 - (value - low) / (up - low)) - 8, left - 2, 16), [tick_text(value)],
                           small, anchor="end")
            self.upright(x + 12, y + (high - bottom) / 2, get("y_axis/title"))

    def draw_stripchart(self, w, get, at, own):
        traces, now = [], time.monotonic()
        for t in w.findall("traces/trace"):
            pv = bob.expand(t.findtext("y_pv"), own)
            line = [(when - now, v) for when, v in self.values.course(pv)]
            line += [(0, v) for _, v in line[-1:]]  # up to now
            traces.append((t.findtext("name") + unit(self.values.last(pv)), colour(t.find("color"), "#00f"), line, True))
        began = min([line[0][0] for _, _, line, _ in traces if line], default=-1)
        self.plot(at, get("title"), traces, (began, 0), w.findtext("y_axes/y_axis/log_scale") == "true", False, "s",
                  w.findtext("y_axes/y_axis/title"))

    def display(self, file, macros, dx=0, dy=0):
        root = ET.parse(FOLDER / file).getroot()
        macros = bob.with_own(macros, root)
        for w in root.findall("widget"):
            self.widget(w, macros, dx, dy)
        return int(root.findtext("width")), int(root.findtext("height"))


def render(file, macros, values):
    picture = Picture(values)
    width, height = picture.display(file, macros)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(picture.parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", nargs="*")
    parser.add_argument("-s", "--seconds", type=float, default=5)
    parser.add_argument("-m", "--macro", action="append", default=[])
    args = parser.parse_args()
    macros = {"P": args.prefix} | dict(m.split("=", 1) for m in args.macro)
    files = args.file or [p.name for p in sorted(FOLDER.glob("ebpfMon*.bob"))
                          if {m.tag for m in ET.parse(p).getroot().find("macros")} <= set(macros)]
    names = sorted({n for f in files for n in bob.open_display(FOLDER, f, macros).pvs})
    values = Values(names, args.seconds)
    args.folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        path = args.folder / (Path(file).stem + ".svg")
        path.write_text(render(file, macros, values))
        print(path)
    if values.missing:
        sys.exit("renderDisplays: no value of " + " ".join(values.missing))


if __name__ == "__main__":
    main()
