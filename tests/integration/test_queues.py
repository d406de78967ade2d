# SPDX-License-Identifier: BSD-3-Clause
"""Queues within IOCs (ebpfMonModules/queues). The truth is what Base prints itself: callbackQueueShow, scanOnceQueueShow."""
import os
import re

import pytest
from tests.harness import ca, db, paths, releases
from tests.harness.wait import until

PULSES, EVENTS, ROUNDS = 60, 100, 11
COLUMNS = "IOCS NAMES STATES USEDS SIZES HIGHS OVERFLOW_CNTS FILLERS".split()
MAJOR, MINOR, FINE = 2, 1, 0


def rows(monitor, ioc):
    table = zip(*(monitor.list(f"QUEUE_{c}") for c in COLUMNS))
    return {r[1]: dict(zip(COLUMNS, r)) for r in table if r[0] == ioc.name}


def severity(monitor, name):
    return ca.get(f"{monitor.prefix}{name}.SEVR")


def shown(ioc):
    """Base's own numbers: queue → high-water mark, entries, size, overflows."""
    found = {}
    for line in ioc.command("callbackQueueShow") + ioc.command("scanOnceQueueShow"):
        m = re.match(r" *(cb\w+|scanOnce) +(\d+) +(\d+) +(\d+) +[\d.]+ +(\d+)$", line)
        if m:
            found[m[1]] = tuple(map(int, m.groups()[1:]))
    assert set(found) == {"cbLow", "cbMedium", "cbHigh", "scanOnce"}, ioc.process.output()
    return found


def wait_equal(monitor, ioc):
    """The table has Base's numbers."""
    seen = []

    def equal():
        truth, ours = shown(ioc), rows(monitor, ioc)
        seen[:] = truth, ours
        return all(ours.get(q) and (ours[q]["HIGHS"], ours[q]["USEDS"], ours[q]["SIZES"], ours[q]["OVERFLOW_CNTS"]) == t
                   for q, t in truth.items())

    until(equal, 15, lambda: str(seen))
    return seen[1]


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor().start()


def test_burst_into_a_small_queue(new_ioc, tmp_path, monitor):
    """Pulses that end at the same moment: callbacks are lost. MAJOR with the cause, which goes away."""
    prefix = f"T{os.getpid()}:burst:"
    text = db.READY + "".join(db.record("bo", f"P{i}", HIGH="0.2", FLNK=f"$(P)P{i + 1}" if (i + 1) % PULSES else "", VAL=1)
                              for i in range(10 * PULSES))
    text += db.record("fanout", "ALL", SELM="All", **{f"LNK{i}": f"$(P)P{i * PULSES}" for i in range(1, 10)})
    (tmp_path / "burst.db").write_text(text)
    (tmp_path / "st.cmd").write_text(f'callbackSetQueueSize 10\ndbLoadRecords "{tmp_path}/burst.db" "P={prefix}"\niocInit\n')
    ioc = new_ioc(kind="streamIoc", program=paths.BASE_BIN / "softIoc", prefix=prefix, files=[tmp_path / "st.cmd"]).start()
    monitor.wait_ioc(ioc)
    before = monitor.get("QUEUE_OVERFLOW_CNT")
    assert wait_equal(monitor, ioc)["cbLow"]["SIZES"] == 10
    ioc.put("ALL.PROC", 1)
    monitor.wait("QUEUE_FULL_CNT", lambda n: n == 1)
    assert severity(monitor, "QUEUE_FULL_CNT") == MAJOR
    assert re.search(rf"IOC {ioc.name}: queue cbLow overflowed, [1-9]\d* times since the IOC started; entries: {prefix}P\d+ \d+, ",
                     monitor.text("QUEUE_MSG")), monitor.text("QUEUE_MSG")
    until(lambda: monitor.get("HOST_STATUS") == 2 and "queue cbLow overflowed" in monitor.text("HOST_STATUS_MSG"), 5, lambda: monitor.text("HOST_STATUS_MSG"))
    assert monitor.get("QUEUE_FULL_CNT.AMSG").startswith(f"IOC {ioc.name}: queue cbLow")
    row = wait_equal(monitor, ioc)["cbLow"]
    assert row["OVERFLOW_CNTS"] >= 1 and row["HIGHS"] == 10 and prefix in row["FILLERS"]
    until(lambda: f"IOC {ioc.name}: queue cbLow overflowed" in monitor.lines("IOC_EVENTS"), 10, "event")
    monitor.wait("QUEUE_FULL_CNT", lambda n: n == 0, 30)
    assert severity(monitor, "QUEUE_FULL_CNT") == FINE
    until(lambda: monitor.get("HOST_STATUS") == 0, 20, lambda: monitor.text("HOST_STATUS_MSG"))
    assert monitor.get("QUEUE_OVERFLOW_CNT") - before == wait_equal(monitor, ioc)["cbLow"]["OVERFLOW_CNTS"] >= 1, "it stays"


def test_queue_over_half_and_who_fills_it(new_ioc, monitor):
    """The thread of the queue is in a record; one event fills it. MINOR with the records, which goes away."""
    text = (db.READY + db.record("aSub", "SLOW", SNAM="sleepFor", FTA="DOUBLE", FTVA="DOUBLE", INPA="5000000") +
            db.record("calcout", "HOLD", CALC="VAL+1", ODLY="0.01", OUT="$(P)FAN.PROC PP") +
            db.record("fanout", "FAN", LNK1="$(P)BEGUN.PROC CA", LNK2="$(P)SLOW") + db.counter("BEGUN") +
            db.record("calcout", "ONE", CALC="VAL+1", ODLY="0.01") +
            db.counter("LISTENER", SCAN="Event", EVNT="7") +
            "".join(db.record("event", f"E{i}", VAL="7", FLNK=f"$(P)E{i + 1}" if i + 1 < EVENTS else "") for i in range(EVENTS)))
    ioc = new_ioc(text, kind="latencyIoc").start()
    monitor.wait_ioc(ioc)
    assert wait_equal(monitor, ioc)["cbLow"]["SIZES"] == 2000
    ioc.put("HOLD.PROC", 1, wait=False)
    until(lambda: ioc.get("BEGUN") == 1, 10, "the thread of the queue is in SLOW")
    ioc.put("ONE.PROC", 1, wait=False)
    for _ in range(ROUNDS):
        ioc.put("E0.PROC", 1, wait=False)  # the end of a put-callback would wait in the same queue
    monitor.wait("QUEUE_HALF_CNT", lambda n: n == 1)
    row = until(lambda: (r := rows(monitor, ioc)["cbLow"])["STATES"] == "over half" and r, 5,
                lambda: f"the table, which follows after the counts: {rows(monitor, ioc)}")
    assert row["USEDS"] >= 1100
    assert severity(monitor, "QUEUE_HALF_CNT") == MINOR and monitor.get("QUEUE_FILL_MAX") >= 55
    assert monitor.get("QUEUE_HALF_CNT.AMSG").startswith(f"IOC {ioc.name}: queue cbLow"[:34])
    until(lambda: f"entries: scan list with {ioc.prefix}LISTENER 1100, {ioc.prefix}ONE 1" in monitor.text("QUEUE_MSG"), 10,
          lambda: monitor.text("QUEUE_MSG"))
    monitor.wait("QUEUE_HALF_CNT", lambda n: n == 0, 40)
    assert severity(monitor, "QUEUE_HALF_CNT") == FINE and monitor.get("QUEUE_FULL_CNT") == 0
    assert wait_equal(monitor, ioc)["cbLow"]["HIGHS"] >= 1100
    assert "overflow" not in monitor.text("QUEUE_MSG")


def test_other_builds(new_ioc, monitor, tmp_path):
    """A wheel of Base has symbols; of a stripped library the state says what is missing."""
    wheel = new_ioc(db.READY, kind="pvxs").start()
    monitor.wait_ioc(wheel)
    known = until(lambda: rows(monitor, wheel), 15, lambda: monitor.text("QUEUE_MSG"))
    assert {q: (r["USEDS"], r["SIZES"], r["OVERFLOW_CNTS"]) for q, r in known.items() if q not in ("CA links", "errlog")} == \
        {"cbLow": (0, 2000, 0), "cbMedium": (0, 2000, 0), "cbHigh": (0, 2000, 0), "scanOnce": (0, 1000, 0)}
    assert known["errlog"]["SIZES"] == 1280 and known["CA links"]["USEDS"] == 0
    build = next(b for b in releases.find() if b.kind == "stripped" and b.folder == paths.BASE)
    program, environ = releases.prepare(build, tmp_path)
    bare = new_ioc(db.READY, program=program, environ=environ).start()
    monitor.wait_ioc(bare)
    monitor.wait_text("QUEUE_MSG", lambda t: t.startswith(f"IOC {bare.name}: not known: its files have no symbols"))
    assert not rows(monitor, bare)
