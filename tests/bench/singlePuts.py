# SPDX-License-Identifier: BSD-3-Clause
"""How long one put takes until a client has an event of it: of the record itself, or of a PV of the monitor."""
import random
import threading
import time

from tests.harness import loopback

loopback.use()  # before a client library is imported

import epics  # noqa: E402

from tests.harness.wait import until  # noqa: E402

SHORTEST, LONGEST = 0.02, 0.08  # s between two puts: no put waits for another one


def measure(record, shown, number):
    """ms from the call that puts to `record` until an event of `shown`, sorted."""
    came = threading.Event()
    channel, other = epics.PV(record, auto_monitor=False), epics.PV(shown, auto_monitor=True)
    until(lambda: channel.connected and other.connected and other.get() is not None, 10, "a value")
    other.add_callback(lambda **_: came.set())
    took = []
    for _ in range(number):
        time.sleep(random.uniform(SHORTEST, LONGEST))
        came.clear()
        begin = time.perf_counter()
        channel.put(begin)
        epics.ca.flush_io()
        assert came.wait(10), f"no event of {shown}"
        took.append((time.perf_counter() - begin) * 1e3)
    for pv in channel, other:
        pv.disconnect()
    return sorted(took)


def quantile(values, q):
    """Of sorted values."""
    return values[min(int(len(values) * q), len(values) - 1)]
