# SPDX-License-Identifier: BSD-3-Clause
"""The clock goes back by an hour. Base repeats its last time then, so no time stamp changes, although records process.
Counts that are too low say that they are lower bounds. (That the clock of the host goes back is tried in an emulated machine:
tests/kernels.)"""
import datetime
import time

import pytest
from tests.harness import db
from tests.harness.passes import row
from tests.harness.putlog import PutLog
from tests.harness.wait import settled, until

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
@pytest.mark.parametrize("when", ["watched", "before it is watched"])
def test_clock_goes_back(ioc, watch_only, level, when):
    monitor = watch_only(ioc, level) if when == "watched" else None
    process(ioc, 3)
    ioc.command("roadsClock 0")
    process(ioc, 3)
    monitor = monitor or watch_only(ioc, level)
    process(ioc, 3)
    until(lambda: all(are_marked(monitor, ioc)), 10, lambda: f"{monitor.records(ioc.name)}")
    assert all(monitor.records(ioc.name)[ioc.prefix + name].count <= ioc.get(name) for name in NAMES)


def test_clock_runs_ahead(ioc, watch_only):
    """A clock that is only later than that of the host: all counts are right, but nothing tells that it was not set back."""
    monitor = watch_only(ioc, "counts")
    process(ioc, 1)

    def read():
        records = monitor.records(ioc.name)
        return [(ioc.get(name), records[ioc.prefix + name].count) for name in NAMES[:3]]

    before = settled(read, 20)
    process(ioc, 20)
    after = settled(read, 20)
    assert [(own[0] - old[0], own[1] - old[1]) for own, old in zip(after, before)] == 3 * [(20, 20)]
    until(lambda: all(are_marked(monitor, ioc)), 10, lambda: f"{monitor.records(ioc.name)}")


@pytest.mark.parametrize("level", ["counts", "chains"])
@pytest.mark.parametrize("scan", ["Passive", "1 second"])
def test_clock_of_the_host_went_back(new_ioc, watch_only, level, scan):
    """Before the IOC is watched. Time stamps do go back then, and a record that has not processed since loses one processing, or
    more."""
    text = db.READY + db.counter("A", FLNK="$(P)B") + db.counter("B") + db.counter("C") + db.counter("D", FLNK="$(P)A")
    text += "".join(db.counter(f"R{i}", SCAN="1 second") for i in range(20))
    text += "".join(f'record(aSub, "$(P)LATER{n}") {{ field(SNAM, "stampLater") field(FTA, "STRING") field(INPA, ["$(P){n}"]) }}\n'
                    for n in "ABD")
    ioc = new_ioc(text, kind="latencyIoc").start()
    for n in "DC":
        ioc.put(f"{n}.PROC", 1)
    for n in "ABD":
        ioc.put(f"LATER{n}.PROC", 1)
    monitor = watch_only(ioc, level)
    names = [ioc.prefix + n for n in "ABCD"]
    before = [monitor.records(ioc.name)[n].count for n in names]
    assert before == [0] * 4
    own = [ioc.get(n) for n in "ABCD"]
    if scan == "Passive":
        ioc.put("D.PROC", 1)
    else:
        ioc.put("D.SCAN", scan)
        until(lambda: ioc.get("D") > own[3] + 2, 20, "scans")
    until(lambda: all("atleast" in monitor.records(ioc.name)[n].flags for n in names), 20, lambda: f"{monitor.records(ioc.name)}")
    assert all(monitor.records(ioc.name)[n].count <= ioc.get(n[len(ioc.prefix):]) - o for n, o in zip(names, own))


@pytest.mark.parametrize("level", ["counts", "chains"])
@pytest.mark.parametrize("flnk", [{}, {"FLNK": "$(P)BEHIND"}], ids=["alone", "chain"])
def test_clock_of_the_host_goes_back_while_passes_are_watched(new_ioc, watch_only, level, flnk):
    """Only passes process the record. It loses one processing, and goes on."""
    text = db.READY + db.counter("BEHIND") + db.counter("SCANNED", SCAN=".1 second", **flnk)
    text += "".join(db.counter(f"R{i}", SCAN=".1 second") for i in range(20))
    text += 'record(aSub, "$(P)LATER") { field(SNAM, "stampLater") field(FTA, "STRING") field(INPA, ["$(P)SCANNED"]) }\n'
    ioc = new_ioc(text, kind="latencyIoc").start()
    monitor = watch_only(ioc, level)
    until(lambda: row(monitor, ioc)[0] in ("passes", "turns"), 60, "passes are watched")
    ioc.put("LATER.PROC", 1)

    def lacks():
        counted = monitor.records(ioc.name)[ioc.prefix + "SCANNED"].count
        return ioc.get("SCANNED") - counted

    scans = ioc.get("SCANNED")
    until(lambda: ioc.get("SCANNED") > scans + 30, 30, "scans")
    least = lacks()
    until(lambda: ioc.get("SCANNED") > scans + 60, 30, "scans")
    assert abs(lacks() - least) <= 3


def test_time_namespace(new_ioc, new_monitor, tmp_path):
    """The monitor is in a time namespace, as a container may be: its CLOCK_MONOTONIC is not that of the kernel part. Puts have right
    dates all the same, and what waits goes on."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    monitor = new_monitor(before=[log.command()])
    monitor.launch(["unshare", "--time", "--monotonic", "1000000", "--boottime", "1000000"])
    monitor.wait_state("Running")
    monitor.wait_ioc(ioc)
    began = time.time()
    ioc.put("AO", 42)
    line, = log.next(1, ioc.prefix, 0)
    when = datetime.datetime.fromisoformat(line["time"][:26] + "+00:00").timestamp()
    assert began - 1 < when < time.time() + 1, (began, line)
    assert line["seen"] == "both", line
