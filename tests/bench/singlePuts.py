# SPDX-License-Identifier: BSD-3-Clause
"""Measures the time from a put until a client (putTime.c) gets an event: of the record itself, or of a PV of the monitor."""
import os
import subprocess

from tests.harness import loopback, paths

loopback.use()  # the client finds all servers of this process

PUT_TIME = paths.BENCH_BIN / "putTime"
LONGEST = 0.1  # s that a put takes, with the pause before it


def measure(record, shown, number):
    """Puts `number` times to `record`. Returns the times (ms) from each put to the event of `shown`, sorted."""
    done = subprocess.run([PUT_TIME, record, shown, str(number)], env=os.environ.copy(), capture_output=True, text=True,
                          timeout=30 + number * LONGEST, check=False)
    took = sorted(int(us) / 1e3 for us in done.stdout.split())
    assert len(took) == number, done.stderr
    return took


def quantile(values, q):
    """Returns the quantile q of sorted values."""
    return values[min(int(len(values) * q), len(values) - 1)]
