# SPDX-License-Identifier: BSD-3-Clause
"""Prints a line each time that somebody sets the clock of this host, as agents of virtual machines do. Then the monitor marks all
counts as lower bounds, and tests that expect exact ones fail."""
import ctypes
import errno
import os
import select
import time

FLAGS = 3            # TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
IN_2096 = 4000000000


def watch():
    libc = ctypes.CDLL(None, use_errno=True)
    timer = libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK)
    end = (ctypes.c_long * 4)(0, 0, IN_2096, 0)
    while True:
        before = time.time() - time.monotonic()
        if libc.timerfd_settime(timer, FLAGS, end, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        select.select([timer], [], [])
        try:
            os.read(timer, 8)
        except OSError as e:
            if e.errno != errno.ECANCELED:
                raise
        ahead = time.time() - time.monotonic() - before
        print(f"{time.strftime('%H:%M:%S')}: {abs(ahead):.6f} s {'forward' if ahead > 0 else 'back'}", flush=True)


if __name__ == "__main__":
    watch()
