# SPDX-License-Identifier: BSD-3-Clause
"""The wall-clock times of single events are those of the wall clock, and those of the kernel's own tracer."""
import bisect
import os
import statistics
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from tests.harness.ftrace import TRACEFS, Ftrace
from tests.harness.queries import known_calls, rows, start, stop
from tests.harness.wait import until

WAITS = {"name": "WAITS", "source": {"cpuWait": True}, "of": {"thread": "CAS-client"}, "keys": ["tid"], "events": True, "budget": 100}
CLOCK = {"name": "CLOCK", "source": {"syscalls": "duration"}, "keys": ["syscall"], "events": True, "scale": 1, "unit": "ns",
         "where": [{"field": "syscall", "is": "==", "value": "clock_gettime"}, {"field": "thread", "is": "==", "value": "CAS-client"}],
         "budget": 100}
NEAR = 1000    # ns: a time that is right
BETWEEN = 10000  # ns: the same, where the program of the tracer that is called first runs between two readings. The thread has
                 # just got its CPU, so nothing is in the caches: it takes half a microsecond, or on a slow machine five
READINGS = 100 # of the record CLOCK
ROUNDED = 200  # ns: the monitor reads the two clocks at most so far apart
FAR = 100000   # ns: no event of the tracer belongs to this one. The waits are 2 ms apart
needs_tracer = pytest.mark.skipif(not (TRACEFS / "instances").is_dir(), reason="the kernel has no tracer")


ioc, monitor = known_calls(1, [WAITS, CLOCK])


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


def test_times_of_readings_of_the_wall_clock(ioc, monitor):
    """The IOC reads the wall clock by a system call, and the query measures this call. So each reading lies between the begin and the end
    of its event, if the times of events are those of the wall clock. The readings bound by how much they can be wrong."""
    ioc.put("CLOCK.DESC", "connected")
    start(monitor, "CLOCK")
    ioc.put("CLOCK.PROC", 1, wait=True)
    until(lambda: len(rows(monitor, "CLOCK", "EV_TIMES")) == READINGS, 20, lambda: str(len(rows(monitor, "CLOCK", "EV_TIMES"))))
    readings = [int(s) * 10**9 + int(ns) for s, ns in zip(ioc.get("CLOCK.VALA"), ioc.get("CLOCK.VALB"), strict=True)]
    events = sorted((unix_ns(text), int(took)) for text, took in rows(monitor, "CLOCK", "EV_TIMES", "EV_VALUES"))
    stop(monitor, "CLOCK")
    late = [at - read for (at, _), read in zip(events, readings, strict=True)]
    early = [took - ns for ns, (_, took) in zip(late, events, strict=True)]
    took = sorted(took for _, took in events)
    print(f"calls of {took[0]} to {took[-1]} ns, median {took[len(took) // 2]}: the end of a call is {min(late)} to {max(late)} ns after its "
          f"reading, the begin {min(early)} to {max(early)} ns before. So times are wrong by -{min(late)} to {min(early)} ns")
    assert min(late) >= -ROUNDED and min(early) >= -ROUNDED, (late, early)
    assert max(min(late), min(early)) < NEAR, (late, early)


@needs_tracer
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
    # programs of others at this tracepoint (another monitor of this host) may be called between the two, at each switch or at some
    assert len(off) >= 80 and abs(off[len(off) // 10]) < BETWEEN, off
    assert (statistics.median(off) > 0) == (first == "tracer"), off
