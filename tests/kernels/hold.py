# SPDX-License-Identifier: BSD-3-Clause
"""Checks how long our programs hold a real-time thread of an IOC in the emulated machine (hold.sh). Its clock counts
instructions, one each ns. A machine that is not emulated executes more in a ns, but waits now and then for its memory: how
long that is at the 99.99 % point, this does not tell."""
import re

from tests.bench.hold import WHAT, database

from .check import Checks

__all__ = "check", "database", "table"

LIMIT = 50000  # ns that a thread may be held longer, at the 99.99 % point
ROUNDS = "alone", "watched", "changing"
# Older kernels let a thread that runs into a probe wait while they set or remove it, and that takes a grace period
# (security.md): nothing that the monitor can prevent.
SETS_WITHOUT_WAITING = 6, 12
COLUMNS = "50 %", "99 %", "99.99 %", "longest"


def measured(said, name):
    """What the thread does → ns by COLUMNS."""
    return dict(zip(WHAT, ([int(n) for n in line.split()] for line in said.get(name, "").split("\n"))))


def table(said):
    """Returns the figures as text: not watched → watched, in us."""
    rounds = [measured(said, name) for name in ROUNDS]
    lines = [f"  {'us: ' + ', '.join(ROUNDS):28}" + "".join(f"{c:>24}" for c in COLUMNS)]
    for what in WHAT:
        columns = zip(*(r.get(what, []) for r in rounds))
        cells = "".join(f"{', '.join(f'{n / 1e3:.1f}' for n in ns):>24}" for ns in columns)
        lines.append(f"  {what:28}{cells}")
    return "\n".join(lines)


def check(said, _start=False):
    """Returns the checks: (name, whether it passed, what was seen)."""
    checks = Checks(said)
    kernel = tuple(int(n) for n in re.findall(r"\d+", said.get("uname", "0 0"))[:2])
    isOld = kernel < SETS_WITHOUT_WAITING
    alone = measured(said, "alone")
    says = "\npart changes" in said.get("check", "")
    checks.add("--check says whether a change of level may hold a thread", says == isOld, said.get("check"))
    checks.has("the IOC is watched at level chains", "level", "chains")
    for name in ROUNDS[1:2] if isOld else ROUNDS[1:]:
        seen = measured(said, name)
        for what in WHAT:
            before, after = alone.get(what, []), seen.get(what, [])
            isShort = len(before) == len(after) == len(COLUMNS) and after[2] - before[2] < LIMIT
            checks.add(f"{name}: {what}: held less than {LIMIT // 1000} us longer at the 99.99 % point", isShort,
                       f"{before} -> {after} ns")
    return checks.results
