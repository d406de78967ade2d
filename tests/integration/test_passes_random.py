# SPDX-License-Identifier: BSD-3-Clause
"""Anything may happen while passes are watched: puts to fields that control scanning and links, records that are processed from
outside, changes of the level, an IOC that stands still. No count is ever too high, and one that is too low says so."""
import os
import random
import signal
import time

import pytest
from tests.harness import ca, db
from tests.harness.passes import FAST, Trial, busy_database, fast, roots_of  # noqa: F401
from tests.harness.soak import size, soak

pytestmark = soak


def database(choice):
    """The busy database, and 40 records more that are linked and scanned at random."""
    def extra(i):
        return db.counter(f"X{i}", SCAN=choice.choice([*FAST, "Passive"]), PHAS=choice.randrange(3),
                          FLNK=f"$(P)X{i + 1}" if choice.random() < 0.4 else "")

    return busy_database() + "".join(extra(i) for i in range(40)) + db.counter("X40")


class Chaos:
    def __init__(self, trial, choice, marksAll):
        self.trial, self.ioc, self.choice = trial, trial.ioc, choice
        self.procs = ca.pvs(f"{self.ioc.prefix}{n}.PROC" for n in trial.names)
        self.things = [(0.35, self.process), (0.25, self.put("SCAN", [*FAST, *FAST, "Passive", "Event", ".1 second", "I/O Intr"])),
                       (0.1, self.put("PHAS" if marksAll else "HOPR", range(4))), (0.05, self.put("PRIO", ["LOW", "MEDIUM", "HIGH"])),
                       (0.05, self.put("EVNT", ["go", "b"])), (0.03, self.put("DISA", [0, 1])), (0.03, self.put("DISV", [1])),
                       (0.02, self.put("FLNK", ["", *(self.ioc.prefix + n for n in trial.names)])), (0.02, self.put("DESC", ["x"])),
                       (0.01, self.stop), (0.09, self.pause)]

    def process(self):
        self.choice.choice(self.procs).put(1, wait=False)

    def put(self, field, values):
        def do():
            self.ioc.put(f"{self.choice.choice(self.trial.names)}.{field}", self.choice.choice(values),
                         wait=self.choice.random() < 0.2)

        return do

    def pause(self):
        time.sleep(self.choice.random() * 0.02)  # the pace of the load

    def stop(self):
        os.kill(self.ioc.pid, signal.SIGSTOP)
        time.sleep(self.choice.random() * 0.2)  # the length of the fault
        os.kill(self.ioc.pid, signal.SIGCONT)

    def happen(self):
        weights, things = zip(*self.things)
        self.choice.choices(things, weights)[0]()


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor(iocs="none").start()


@pytest.mark.parametrize("seed", range(size(1, 20)))
def test_anything_happens(new_ioc, monitor, fast, seed):
    """No count is too high, and none is too low without a mark. With an odd seed there are puts to PHAS, which mark all counts."""
    choice = random.Random(seed)
    text = database(choice)
    t = Trial(new_ioc, monitor, text, program=fast)
    before = t.stop()
    t.scan()
    chaos = Chaos(t, choice, seed % 2)
    for i in range(size(500, 4000)):
        chaos.happen()
        if i % 100 == 0:
            monitor.set_filter(LEVEL=choice.choice(["counts", "chains", "trace"]))
    after = t.stop()
    assert not t.compare(before, after, "all")
    assert seed % 2 or any("atleast" not in c.flags and c.count > before[1][n].count for n, c in after[1].items())
