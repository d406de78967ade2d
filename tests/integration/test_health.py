# SPDX-License-Identifier: BSD-3-Clause
"""The health of IOCs is right: compared with /proc, with casr in the IOC, and with routines that take a known time."""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.harness import ca, db, kernel, loopback, paths, queries, rawca
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.wait import until

DB = db.READY + db.chain("C", 5)
HANG = 2  # s: ebpfMonHangLimit in these tests


def latency_ioc(new, us, text=None, realtime=False):
    return new(*([text] if text else []), files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc",
               macros=f"US={us}", realtime=realtime).start()


def fares(monitor, ioc):
    """One IOC's row of IOC_HEALTH."""
    columns = "CPU_LOADS MEM_SIZES FILE_CNTS FILE_LIMITS THREAD_CNTS CLIENT_CNTS CHANNEL_CNTS UPTIMES".split()
    names = monitor.list("IOC_HEALTH_NAMES")
    values = [monitor.list(f"IOC_{c}") for c in columns]
    if ioc.name not in names or any(len(v) <= names.index(ioc.name) for v in values):
        return None
    return dict(zip(columns, (v[names.index(ioc.name)] for v in values)))


def scans(monitor, ioc):
    """SCAN → its row of SCANS."""
    columns = "IOCS NAMES PERIODS PERIOD_MAXS LATE_CNTS LOADS TOP_RECORDS".split()
    rows = zip(*(monitor.list(f"SCAN_{c}") for c in columns))
    return {r[1]: dict(zip(columns, r)) for r in rows if r[0] == ioc.name}


def wait_scans(monitor, ioc, *wanted, seconds=30):
    """Waits until all conditions are true at the same time. "wanted": functions of SCAN → row. The first periods differ
    from the others, and on a busy host a scan thread may be late for a while."""
    def seen():
        rows = scans(monitor, ioc)
        return rows if all(w(rows) for w in wanted) else None

    return until(seen, seconds, lambda: str(scans(monitor, ioc)))


def events(monitor, ioc, wanted):
    """The lines of IOC_EVENTS about this IOC with this text."""
    return [l for l in monitor.lines("IOC_EVENTS").splitlines() if wanted in l and f"IOC {ioc.name} (pid {ioc.pid})" in l]


def wait_event(monitor, ioc, wanted, seconds=10):
    """Waits for such a line. IOC_EVENT_LAST may already be the next event if this test is slow."""
    return until(lambda: next(iter(events(monitor, ioc, wanted)), None), seconds,
                 lambda: f"{wanted!r} in {monitor.lines('IOC_EVENTS')}")


def severity(monitor, name):
    return ca.get(f"{monitor.prefix}{name}.SEVR", as_string=True)


BEFORE = [f"var ebpfMonHangLimit {HANG}"]


@pytest.fixture
def monitor(new_monitor):
    """A monitor of this test alone: it counts what becomes of IOCs, or its filter changes."""
    return new_monitor(before=BEFORE).start()


@pytest.fixture(scope="module")
def shared(module_monitor):
    """A monitor of all tests of this process (schedule.py, TOGETHER) that ask for their own IOC only."""
    return module_monitor(before=BEFORE).start()


def test_resources_against_proc(new_ioc, monitor):
    ioc = latency_ioc(new_ioc, 40000, realtime=True)  # so it gets this CPU time on a busy host, too
    monitor.wait_ioc(ioc)
    ioc.put("SPIN.SCAN", ".1 second")
    own = []

    def same():
        own.append((time.monotonic(), ioc.process.cpu_seconds()))
        begin = next(o for o in own if o[0] > own[-1][0] - 6)
        percent = 100 * (own[-1][1] - begin[1]) / max(own[-1][0] - begin[0], 0.1)
        row = fares(monitor, ioc)
        return row and own[-1][0] - begin[0] > 5 and percent > 30 and abs(row["CPU_LOADS"] - percent) < 5 and row

    row = until(same, 30, lambda: f"the CPU of {ioc.name}: {fares(monitor, ioc)}")
    status = dict(l.split(":", 1) for l in Path(f"/proc/{ioc.pid}/status").read_text().splitlines() if ":" in l)
    limit = re.search(r"Max open files +(\d+)", Path(f"/proc/{ioc.pid}/limits").read_text())
    assert row["MEM_SIZES"] == pytest.approx(int(status["VmRSS"].split()[0]) * 1024 / 1e6, rel=0.05)
    assert row["THREAD_CNTS"] == int(status["Threads"])
    # a thread in accept() has reserved a file number that /proc/PID/fd does not list yet
    listed = len(os.listdir(f"/proc/{ioc.pid}/fd"))
    assert listed <= row["FILE_CNTS"] <= listed + 2
    assert row["FILE_LIMITS"] == int(limit[1])
    up = [fares(monitor, ioc)["UPTIMES"]]
    until(lambda: fares(monitor, ioc)["UPTIMES"] > up[0], 5, "the uptime grows")
    monitor.wait("IOC_CPU_MAX", lambda cpu: cpu > 30, 20)
    assert monitor.get("IOC_MEM_MAX") == pytest.approx(row["MEM_SIZES"], rel=0.05)


def test_clients_and_channels_against_casr(new_ioc, shared):
    ioc = new_ioc(DB).start()
    shared.wait_ioc(ioc)

    def casr():
        text = "\n".join(ioc.command("casr 1"))
        clients = re.search(r"(\d+) clients? connected", text)
        return int(clients[1]) if clients else 0, sum(map(int, re.findall(r"(\d+) Channels?$", text, re.M)))

    def published():
        row = fares(shared, ioc)
        return row and (row["CLIENT_CNTS"], row["CHANNEL_CNTS"])

    def agree(clients, channels):
        until(lambda: casr() == published() == (clients, channels), 20,
              lambda: f"{clients} clients, {channels} channels: casr {casr()}, {published()}")

    agree(0, 0)
    started = [Process([paths.BASE_BIN / "camonitor", *(f"{ioc.prefix}C{i}" for i in range(n))],
                       loopback.client(ioc.port)) for n in (1, 3, 5)]
    agree(3, 9)
    started[1].kill()
    agree(2, 6)
    for p in started:
        p.kill()
    agree(0, 0)


def test_late_scan_and_its_top_record(new_ioc, shared):
    ioc = latency_ioc(new_ioc, 150000)
    shared.wait_ioc(ioc)
    before = shared.get("SCAN_LATE_CNT")
    ioc.put("SLEEP.SCAN", ".1 second")
    ioc.put("ASYN.SCAN", ".5 second")
    ioc.put("READY.SCAN", ".1 second")

    def late(rows):
        row = rows.get(".1 second")
        # 0.15 s of work, then half a period of rest (dbScan.c, periodicTask)
        return row and row["LATE_CNTS"] >= 10 and row["PERIODS"] == pytest.approx(0.2, rel=0.1) and \
            row["PERIOD_MAXS"] >= 0.19 and 65 < row["LOADS"] < 85 and row["TOP_RECORDS"] == ioc.prefix + "SLEEP"

    def fine(rows):
        row = rows.get(".5 second")
        return row and row["PERIODS"] == pytest.approx(0.5, rel=0.02) and row["LOADS"] < 10 and \
            row["TOP_RECORDS"] == ioc.prefix + "ASYN"

    rows = wait_scans(shared, ioc, late, fine)
    # after these seconds, the thread is 0.5 s late only if the host gives it no CPU for so long
    assert rows[".5 second"]["LATE_CNTS"] <= 1
    shared.wait("SCAN_LATE_CNT", lambda n: n >= before + 10)
    # a scan list without records has no period
    ioc.put("ASYN.SCAN", "Passive")
    wait_scans(shared, ioc, lambda rows: set(rows) == {".1 second"}, seconds=15)


def test_scan_in_time(new_ioc, shared):
    """The published period is the mean, and it is the nominal one."""
    ioc = new_ioc(db.READY + "".join(db.counter(f"R{i}", SCAN=".2 second") for i in range(50)), realtime=True).start()
    shared.wait_ioc(ioc)
    until(lambda: ".2 second" in scans(shared, ioc), 10, "the scan")
    until(lambda: ioc.get("R0") > 25, 30, "some periods")
    rows = wait_scans(shared, ioc, lambda rows: (r := rows.get(".2 second")) and
                      r["PERIODS"] == pytest.approx(0.2, rel=0.01) and r["LOADS"] < 20)
    assert rows[".2 second"]["TOP_RECORDS"].startswith(ioc.prefix + "R")


def test_scan_with_little_rest(new_ioc, shared):
    """The scan thread rests 15 ms of 100: the monitor still knows where a pass ends."""
    ioc = latency_ioc(new_ioc, 85000, realtime=True)
    shared.wait_ioc(ioc)
    ioc.put("READY.SCAN", ".1 second")
    ioc.put("SLEEP.SCAN", ".1 second")

    def keeps(rows):
        row = rows.get(".1 second")
        return row and row["PERIODS"] == pytest.approx(0.1, rel=0.05) and 80 < row["LOADS"] < 95 and \
            row["TOP_RECORDS"] == ioc.prefix + "SLEEP"

    until(lambda: ioc.get("SLEEP") > 40, 30, "some periods")
    wait_scans(shared, ioc, keeps)
    ioc.put("READY.SCAN", "Passive")  # the first record of the list leaves it
    before = ioc.get("SLEEP")
    until(lambda: ioc.get("SLEEP") > before + 40, 30, "some more periods")
    wait_scans(shared, ioc, keeps)


def test_killed_and_restarted(new_ioc, monitor):
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    started = f"IOC {ioc.name} (pid {ioc.pid}) started"
    monitor.wait_text("IOC_EVENT_LAST", lambda t: started in t)
    assert severity(monitor, "IOC_EVENT_LAST") == "NO_ALARM"
    restarts, pid = monitor.get("IOC_RESTART_CNT"), ioc.pid
    ioc.kill()
    monitor.wait_text("IOC_EVENT_LAST", lambda t: f"IOC {ioc.name} (pid {pid}) ended" in t, 5)
    monitor.wait("IOC_GONE_CNT", lambda n: n == 1)
    assert severity(monitor, "IOC_EVENT_LAST") == severity(monitor, "IOC_GONE_CNT") == "MAJOR"
    ioc.start()
    monitor.wait_text("IOC_EVENT_LAST", lambda t: f"IOC {ioc.name} (pid {ioc.pid}) restarted" in t and str(pid) in t)
    monitor.wait("IOC_GONE_CNT", lambda n: n == 0)
    until(lambda: severity(monitor, "IOC_EVENT_LAST") == severity(monitor, "IOC_GONE_CNT") == "NO_ALARM", 5, "no alarm")
    assert monitor.get("IOC_RESTART_CNT") == restarts + 1
    assert [l for l in monitor.lines("IOC_EVENTS").splitlines() if started in l]


def test_stopped_iocs_that_are_killed_or_left_out(new_ioc, new_monitor):
    """A stopped IOC that is killed is gone, and stands still no more. One that the filter leaves out does not go on by that."""
    killed, stopped, other = (new_ioc(DB).start() for _ in range(3))
    monitor = new_monitor().start()
    for ioc in killed, stopped, other:
        monitor.wait_ioc(ioc)

    def lights():
        return monitor.get("IOC_STILL_CNT"), monitor.get("IOC_GONE_CNT"), monitor.get("HOST_STATUS", as_string=True)

    def wait_lights(*wanted):
        until(lambda: lights() == wanted, 40, lambda: f"{wanted}: {lights()} {monitor.text('HOST_STATUS_MSG')}")

    killed.process.signal(signal.SIGSTOP)
    stopped.process.signal(signal.SIGSTOP)
    try:
        wait_lights(2, 0, "trouble")
        killed.kill()
        wait_lights(1, 1, "trouble")
        monitor.set_filter(IOC=other.name)
        wait_lights(0, 1, "trouble")
        monitor.set_filter(IOC=OURS)
        wait_lights(1, 1, "trouble")
        assert not events(monitor, stopped, "goes on")
    finally:
        stopped.process.signal(signal.SIGCONT)
    wait_lights(0, 1, "trouble")
    wait_event(monitor, stopped, "goes on")
    monitor.put("IOC_GONE_ACK", 1)
    wait_lights(0, 0, "ok")


def test_crash_at_the_start(new_ioc, new_monitor, tmp_path):
    """An IOC that was read says how long it ran, also if that was short; of one that ended before it was looked at only that is known."""
    monitor = new_monitor(iocs="*").start()
    program = tmp_path / "bin" / "host" / "softIoc"  # of no other IOC
    program.parent.mkdir(parents=True)
    shutil.copy(paths.BASE_BIN / "softIoc", program)
    (tmp_path / "dbd").symlink_to(paths.BASE_BIN.parents[1] / "dbd")
    begun = time.monotonic()
    ioc = new_ioc(DB, program=program).start()
    least = time.monotonic()
    monitor.wait_ioc(ioc)
    least = time.monotonic() - least
    ioc.process.signal(signal.SIGSEGV)
    ioc.process.wait()
    most = time.monotonic() - begun
    ran = float(re.search(r"ended \(signal 11.*\); it ran ([\d.]+) s", wait_event(monitor, ioc, "ended")).group(1))
    assert least - 0.5 < ran < most + 0.5, (least, ran, most)
    script = tmp_path / "st.cmd"
    script.write_text('system("kill -SEGV $PPID")\n')

    def told():
        subprocess.run([program, script], env=loopback.server(ioc.port, IOC="atOnce"), stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=30)
        return [line for line in monitor.lines("IOC_EVENTS").splitlines() if "as soon as" in line]

    line = until(told, 30, lambda: monitor.lines("IOC_EVENTS"))[0]
    assert re.search(r" an IOC \(pid \d+\) ended as soon as it had started: its name is not known$| \d+ IOCs ended as soon as", line), line


def test_killed_by_the_kernel(new_ioc, monitor):
    """It wants more memory than its control group has. The neighbour is killed by a person."""
    ioc, neighbour = (new_ioc(DB + db.record("waveform", "BIG", NELM=20000000, FTVL="DOUBLE")).start() for _ in range(2))
    for each in ioc, neighbour:
        monitor.wait_ioc(each)
    with kernel.out_of_memory(ioc.pid, 16 << 20) as group:
        if not group:
            pytest.skip("no control group of memory can be made here")
        client = rawca.RawCa(ioc.port)
        client.send(rawca.message(15, b"", rawca.DOUBLE, 20000000, client.sid(ioc.prefix + "BIG"), 1))  # READ_NOTIFY: 160 MB for the answer
        ioc.process.wait(30)
    ended = wait_event(monitor, ioc, "ended")
    assert " ended (out of memory); " in ended, ended
    notes = until(lambda: [n for n in monitor.list("IOC_NOTES") if "gone" in n], 5, "a row")
    assert "(out of memory)" in notes[0], notes
    neighbour.kill()
    assert " ended (signal 9); " in wait_event(monitor, neighbour, "ended")
    monitor.put("IOC_GONE_ACK", 1)


def test_hang_is_named(new_ioc, monitor):
    """The event names the thread that holds the lock set, its record and the function in which it waits. A thread that
    waits for this lock set is not named."""
    ioc = latency_ioc(new_ioc, 1000)
    monitor.wait_ioc(ioc)
    ioc.put("HOLD:BUSY.SNAM", "sleepFor")
    ioc.put("HOLD:BUSY.A", 60e6)  # longer than this test takes
    ioc.put("WAIT.SCAN", ".2 second")
    until(lambda: ".2 second" in scans(monitor, ioc), 10, "the other scan")
    assert monitor.get("HANG_CNT") == 0
    begin = time.time()
    ioc.put("HOLD.SCAN", "1 second", wait=False)
    until(lambda: f"(pid {ioc.pid}): thread scan-1 (" in monitor.lines("IOC_EVENTS"), HANG + 6, lambda: monitor.lines("IOC_EVENTS"))
    text = next(l for l in monitor.lines("IOC_EVENTS").splitlines() if " hangs since " in l)  # its cause may have come since
    assert monitor.time_stamp("IOC_EVENT_LAST") - begin < HANG + 5
    assert f"IOC {ioc.name} (pid {ioc.pid}): thread scan-1 (" in text
    assert f"in record {ioc.prefix}HOLD, at {ioc.prefix}HOLD:BUSY hangs since" in text
    assert "clock_nanosleep" in text
    frames = text.split(", at ")[-1].split(" < ")
    order = ["epicsThreadSleep", "sleepFor", "process", "dbProcess"]
    assert [f for f in frames if f in order][:4] == order, text
    until(lambda: "scan-1" in monitor.lines("HANG_STACKS"), 10, "its lines, which come after the event")
    lines = monitor.lines("HANG_STACKS").splitlines()
    assert lines[0].startswith(f"IOC {ioc.name} (pid {ioc.pid}): thread scan-1 (")
    why = "\n".join(monitor.command(f"ebpfMonWhy {ioc.prefix}WAIT"))
    assert re.search(rf"^record: its lock set is held: thread scan-1( \(\d+\))? in record {ioc.prefix}HOLD", why, re.M), why
    assert "hrtimer_nanosleep" in lines[1] and "in the kernel" in lines[1]
    assert re.search(r" sleepFor\+0x[0-9a-f]+ \(latencyIoc\)$", "\n".join(lines), re.M)
    assert [l for l in lines if "periodicTask" in l], lines # dbScan.c: the stack is complete
    assert severity(monitor, "HANG_STACKS") == "MAJOR"
    report = "\n".join(monitor.command("ebpfMonReport 1"))
    assert "threads that hang: 1" in report and "sleepFor" in report
    monitor.wait("HANG_CNT", lambda n: n == 1)
    monitor.wait_text("HOST_STATUS_MSG", lambda t: f"IOC {ioc.name}: a thread hangs in {ioc.prefix}HOLD" in t)
    assert severity(monitor, "HANG_CNT") == severity(monitor, "IOC_EVENT_LAST") == "MAJOR"
    row = scans(monitor, ioc)[".2 second"]
    assert row["TOP_RECORDS"] == ioc.prefix + "WAIT", row
    ioc.kill()
    until(lambda: f"(pid {ioc.pid}) ended" in monitor.lines("IOC_EVENTS"), 10, lambda: monitor.lines("IOC_EVENTS"))
    monitor.wait("HANG_CNT", lambda n: n == 0)
    until(lambda: {severity(monitor, n) for n in ("HANG_CNT", "HANG_STACKS")} == {"NO_ALARM"}, 10, "no alarm")


def test_long_pass_is_no_hang(new_ioc, monitor):
    """A list of slow records takes long, and no record hangs. Then one of them does."""
    slow = "".join(f'record(aSub, "$(P)S{i}") {{ field(SNAM, "sleepFor") field(FTA, "DOUBLE") field(INPA, "{HANG * 1e5:.0f}") '
                   'field(SCAN, ".1 second") }\n' for i in range(30))
    ioc = latency_ioc(new_ioc, 1000, text=db.counter("COUNT", SCAN=".1 second", PHAS=1) + slow)
    monitor.set_filter(TIMED=0)
    monitor.wait_ioc(ioc)
    until(lambda: ioc.get("COUNT") >= 3, 60, "three passes")
    assert monitor.get("HANG_CNT") == 0 and " hangs " not in monitor.lines("IOC_EVENTS"), monitor.lines("IOC_EVENTS")
    ioc.put("S20.A", 60e6, wait=False)  # longer than this test takes
    text = wait_event(monitor, ioc, "hangs since", 3 * HANG + HANG + 6)
    assert re.search(rf"thread scan-0.1 \(\d+\) in record {ioc.prefix}S20 hangs since", text), text


def test_hang_in_a_function_with_return_probe(new_ioc, new_monitor, tmp_path):
    """A return probe replaces a return address on the stack. The callers of the function are found all the same, and the
    record that the thread works on."""
    timed = {"name": "TIMED", "source": {"function": "dbProcess", "when": "duration"}, "budget": 100, "histogram": "log2"}
    before = [f"var ebpfMonHangLimit {HANG}", *queries.load(tmp_path, [timed])]
    monitor = new_monitor(before=before).start()
    ioc = latency_ioc(new_ioc, 1000)
    monitor.wait_ioc(ioc)
    monitor.put("TIMED_RUN", 1)
    queries.wait_state(monitor, "TIMED", "Running")
    monitor.wait_text("TIMED_MSG", lambda t: "1 IOC" in t)
    ioc.put("HOLD:BUSY.SNAM", "sleepFor")
    ioc.put("HOLD:BUSY.A", 60e6)
    ioc.put("HOLD.SCAN", "1 second", wait=False)
    text = wait_event(monitor, ioc, "hangs since", HANG + 6)
    assert f"in record {ioc.prefix}HOLD, at {ioc.prefix}HOLD:BUSY hangs since" in text
    assert [l for l in monitor.lines("HANG_STACKS").splitlines() if "periodicTask" in l]
    ioc.kill()


def test_hang_in_a_loop(new_ioc, shared):
    """The stack of a thread that runs is that of its last interrupt."""
    ioc = latency_ioc(new_ioc, 1000)
    shared.wait_ioc(ioc)
    ioc.put("SPIN:BUSY.A", (HANG + 6) * 1e6)
    ioc.put("SPIN.SCAN", "1 second", wait=False)
    text = wait_event(shared, ioc, "hangs since", HANG + 6)
    assert f"in record {ioc.prefix}SPIN, at {ioc.prefix}SPIN:BUSY hangs since" in text
    assert re.search(r"running, at ([\w@]+ < )*spinFor < process < dbProcess < ", text), text
    ioc.kill()  # else it would continue to spin


DELAYED = """
record(calcout, "$(P)D1") { field(ODLY, "0.1") field(PRIO, "HIGH") field(FLNK, "$(P)SLEEP") }
record(calcout, "$(P)D2") { field(ODLY, "0.1") field(PRIO, "HIGH") field(FLNK, "$(P)SLEEP") }
record(fanout, "$(P)BOTH") { field(LNK1, "$(P)D1") field(LNK2, "$(P)D2") }
record(calc, "$(P)SRC") { field(CALC, "VAL+1") }
record(calc, "$(P)X1") { field(CALC, "VAL+1") field(INPA, "$(P)SRC CP") field(FLNK, "$(P)SLEEP") }
record(calc, "$(P)X2") { field(CALC, "VAL+1") field(INPA, "$(P)SRC CP") field(FLNK, "$(P)SLEEP") }
"""


def delays(monitor, ioc):
    """One IOC's row of IOC_DELAYS."""
    columns = ("CBLOW_WAITS", "CBMEDIUM_WAITS", "CBHIGH_WAITS", "SCANONCE_WAITS", "LOCK_HELD_TIMES", "LOCK_HELD_ROOTS",
               "CAS_CPU_LOADS")
    names = monitor.list("IOC_DELAY_NAMES")
    values = [monitor.list(f"IOC_{c}") for c in columns]
    if ioc.name not in names or any(len(v) <= names.index(ioc.name) for v in values):
        return None
    return dict(zip(columns, (v[names.index(ioc.name)] for v in values)))


LONG = 600  # ms that a slow record takes: much more than the time in which a busy host gives a thread no CPU …
SHORT = 200 # … and this time is assumed to be shorter than SHORT


def wait_delays(monitor, ioc, wanted, seconds=10):
    """Waits until this condition is true for the IOC's row."""
    def seen():
        row = delays(monitor, ioc)
        return row if row and wanted(row) else None

    return until(seen, seconds, lambda: str(delays(monitor, ioc)))


def quiet(monitor, ioc):
    """Waits until the CP links are connected and no thread in the IOC waits for long any more."""
    until(lambda: ioc.get("X1") > 0 and ioc.get("X2") > 0, 10, "the CP links")
    wait_delays(monitor, ioc, lambda row: max(list(row.values())[:5]) < SHORT / 2, 30)


def highest(monitor, ioc, **columns):
    """Waits until each PV has the highest value of its column, which is the value of our only IOC."""
    until(lambda: all(monitor.get(pv) == pytest.approx(delays(monitor, ioc)[c], rel=0.01) for pv, c in columns.items()),
          10, lambda: f"{delays(monitor, ioc)}, {({pv: monitor.get(pv) for pv in columns})}")


def test_callbacks_that_wait(new_ioc, monitor):
    """Two callbacks are due at the same time. The first one takes the thread for a long time, and the second one
    waits."""
    ioc = latency_ioc(new_ioc, 1000, DELAYED)
    monitor.wait_ioc(ioc)
    quiet(monitor, ioc)
    ioc.put("SLEEP:BUSY.A", 1000 * LONG)
    ioc.put("BOTH.PROC", 1, wait=False)
    row = wait_delays(monitor, ioc, lambda row: row["CBHIGH_WAITS"] > LONG - 100)
    assert row["CBHIGH_WAITS"] < 1.5 * LONG
    assert row["CBLOW_WAITS"] < SHORT and row["CBMEDIUM_WAITS"] < SHORT and row["SCANONCE_WAITS"] < SHORT
    assert LONG <= row["LOCK_HELD_TIMES"] < 1.5 * LONG
    assert row["LOCK_HELD_ROOTS"] in (ioc.prefix + "D1", ioc.prefix + "D2")
    highest(monitor, ioc, IOC_CALLBACK_WAIT_MAX="CBHIGH_WAITS", IOC_LOCK_HELD_MAX="LOCK_HELD_TIMES")
    assert severity(monitor, "IOC_CALLBACK_WAIT_MAX") == "NO_ALARM"
    ioc.put("SLEEP:BUSY.A", 1.3e6)
    ioc.put("BOTH.PROC", 1, wait=False)
    waits = "IOC_CALLBACK_WAIT_MAX", "IOC_LOCK_HELD_MAX"
    until(lambda: {severity(monitor, n) for n in waits} == {"MINOR"}, 10, "the alarm")
    callback, lock = (monitor.get(f"{n}.AMSG") for n in waits)
    assert callback == ioc.name and lock.startswith(f"{ioc.name}: {ioc.prefix}D"[:34]), (callback, lock)
    # the maximum of the last seconds falls again
    wait_delays(monitor, ioc, lambda row: row["CBHIGH_WAITS"] < SHORT / 2, 30)
    until(lambda: {severity(monitor, n) for n in waits} == {"NO_ALARM"}, 20, "no alarm")


def test_scan_once_that_waits(new_ioc, shared):
    ioc = latency_ioc(new_ioc, 1000, DELAYED)
    shared.wait_ioc(ioc)
    quiet(shared, ioc)
    ioc.put("SLEEP:BUSY.A", 1000 * LONG)
    ioc.put("SRC.PROC", 1)
    row = wait_delays(shared, ioc, lambda row: row["SCANONCE_WAITS"] > LONG - 100)
    assert row["SCANONCE_WAITS"] < 1.5 * LONG
    assert row["CBHIGH_WAITS"] < SHORT
    highest(shared, ioc, IOC_SCANONCE_WAIT_MAX="SCANONCE_WAITS")
    ioc.put("SLEEP:BUSY.A", 1.3e6)
    ioc.put("SRC.PROC", 1)
    for wanted in ("MINOR", ioc.name), ("NO_ALARM", ""):
        until(lambda: (severity(shared, "IOC_SCANONCE_WAIT_MAX"), shared.get("IOC_SCANONCE_WAIT_MAX.AMSG")) == wanted, 30, f"the alarm: {wanted}")


def test_ca_server_threads(new_ioc, shared):
    """Compares with schedstat, while a client keeps the server busy."""
    ioc = new_ioc(DB).start()
    shared.wait_ioc(ioc)
    wait_delays(shared, ioc, lambda row: row["CAS_CPU_LOADS"] < 1)
    own = []

    def run():
        sum_ = 0
        for task in Path(f"/proc/{ioc.pid}/task").iterdir():
            if (task / "comm").read_text().startswith("CAS-"):
                sum_ += int((task / "schedstat").read_text().split()[0])
        return sum_ / 1e9

    def same():
        for _ in range(300):
            ioc.put("C0", 1)
        own.append((time.monotonic(), run()))
        begin = next(o for o in own if o[0] > own[-1][0] - 4)
        percent = 100 * (own[-1][1] - begin[1]) / max(own[-1][0] - begin[0], 0.1)
        row = delays(shared, ioc)
        published = row["CAS_CPU_LOADS"] if row else -100
        return own[-1][0] - own[0][0] > 5 and percent > 2 and abs(published - percent) < 1 + 0.2 * percent and published

    published = until(same, 30, lambda: f"{delays(shared, ioc)}, {own[-5:]}")
    assert published > 2
    highest(shared, ioc, IOC_CAS_CPU_MAX="CAS_CPU_LOADS")


def test_hang_in_a_callback(new_ioc, shared):
    """A callback hangs without a lock."""
    ioc = latency_ioc(new_ioc, (HANG + 8) * 1e6)
    shared.wait_ioc(ioc)
    ioc.put("IDLE.PROC", 1)
    text = wait_event(shared, ioc, "hangs since", HANG + 6)
    assert re.search(rf"IOC {ioc.name} \(pid {ioc.pid}\): thread cbHigh \(\d+\) in a callback(, at {ioc.prefix}IDLE)? "
                     r"hangs since", text), text
    assert "epicsThreadSleep < idle" in text, text
    shared.wait("HANG_CNT", lambda n: n == 1)
    wait_event(shared, ioc, "hangs no more", HANG + 8)
    shared.wait("HANG_CNT", lambda n: n == 0)


def test_hang_in_one_long_callback(new_ioc, shared):
    """One callback processes many slow records: that is one hang, not one for each record."""
    ioc = latency_ioc(new_ioc, 100000, db.record("event", "FIRE", VAL="go") + "".join(
        f'record(aSub, "$(P)SLOW{i}") {{ field(SNAM, "sleepFor") field(FTA, "DOUBLE") field(INPA, "100000")'
        f' field(FTVA, "DOUBLE") field(SCAN, "Event") field(EVNT, "go") }}\n' for i in range(10 * HANG + 40)))
    shared.wait_ioc(ioc)
    ioc.put("FIRE.PROC", 1, wait=False)  # the notification of a put-callback waits for the same thread
    wait_event(shared, ioc, "hangs since", HANG + 6)
    wait_event(shared, ioc, "hangs no more", HANG + 10)
    hangs = events(shared, ioc, " hangs ")
    assert len(hangs) == 2 and all("thread cbLow (" in h and ") in a callback, at " in h for h in hangs), hangs


def test_own_ring(new_ioc, shared):
    """A thread that took an element out of its own ring and waits for the next one is in no callback. It does not
    hang."""
    ioc = latency_ioc(new_ioc, (HANG + 8) * 1e6)
    shared.wait_ioc(ioc)
    ioc.put("RING.PROC", 1)
    ioc.put("IDLE.PROC", 1)  # this callback hangs
    text = wait_event(shared, ioc, "hangs since", HANG + 6)
    assert "thread cbHigh" in text, text
    shared.wait("HANG_CNT", lambda n: n == 1)


def test_hang_is_over(new_ioc, monitor):
    ioc = latency_ioc(new_ioc, 1000)
    monitor.wait_ioc(ioc)
    ioc.put("SLEEP:BUSY.A", (HANG + 3) * 1e6)
    ioc.put("SLEEP.PROC", 1, wait=False)
    assert "CAS-client" in wait_event(monitor, ioc, "hangs since", HANG + 6)
    wait_event(monitor, ioc, "hangs no more")
    monitor.wait("HANG_CNT", lambda n: n == 0)
    until(lambda: severity(monitor, "IOC_EVENT_LAST") == "NO_ALARM", 5, "no alarm")


def test_tables(new_ioc, shared):
    ioc = new_ioc(db.READY + db.chain("C", 3, SCAN=".5 second")).start()
    shared.wait_ioc(ioc)
    until(lambda: scans(shared, ioc), 10, "a scan")
    with loopback.pva_context(shared.port, nt=False) as context:
        for name, width in (("SCANS", 7), ("IOC_HEALTH", 8), ("IOC_DELAYS", 8)):
            table = context.get(shared.prefix + name, timeout=60)
            columns = dict(table.value.items())
            assert len(table.labels) == len(columns) == width
            assert len({len(c) for c in columns.values()}) == 1
            assert ioc.name in list(list(columns.values())[0])
