# SPDX-License-Identifier: BSD-3-Clause
"""Measures the time from a put until a client gets an event: of the record itself, or of a PV of the monitor."""
import random
import threading
import time

from tests.harness import loopback

loopback.use()  # before a client library is imported

import epics  # noqa: E402

from tests.harness.wait import until  # noqa: E402

SHORTEST, LONGEST = 0.02, 0.08  # pause between two puts (s), so that no put waits for the one before it


def measure(record, shown, number):
    """Puts `number` times to `record`. Returns the times (ms) from each put to the event of `shown`, sorted."""
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
    """Returns the quantile q of sorted values."""
    return values[min(int(len(values) * q), len(values) - 1)]
