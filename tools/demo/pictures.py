# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the demo for the documentation, as SVG: ebpfMonTop in a terminal, and the displays."""
import html
import os
import subprocess
import sys

from tests.harness import loopback
from tests.harness.paths import TOP
from tests.harness.terminal import Terminal

LINES, COLUMNS = 42, 150
SECONDS = 100  # of trends and heat maps
WIDE, HIGH = 7.8, 17  # of a character
BACK, FRONT = "#1d2430", "#d7dde5"
COLOURS = {"red": "#ff6b63", "brown": "#f0c24b", "magenta": "#e08cf0", "cyan": "#62c8d8", "green": "#7fd07f",
           "default": FRONT}


def draw_screen(screen):
    """What a terminal shows, as SVG. "screen": lines of (character, colour, bold, reversed, underlined)."""
    parts = []
    for y, line in enumerate(screen):
        x = 0
        while x < len(line):
            style, end = line[x][1:], x
            while end < len(line) and line[end][1:] == style:
                end += 1
            text = "".join(c[0] for c in line[x:end])
            colour, bold, reverse, underlined = style
            front, back = COLOURS.get(colour, FRONT), None
            if reverse:
                front, back = BACK, front
                parts.append(f'<rect x="{x * WIDE:.1f}" y="{y * HIGH}" width="{len(text) * WIDE:.1f}" height="{HIGH}" fill="{back}"/>')
            if text.strip():
                parts.append(f'<text x="{x * WIDE:.1f}" y="{y * HIGH + 13}" textLength="{len(text) * WIDE:.1f}" fill="{front}"'
                             f'{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}'
                             f'{" text-decoration=" + chr(34) + "underline" + chr(34) if underlined else ""}>'
                             f'{html.escape(text)}</text>')
            x = end
    width, height = round(COLUMNS * WIDE) + 24, len(screen) * HIGH + 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="-12 -12 {width} {height}">\n'
            f'<rect x="-12" y="-12" width="{width}" height="{height}" rx="8" fill="{BACK}"/>\n'
            '<g font-family="DejaVu Sans Mono, Consolas, monospace" font-size="13" xml:space="preserve">\n' +
            "\n".join(parts) + "\n</g></svg>\n")


def draw_terminal(argv, environ, until, path):
    """Draws the page of a program once the condition is true for its text."""
    screen = Terminal(argv, environ, LINES, COLUMNS)
    try:
        screen.wait(until, "the page to draw", 30)
        cells = screen.cells()
        while cells and not "".join(c[0] for c in cells[-1]).strip():
            cells.pop()
        path.write_text(draw_screen(cells))
    finally:
        screen.type("q")
        screen.close()


def draw(stage, top, prefix, macros, names, folder):
    """Draws all into this folder. "names": of the IOCs that the monitor has found. Returns nothing; raises what goes wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    others = [n for n in names if not n.startswith("machine")]
    if others:
        print(f"pictures: they show other IOCs of this host, too: {', '.join(others)}. End them, and draw again", file=sys.stderr)
    environ = {**os.environ, **stage.clients}
    draw_terminal([top, "-v", "shift", prefix], environ, lambda t: 'rule "currents"' in t.split("\n\n", 1)[-1] and
                  "DEMO:ORBIT:X" in t, folder / "demo.svg")
    options = [a for m in macros for a in ("-m", m)]
    for seconds, more, files in ((SECONDS, [], []), (1, ["-m", "IOC=machine"], ["ebpfMonPut.bob"])):
        subprocess.run([sys.executable, TOP / "tools" / "renderDisplays.py", "-s", str(seconds), *options, *more, prefix, folder,
                        *files], check=True, env={**environ, **loopback.client(stage.monitor_port)})
    for path in folder.glob("*.svg"):  # wherever this tree is
        path.write_text(path.read_text().replace(str(TOP), "/opt/ebpfMon"))
