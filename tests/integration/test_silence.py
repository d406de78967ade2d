# SPDX-License-Identifier: BSD-3-Clause
"""While nothing happens, no thread of the monitor looks for work once a second; and an event is published at once. Other programs of
this host disturb the silence: each program that starts may be an IOC, and an IOC is followed while it starts. But a
thread that polls does so at all times. So the test measures until each thread was quiet once. While IOCs of another
user run, the test judges only threads that these IOCs do not concern."""
import re
import time
from pathlib import Path

import pytest
from tests.harness import db
from tests.harness.soak import size, soak
from tests.harness.wait import until

WINDOW = 3       # s; longer than a second, and shorter than the 10 s between two looks in a silence
MOST = 0.7       # wake-ups of a thread in a second: a thread that looks each second has 1
MORE = {         # … of threads that may look more often
    "ebpfMonWatchdog": 0.9,
    "ebpfMonFollow": 3,   # every 2 s while there are young processes, and it waits for the reader several times in one look
    "ebpfMonReader": 6,
}
FEW = 2          # programs that start meanwhile; with more there is no silence
LOOKS = 6        # of a reader for one event: when it is woken, and until it sleeps again
ALWAYS = {"ebpfMonEvent", "ebpfMonPacket", "ebpfMonWatchdog"}
SOON = 0.3       # s; a reader that is not woken looks every 10 s
PUTS = size(5, 10)
LATE = size(1, 2)  # so many of them may be later, because the host is busy


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.record("ao", "AO")).start()


@pytest.fixture(scope="module", params=size(["chains"], ["puts", "chains", "trace"]))
def monitor(request, module_monitor, ioc):
    return module_monitor().start().at_level(request.param, ioc)


def started():
    """The number of processes and threads that were started since the host booted. Each program among them is an
    event."""
    return int(re.search(r"(?m)^processes (\d+)", Path("/proc/stat").read_text()).group(1))


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
    least = {}  # (id, name) → wake-ups a second

    def judged():
        others = set(monitor.iocs()) - {ioc.pid, monitor.process.pid}
        return {t: n for t, n in least.items() if t[1] in ALWAYS or not others}

    def is_silent():
        programs, first, begin = started(), wakes(monitor.process.pid), time.monotonic()
        time.sleep(WINDOW)  # s; the length of one measurement
        took, last = time.monotonic() - begin, wakes(monitor.process.pid)
        programs = started() - programs
        if programs > FEW:
            return False
        for thread in last.keys() & first.keys():
            least[thread] = min(least.get(thread, 1e9), (last[thread] - first[thread] - LOOKS * programs) / took)
        for thread in least.keys() - last.keys():  # it has ended
            del least[thread]
        found = judged()
        return found and all(n <= MORE.get(name, MOST) for (_, name), n in found.items())

    until(is_silent, 60, lambda: f"silence; wake-ups a second: {judged()}")
    assert ALWAYS | {"ebpfMonFollow", "ebpfMonPublish"} <= {name for _, name in least}


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
