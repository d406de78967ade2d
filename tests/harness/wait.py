# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for a condition, never for a time."""
import time

PATIENCE = 4  # deadlines are given for an idle machine; tests run side by side, and others may use the machine too


class Late(AssertionError):
    """What was waited for did not come."""


def until(condition, seconds, what):
    """Returns the first true value of condition(). "seconds" is what it may take on an idle machine. "what" is a text,
    or a function that makes one."""
    end = time.monotonic() + PATIENCE * seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            text = what() if callable(what) else what
            raise Late(f"not within {PATIENCE * seconds} s: {text}")
        time.sleep(0.02)  # between two looks; nothing depends on its length


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
