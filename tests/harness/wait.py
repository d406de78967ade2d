# SPDX-License-Identifier: BSD-3-Clause
"""Tests wait for a condition with a deadline, never for a time. The deadline is generous: a busy host may leave a
process without a CPU for seconds. Who judges how long something took measures it, and runs alone (schedule.py)."""
import time

PATIENCE = 4  # deadlines are for an idle machine, but tests run side by side, and other programs use the CPUs, too
LEAST = 60    # s; no deadline is earlier


class Late(AssertionError):
    """The condition was not true before the deadline."""


def patient(seconds):
    """The deadline for what takes at most so many seconds on an idle machine."""
    return max(LEAST, PATIENCE * seconds)


def until(condition, seconds, what):
    """Waits until condition() is true. Returns its value. "seconds" is the deadline on an idle machine. "what" is a
    text, or a function that returns one: what the test waits for."""
    end = time.monotonic() + patient(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            text = what() if callable(what) else what
            raise Late(f"not within {patient(seconds)} s: {text}")
        time.sleep(0.02)  # between two calls; no result depends on it


def stays_false(condition, seconds):
    """Whether condition() is false for so many seconds: for what must not happen."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


def settled(sample, seconds, quiet=0.6):
    """Returns sample() once it has stayed the same for "quiet" seconds."""
    state = {"value": sample(), "since": time.monotonic()}

    def same():
        value = sample()
        if value != state["value"]:
            state.update(value=value, since=time.monotonic())
        return time.monotonic() - state["since"] >= quiet

    until(same, seconds, lambda: f"it kept changing: {state['value']}")
    return state["value"]
