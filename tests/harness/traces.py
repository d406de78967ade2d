# SPDX-License-Identifier: BSD-3-Clause
"""Traces in the text of CHAIN_LOG."""
import re

from .wait import until


def traces(monitor, root):
    """The traces that begin with this record, newest first. Each is a list of lines."""
    blocks = re.split(r"(?m)^(?=\d{4}-)", monitor.lines("CHAIN_LOG"))
    return [b.splitlines() for b in blocks if f": {root} " in b.partition("\n")[0]]


def traced(monitor, root, wanted=lambda lines: True, seconds=10):
    return until(lambda: next((t for t in traces(monitor, root) if wanted(t)), None), seconds,
                 lambda: f"a trace of {root}: {monitor.lines('CHAIN_LOG')[:3000]}")
