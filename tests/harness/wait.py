# SPDX-License-Identifier: BSD-3-Clause
"""Tests wait for a condition with a deadline, never for a fixed time. The deadlines are long, because a busy host may
give a process no CPU for seconds. A test that checks how long something takes measures this time, and runs alone
(schedule.py)."""
import time

PATIENCE = 4  # deadlines are for an idle machine, but tests run side by side, and other programs use the CPUs, too
LEAST = 60    # s; no deadline is earlier
MOST = 120    # s; a deadline is not later than this because of PATIENCE: what takes so long on a busy host will not happen
SOON, SELDOM = 0.05, 0.3  # s between two looks, at first and in a long wait; no result depends on them, but much CPU time


class Late(AssertionError):
    """The condition was not true before the deadline."""


def patient(seconds):
    """The deadline for something that takes at most so many seconds on an idle machine."""
    return max(LEAST, min(PATIENCE * seconds, MOST), seconds)


def until(condition, seconds, what):
    """Waits until condition() is true. Returns its value. "seconds" is the deadline on an idle machine. "what" is a
    text, or a function that returns one: what the test waits for."""
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begin
        if waited > patient(seconds):
            text = what() if callable(what) else what
            raise Late(f"not within {patient(seconds)} s: {text}")
        time.sleep(min(SELDOM, max(SOON, waited / 5)))


def stays_false(condition, seconds):
    """True if condition() is false for so many seconds. For things that must not happen."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return True
        time.sleep(SELDOM)
    return False


def settled(sample, seconds, quiet=0.6):
    """Returns sample() when it has stayed the same for "quiet" seconds. It takes few samples, because a sample may take
    much time."""
    end = time.monotonic() + patient(seconds)
    value, since = sample(), time.monotonic()
    while time.monotonic() - since < quiet:
        time.sleep(quiet / 5)
        now = sample()
        if now != value:
            value, since = now, time.monotonic()
            if since > end:
                raise Late(f"it kept changing for {patient(seconds)} s: {value}")
    return value
