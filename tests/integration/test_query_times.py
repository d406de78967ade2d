# SPDX-License-Identifier: BSD-3-Clause
"""The wall-clock times of single events are those of the kernel's own tracer."""
import bisect
import os
import statistics
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from tests.harness.ftrace import TRACEFS, Ftrace
from tests.harness.queries import latency_ioc, rows, start, stop, watch
from tests.harness.wait import until

WAITS = {"name": "WAITS", "source": {"cpuWait": True}, "of": {"thread": "CAS-client"}, "keys": ["tid"], "events": True, "budget": 100}
NEAR = 1000    # ns: the two agree, except where something takes the CPU away between the two readings
FAR = 100000   # ns: no event of the tracer belongs to this one. The waits are 2 ms apart
pytestmark = pytest.mark.skipif(not (TRACEFS / "instances").is_dir(), reason="the kernel has no tracer")


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return latency_ioc(module_ioc, 1)


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    return watch(module_monitor, ioc, tmp_path_factory, [WAITS])


@pytest.fixture
def no_idle_cpu():
    """A process for each CPU that always wants it, less than any other: the tracer misses many switches from an idle CPU."""
    def low(cpu):
        os.sched_setaffinity(0, {cpu})
        os.nice(19)

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda cpu=cpu: low(cpu))
            for cpu in os.sched_getaffinity(0)]
    yield
    for process in busy:
        process.kill()
        process.wait()


def unix_ns(text):
    """2026-03-01 12:00:00.123456789, local time."""
    return int(datetime.fromisoformat(text[:19]).timestamp()) * 10**9 + int(text[20:])


@pytest.mark.parametrize("first", ["tracer", "query"])
def test_times_of_waits(ioc, monitor, no_idle_cpu, first):
    """A thread that sleeps 200 times: the end of each wait for a CPU is the moment at which the kernel switches to it. Who began first
    is called first at each switch, and reads the time first. So the moment itself is not after the earlier reading, and if the query
    is first, it is nearer to it than the tracer is."""
    ioc.put("NAPS.DESC", "connected")
    tids = {t.name for t in Path(f"/proc/{ioc.pid}/task").iterdir() if (t / "comm").read_text() == "CAS-client\n"}
    if first == "query":
        start(monitor, "WAITS")
    with Ftrace("sched/sched_switch", " || ".join(f"next_pid == {tid}" for tid in tids)) as trace:
        if first == "tracer":
            start(monitor, "WAITS")
        ioc.put("NAPS.PROC", 1, wait=True)
        until(lambda: len(rows(monitor, "WAITS", "EV_TIMES")) == 100, 20, lambda: str(len(rows(monitor, "WAITS", "EV_TIMES"))))
        truth = trace.times()
    found = [unix_ns(text) for text, key in rows(monitor, "WAITS", "EV_TIMES", "EV_KEY1S") if key in tids]
    stop(monitor, "WAITS")
    off = [min((t - near for near in truth[max(0, bisect.bisect(truth, t) - 1):][:2]), key=abs) for t in found]
    off = sorted((ns for ns in off if abs(ns) < FAR), key=abs)
    print(f"{first} first: {len(off)} of {len(found)} events: later by {statistics.median(off):.0f} ns (median), 90 % by less than "
          f"{abs(off[len(off) * 9 // 10])} ns, the worst {off[-1]} ns")
    assert len(off) >= 80 and statistics.median(map(abs, off)) < NEAR, off
    assert (statistics.median(off) > 0) == (first == "tracer"), off
