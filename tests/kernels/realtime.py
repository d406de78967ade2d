# SPDX-License-Identifier: BSD-3-Clause
"""Checks the answers of the emulated machine (realtime.sh): threads that preempted each other in the middle of our programs."""
import re

from .check import NO_MARK, Checks, losses, own

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


def wrong_counts(said, name, bounds):
    """What is wrong with the counts of a round: each record has counted itself. "": nothing. With "bounds", a count that is
    too low and marked as a lower bound is right."""
    was, now = own(said, f"counters {name} before"), own(said, f"counters {name} after")
    seen0, seen = counted(said, f"counted {name} before"), counted(said, f"counted {name} after")
    wrong = []
    for record, n in now.items():
        truth, (count, marked) = n - was.get(record, 0), seen.get(record, (0, False))
        count -= seen0.get(record, (0, False))[0]
        if count != truth and not (bounds and marked and count < truth):
            wrong.append(f"{record} {count} for {truth:.0f}{' (marked)' if marked else ''}")
    if not now or not any(now[r] > was.get(r, 0) for r in now):
        return f"round {name}: no record processed"
    return wrong and f"round {name}: {len(wrong)} of {len(now)} wrong: {', '.join(wrong)}"


def wrong_puts(said, name):
    """The same for the number of puts. Each that is not there must have been counted as lost."""
    puts = number(said, f"puts {name} after") - number(said, f"puts {name} before")
    lost = sum(losses(said, f"losses {name} after").values()) - sum(losses(said, f"losses {name} before").values())
    made = number(said, f"made {name}") + 2  # realtime.sh makes two
    return "" if made > 20 and made - lost <= puts <= made else f"round {name}: {puts} of {made}, {lost:.0f} events lost"


def wrong_syscalls(said, name):
    """The same for the query of system calls: the threads say how often they slept. What the kernel left out is in _DROPPED_CNT."""
    (seen0, dropped0), (seen, dropped) = (
        [int(n) for n in re.findall(r"(?m)^\d+$", said.get(f"syscalls {name} {when}", ""))[:2]] or [0, 0]
        for when in ("before", "after"))
    made = int((said[f"made {name}"].split() + ["0", "0"])[1])
    seen, dropped = seen - seen0, dropped - dropped0
    return "" if made > 20 and made - dropped <= seen <= made else f"round {name}: {seen} of {made}, {dropped} dropped"


def check(said, _start=False):
    """Returns the checks: (name, whether it passed, what was seen)."""
    checks = Checks(said)
    checks.add("the kernel's log has no harm", "done" in said and not [line for text in said.values() for line in
               text.split("\n") if HARM.search(line)], next((line for text in said.values() for line in text.split("\n")
                                                             if HARM.search(line)), "it did not come to its end"))
    checks.has("the IOC and the monitor live", "alive", "IOC", "monitor")
    checks.has("threads of the IOC have real-time priorities", "threads", r"scan-0\.1: \d+ 1\b")
    checks.add("STATE is Running", said.get("end STATE") == "Running", said.get("STATE_MSG", ""))
    rounds = [name.removeprefix("made ") for name in said if name.startswith("made ")]
    for level in LEVELS:
        of_level = [r for r in rounds if r.split()[0] == level]
        if of_level or not rounds:
            for what, bounds in ((f"level {level}: all counts are right", True), (f"{NO_MARK}: level {level}", False)):
                wrong = [text for r in of_level for text in [wrong_counts(said, r, bounds)] if text]
                checks.add(what, of_level and not wrong, "; ".join(wrong))
            wrong = [text for r in of_level for text in [wrong_puts(said, r)] if text]
            checks.add(f"level {level}: all puts are seen, or counted as lost", of_level and not wrong, "; ".join(wrong))
    wrong = [text for r in rounds for text in [wrong_syscalls(said, r)] if text]
    checks.add("query Q_SYSCALL: all calls are seen, or counted as dropped", rounds and not wrong, "; ".join(wrong))
    memory = [number(said, f"memory {r}") for r in rounds]
    if len(memory) >= 12:
        third = len(memory) // 3
        checks.add("the memory stays", max(memory[-third:]) <= max(memory[third:-third]) + 1, f"MEM in MiB by round: {memory}")
    for name in QUERIES:  # stacks need a newer kernel than 5.10
        isRefused = "need kernel" in said.get(f"{name}_MSG", "")
        checks.has(f"query {name} counted, or says which kernel it needs", f"{name}_EVENT_CNT", "0" if isRefused else r"[1-9]")
    return checks.results
