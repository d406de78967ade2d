# SPDX-License-Identifier: BSD-3-Clause
"""Checks how long our programs hold a real-time thread of an IOC in the emulated machine (hold.sh). Its clock counts
instructions, one each ns. A machine that is not emulated executes one to four in a ns, and waits now and then for its
memory: so a ns here is about as long as a ns there, or longer."""
from tests.bench.hold import WHAT, database

from .check import Checks

__all__ = "check", "database", "table"

LIMIT = 50000  # ns that a thread may be held longer, at the 99.99 % point
COLUMNS = "50 %", "99 %", "99.99 %", "longest"


def measured(said, name):
    """What the thread does → ns by COLUMNS."""
    return dict(zip(WHAT, ([int(n) for n in line.split()] for line in said.get(name, "").split("\n"))))


def table(said):
    """Returns the figures as text: not watched → watched, in us."""
    alone, watched = measured(said, "alone"), measured(said, "watched")
    lines = [f"  {'us, not watched -> watched':26}" + "".join(f"{c:>18}" for c in COLUMNS)]
    for what in WHAT:
        cells = "".join(f"{f'{a / 1e3:.1f} -> {w / 1e3:.1f}':>18}" for a, w in zip(alone.get(what, []), watched.get(what, [])))
        lines.append(f"  {what:26}{cells}")
    return "\n".join(lines)


def check(said, _start=False):
    """Returns the checks: (name, whether it passed, what was seen)."""
    checks = Checks(said)
    alone, watched = measured(said, "alone"), measured(said, "watched")
    checks.has("the IOC is watched at level chains", "level", "chains")
    for what in WHAT:
        before, after = alone.get(what, []), watched.get(what, [])
        checks.add(f"{what}: held less than {LIMIT // 1000} us longer at the 99.99 % point",
                   len(before) == len(after) == len(COLUMNS) and after[2] - before[2] < LIMIT, f"{before} -> {after} ns")
    return checks.results
