# SPDX-License-Identifier: BSD-3-Clause
"""Checks the answers of the emulated machine (realtime.sh): threads that preempted each other in the middle of our programs."""
import re

from .check import Checks, losses, own

LEVELS = "trace", "chains", "counts"
QUERIES = "Q_STACKS", "Q_CALL", "Q_SYSCALL"
# Lines of the kernel's log that say it was harmed: also by a lock that was held too long, or taken in a wrong order.
HARM = re.compile(r"BUG:|Oops|panic|general protection|WARNING:|stall|lockup|scheduling while atomic|blocked for more|possible (?:recursive|circular)")


def counted(said, name):
    """What the monitor counted: record → (count, whether it is marked as a lower bound)."""
    found = re.findall(r"(?m)^(R:\S+)\s+(\d+)\s+\d+\s+\d+\s+(\S.*)$", said.get(name, ""))
    return {record: (int(n), "atleast" in flags) for record, n, flags in found}


def number(said, name):
    found = re.match(r"-?\d+", said.get(name, ""))
    return int(found.group()) if found else 0


def check(said, _start=False):
    """Returns the checks: (name, whether it passed, what was seen)."""
    checks = Checks(said)
    checks.add("the kernel's log has no harm", "done" in said and not [line for text in said.values() for line in
               text.split("\n") if HARM.search(line)], next((line for text in said.values() for line in text.split("\n")
                                                             if HARM.search(line)), "it did not come to its end"))
    checks.has("the IOC and the monitor live", "alive", "IOC", "monitor")
    checks.has("threads of the IOC have real-time priorities", "threads", r"scan-0\.1: \d+ 1\b")
    checks.add("STATE is Running", said.get("end STATE") == "Running", said.get("STATE_MSG", ""))
    for level in [n for n in LEVELS if f"made {n}" in said] or LEVELS:
        was, now = own(said, f"counters {level} before"), own(said, f"counters {level} after")
        seen0, seen = counted(said, f"counted {level} before"), counted(said, f"counted {level} after")
        wrong = []
        for record, n in now.items():
            truth, count = n - was.get(record, 0), seen.get(record, (0, 0))[0] - seen0.get(record, (0, 0))[0]
            if count != truth:
                wrong.append(f"{record} {count} for {truth:.0f}{' (marked)' if seen.get(record, (0, 0))[1] else ''}")
        checks.add(f"level {level}: all counts are right", now and not wrong and any(now[r] > was[r] for r in now),
                   f"{len(wrong)} of {len(now)} wrong: {', '.join(wrong)}")
        puts = number(said, f"puts {level} after") - number(said, f"puts {level} before")
        lost = sum(losses(said, f"losses {level} after").values()) - sum(losses(said, f"losses {level} before").values())
        made = number(said, f"made {level}") + 2  # realtime.sh makes two
        checks.add(f"level {level}: all puts are seen, or counted as lost", made > 100 and made - lost <= puts <= made,
                   f"{puts} of {made}, {lost:.0f} events lost")
    for name in QUERIES:
        checks.has(f"query {name} counted", f"{name}_EVENT_CNT", r"[1-9]")
    return checks.results
