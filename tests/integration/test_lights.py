# SPDX-License-Identifier: BSD-3-Clause
"""Situations that a shift has to see: each one is made with a real IOC, raises the right alarm with the right sentence
within seconds, and the alarm ends with it."""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest
from tests.harness import ca, container, db, kernel, paths, rawca, tables
from tests.harness.otlp import Sink
from tests.harness.preload import preload
from tests.harness.soak import size, soak
from tests.harness.wait import stays_false, until

from .test_health import HANG, latency_ioc, monitor, scans, severity, wait_event, wait_scans  # noqa: F401  a fixture, too


def stop(ioc):
    os.kill(ioc.pid, signal.SIGSTOP)
    return time.monotonic()


def is_cut(text, whole):
    """AMSG has room for 39 characters; what is cut ends in dots."""
    return text == whole or (text.endswith("...") and whole.startswith(text[:-3]))


def alarm(monitor, name):
    """Severity and AMSG of one PV."""
    return severity(monitor, name), monitor.get(f"{name}.AMSG")


def light(monitor, ioc):
    """Severity and note of one IOC in the list."""
    rows = zip(monitor.list("IOC_PIDS"), monitor.list("IOC_SEVERITIES"), monitor.list("IOC_NOTES"))
    return {int(pid): (int(level), note) for pid, level, note in rows}.get(ioc.pid)


@pytest.mark.parametrize("seconds", (3, 8, 26))
def test_stopped_ioc(new_ioc, monitor, seconds):  # noqa: F811
    """An IOC of few records that is stopped: its scan is late for as long as it is, and so is the IOC. It goes on, and the
    gap is a late period."""
    ioc = new_ioc(db.READY + db.counter("TICK", SCAN="1 second"), realtime=True).start()
    monitor.wait_ioc(ioc)
    wait_scans(monitor, ioc, lambda rows: (r := rows.get("1 second")) and r["PERIODS"] == pytest.approx(1, rel=0.05))
    late, total = scans(monitor, ioc)["1 second"]["LATE_CNTS"], monitor.get("SCAN_LATE_CNT")
    begin = stop(ioc)

    def grows(rows):
        row = rows.get("1 second")
        return row and row["PERIODS"] > min(seconds - 1, 6) and row["PERIOD_MAXS"] > min(seconds - 1, 6)

    wait_scans(monitor, ioc, grows, seconds=12)
    if seconds > HANG + 3:
        text = wait_event(monitor, ioc, "stands still since", HANG + 6)
        assert text.endswith(" s (stopped by a signal)"), text
        monitor.wait("IOC_STILL_CNT", lambda n: n == 1, 3)
        assert severity(monitor, "IOC_EVENT_LAST") == "MAJOR"
        level, cause = alarm(monitor, "IOC_STILL_CNT")
        assert level == "MAJOR" and is_cut(cause, f"{ioc.name} stands still: stopped by a signal"), cause
        until(lambda: alarm(monitor, "HOST_STATUS")[0] == "MAJOR", 3, lambda: alarm(monitor, "HOST_STATUS"))
        text = monitor.text("HOST_STATUS_MSG")
        assert text == f"IOC {ioc.name} stands still: stopped by a signal", text
        assert is_cut(monitor.get("HOST_STATUS.AMSG"), text) and monitor.get("HOST_STATUS", as_string=True) == "trouble"
        level, cause = alarm(monitor, "SCAN_LATE_NOW")
        assert level == "MAJOR" and is_cut(cause, f"{ioc.name} 1 second: stands still"), cause
        until(lambda: light(monitor, ioc) == (2, "stands still: stopped by a signal"), 5, lambda: light(monitor, ioc))
    until(lambda: time.monotonic() - begin > seconds - 1, seconds, "the time of the stop")
    row = scans(monitor, ioc).get("1 second")  # it has not vanished
    assert row and row["PERIODS"] > seconds - 2.5 and row["LATE_CNTS"] == late + 1 and not row["TOP_RECORDS"], row
    until(lambda: time.monotonic() - begin > seconds, seconds, "the time of the stop")
    os.kill(ioc.pid, signal.SIGCONT)
    if seconds > HANG + 3:  # no record has caused it
        monitor.wait_text("SCAN_LATE_MSG", lambda t: re.fullmatch(rf'IOC {ioc.name}: scan "1 second" was late by [\d.]+ s', t))
    wait_scans(monitor, ioc, lambda rows: (r := rows.get("1 second")) and r["LATE_CNTS"] == late + 1 and r["PERIOD_MAXS"] > seconds - 0.1)
    monitor.wait("SCAN_LATE_CNT", lambda n: n == total + 1)
    if seconds > HANG + 3:
        wait_event(monitor, ioc, "goes on; it stood still for")
        monitor.wait("IOC_STILL_CNT", lambda n: n == 0, 3)
        until(lambda: severity(monitor, "IOC_STILL_CNT") == severity(monitor, "IOC_EVENT_LAST") == "NO_ALARM", 5, "no alarm")
        until(lambda: alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 20, lambda: alarm(monitor, "HOST_STATUS"))
        assert monitor.get("HOST_STATUS", as_string=True) == "ok"
        until(lambda: light(monitor, ioc) == (0, ""), 15, lambda: light(monitor, ioc))
    wait_scans(monitor, ioc, lambda rows: (r := rows.get("1 second")) and r["PERIODS"] == pytest.approx(1, rel=0.05))
    assert scans(monitor, ioc)["1 second"]["LATE_CNTS"] == late + 1


def test_iocs_that_stand_still_for_other_reasons(new_ioc, monitor, tmp_path):  # noqa: F811
    """In a container that is paused, of both versions of control groups; in the kernel. They have no scans. All at a time."""
    ends = tmp_path / "ends"
    stuck = new_ioc(db.READY, environ=preload(tmp_path, "vforks") | {"VFORK_ENDS": str(ends)}).start()
    held = {new_ioc(db.READY).start(): place for place in container.FREEZERS}
    for ioc in stuck, *held:
        monitor.wait_ioc(ioc)
    with contextlib.ExitStack() as frozen:
        for ioc, place in held.items():
            frozen.enter_context(container.frozen(ioc.pid, *place))
        os.kill(stuck.pid, signal.SIGUSR1)
        reasons = {stuck: "waits in the kernel"} | dict.fromkeys(held, "its container is paused")
        for ioc, reason in reasons.items():
            assert wait_event(monitor, ioc, "stands still since", HANG + 6).endswith(f" s ({reason})")
            until(lambda ioc=ioc, reason=reason: light(monitor, ioc) == (2, f"stands still: {reason}"), 5, lambda ioc=ioc: light(monitor, ioc))
        monitor.wait("IOC_STILL_CNT", lambda n: n == len(reasons), 5)
    ends.write_text("now")
    for ioc in reasons:
        wait_event(monitor, ioc, "goes on; it stood still for", 5)
        until(lambda ioc=ioc: light(monitor, ioc) == (0, ""), 5, lambda ioc=ioc: light(monitor, ioc))
    until(lambda: alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 10, lambda: monitor.text("HOST_STATUS_MSG"))


def test_scan_thread_that_has_ended(new_ioc, monitor, tmp_path):  # noqa: F811
    """Its records are not processed any more. That is trouble until they are in no list, or the IOC starts again."""
    ends = tmp_path / "ends"
    ioc = new_ioc(db.READY + db.counter("TICK", SCAN="1 second") + db.counter("FAST", SCAN=".1 second"), realtime=True,
                  environ=preload(tmp_path, "scanEnd") | {"SCAN_ENDS": str(ends)}).start()
    monitor.wait_ioc(ioc)
    wait_scans(monitor, ioc, lambda rows: {"1 second", ".1 second"} <= set(rows))
    ends.write_text("now")
    text = wait_event(monitor, ioc, "has ended", 10)
    assert text.endswith(f'IOC {ioc.name} (pid {ioc.pid}): scan thread "1 second" has ended, its records are not processed'), text
    assert severity(monitor, "IOC_EVENT_LAST") == "MAJOR"
    what = 'scan thread "1 second" has ended'
    until(lambda: (a := alarm(monitor, "SCAN_LATE_NOW"))[0] == "MAJOR" and is_cut(a[1], f"{ioc.name} 1 second: has ended"), 5,
          lambda: alarm(monitor, "SCAN_LATE_NOW"))
    assert monitor.text("SCAN_LATE_MSG") == f"IOC {ioc.name}: {what}" and light(monitor, ioc) == (2, what)
    until(lambda: monitor.text("HOST_STATUS_MSG") == f"IOC {ioc.name}: {what}", 5, lambda: monitor.text("HOST_STATUS_MSG"))
    rows = wait_scans(monitor, ioc, lambda rows: (r := rows.get("1 second")) and r["PERIODS"] > 8)
    assert rows["1 second"]["LATE_CNTS"] == 1 and rows[".1 second"]["PERIODS"] == pytest.approx(0.1, rel=0.05)
    ioc.put("TICK.SCAN", "Passive")
    until(lambda: light(monitor, ioc) == (0, "") and alarm(monitor, "SCAN_LATE_NOW") == ("NO_ALARM", ""), 10, lambda: light(monitor, ioc))
    assert set(scans(monitor, ioc)) == {".1 second"}
    ioc.put("TICK.SCAN", "1 second")
    until(lambda: light(monitor, ioc) == (2, what), 10, lambda: light(monitor, ioc))
    os.kill(ioc.pid, signal.SIGKILL)  # iocsh's exit would wait for the thread
    wait_event(monitor, ioc, "ended (")
    ioc.process.close()
    ends.unlink()
    ioc.start()
    monitor.wait_ioc(ioc)
    wait_scans(monitor, ioc, lambda rows: (r := rows.get("1 second")) and r["PERIODS"] == pytest.approx(1, rel=0.05))
    until(lambda: alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 20, lambda: monitor.text("HOST_STATUS_MSG"))
    assert monitor.lines("IOC_EVENTS").count("has ended") == 1


def test_paused_ioc_is_not_late(new_ioc, monitor):  # noqa: F811
    """An IOC that is paused, and a list without records, are not late."""
    ioc = new_ioc(db.READY + db.counter("TICK", SCAN=".1 second"), realtime=True).start()
    monitor.wait_ioc(ioc)
    wait_scans(monitor, ioc, lambda rows: (r := rows.get(".1 second")) and r["PERIODS"] == pytest.approx(0.1, rel=0.05))
    late = scans(monitor, ioc)[".1 second"]["LATE_CNTS"]
    ioc.command("iocPause")
    until(lambda: not scans(monitor, ioc), 10, "no row")
    until(lambda: light(monitor, ioc) == (2, "stands still: paused (iocPause)"), HANG + 6, lambda: light(monitor, ioc))
    until(lambda: monitor.text("HOST_STATUS_MSG") == f"IOC {ioc.name} stands still: paused (iocPause)", 5, lambda: monitor.text("HOST_STATUS_MSG"))
    ioc.command("iocRun")
    until(lambda: light(monitor, ioc) == (0, "") and alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 20, lambda: monitor.text("HOST_STATUS_MSG"))
    rows = wait_scans(monitor, ioc, lambda rows: (r := rows.get(".1 second")) and
                      r["PERIODS"] == pytest.approx(0.1, rel=0.05), seconds=20)
    assert rows[".1 second"]["LATE_CNTS"] <= late + 1
    ioc.put("TICK.SCAN", "Passive")
    until(lambda: not scans(monitor, ioc), 10, "no row")
    ioc.put("TICK.SCAN", ".1 second")
    rows = wait_scans(monitor, ioc, lambda rows: (r := rows.get(".1 second")) and
                      r["PERIODS"] == pytest.approx(0.1, rel=0.05), seconds=20)
    assert rows[".1 second"]["LATE_CNTS"] <= late + 2


def test_host_is_not_green_before_it_was_looked_at(new_ioc, new_monitor, tmp_path):
    """While the monitor has not looked at all processes, and while an IOC is paused that it has not seen running."""
    ioc = new_ioc(db.READY).start()
    ioc.command("iocPause")
    looking = tmp_path / "looking"
    looking.write_text("looking")
    monitor = new_monitor(environ=preload(tmp_path, "lateFiles") | {"LATE_FILES": str(looking)}).launch()
    monitor.wait_text("STATE_MSG", lambda t: t == "looking for IOCs: watching 0 of 0 IOCs so far")
    assert severity(monitor, "STATE") == "MINOR" and severity(monitor, "HOST_STATUS") == severity(monitor, "IOC_CNT") == "INVALID"
    looking.unlink()
    monitor.wait_state("Running")
    brief = "starts, or is paused (iocPause)"
    until(lambda: light(monitor, ioc) == (1, brief), 10, lambda: light(monitor, ioc))
    monitor.wait_text("HOST_STATUS_MSG", lambda t: t.endswith(f"; {ioc.name} {brief}"))
    until(lambda: severity(monitor, "STATE") == severity(monitor, "HOST_STATUS") == "MINOR", 70, "longer than an IOC starts")
    ioc.command("iocRun")
    monitor.wait_ioc(ioc)
    until(lambda: light(monitor, ioc) == (0, "") and "iocPause" not in monitor.text("STATE_MSG"), 10, lambda: monitor.text("STATE_MSG"))


def test_late_scan(new_ioc, monitor):  # noqa: F811
    """A scan that takes too long is MINOR, one that takes more than twice its period is MAJOR. Ten seconds after it keeps
    its period again there is no alarm; the count of late periods stays."""
    ioc = latency_ioc(new_ioc, 1000, realtime=True)
    monitor.wait_ioc(ioc)
    ioc.put("SLEEP.SCAN", ".1 second")
    wait_scans(monitor, ioc, lambda rows: (r := rows.get(".1 second")) and r["PERIODS"] == pytest.approx(0.1, rel=0.05))
    until(lambda: alarm(monitor, "SCAN_LATE_NOW") == ("NO_ALARM", ""), 15, lambda: alarm(monitor, "SCAN_LATE_NOW"))
    assert monitor.get("SCAN_LATE_NOW") == 0 and monitor.text("SCAN_LATE_MSG") == "no scan is late"
    brief = f"{ioc.name} .1 second: {ioc.prefix}SLEEP"
    for us, wanted in ((120e3, "MINOR"), (300e3, "MAJOR")):
        ioc.put("SLEEP:BUSY.A", us)
        begin = time.monotonic()
        until(lambda: (a := alarm(monitor, "SCAN_LATE_NOW"))[0] == wanted and is_cut(a[1], brief), 15,
              lambda: f"{wanted}: {alarm(monitor, 'SCAN_LATE_NOW')}")
        print(f"{wanted} after {time.monotonic() - begin:.1f} s")
    assert monitor.get("SCAN_LATE_NOW") == 1
    text = monitor.wait_text("SCAN_LATE_MSG", lambda t: t.endswith(f"slowest record {ioc.prefix}SLEEP"))
    assert text.startswith(f'IOC {ioc.name}: scan ".1 second" takes 0.'), text
    late = monitor.get("SCAN_LATE_CNT")
    ioc.put("SLEEP:BUSY.A", 1000)
    begin = time.monotonic()
    until(lambda: alarm(monitor, "SCAN_LATE_NOW") == ("NO_ALARM", ""), 20, lambda: alarm(monitor, "SCAN_LATE_NOW"))
    print(f"no alarm after {time.monotonic() - begin:.1f} s")
    assert monitor.get("SCAN_LATE_NOW") == 0 and monitor.get("SCAN_LATE_CNT") >= late
    assert monitor.text("SCAN_LATE_MSG") == "no scan is late"


def gone_notes(monitor):
    """Name → note of the IOCs that are gone."""
    names, pids, notes = (monitor.list(f"IOC_{c}") for c in ("NAMES", "PIDS", "NOTES"))
    return {n: note for n, pid, note in zip(names, pids, notes) if not pid}


@pytest.mark.parametrize("end, how", [(signal.SIGSEGV, "signal 11"), (signal.SIGKILL, "signal 9"), (None, "exit status 0")])
def test_gone_ioc(new_ioc, monitor, end, how):  # noqa: F811
    """An IOC that ended has a row of its own until it is back, or until somebody acknowledges it."""
    ioc, other = new_ioc(db.READY).start(), new_ioc(db.READY)
    monitor.wait_ioc(ioc)
    pid, before = ioc.pid, time.strftime("%H:%M")
    if end:
        os.kill(pid, end)
    else:
        ioc.process.send("exit")
    until(lambda: alarm(monitor, "IOC_GONE_CNT")[0] == "MAJOR", 8, lambda: alarm(monitor, "IOC_GONE_CNT"))
    note = until(lambda: gone_notes(monitor).get(ioc.name), 5, lambda: str(gone_notes(monitor)))
    assert note.replace(", core dump", "") in {f"gone since {at} ({how})" for at in (before, time.strftime("%H:%M"))}
    assert monitor.list("IOC_NAMES")[0] == ioc.name
    assert is_cut(alarm(monitor, "IOC_GONE_CNT")[1], f"{ioc.name} {note}")
    assert f"IOC {ioc.name} (pid {pid}) ended ({how}" in wait_event(monitor, ioc, "ended (")
    assert severity(monitor, "IOC_EVENT_LAST") == "MAJOR"
    other.start()  # an event that is no trouble, while the first IOC is still gone
    monitor.wait_text("IOC_EVENT_LAST", lambda t: f"IOC {other.name} (pid {other.pid}) started" in t)
    assert severity(monitor, "IOC_EVENT_LAST") == "NO_ALARM" and severity(monitor, "IOC_GONE_CNT") == "MAJOR"
    if end == signal.SIGKILL:
        monitor.put("IOC_GONE_ACK", 1)
    else:
        ioc.process.close()
        ioc.start()
        monitor.wait_ioc(ioc)
    until(lambda: alarm(monitor, "IOC_GONE_CNT") == ("NO_ALARM", ""), 8, lambda: alarm(monitor, "IOC_GONE_CNT"))
    until(lambda: not gone_notes(monitor), 5, lambda: str(gone_notes(monitor)))


def test_causes_together(new_ioc, monitor):  # noqa: F811
    """One IOC dies, then another one stands still: both are told, the worst first, and none is left when both are well."""
    dies, stands = [new_ioc(db.READY + db.counter("TICK", SCAN="1 second"), realtime=True).start() for _ in range(2)]
    for ioc in dies, stands:
        monitor.wait_ioc(ioc)
    late = latency_ioc(new_ioc, 300000, realtime=True)
    monitor.wait_ioc(late)
    wait_scans(monitor, stands, lambda rows: "1 second" in rows)
    stop(stands)
    os.kill(dies.pid, signal.SIGKILL)
    monitor.wait("IOC_STILL_CNT", lambda n: n == 1, HANG + 6)
    wanted = f"2 causes: IOC {dies.name} {gone_notes(monitor)[dies.name]}; IOC {stands.name} stands still: stopped by a signal"
    until(lambda: monitor.text("HOST_STATUS_MSG") == wanted, 5, lambda: monitor.text("HOST_STATUS_MSG"))
    late.put("SLEEP.SCAN", ".1 second")  # its pass is under way at most looks
    both = lambda t: t.startswith(wanted.replace("2", "3", 1) + f'; IOC {late.name}: scan ".1 second"')  # noqa: E731
    until(lambda: both(monitor.text("HOST_STATUS_MSG")), 20, lambda: monitor.text("HOST_STATUS_MSG"))
    stays_false(lambda: not both(t := monitor.text("HOST_STATUS_MSG")) and t, 6)
    late.put("SLEEP.SCAN", "Passive")
    until(lambda: monitor.text("HOST_STATUS_MSG") == wanted, 20, lambda: monitor.text("HOST_STATUS_MSG"))
    monitor.put("IOC_GONE_ACK", 1)
    until(lambda: monitor.text("HOST_STATUS_MSG") == wanted.partition("; ")[2], 5, lambda: monitor.text("HOST_STATUS_MSG"))
    os.kill(stands.pid, signal.SIGCONT)
    until(lambda: alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 20, lambda: monitor.text("HOST_STATUS_MSG"))


def lose_puts(new_ioc, new_monitor, seconds=0):
    """A monitor that stood still for so long, and has lost events and packets: both are MINOR."""
    monitor = new_monitor(before=["ebpfMonConfigure 0 0 64 0 64"]).start()
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    monitor.at_level("trace", ioc)
    assert alarm(monitor, "LOST_CNT")[0] == alarm(monitor, "PACKET_LOST_CNT")[0] == "NO_ALARM"
    put, begin = ca.pv(ioc.prefix + "AO"), time.monotonic()
    monitor.process.halt()
    try:
        for i in range(3000):
            put.put(i)
        ioc.put("AO", 3000)  # this put waits for its answer: the server has done all puts before
        until(lambda: time.monotonic() - begin > seconds, seconds, "the time of the stop")
    finally:
        monitor.process.go_on()
    for name, cause in (("LOST_CNT", "event ring full"), ("PACKET_LOST_CNT", "packets came faster than they are read")):
        until(lambda: alarm(monitor, name) == ("MINOR", cause), 10, lambda: f"{name}: {alarm(monitor, name)}")
    return monitor


def test_losses(new_ioc, new_monitor):
    lose_puts(new_ioc, new_monitor)


def test_losses_end(new_ioc, new_monitor):
    """A minute without a loss there is no alarm, and the counts stay. That it stood still itself is told of no thread."""
    monitor = lose_puts(new_ioc, new_monitor, 6)
    begin = time.monotonic()
    for name in ("LOST_CNT", "PACKET_LOST_CNT"):
        until(lambda: alarm(monitor, name) == ("NO_ALARM", ""), 90, lambda: f"{name}: {alarm(monitor, name)}")
        assert time.monotonic() - begin > 40 and monitor.get(name) > 0
    assert not [line for line in monitor.process.lines if "no progress" in line]


def test_files_run_out(new_ioc, monitor):  # noqa: F811
    """An IOC has most of its files open, then all but one; then it may open more. The neighbour has enough."""
    ioc, _ = new_ioc(db.READY).start(), new_ioc(db.READY).start()
    monitor.wait_ioc(ioc)
    limits = resource.prlimit(ioc.pid, resource.RLIMIT_NOFILE)
    clients = [socket.create_connection(("127.0.0.1", ioc.port)) for _ in range(60)]
    until(lambda: len(os.listdir(f"/proc/{ioc.pid}/fd")) > 60, 10, "its files")
    until(lambda: alarm(monitor, "IOC_FILE_MAX")[0] == "NO_ALARM", 20, lambda: alarm(monitor, "IOC_FILE_MAX"))
    for part, wanted in (0.86, "MINOR"), (0.99, "MAJOR"):
        files = len(os.listdir(f"/proc/{ioc.pid}/fd"))
        resource.prlimit(ioc.pid, resource.RLIMIT_NOFILE, (int(files / part), limits[1]))
        until(lambda: alarm(monitor, "IOC_FILE_MAX") == (wanted, ioc.name), 20, lambda: f"{wanted}: {alarm(monitor, 'IOC_FILE_MAX')}")
    resource.prlimit(ioc.pid, resource.RLIMIT_NOFILE, limits)
    for client in clients:
        client.close()
    until(lambda: alarm(monitor, "IOC_FILE_MAX")[0] == "NO_ALARM", 20, lambda: alarm(monitor, "IOC_FILE_MAX"))


def test_cost(new_ioc, new_monitor):
    """With a limit that a busy IOC exceeds at level chains, and that no IOC does at level puts; with limits that a monitor exceeds always."""
    ioc = new_ioc(db.READY + "".join(db.counter(f"C{i}", SCAN=".1 second") for i in range(50))).start()
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    monitor.command(f"dbpf {monitor.prefix}COST.HYST 0")
    for field, wanted in ("HIGH", "MINOR"), ("HIHI", "MAJOR"):
        monitor.command(f"dbpf {monitor.prefix}COST.{field} 0.002")
        monitor.set_filter(LEVEL="chains")
        until(lambda: alarm(monitor, "COST") == (wanted, ioc.name), 30, lambda: f"{alarm(monitor, 'COST')} {monitor.get('COST')}")
        monitor.set_filter(LEVEL="puts")
        until(lambda: alarm(monitor, "COST") == ("NO_ALARM", ""), 30, lambda: f"{alarm(monitor, 'COST')} {monitor.get('COST')}")
    usual = [(name, field, monitor.get(f"{name}.{field}")) for field in ("HIHI", "HIGH") for name in ("CPU", "MEM")]
    steps = [(name, field, 1e-3, "MINOR" if field == "HIGH" else "MAJOR") for name, field, _ in reversed(usual)]
    steps += [(name, field, limit, "MINOR" if field == "HIHI" else "NO_ALARM") for name, field, limit in usual]
    for name, field, limit, wanted in steps:
        monitor.command(f"dbpf {monitor.prefix}{name}.{field} {limit}")
        until(lambda: severity(monitor, name) == wanted, 20, lambda: f"{name} {wanted}: {severity(monitor, name)}")


def test_queues_of_logs(new_ioc, new_monitor, tmp_path):
    """The limits are so low that one put exceeds them. What a collector refuses is lost, until LOST_RESET."""
    sink, ioc = Sink(), new_ioc(db.READY + db.record("ao", "AO")).start()
    try:
        monitor = new_monitor(before=[f'ebpfMonJsonLog "{tmp_path}/puts.json" 100', f'ebpfMonOtlp "{sink.url}" logs']).start()
        monitor.wait_ioc(ioc)
        for name in "LOG_QUEUE_LOAD", "OTLP_QUEUE_LOAD":
            monitor.command(f"dbpf {monitor.prefix}{name}.HYST 0")
            monitor.command(f"dbpf {monitor.prefix}{name}.HIGH 1e-6")
            assert severity(monitor, name) == "NO_ALARM"
            until(lambda: ioc.put("AO", time.monotonic()) or severity(monitor, name) == "MINOR", 20, lambda: f"{name}: {monitor.get(name)}")
            until(lambda: severity(monitor, name) == "NO_ALARM", 20, lambda: f"{name}: {monitor.get(name)}")
        assert alarm(monitor, "OTLP_LOST_CNT")[0] == "NO_ALARM"
        sink.accepts, sink.refusal = False, 400
        ioc.put("AO", 1)
        until(lambda: severity(monitor, "OTLP_LOST_CNT") == "MINOR", 20, lambda: monitor.text("OTLP_MSG"))
        monitor.put("LOST_RESET", 1)
        until(lambda: severity(monitor, "OTLP_LOST_CNT") == "NO_ALARM", 10, lambda: monitor.get("OTLP_LOST_CNT"))
    finally:
        sink.discard()


def test_searches_in_vain(new_ioc, monitor):  # noqa: F811
    """80 a second for a name that nobody has."""
    ioc = new_ioc(db.READY).start()
    monitor.wait_ioc(ioc)
    until(lambda: alarm(monitor, "UNFOUND_RATE") == ("NO_ALARM", ""), 10, lambda: alarm(monitor, "UNFOUND_RATE"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", ioc.port))

        def search():
            for _ in range(40):
                time.sleep(0.012)  # more than 10 ms, else they are copies of one search
                s.send(rawca.search("NOT:THERE"))
            return alarm(monitor, "UNFOUND_RATE")

        until(lambda: (a := search())[0] == "MINOR" and a[1].startswith("NOT:THERE by python"), 20, lambda: alarm(monitor, "UNFOUND_RATE"))
        until(lambda: search() and re.search(r"\d+ searches a second are in vain: NOT:THERE by python.*127\.0\.0\.1:",
                                             monitor.text("HOST_STATUS_MSG")), 10, lambda: monitor.text("HOST_STATUS_MSG"))
    until(lambda: alarm(monitor, "UNFOUND_RATE") == alarm(monitor, "HOST_STATUS") == ("NO_ALARM", ""), 20, lambda: alarm(monitor, "UNFOUND_RATE"))


def test_a_put_that_no_probe_saw(new_ioc, monitor):  # noqa: F811
    """Somebody, as a debugger may, has written the code of the IOC back, so that the probes see nothing; packets show the put."""
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)
    client.put(f"{ioc.prefix}AO", rawca.DOUBLE, [1], notify=True)
    monitor.wait("PUT_CNT", lambda n: n == 1)
    assert alarm(monitor, "AUDIT_CNT")[0] == "NO_ALARM"
    kernel.restore_code(ioc.pid)
    client.put(f"{ioc.prefix}AO", rawca.DOUBLE, [2], notify=True)
    cause = f"{ioc.prefix}AO: the IOC answered a put that was not seen in it"
    until(lambda: (a := alarm(monitor, "AUDIT_CNT"))[0] == "MINOR" and is_cut(a[1], cause), 20,
          lambda: f"{alarm(monitor, 'AUDIT_CNT')} {monitor.text('AUDIT')}")
    monitor.put("LOST_RESET", 1)
    until(lambda: alarm(monitor, "AUDIT_CNT")[0] == "NO_ALARM", 10, lambda: monitor.text("AUDIT"))
    client.close()


@soak
def test_table_of_the_operator():
    """tools/whyTrial.sh -l: each situation of the table in documentation/use/operator.md has its alarm and its sentence, and ends. Named
    one by one, they are not recorded. The last three take half of the time."""
    titles = [*tables.LIGHTS][:size(-3, None)]
    done = subprocess.run([sys.executable, "-m", "tests.faults.lights", *titles], cwd=paths.TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines() if re.search("M(AJ|IN)OR after ", line)] == titles
