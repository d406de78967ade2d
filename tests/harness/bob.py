# SPDX-License-Identifier: BSD-3-Clause
"""Displays as Phoebus opens them: with their macros replaced, as it does (app/display/model: MacroHandler, Macros,
DisplayModel.getEffectiveMacros).

A file gets the macros of its opener. Its own macros may use them, and win over them. An embedded file gets those of
its widget, an opened one those of the button, each on top of the macros of the display that it is in."""
import functools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

MACRO = re.compile(r"\$\((\w+)(?:=([^()]*))?\)|\$\{(\w+)(?:=([^{}]*))?\}")


def expand(text, macros):
    """Replaces macros. A macro without a value and without a default does not change. A dollar sign that begins no
    macro is escaped, because Phoebus warns of each other one that is left (MacroizedWidgetProperty.getValue)."""
    def value(m):
        name, default = (m[1], m[2]) if m[1] else (m[3], m[4])
        return macros.get(name, m[0] if default is None else default)
    return MACRO.sub(value, text).replace("\\$", "$")


def with_own(macros, element):
    """These macros, replaced and completed by the "macros" in the element."""
    own = element.find("macros")
    return macros | {m.tag: expand(m.text or "", macros) for m in (own if own is not None else [])}


@dataclass
class Opened:
    """A display and the files in it."""
    pvs: list = field(default_factory=list)    # each name, as it is searched
    opens: list = field(default_factory=list)  # file and macros of each button that opens a display


@functools.cache
def parse(path, changed):
    """The root of this file, as it was after this time. A test may open a display some hundred times."""
    return ET.parse(path).getroot()


def widgets(folder, file, macros):
    """Each widget of a display and of the files in it, with its macros."""
    path = folder / file
    root = parse(path, path.stat().st_mtime_ns)
    macros = with_own(macros, root)
    for widget in root.iter("widget"):
        own = with_own(macros, widget)
        yield widget, own
        if widget.get("type") == "embedded":
            for name in files(widget):
                yield from widgets(folder, expand(name, own), own)


def files(widget):
    """All that an embedded display may show: by default, and by its rule."""
    return [widget.findtext("file"), *(e.text for e in widget.iterfind("rules/rule[@prop_id='file']/exp/value"))]


def names(widget, macros):
    """PVs and formulas of a widget and of its rules, without the PVs that Phoebus makes itself."""
    found = [expand(e.text, macros) for e in widget.iter() if e.tag in ("pv_name", "x_pv", "y_pv") and e.text]
    return [n for n in found if not n.startswith("loc://")]


def inputs(name):
    """The PVs of a formula (it begins with "="); for another name this name."""
    return re.findall(r"`([^`]+)`", name) if name.startswith("=") else [name]


def pvs(widget, macros):
    return [pv for n in names(widget, macros) for pv in inputs(n)]


def element_at(array, index):
    if not 0 <= int(index) < len(array):
        raise IndexError(index)
    return array[int(index)]


def index_in(array, element):
    return list(array).index(element) if element in array else -1


# Functions of formulas (Phoebus 5.0.5: core/formula, .../array, .../string).
FUNCTIONS = {"elementAt": element_at, "arrayIndex": index_in, "strEqual": lambda a, b: int(a == b), "min": min, "max": max,
             "scale": lambda array, factor, offset=0: [factor * number + offset for number in array]}


def conditional(expression):
    """The conditional expression "a ? b : c" as Python has it; c may be one in brackets."""
    test, has_test, rest = expression.partition(" ? ")
    if not has_test:
        return expression
    then, _, other = rest.partition(" : ")
    return f"({then}) if ({test}) else ({conditional(other.removeprefix('(').removesuffix(')') if ' ? ' in other else other)})"


def evaluate(formula, value):
    """The value of a formula; None: it has none. "value": a function that returns the value of a PV."""
    known = {}

    def name(m):
        known[f"v{len(known)}"] = value(m[1])
        return f"v{len(known) - 1}"

    expression = re.sub(r"`([^`]+)`", name, formula.removeprefix("="))
    try:
        return eval(conditional(expression), {"__builtins__": {}}, {**FUNCTIONS, **known})  # of our own files
    except (IndexError, TypeError, ValueError):
        return None


def open_display(folder, file, macros):
    opened = Opened()
    for widget, own in widgets(folder, file, macros):
        opened.pvs += pvs(widget, own)
        for action in widget.findall("actions/action[@type='open_display']"):
            opened.opens.append((expand(action.findtext("file"), own), with_own(own, action)))
    return opened


def link(text):
    """File and macros of a display link in an alarm tree: file:/folder/name.bob?MACRO=value&..."""
    path, _, query = text.partition("?")
    return path.rpartition("/")[2], dict(parse_qsl(query))


# Widths of letters in thousandths of their height: those of Liberation Sans are those of Helvetica.
LETTERS = {**dict.fromkeys("ijl", 222), **dict.fromkeys(" ft.,:;/[]I!\\|", 278), **dict.fromkeys("r-()", 333), '"': 355, "'": 191,
           **dict.fromkeys("ckszvxyJ", 500), **dict.fromkeys(">=<+~", 584), **dict.fromkeys("FTZ", 611), **dict.fromkeys("ABEKPSVXY", 667),
           **dict.fromkeys("CDHNRUw", 722), **dict.fromkeys("GOQ", 778), **dict.fromkeys("Mm", 833), "%": 889, "W": 944, "@": 1015}


def text_width(text, size):
    return sum(LETTERS.get(c, 556) for c in text) * size / 1000


def wrap(text, size, width):
    """The lines that Phoebus makes of a text in a widget with wrap_words. A word that is wider than the widget is broken."""
    lines, line, used = [], "", 0
    for word in re.findall(r"\S*\s*", text):
        needs = text_width(word.rstrip(), size)
        if line and used + needs > width:
            lines.append(line)
            line, used = "", 0
        while needs > width:
            part = max(1, int(len(word) * width / needs) - 1)
            lines.append(word[:part])
            word = word[part:]
            needs = text_width(word.rstrip(), size)
        line += word
        used += text_width(word, size)
    return lines + [line] if line or not lines else lines
