# SPDX-License-Identifier: BSD-3-Clause
"""Asks ebpfMonWhy of each prepared fault (tools/whyTrial.sh)."""
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.whyFaults import FAULTS, FINE, SECONDS, Trial
from tests.faults import whyCombined  # noqa: F401  its faults come after those
from tests.harness import ca, paths, process, tables
from tests.harness.process import Process
from tests.harness.wait import Late


def ask(t, q):
    """Asks until the first line is right, at most for SECONDS. Returns the verdict, the last first line, and all that were false."""
    wrong, line, end = [], "", time.monotonic() + SECONDS
    while time.monotonic() < end:
        line = t.why(q.pv, q.client)[0]
        if re.match(q.right, line):
            return ("right" if not wrong else "false before"), line, wrong
        if not line.startswith(FINE) and not (q.also and re.match(q.also, line)) and re.sub(r"\d+", "N", line) not in wrong:
            wrong.append(re.sub(r"\d+", "N", line))
        time.sleep(0.5)
    return ("not known" if line.startswith(FINE) else "false"), line, wrong


def ask_neighbour(t, neighbour):
    pv, client = neighbour if isinstance(neighbour, tuple) else (neighbour, "")
    line, end = "", time.monotonic() + SECONDS
    while time.monotonic() < end:
        line = t.why(pv, client)[0]
        if line.startswith(FINE):
            return ""
        time.sleep(0.5)
    return line


def run(t, name, function):
    steps = function(t)
    try:
        q = next(steps)
        verdict, line, wrong = ask(t, q)
        neighbour = ask_neighbour(t, q.neighbour) if q.neighbour else ""
        if verdict != "right" or neighbour:
            print("    " + "\n    ".join([*t.why(q.pv, q.client), *(f"false: {w}" for w in wrong)]))
        for _ in steps:
            raise AssertionError(f"{name} has two questions")
    except (Late, AssertionError) as e:
        verdict, line, neighbour = "not prepared", str(e).splitlines()[0] if str(e) else "", ""
    print(f"{verdict:13} {name}: {line}" + (f"\n              NEIGHBOUR: {neighbour}" if neighbour else ""), flush=True)
    return {"first": line, "verdict": verdict, "neighbour": neighbour or "fine", "date": tables.today()}


def main(words):
    chosen = [(n, f) for n, f in FAULTS if not words or any(w in n or w == f.__name__ for w in words)]
    found = {}
    repeater = Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    with tempfile.TemporaryDirectory() as tmp:
        t = Trial(Path(tmp))
        own = len(t.made)
        try:
            for name, function in chosen:
                found[name] = run(t, name, function)
                while len(t.made) > own:
                    t.made.pop().discard()
        finally:
            t.discard()
            ca.forget()
            repeater.kill()
            for left in list(process.alive):
                left.kill()
    right = sum(f["verdict"] == "right" for f in found.values())
    false = sum(f["verdict"].startswith("false") for f in found.values())
    ill = sum(f["neighbour"] != "fine" for f in found.values())
    print(f"{right} of {len(found)} right, {false} false, {ill} neighbours that are not ill were called ill")
    if not words:
        tables.record("why", found)
    return 0 if right >= len(found) - 2 and not false and not ill else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
