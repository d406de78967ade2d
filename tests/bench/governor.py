# SPDX-License-Identifier: BSD-3-Clause
"""Does the monitor keep its budget while the load of an IOC jumps?

Two equal IOCs get the same load. The monitor watches one of them, by its defaults. Each phase has one of five loads: nothing,
or 100 to 100,000 processings a second in chains of one record, ten times a second. The order is random. What watching takes is
the CPU time of the threads that process records (/proc/PID/task/TID/schedstat), less that of the same threads of the other
IOC in the same second. After each phase the counts of all records are compared with what the records counted themselves. A
phase in which the level was below counts is not compared.

One row for each phase: what watching took and what COST said, in percent of one core, means of its second half; the level and
the part of the time in which chains were timed at its end; how often the monitor changed one of them in the first 60 s and later;
for how many seconds more than the budget was taken. EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.governor [--minutes N] [--phase SECONDS] [--budget PERCENT] [--seed N] [--markdown]
"""
import argparse
import os
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import ca, db  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.wait import settled, until  # noqa: E402

from .run import table  # noqa: E402

GROUPS = 10, 100, 1_000, 10_000  # records that process ten times a second while their group is on
SETTLED = 60  # s; changes after so long are counted apart
LEVELS = "off", "puts", "counts", "chains", "trace"


def database():
    text = db.READY
    for size in GROUPS:
        text += db.record("ao", f"ON{size}")
        text += db.record("calcout", f"GO{size}", SCAN=".1 second", INPA=f"$(P)ON{size}", CALC="A", OOPT="When Non-zero", OEVT=f"E{size}")
        text += "".join(db.counter(f"E{size}:{i}", SCAN="Event", EVNT=f"E{size}") for i in range(size))
    return text


class LoadedIoc(Ioc):
    """An IOC whose load is chosen while it runs."""

    def start(self):
        super().start()
        self.threads = [t / "schedstat" for t in Path(f"/proc/{self.pid}/task").iterdir()
                        if (t / "comm").read_text().startswith(("cb", "scan-"))]
        assert len(self.threads) >= 8, "the IOC has no threads for callbacks and scan lists"
        return self

    def cpu(self):
        """CPU time of its threads that process records, or look at lists without records; s."""
        return sum(int(t.read_text().split()[0]) for t in self.threads) / 1e9

    def load(self, size):
        for group in GROUPS:
            ca.put(f"{self.prefix}ON{group}", int(group == size))

    def counted(self):
        """What the groups have counted, after they stopped: size → VAL of the first record."""
        def look():
            return {size: int(ca.get(f"{self.prefix}E{size}:0")) for size in GROUPS}

        return settled(look, 10, quiet=0.5)


class Trial:
    def __init__(self, tmp, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.ioc, self.twin = (LoadedIoc(tmp, database()).start() for _ in range(2))
        self.monitor = Monitor(tmp, iocs=self.ioc.name, budget=args.budget).start()
        self.monitor.wait_ioc(self.ioc)
        self.begin, self.seconds = time.monotonic(), []  # seconds: load, taken, said, level, timed

    def end(self):
        self.monitor.stop()
        for ioc in self.ioc, self.twin:
            ioc.kill()

    def state(self):
        """Level and percent of the time."""
        m = self.monitor
        return m.list("IOC_LEVELS")[0], m.list("IOC_TIMED")[0]

    def counts(self):
        """record → what the monitor counted, and what the record counted."""
        true = self.ioc.counted()
        seen = until(lambda: self.monitor.records(self.ioc.name, f"{self.ioc.prefix}E*"), 10, "the counts")
        assert len(seen) == sum(GROUPS), f"{len(seen)} records in the table, not {sum(GROUPS)}"
        return {name: (c.count, true[int(name[len(self.ioc.prefix) + 1:].split(":")[0])]) for name, c in seen.items()}

    def run_phase(self, size, seconds):
        """Yields its row."""
        before, began = self.counts(), time.monotonic()
        for ioc in self.ioc, self.twin:
            ioc.load(size)
        rows, end = [], time.monotonic() + seconds
        cpu, at = (self.ioc.cpu(), self.twin.cpu()), time.monotonic()
        while time.monotonic() < end:
            time.sleep(max(0, at + 1 - time.monotonic()))  # the length of a sample
            now, used = time.monotonic(), (self.ioc.cpu(), self.twin.cpu())
            level, timed = self.state()
            rows.append((size * 10, ((used[0] - cpu[0]) - (used[1] - cpu[1])) / (now - at) * 100, self.monitor.get("COST"), level, timed))
            cpu, at = used, now
        for ioc in self.ioc, self.twin:
            ioc.load(0)
        after = self.counts()
        self.seconds += rows
        return self.row(began, rows, before, after)

    def row(self, began, rows, before, after):
        chosen = [(r[3], r[3] == "chains" and r[4] > 0) for r in rows]
        changes = [i for i in range(1, len(rows)) if chosen[i] != chosen[i - 1]]
        half = rows[len(rows) // 2:]
        wrong = [n for n in after if after[n][0] - before[n][0] != after[n][1] - before[n][1]]
        counted = all(LEVELS.index(r[3]) >= 2 for r in rows)
        number = sum(after[n][1] - before[n][1] for n in after)
        verdict = "not counted" if not counted else f"{number:,} exact" if not wrong else f"{len(wrong)} records differ"
        return [f"{(began - self.begin) / 60:.1f}", f"{rows[0][0]:,}", str(len(rows)), f"{statistics.mean(r[1] for r in half):.2f}",
                f"{statistics.mean(r[2] for r in half):.2f}", rows[-1][3], f"{rows[-1][4]:.1f}",
                str(sum(i < SETTLED for i in changes)), str(sum(i >= SETTLED for i in changes)),
                str(sum(r[1] > self.args.budget for r in rows)), verdict]

    def summary(self):
        taken = [s[1] for s in self.seconds]
        yield f"{len(taken)} s: {statistics.mean(taken):.2f} % taken in the mean, budget {self.args.budget:g} %"
        over = [t for t in taken if t > self.args.budget]
        yield f"more than the budget in {len(over) / len(taken):.1%} of the seconds, {statistics.mean(over or [0]):.2f} % in their mean"
        for load in sorted({s[0] for s in self.seconds}):
            found = [s for s in self.seconds if s[0] == load]
            true, said = statistics.mean(s[1] for s in found), statistics.mean([s[2] for s in found if s[2] == s[2]] or [0])
            yield (f"{load:,} a second: {true:.3f} % taken, {said:.3f} % said; " +
                   ", ".join(f"{level} {n / len(found):.0%}" for level in LEVELS if (n := sum(s[3] == level for s in found))))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--phase", type=float, default=60, help="mean length of a phase, s: each is 0.5 to 1.5 times as long")
    arguments.add_argument("--budget", type=float, default=1)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    rows = [["minute", "processings/s", "s", "took %", "COST %", "level", "timed %", "changes", "later", "s over", "counts"]]
    with tempfile.TemporaryDirectory() as tmp:
        trial = Trial(Path(tmp), args)
        size = 0
        while time.monotonic() < trial.begin + args.minutes * 60:
            size = trial.random.choice([s for s in (0, *GROUPS) if s != size])
            rows.append(trial.run_phase(size, args.phase * trial.random.uniform(0.5, 1.5)))
            print(*rows[-1], sep="  ", flush=True)
        trial.end()
    print(f"\nLoads that jump, budget {args.budget:g} %; kernel {platform.release()}, {os.cpu_count()} CPUs, "
          f"load {os.getloadavg()[0]:.1f}\n")
    table(rows, args.markdown)
    print("", *trial.summary(), sep="\n")


if __name__ == "__main__":
    main()
