# SPDX-License-Identifier: BSD-3-Clause
"""Overload of the budget and of the event ring: the monitor stops what it may stop, reports it, and resumes later."""
import signal

from tests.harness import ca, db, rawca
from tests.harness.putlog import PutLog
from tests.harness.wait import until

ROOTS, LENGTH = 240, 10


def test_budget(new_ioc, new_monitor):
    """2,400 chains per second need four times the budget: the monitor chooses a lower level and still sees puts.
    Without a budget the level comes back."""
    text = db.READY + db.record("ao", "AO")
    for i in range(ROOTS):
        text += db.chain(f"C{i}x", LENGTH, SCAN=".1 second")
    ioc = new_ioc(text).start()
    monitor = new_monitor(budget=0.05).start()
    monitor.wait_ioc(ioc)
    until(lambda: monitor.iocs()[ioc.pid][3] in ("counts", "puts"), 30,
          lambda: f"a lower level: {monitor.iocs()}, COST {monitor.get('COST')}")
    monitor.wait_state("Degraded", 5)
    reason = monitor.text("STATE_MSG")
    assert ioc.name in reason and "budget of 0.05 %" in reason, reason
    assert monitor.get("STATE.SEVR", as_string=True) == "MINOR"
    assert any("budget" in note for note in monitor.list("IOC_NOTES"))
    puts = monitor.get("PUT_CNT")
    ioc.put("AO", 5)
    monitor.wait("PUT_CNT", lambda n: n == puts + 1)
    assert monitor.text("PUT_LAST_VALUE") == "5"

    monitor.set_filter(BUDGET=0)
    monitor.wait_ioc(ioc, level="chains")
    monitor.wait_state("Running", 5)
    puts = monitor.get("PUT_CNT")
    ioc.put("AO", 6)
    monitor.wait("PUT_CNT", lambda n: n == puts + 1)
    # with 2,400 chains per second and changes of the level, the two sums of the cross-check need time to agree
    before = monitor.get("PROC_CNT")
    monitor.wait("PROC_CNT", lambda n: n > before + 10 * 10 * ROOTS * LENGTH, 20)
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def test_full_ring(new_ioc, new_monitor):
    """A monitor with a small event ring gets no CPU time. Events are lost and counted as lost. No count of processings
    is lost."""
    ioc = new_ioc(db.READY + db.chain("C", 20) + db.record("ao", "AO")).start()
    monitor = new_monitor(before=["ebpfMonConfigure 0 0 64"]).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="trace")
    monitor.wait_ioc(ioc, level="trace")
    assert monitor.losses() == {} and monitor.get("LOST_CNT.SEVR", as_string=True) == "NO_ALARM"
    last = ioc.prefix + "C19"
    before = monitor.records(ioc.name)[last].count

    times = 1000
    chain, put = ca.pv(ioc.prefix + "C0.PROC"), ca.pv(ioc.prefix + "AO")
    monitor.process.signal(signal.SIGSTOP)
    try:
        for i in range(times):
            chain.put(1)
            put.put(i)
        ioc.put("AO", times)  # this put waits for its answer: the server has done all puts before
        assert ioc.get("C19") == times, "the IOC does not wait for the monitor"
    finally:
        monitor.process.signal(signal.SIGCONT)

    monitor.wait("LOST_CNT", lambda n: n > 0)
    monitor.wait("LOST_CNT.SEVR", lambda severity: severity == 1, 5)
    until(lambda: set(monitor.losses()) == {"event ring full"}, 5, lambda: str(monitor.losses()))
    until(lambda: any("events were lost" in line and "ring full" in line for line in monitor.process.lines), 5,
          monitor.process.output)
    until(lambda: monitor.records(ioc.name)[last].count == before + times, 10,
          lambda: f"{times} more than {before}: {monitor.records(ioc.name)[last]}")

    monitor.put("LOST_RESET", 1)
    monitor.wait("LOST_CNT", lambda n: n == 0, 5)
    monitor.wait("LOST_CNT.SEVR", lambda severity: severity == 0, 5)
    until(lambda: monitor.losses() == {}, 5, lambda: str(monitor.losses()))
    puts = monitor.get("PUT_CNT")
    ioc.put("AO", 7)
    monitor.wait("PUT_CNT", lambda n: n == puts + 1)
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def check_puts(monitor, log, prefix, rounds):
    """The puts of 0, 1, … to an IOC are in the log, and were seen in the IOC, although events of others were lost."""
    lines = log.next(rounds, prefix, 0)
    assert [o["value"] for o in lines] == [str(i) for i in range(rounds)]
    assert "wire" not in {o["seen"] for o in lines}, "a put whose event is lost is known by its packets alone"
    until(lambda: set(monitor.losses()) == {"event ring full"}, 10, lambda: f"losses: {monitor.losses()}")  # once a second


def test_one_ioc_does_not_hide_another(new_ioc, new_monitor, tmp_path):
    """Thousands of puts go to one IOC while a monitor with a small event ring gets no CPU time. They fill only the
    share of this IOC in the ring, so no put to another IOC is lost."""
    flooded, quiet = (new_ioc(db.READY + db.record("longout", "V")).start() for _ in range(2))
    log, rounds = PutLog(tmp_path / "puts.json"), 20
    monitor = new_monitor(before=["ebpfMonConfigure 0 0 1024", log.command()]).start()
    monitor.wait_ioc(flooded)
    monitor.wait_ioc(quiet)
    many, one = rawca.RawCa(flooded.port), rawca.RawCa(quiet.port)
    sid = many.sid(flooded.prefix + "V")
    block = b"".join(rawca.write(sid, rawca.LONG, [i]) for i in range(1000))
    monitor.process.signal(signal.SIGSTOP)
    try:
        for i in range(rounds):
            many.send(block)
            many.send(rawca.message(rawca.ECHO))
            many.until(rawca.ECHO)
            one.put(quiet.prefix + "V", rawca.LONG, [i], notify=True)
    finally:
        monitor.process.signal(signal.SIGCONT)
    check_puts(monitor, log, quiet.prefix, rounds)
    assert len(log.of(flooded.prefix)) > 100
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def test_chains_leave_room_for_puts(new_ioc, new_monitor, tmp_path):
    """Chains fill their share of the event ring while the monitor gets no CPU time. The puts to the same IOC that come then are
    not lost: one that is lost may be a put to a link."""
    ioc = new_ioc(db.READY + "".join(db.chain(f"C{i}x", 20, SCAN=".1 second") for i in range(100)) + db.record("longout", "V")).start()
    log, rounds = PutLog(tmp_path / "puts.json"), 20
    monitor = new_monitor(before=["ebpfMonConfigure 0 0 1024", log.command()]).start().at_level("trace", ioc)
    writer = rawca.RawCa(ioc.port)
    monitor.process.signal(signal.SIGSTOP)
    try:
        begin = ioc.get("C0x0")
        until(lambda: ioc.get("C0x0") > begin + 30, 30, "some scans")
        for i in range(rounds):
            writer.put(ioc.prefix + "V", rawca.LONG, [i], notify=True)
    finally:
        monitor.process.signal(signal.SIGCONT)
    check_puts(monitor, log, ioc.prefix, rounds)
