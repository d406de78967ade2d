# SPDX-License-Identifier: BSD-3-Clause
"""Many IOCs end, start and change their level at the same time. The monitor does not wait until old probes and tables
are released."""
import signal
import time

from tests.harness import db
from tests.harness.soak import size, soak
from tests.harness.wait import until

DB = db.READY + db.record("ao", "AO")
MANY = size(12, 24)


def level_of(monitor, iocs):
    rows = monitor.iocs()
    return {rows.get(i.pid, ("", "", 0, "none"))[3] for i in iocs}


def start(new_ioc, n):
    iocs = [new_ioc(DB).start(wait=False) for _ in range(n)]
    for i in iocs:
        i.wait_ready()
    return iocs


def timed(what, condition, seconds):
    began = time.monotonic()
    until(condition, seconds, what)
    took = time.monotonic() - began
    print(f"{what}: {took:.2f} s")
    return took


@soak
def test_many_end_and_start(new_ioc, new_monitor):
    monitor = new_monitor().start()
    first = start(new_ioc, MANY)
    timed(f"{MANY} are watched", lambda: level_of(monitor, first) == {"chains"}, 20)
    pids = {i.pid for i in first}
    for i in first:
        i.process.signal(signal.SIGKILL)
    assert timed(f"{MANY} that ended leave the list", lambda: not pids & set(monitor.iocs()), 10) < 4
    for i in first:
        i.discard()  # a later IOC may use this port
    second = start(new_ioc, MANY)
    assert timed(f"{MANY} that restarted are watched", lambda: level_of(monitor, second) == {"chains"}, 10) < 6
    began = time.monotonic()
    monitor.set_filter(LEVEL="off")
    until(lambda: level_of(monitor, second) == {"off"}, 20, "level off")
    monitor.set_filter(LEVEL="chains")
    until(lambda: level_of(monitor, second) == {"chains"}, 20, "level chains")
    print(f"level off and back: {time.monotonic() - began:.2f} s")
    second[0].put("AO", 3)
    until(lambda: second[0].prefix + "AO" in monitor.list("PUT_PVS"), 5, "the put is seen")
    began = time.monotonic()
    monitor.process.close(60)
    print(f"the monitor ends: {time.monotonic() - began:.2f} s")
