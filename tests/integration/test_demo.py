# SPDX-License-Identifier: BSD-3-Clause
"""The demo, without and with a terminal: its output is right, and all its processes end with it."""
import importlib.util
import json
import os
import re
import signal
import sys
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.harness import paths
from tests.harness.ioc import NO_REALTIME
from tests.harness.process import Process
from tests.harness.terminal import Terminal
from tests.harness.wait import until

sys.path.append(str(paths.TOP / "tools" / "demo"))
import pictures  # noqa: E402

MARK = "EBPFMON_TEST_DEMO"


@pytest.fixture
def demo(tmp_path):
    """The demo, started with a mark in its environment. The mark shows which processes it started."""
    mark = str(uuid.uuid4())
    process = Process([*NO_REALTIME, sys.executable, paths.TOP / "tools" / "demo", "14"],
                      {**os.environ, MARK: mark, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    process.mark = mark
    yield process
    process.kill()


def left(mark):
    """The processes that the demo started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass  # the process has just ended
    return found


def test_demo(demo, tmp_path):
    until(lambda: not demo.running, 90, lambda: f"the end of the demo\n{demo.output()}")
    assert demo.wait() == 0, demo.output()
    text = "\n".join(demo.lines)
    for line in (r"DEMO:MAG:CURRENT:SET  \S+ → 450  by \S+@\S+ caput\[\d+\]",
                 # this client connected before the monitor started
                 r"DEMO:MAG:CURRENT:SET  \S+ → \S+  by operator@console python\S* demo\[\d+\]",
                 r"DEMO:SHIFT:NOTE   → shift 3: all is well  by ",
                 r'  PUT_BAD_OPEN_CNT 1 MAJOR: rule "currents": 450 is not 200 or less',
                 r"  PUT_BAD_OPEN_CNT 0 NO_ALARM",
                 r"^ebpfMon DEMO:EBPF:  Running  (IOC machine-orbit(#\d+)?: scan|\d+ unexpected)", r"^PUTS, newest first ", r"^UNEXPECTED PUTS ", r"^SCAN THREADS ",
                 r"^  machine-orbit +\.1 second .* DEMO:ORBIT:X(@\S+)?$", r"^  DEMO:ORBIT:X(@\S+)? +[1-9]", r"^LATENCY of all chains   [1-9]",
                 r"^lost 0 "):
        assert re.search(line, text, re.M), f"{line}\n{text}"
    # each put is shown once: its columns come one after the other, and those of two puts must not be mixed
    shown = re.findall(r"^(\S+ \S+  \S+)  .* → .*  by ", text, re.M)
    assert len(shown) > 5 and len(shown) == len(set(shown)), text
    assert text.index("PUT_BAD_OPEN_CNT 1 MAJOR") < text.index("PUT_BAD_OPEN_CNT 0 NO_ALARM")
    late = re.search(r"^  machine-orbit +\.1 second +\S+ +\S+ +(\d+)", text, re.M)
    assert int(late[1]) > 0, text
    # the facts for operators come first; at the end come suggestions, and their files exist
    assert text.index("\nPUTS,") < text.index("\nSCAN THREADS") < text.index("\nSLOWEST CHAINS") < text.index("\nWHAT TO TRY NEXT")
    check_offers(text[text.index("\nWHAT TO TRY NEXT"):])
    bad, link = (json.loads(line) for line in demo.lines if line.startswith("{"))
    assert bad["value"] == 450 and bad["command"] == "caput" and bad["through"] == "CA" and bad["rule"]
    assert link["through"] in ("link", "CA link") and link["link"].startswith("DEMO:")
    assert not left(demo.mark) and not list(tmp_path.iterdir())


def test_columns_of_one_update():
    """camonitor prints the columns of a table one after the other: those of two updates are not mixed."""
    spec = importlib.util.spec_from_file_location("demo", paths.TOP / "tools" / "demo" / "__main__.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    values = demo.Values()

    def update(columns, second, *rows):
        for name in columns:
            values.line("\t".join([f"{demo.MONITOR_P}{name}", f"2026-11-29 12:00:0{second}", str(len(rows)),
                                   *(f"{name} {row}" for row in rows), "", ""]))

    update(demo.PUTS, 1, "a")
    assert values.puts() == [tuple(f"{name} a" for name in demo.PUTS)]
    update(demo.PUTS[:3], 2, "b", "a")
    assert values.puts() == [tuple(f"{name} a" for name in demo.PUTS)]
    update(demo.PUTS[3:], 2, "b", "a")
    assert values.puts() == [tuple(f"{name} {row}" for name in demo.PUTS) for row in "ba"]


def check_offers(text):
    """Each file that the demo names exists."""
    files = re.findall(r"(?:documentation|bin|ebpfMonApp)/[\w./-]*\w", text)
    assert len(files) >= 4 and "make deb" in text, text
    for name in files:
        assert (paths.TOP / name).exists(), name


def check_picture(svg):
    """The picture shows the same as the terminal, with its colours."""
    texts = [(t.get("fill"), t.text) for t in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    late = [c for c, t in texts if "machine-orbit" in t and "  .1 second" in t]
    assert late and set(late) <= {pictures.COLOURS["brown"], pictures.COLOURS["red"]}  # two: beside another demo of this host
    assert any("DEMO:MAG:CURRENT:SET" in t for _, t in texts)
    assert any(c == pictures.COLOURS["red"] and 'rule "currents"' in t for c, t in texts)


def test_in_a_terminal(tmp_path):
    """The screen begins with the puts and their writers. The key q ends the demo. The last screen and the suggestions
    stay on the terminal."""
    mark = str(uuid.uuid4())
    screen = Terminal([*NO_REALTIME, sys.executable, paths.TOP / "tools" / "demo", "100"],
                      {**os.environ, MARK: mark, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}, 60, 160)
    try:
        screen.wait(lambda t: re.search(r"^PUTS, newest first.*DEMO:MAG:CURRENT:SET.*^UNEXPECTED PUTS.*^SCAN THREADS.*^  machine",
                                        t, re.M | re.S), "the puts, and what is late", 40)
        screen.wait(lambda t: 'rule "currents": 450 is not 200 or less' in t, "the unexpected put", 30)
        assert screen.colour(re.search(r"machine-orbit\S* +\.1", screen.text)[0]) in ("brown", "yellow", "red")  # red: more than twice its period, on a busy host
        check_picture(pictures.draw_screen(screen.cells()))
        screen.type("q")
        until(lambda: screen.ended() is not None, 30, lambda: f"its end\n{screen.text}")
        assert screen.status == 0, screen.text
        check_offers(screen.text[screen.text.index("WHAT TO TRY NEXT"):])
        assert not left(mark) and not list(tmp_path.iterdir())
    finally:
        screen.close()


def test_terminated(demo, tmp_path):
    until(lambda: any(l.startswith("demo: the monitor runs") for l in demo.lines), 60,
          lambda: f"the monitor runs\n{demo.output()}")
    assert len(left(demo.mark)) > 4
    demo.signal(signal.SIGTERM)
    until(lambda: not demo.running, 60, lambda: f"the end of the demo\n{demo.output()}")
    assert demo.wait() == 128 + signal.SIGTERM
    assert not left(demo.mark) and not list(tmp_path.iterdir())
