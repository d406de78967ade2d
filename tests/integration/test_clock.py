# SPDX-License-Identifier: BSD-3-Clause
"""The clock of an IOC goes back by an hour. Base repeats its last time then, so no time stamp changes, although records process.
Counts that are too low say that they are lower bounds. (That the clock of the host goes back is tried in an emulated machine:
tests/kernels.)"""
import pytest
from tests.harness import db
from tests.harness.wait import settled, stays_false, until

RECORDS = db.READY + db.counter("A", FLNK="$(P)B") + db.counter("B") + db.counter("C") + db.counter("SCANNED", SCAN=".1 second")
NAMES = ("A", "B", "C", "SCANNED")


@pytest.fixture
def ioc(new_ioc):
    """Its clock is an hour later than that of the host."""
    ioc = new_ioc(RECORDS, kind="roadsIoc").start()
    ioc.command("roadsClock 3600")
    return ioc


def process(ioc, times):
    scans = ioc.get("SCANNED")
    for _ in range(times):
        for name in ("A", "C"):
            ioc.put(f"{name}.PROC", 1)
    until(lambda: ioc.get("SCANNED") > scans + 2, 20, "scans")


def are_marked(monitor, ioc):
    records = monitor.records(ioc.name)
    return [ioc.prefix + name in records and "atleast" in records[ioc.prefix + name].flags for name in NAMES]


@pytest.mark.parametrize("level", ["counts", "chains"])
@pytest.mark.parametrize("when", ["watched", "before the monitor"])
def test_clock_goes_back(ioc, new_monitor, level, when):
    monitor = new_monitor()
    if when == "watched":
        monitor.start().at_level(level, ioc)
    process(ioc, 3)
    ioc.command("roadsClock 0")
    process(ioc, 3)
    if when != "watched":
        monitor.start().at_level(level, ioc)
    process(ioc, 3)
    until(lambda: all(are_marked(monitor, ioc)), 10, lambda: f"{monitor.records(ioc.name)}")
    assert all(monitor.records(ioc.name)[ioc.prefix + name].count <= ioc.get(name) for name in NAMES)


def test_clock_runs_ahead(ioc, new_monitor):
    """A clock that is only later than that of the host is no reason to doubt the counts."""
    monitor = new_monitor().start().at_level("counts", ioc)
    process(ioc, 1)

    def read():
        records = monitor.records(ioc.name)
        return [(ioc.get(name), records[ioc.prefix + name].count) for name in NAMES[:3]]

    before = settled(read, 20)
    process(ioc, 20)
    after = settled(read, 20)
    assert [(own[0] - old[0], own[1] - old[1]) for own, old in zip(after, before)] == 3 * [(20, 20)]
    assert stays_false(lambda: any(are_marked(monitor, ioc)), 4)
