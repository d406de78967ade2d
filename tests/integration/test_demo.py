# SPDX-License-Identifier: BSD-3-Clause
"""The demo without a terminal: what it prints, and that it ends all its processes."""
import json
import os
import re
import signal
import sys
import uuid
from pathlib import Path

import pytest
from tests.harness import paths
from tests.harness.process import Process
from tests.harness.wait import until

MARK = "EBPFMON_TEST_DEMO"


@pytest.fixture
def demo(tmp_path):
    """The demo, started with a mark in its environment. The mark shows which processes it started."""
    mark = str(uuid.uuid4())
    process = Process([sys.executable, paths.TOP / "tools" / "demo"],
                      {**os.environ, MARK: mark, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    process.mark = mark
    yield process
    process.kill()


def left(demo):
    """Processes that it started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={demo.mark}".encode() in path.read_bytes().split(b"\0"):
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
                 r"Running: watching ", r"  machine\S*  pid \d+  EPICS ", r"PUTS   \d+ in all", r"BUSIEST RECORDS   ",
                 r"SLOWEST CHAINS ", r"LATENCY OF ALL CHAINS   [1-9]", r"COST   .* events lost 0$"):
        assert re.search(line, text, re.M), f"{line}\n{text}"
    assert text.index("PUT_BAD_OPEN_CNT 1 MAJOR") < text.index("PUT_BAD_OPEN_CNT 0 NO_ALARM")
    bad, link = (json.loads(line) for line in demo.lines if line.startswith("{"))
    assert bad["value"] == 450 and bad["command"] == "caput" and bad["through"] == "CA" and bad["rule"]
    assert link["through"] in ("link", "CA link") and link["link"].startswith("DEMO:")
    assert not left(demo) and not list(tmp_path.iterdir())


def test_terminated(demo, tmp_path):
    until(lambda: any(l.startswith("demo: the monitor runs") for l in demo.lines), 60,
          lambda: f"the monitor runs\n{demo.output()}")
    assert len(left(demo)) > 4
    demo.signal(signal.SIGTERM)
    until(lambda: not demo.running, 60, lambda: f"the end of the demo\n{demo.output()}")
    assert demo.wait() == 128 + signal.SIGTERM
    assert not left(demo) and not list(tmp_path.iterdir())
