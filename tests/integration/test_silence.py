# SPDX-License-Identifier: BSD-3-Clause
"""While nothing happens, no thread of the monitor looks for work once a second; and an event is published at once. Other
programs of this host disturb the silence: each program that starts may be an IOC, and an IOC is followed while it starts.
But a thread that polls does so at all times. So the test waits until each thread has slept for long once. While IOCs of
another user run, the test judges only threads that these IOCs hardly concern, and less strictly."""
import time
from pathlib import Path

import pytest
from tests.harness import db
from tests.harness.soak import size, soak
from tests.harness.wait import until

QUIET = 2.2      # s that each thread sleeps without a wake-up; one that looks each second never does. In a silence: 10 s
LESS = {         # … of threads that may look more often
    "ebpfMonWatchdog": 1.2,  # every 1.5 s
    "ebpfMonFollow": 1.5,    # every 2 s while there are processes younger than 30 s …
    "ebpfMonReader": 1.5,    # … and then it gives jobs to this one
}
DISTURBED = 0.8  # … while IOCs of others come and go, so that something changes each second
STEP = 0.05      # s between two looks at the threads
ALWAYS = {"ebpfMonEvent", "ebpfMonPacket", "ebpfMonWatchdog"}
SOON = 0.3       # s; a reader that is not woken looks every 10 s
PUTS = size(3, 10)
LATE = size(1, 2)  # so many of them may be later, because the host is busy
APART = 0.2        # s from one put to the next: all threads sleep again


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.record("ao", "AO")).start()


@pytest.fixture(scope="module", params=size(["chains"], ["puts", "chains", "trace"]))
def monitor(request, module_monitor, ioc):
    return module_monitor().start().at_level(request.param, ioc)


def wakes(pid):
    """How often each thread of the monitor has waited: (id, name) → number."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "status").read_text()
        except OSError:  # it has ended
            continue
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if status["Name"].startswith("ebpfMon"):
            found[task.name, status["Name"]] = int(status["voluntary_ctxt_switches"])
    return found


@soak
def test_nobody_polls(ioc, monitor):
    last = {}     # (id, name) → number of wake-ups, and since when
    longest = {}  # (id, name) → s without a wake-up

    def have_slept(threads, least):
        return all(s >= LESS.get(name, least) for (_, name), s in threads.items())

    def is_silent():
        for _ in range(200):  # then the monitor is asked for its IOCs, which ends the silence
            time.sleep(STEP)
            now, found = time.monotonic(), wakes(monitor.process.pid)
            for thread, number in found.items():
                if last.get(thread, (None, 0))[0] != number:
                    last[thread] = number, now
                longest[thread] = max(longest.get(thread, 0), now - last[thread][1])
            for thread in longest.keys() - found.keys():  # it has ended
                del longest[thread]
            if have_slept(longest, QUIET):
                return True
        others = set(monitor.iocs()) - {ioc.pid, monitor.process.pid}
        return others and have_slept({t: s for t, s in longest.items() if t[1] in ALWAYS}, DISTURBED)

    until(is_silent, 120, lambda: f"silence; the longest sleep of each thread, s: {longest}")
    assert ALWAYS | {"ebpfMonFollow", "ebpfMonPublish"} <= {name for _, name in longest}


@soak
def test_put_after_a_silence(ioc, monitor):
    """The put is published much sooner than by a look once in a while."""
    late = []
    for i in range(PUTS):
        before = monitor.get("PUT_CNT")
        time.sleep(1.1 + i * 0.07)  # the silence; it ends at different times between two looks
        begin = time.monotonic()
        ioc.put("AO", i)
        until(lambda before=before: monitor.get("PUT_CNT") > before, 10, "the put is published")
        took = time.monotonic() - begin
        if took > SOON:
            late.append(took)
    assert len(late) <= LATE, f"s until the put was published: {late}"


def test_put_wakes_readers_seldom(ioc, monitor):
    """The packet of a put wakes the thread of packets, which wakes that of the events; each looks once or twice more by itself. If
    other programs use all CPUs, an event can find its thread asleep again."""
    def count_wakes():
        total = dict.fromkeys(("ebpfMonPacket", "ebpfMonEvent"), 0)
        for (_, name), number in wakes(monitor.process.pid).items():
            if name in total:
                total[name] += number
        return total

    woken = {}

    def wake_one():
        before, puts, begin = count_wakes(), monitor.get("PUT_CNT"), time.monotonic()
        for i in range(20):
            ioc.put("AO", i)
            time.sleep(APART)  # the pace of the puts
        until(lambda: monitor.get("PUT_CNT") >= puts + 20, 10, "the puts are published")
        woken.update({name: number - before[name] for name, number in count_wakes().items()})
        looks = time.monotonic() - begin + 1  # it looks by itself once a second
        return all(20 <= number <= 60 + 2 * looks for number in woken.values())

    until(wake_one, 20, lambda: f"20 puts wake each thread three times at most; they woke {woken}")
