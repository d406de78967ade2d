# SPDX-License-Identifier: BSD-3-Clause
"""The trace of a chain includes the chains that it hands over to other threads: callbacks, scanOnce, events, delays, CP
links."""
import os
import re
import subprocess

import pytest
from tests.harness import db, paths
from tests.harness.traces import traced, traces
from tests.harness.wait import until

QUEUED = 30
DATABASE = "".join([
    db.READY,
    # an event for two records in different lock sets
    db.counter("FIRE", FLNK="$(P)EVENT"), db.record("event", "EVENT", VAL="fired"),
    db.counter("HEARD1", SCAN="Event", EVNT="fired", FLNK="$(P)HEARD1B"), db.counter("HEARD1B"),
    db.counter("HEARD2", SCAN="Event", EVNT="fired"),
    db.counter("TELL", FLNK="$(P)TELLING"), db.record("event", "TELLING", VAL="told"),
    db.out_counter("WRITE", SCAN="Event", EVNT="told", OUT="$(P)WRITTEN PP"), db.record("ao", "WRITTEN"),
    # routines that queue records for a callback thread and for the scanOnce thread
    'record(calc, "$(P)GIVE") { field(CALC, "VAL+1") field(FLNK, "$(P)GIVE1") }\n'
    'record(aSub, "$(P)GIVE1") { field(SNAM, "processByCallback") field(FTA, "STRING") field(INPA, ["$(P)BACK"])'
    ' field(FLNK, "$(P)GIVE2") }\n'
    'record(aSub, "$(P)GIVE2") { field(SNAM, "processOnce") field(FTA, "STRING") field(INPA, ["$(P)ONCE"]) }\n',
    db.counter("BACK", FLNK="$(P)BACK2"), db.counter("BACK2"), db.counter("ONCE"),
    # a driver with its own ring
    'record(aSub, "$(P)DRIVE") { field(SNAM, "processByCallback") field(FTA, "STRING") field(INPA, ["$(P)OWN"]) }\n'
    'record(aSub, "$(P)OWN") { field(SNAM, "popOwn") }\n',
    # a pulse, which ends some time after its chain
    db.counter("PULSE", FLNK="$(P)SWITCH"),
    db.record("bo", "SWITCH", DOL="1", OMSL="closed_loop", HIGH="0.2", FLNK="$(P)SWITCHED"), db.counter("SWITCHED"),
    # two records that can start a longer one
    db.counter("PRESS1", FLNK="$(P)LAMP"), db.counter("PRESS2", FLNK="$(P)LAMP"),
    db.record("bo", "LAMP", DOL="1", OMSL="closed_loop", HIGH="6"),
    # a record that is busy when it should process again
    db.counter("WORK", FLNK="$(P)SLOWLY"), db.out_counter("SLOWLY", ODLY="0.5", FLNK="$(P)WORKED"), db.counter("WORKED"),
    # a callback that ends before the chain that queued it
    'record(aSub, "$(P)LONG") { field(SNAM, "processByCallback") field(FTA, "STRING") field(INPA, ["$(P)QUICK"])'
    ' field(FLNK, "$(P)LONG2") }\n'
    'record(aSub, "$(P)LONG2") { field(SNAM, "sleepFor") field(FTA, "DOUBLE") field(INPA, "30000") field(FTVA, "DOUBLE") }\n',
    db.counter("QUICK"),
    # the reverse: the callback begins after the slow part
    'record(aSub, "$(P)LATE") { field(SNAM, "sleepFor") field(FTA, "DOUBLE") field(INPA, "100000") field(FTVA, "DOUBLE")'
    ' field(FLNK, "$(P)LATE2") }\n'
    'record(aSub, "$(P)LATE2") { field(SNAM, "processByCallback") field(FTA, "STRING") field(INPA, ["$(P)AFTER"]) }\n',
    db.counter("AFTER"),
    # callbacks one after the other: each is queued at about the time when the previous one ends
    db.counter("EDGE", FLNK="$(P)PAUSE0"), *(
        f'record(aSub, "$(P)PAUSE{i}") {{ field(SNAM, "spinFor") field(FTA, "DOUBLE") field(INPA, "$(P)GAP")'
        f' field(FTVA, "DOUBLE") field(FLNK, "$(P)QUEUE{i}") }}\n'
        f'record(aSub, "$(P)QUEUE{i}") {{ field(SNAM, "processByCallback") field(FTA, "STRING") field(INPA, ["$(P)NEXT{i}"])'
        f' field(FLNK, "$(P)PAUSE{i + 1}") }}\n' + db.counter(f"NEXT{i}") for i in range(QUEUED)),
    db.record("ao", "GAP"),
    # CP links: one of two possible sources; the start of the source chain
    db.counter("FROM", FLNK="$(P)SEEN"), db.counter("SEEN"), db.counter("OTHER"),
    db.counter("EVR", FLNK="$(P)STAMPED"), db.counter("STAMPED", FLNK="$(P)COPY"), db.counter("COPY", TSEL="$(P)STAMPED.TIME"),
    db.record("calc", "WATCH3", CALC="VAL+1", INPA="$(P)STAMPED CP", INPB="$(P)OTHER CP"),
    db.record("calc", "WATCH", CALC="VAL+1", INPA="$(P)SEEN CP", INPB="$(P)OTHER CP"),
    # a routine that puts to a record of its own lock set; the second chain only takes its lock set once more
    db.counter("OUTSIDE", FLNK="$(P)PUTS"), db.counter("PLAIN", FLNK="$(P)PEEKS"),
    'record(aSub, "$(P)PUTS") { field(SNAM, "putInside") field(FTA, "STRING") field(INPA, ["$(P)INSIDE"])'
    ' field(FTB, "DOUBLE") field(INPB, "7") field(INPC, "$(P)INSIDE NPP") field(FLNK, "$(P)BEHIND") }\n'
    'record(aSub, "$(P)PEEKS") { field(SNAM, "putInside") field(FTA, "STRING") field(INPA, ["$(P)STILL.DESC"])'
    ' field(FTB, "DOUBLE") field(INPB, "7") field(INPC, "$(P)STILL NPP") }\n',
    db.record("ao", "INSIDE", FLNK="$(P)INSIDE2"), db.counter("INSIDE2"), db.counter("BEHIND"), db.record("ao", "STILL"),
    # … to its own lock set, and to another one
    db.counter("NEAR", FLNK="$(P)PUTS2"), db.counter("AWAY", FLNK="$(P)PUTS3"), db.record("ao", "BESIDE"), db.record("ao", "APART"),
    *(f'record(aSub, "$(P)PUTS{n}") {{ field(SNAM, "putInside") field(FTA, "STRING") field(INPA, ["$(P){to}"])'
      f' field(FTB, "DOUBLE") field(INPB, "7") {tie}}}\n' for n, to, tie in ((2, "BESIDE", 'field(INPC, "$(P)BESIDE NPP") '),
                                                                          (3, "APART", ""))),
    # a record that hands itself over again and again
    'record(aSub, "$(P)AGAIN") { field(SNAM, "processOnce") field(FTA, "STRING") field(INPA, "$(P)SELF") field(SDIS, "$(P)STOP") }\n'
    'record(stringin, "$(P)SELF") { field(VAL, "$(P)AGAIN") field(PINI, "YES") }\n'
    'record(longout, "$(P)STOP") { field(VAL, "1") }\n',
])


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DATABASE, kind="latencyIoc", realtime=False).start()  # test_endless_hand_overs


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    return module_monitor().start().at_level("trace", ioc)


def tree(lines):
    """(depth, link, record) of each line of a trace."""
    found = [re.match(r" +(?:[\d.-]+) ms ( +)(?:(\S+(?: Intr)?) > )?(\S+) \(", line) for line in lines[1:]]
    return [(len(m[1]) // 2, m[2] or "", m[3]) for m in found if m]


def test_event(ioc, monitor):
    p = ioc.prefix
    ioc.put("FIRE.PROC", 1)
    t = traced(monitor, p + "FIRE")
    assert ", 5 records in 3 steps, by put by" in t[0], t
    assert tree(t) == [(0, "", p + "FIRE"), (1, "FLNK", p + "EVENT"), (1, "Event", p + "HEARD1"),
                       (2, "FLNK", p + "HEARD1B"), (1, "Event", p + "HEARD2")], t
    assert re.search(r"^  cb\w+ on CPU .* after [\d.]+ ms in the queue", "\n".join(t), re.M), t
    assert not any("incomplete" in line for line in t), t


def test_writer_of_handed_over_puts(ioc, monitor):
    """A put in a chain that was handed over has the same writer as a put in its source chain."""
    p = ioc.prefix

    def written(by):
        return re.search(rf" {p}WRITTEN .*link {p}WRITE.OUT, chain of {p}WRITE, Event, chain of {p}TELL, {by}",
                         monitor.lines("PUT_LOG"))

    ioc.put("TELL.PROC", 1)
    until(lambda: written("put by [^@ ]+@"), 10, lambda: monitor.lines("PUT_LOG")[:2000])
    ioc.put("TELL.SCAN", ".5 second")
    until(lambda: written("scan 0.5 second"), 10, lambda: monitor.lines("PUT_LOG")[:2000])
    ioc.put("TELL.SCAN", "Passive")


@pytest.mark.parametrize("scan", [False, True])
@pytest.mark.parametrize("root, target", [("NEAR", "BESIDE"), ("AWAY", "APART")])
def test_puts_of_a_routine(ioc, monitor, root, target, scan):
    """They are the routine's, in the chain that the client began; not those of the client."""
    p = ioc.prefix
    if scan:
        ioc.put(f"{root}.SCAN", ".5 second")
        by = "scan 0.5 second"
    else:
        ioc.put(f"{root}.PROC", 1)
        by = "put by [^@ ]+@"
    try:
        until(lambda: re.search(rf" {p}{target} .*\((?!CA )[^\n]*chain of {p}{root}, {by}", monitor.lines("PUT_LOG")), 10,
              lambda: monitor.lines("PUT_LOG")[:3000])
    finally:
        ioc.put(f"{root}.SCAN", "Passive")


@pytest.mark.parametrize("level", ["puts", "counts"])
def test_puts_of_a_routine_without_chains(ioc, monitor, level):
    """Where no chain is watched, it is a put of the routine because the message of the client has made another put before."""
    p = ioc.prefix
    monitor.at_level(level)
    monitor.wait_ioc(ioc, level=level)
    try:
        ioc.put("NEAR.PROC", 1)
        until(lambda: re.search(rf" {p}BESIDE .*\((?!CA )[^\n]*chain of {p}NEAR, put by [^@ ]+@", monitor.lines("PUT_LOG")), 10,
              lambda: monitor.lines("PUT_LOG")[:3000])
    finally:
        monitor.set_filter(LEVEL="trace")
        monitor.wait_ioc(ioc, level="trace")


@pytest.mark.parametrize("scan", [False, True])
def test_put_within_the_lock_set(ioc, monitor, scan):
    """What a routine makes process by dbPutField in its own lock set is counted. The trace says that it lacks it."""
    p = ioc.prefix
    for root, missing in (("OUTSIDE", True), ("PLAIN", False)):
        before = ioc.get(root)
        if scan:
            ioc.put(f"{root}.SCAN", ".5 second")
            t = traced(monitor, p + root, lambda lines: "by scan" in lines[0], 20)
            ioc.put(f"{root}.SCAN", "Passive")
        else:
            ioc.put(f"{root}.PROC", 1)
            t = traced(monitor, p + root)
        assert ioc.get(root) > before
        assert [name for _, _, name in tree(t)] == [p + name for name in (
            ("OUTSIDE", "PUTS", "BEHIND") if missing else ("PLAIN", "PEEKS"))], t
        assert any(line == "  incomplete: not all that belongs to it was kept" for line in t) == missing, t
    assert ioc.get("INSIDE") == 7 and ioc.get("INSIDE2") == ioc.get("OUTSIDE")


def test_callback_and_once(ioc, monitor):
    p = ioc.prefix
    ioc.put("GIVE.PROC", 1)
    t = traced(monitor, p + "GIVE")
    assert tree(t)[:3] == [(0, "", p + "GIVE"), (1, "FLNK", p + "GIVE1"), (2, "FLNK", p + "GIVE2")], t
    assert sorted(tree(t)[3:]) == sorted([(1, "callback", p + "BACK"), (2, "FLNK", p + "BACK2"),
                                          (1, "scanOnce", p + "ONCE")]), t
    assert sum("in the queue" in line for line in t) == 2, t


def test_own_ring(ioc, monitor):
    """A callback that takes an element out of another ring has not ended."""
    p = ioc.prefix
    ioc.put("DRIVE.PROC", 1)
    t = traced(monitor, p + "DRIVE", seconds=5)
    assert tree(t) == [(0, "", p + "DRIVE"), (1, "callback", p + "OWN")], t


def test_pulse(ioc, monitor):
    """HIGH of a bo makes the record itself process later."""
    p = ioc.prefix
    ioc.put("PULSE.PROC", 1)
    t = traced(monitor, p + "PULSE")
    assert tree(t) == [(0, "", p + "PULSE"), (1, "FLNK", p + "SWITCH"), (2, "FLNK", p + "SWITCHED"),
                       (2, "callback", p + "SWITCH"), (3, "FLNK", p + "SWITCHED")], t
    assert " = 1" in t[2] and " = 0" in t[4], t
    assert 180 < float(re.search(r"([\d.]+) ms later, in cb", t[4])[1]) < 400, t  # on a busy host the timer is late


def test_busy_when_put_to(ioc, monitor):
    """A record that a put reached while it was busy processes once more (RPRO)."""
    p = ioc.prefix
    ioc.put("WORK.PROC", 1, wait=False)
    until(lambda: ioc.get("SLOWLY.PACT") == 1, 5, "SLOWLY is busy")
    ioc.put("SLOWLY.PROC", 1, wait=False)
    t = traced(monitor, p + "WORK")
    assert tree(t) == [(0, "", p + "WORK"), (1, "FLNK", p + "SLOWLY"), (2, "async", p + "SLOWLY"), (3, "FLNK", p + "WORKED"),
                       (3, "scanOnce", p + "SLOWLY"), (4, "async", p + "SLOWLY"), (5, "FLNK", p + "WORKED")], t


def test_callback_ends_before_source_chain(ioc, monitor):
    p = ioc.prefix
    ioc.put("LONG.PROC", 1)
    t = traced(monitor, p + "LONG")
    assert tree(t) == [(0, "", p + "LONG"), (1, "FLNK", p + "LONG2"), (1, "callback", p + "QUICK")], t
    assert not any("incomplete" in line for line in t), t


def test_callback_comes_while_thread_looks(ioc, monitor):
    """The thread looks into the ring for the next callback. The ring was empty when this began, but a callback came
    before the thread looked."""
    p = ioc.prefix
    seen = set()
    for n in range(40):
        ioc.put("GAP", 2 + n % 20)
        ioc.put("EDGE.PROC", 1)
        t = until(lambda: next((t for t in traces(monitor, p + "EDGE") if t[0] not in seen), None), 15, "the next trace")
        seen.add(t[0])
        assert not any("incomplete" in line for line in t), (n, t)
        assert sorted(r for _, via, r in tree(t) if via == "callback") == sorted(f"{p}NEXT{i}" for i in range(QUEUED)), t


def test_callback_ends_before_unwanted_source_chain(ioc, monitor):
    """The filter selects the chain that was handed over, not its source chain. Its trace must not wait for the source
    chain for ever."""
    p = ioc.prefix
    monitor.set_filter(RECORD="*QUICK", SLOW=1000000)
    try:
        until(lambda: monitor.iocs()[ioc.pid][3] == "trace", 20, "level trace")
        ioc.put("LONG.PROC", 1)
        t = traced(monitor, p + "LONG", seconds=5)
        assert tree(t) == [(0, "", p + "LONG"), (1, "FLNK", p + "LONG2"), (1, "callback", p + "QUICK")], t
        assert not any("incomplete" in line for line in t), t
    finally:
        monitor.set_filter(RECORD="*", SLOW=10000)


def test_put_callback(ioc, monitor):
    """The notification of a put-callback is a callback, too. The trace does not wait for it."""
    environ = {**os.environ, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{ioc.port}"}
    subprocess.run([paths.BASE_BIN / "caput", "-w", "10", "-c", ioc.prefix + "ONCE.PROC", "1"], env=environ, check=True,
                   capture_output=True, timeout=60)
    t = traced(monitor, ioc.prefix + "ONCE", lambda t: "put by" in t[0], seconds=5)
    assert tree(t) == [(0, "", ioc.prefix + "ONCE")] and len(t) == 3, t


def test_cp_links(ioc, monitor):
    p = ioc.prefix
    ioc.put("FROM.PROC", 1)
    t = traced(monitor, p + "WATCH", lambda t: "SEEN" in t[0])
    assert t[0].endswith(f"by CP link from {p}SEEN, chain of {p}FROM"), t
    ioc.put("OTHER.PROC", 1)
    t = traced(monitor, p + "WATCH", lambda t: "OTHER" in t[0])
    assert t[0].endswith(f"by CP link from {p}OTHER"), t


def test_same_stamp(ioc, monitor):
    """Records can have the same time stamp, such as that of an event. The source is the record that the CP link
    reads."""
    p = ioc.prefix
    ioc.put("EVR.PROC", 1)
    t = traced(monitor, p + "WATCH3", lambda t: "STAMPED" in t[0])
    assert t[0].endswith(f"by CP link from {p}STAMPED, chain of {p}EVR"), t


def test_endless_hand_overs(ioc, monitor):
    """Endless hand-overs become several traces. Each trace names its source chain."""
    p = ioc.prefix
    ioc.put("STOP", 0)
    try:
        ioc.put("AGAIN.PROC", 1, wait=False)
        # on a busy host some are shorter, and say that events were lost
        t = traced(monitor, p + "AGAIN", lambda t: " in 64 steps, by scanOnce, asked for" in t[0])
    finally:
        ioc.put("STOP", 1)
    assert t[0].endswith(f" asked for in the chain of {p}AGAIN"), t
    assert "  incomplete: not all that belongs to it was kept" in t, t
    assert tree(t) == [(min(i, 20), "scanOnce" if i else "", p + "AGAIN") for i in range(64)], t


def test_parallel_threads(new_ioc, monitor):
    """Several threads take callbacks from one queue. Each callback belongs to the chain that queued it, in any
    thread."""
    events = 8
    ioc = new_ioc("".join([db.READY] + [
        db.counter(x, FLNK=f"$(P){x}E0") + "".join(
            db.record("event", f"{x}E{i}", VAL=f"{x}{i}", FLNK=f"$(P){x}E{i + 1}" if i + 1 < events else "") +
            db.counter(f"{x}H{i}", SCAN="Event", EVNT=f"{x}{i}") for i in range(events)) for x in "AB"]),
        kind="latencyIoc", environ={"CALLBACK_THREADS": "3"}, realtime=True).start()
    monitor.wait_ioc(ioc, "trace")
    p = ioc.prefix
    seen = set()

    def new(x):
        return next((t for t in traces(monitor, p + x) if t[0] not in seen), None)

    # One round after the other, because each event has one callback: two rounds at the same time would queue it twice.
    for _ in range(20):
        for x in "AB":
            ioc.put(f"{x}.PROC", 1, wait=False)
        for x in "AB":
            t = until(lambda: new(x), 10, lambda: f"the next trace of {x}: {monitor.lines('CHAIN_LOG')[:3000]}")
            seen.add(t[0])
            assert sorted(r for _, via, r in tree(t) if via == "Event") == [f"{p}{x}H{i}" for i in range(events)], t


def test_delay_starts_again_unwatched(ioc, monitor):
    """A delay starts again while the level is too low for the monitor to see it. The former source chain must not be
    used."""
    p = ioc.prefix
    ioc.put("PRESS1.PROC", 1)
    try:
        monitor.set_filter(LEVEL="counts")
        until(lambda: monitor.iocs()[ioc.pid][3] == "counts", 20, "level counts")
        ioc.put("PRESS2.PROC", 1)
    finally:
        monitor.set_filter(LEVEL="trace")
    until(lambda: monitor.iocs()[ioc.pid][3] == "trace", 20, "level trace")
    assert ioc.get("LAMP") == 1
    t = traced(monitor, p + "LAMP", seconds=15)
    assert t[0].endswith("by callback in cbLow"), t


def test_only_slow_chains(ioc, monitor):
    """A trace of a slow chain also has the fast chains that it handed over, even if these end before it. It is complete
    then, and does not wait for them until it gives up."""
    p = ioc.prefix
    monitor.set_filter(LEVEL="chains", SLOW=70000)
    try:
        until(lambda: monitor.iocs()[ioc.pid][3] == "chains", 20, "level chains")
        ioc.put("LATE.PROC", 1)
        t = traced(monitor, p + "LATE")
        assert tree(t) == [(0, "", p + "LATE"), (1, "FLNK", p + "LATE2"), (1, "callback", p + "AFTER")], t
        slow, fast = len(traces(monitor, p + "LATE")), len(traces(monitor, p + "GIVE"))
        ioc.put("GIVE.PROC", 1)
        for n in range(2):  # GIVE would be there after the second one: a trace waits for what it handed over
            ioc.put("LATE.PROC", 1)
            until(lambda n=n: len(traces(monitor, p + "LATE")) > slow + n, 10, "the slow chain")
        assert not any("incomplete" in line for t in traces(monitor, p + "LATE") for line in t), monitor.lines("CHAIN_LOG")
        # A thread that gets no CPU for 70 ms makes a fast chain slow.
        steps = [[float(ms) for ms in re.findall(r"held the lock ([\d.]+) ms", "\n".join(t))] for t in traces(monitor, p + "GIVE")]
        assert all(max(ms) > 70 for ms in steps[:len(steps) - fast]), steps
    finally:
        monitor.set_filter(LEVEL="trace", SLOW=10000)
