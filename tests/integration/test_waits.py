# SPDX-License-Identifier: BSD-3-Clause
"""What waits in IOCs (ebpfMonModules/waits). The truth is what the test has put, and what the records of the IOC say themselves."""
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import struct
import threading
import time

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.device import Device
from tests.harness.preload import preload_asyn
from tests.harness.process import Process
from tests.harness.wait import until

# A put with completion to ACQUIRE waits for DRV, which takes 1000 s; MOT is another one, of 3 s. DEVICE has READ processed and waits for it.
DB = (db.READY + db.record("bo", "ACQUIRE", FLNK="$(P)SEQ") + db.record("fanout", "SEQ", LNK1="$(P)MOT", LNK2="$(P)DRV") +
      db.record("calcout", "DRV", ODLY=1000, CALC="1") + db.record("calcout", "MOT", ODLY=3, CALC="1") +
      db.record("calc", "ASK", CALC="1", FLNK="$(P)DRV") + db.record("ao", "PLAIN") +
      db.record("calcout", "HELD", ODLY=1000, CALC="1") +
      db.record("calcout", "READ", ODLY=1000, CALC="1") + db.record("ai", "DEVICE", DTYP="Async Soft Channel", INP="$(P)READ"))



def rows(monitor):
    """PV and client → row of the table, as soon as all columns are of one moment."""
    names = "PVS CLIENTS KINDS SECONDS SINCES CAUSES IOCS".split()
    lists = [monitor.list("WAIT_" + n) for n in names]
    return {r[:2]: dict(zip(names[2:], r[2:])) for r in zip(*lists)} if len(set(map(len, lists))) == 1 else {}


def row(monitor, pv, client=""):
    """The row of this PV and a client whose name begins so."""
    return next((r for (name, who), r in rows(monitor).items() if name == pv and who.startswith(client)), None)


def begin(ioc, pv, user="waiting", value=1):
    """A client that has sent a put with completion."""
    client = rawca.RawCa(ioc.port, user, "test")
    client.put(ioc.prefix + pv, rawca.STRING, [str(value)], notify=True, sync=False)
    client.send(rawca.message(rawca.ECHO))
    client.until(rawca.ECHO)
    return client


def text(monitor, line):
    return [t for t in monitor.lines("WAITS_TEXT").splitlines() if line in t]


def test_put_that_waits(new_ioc, new_monitor, tmp_path):
    """It is shown with its client, since when, and the record at its end, also if that processes for the first time; in the log once
    more. A put that completes is not. When it is cancelled, it is gone; the record stays."""
    log = tmp_path / "puts.json"
    ioc, monitor = new_ioc(DB).start(), new_monitor(before=[f'ebpfMonJsonLog "{log}" 0 0 0 changes']).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="chains")
    monitor.wait_text("WAITS_MSG", lambda t: "of 1 IOCs" in t, 30)  # it has looked at the records
    before = time.time()
    client, other = begin(ioc, "ACQUIRE"), rawca.RawCa(ioc.port, "neighbour", "test")
    after = time.time()
    assert other.put(ioc.prefix + "PLAIN", rawca.STRING, ["3"], notify=True) == 1
    pv, drive = ioc.prefix + "ACQUIRE", ioc.prefix + "DRV"
    found = until(lambda: row(monitor, pv, "waiting@test"), 30, lambda: str(rows(monitor)))
    until(lambda: "MOT" not in row(monitor, pv)["CAUSES"], 30, lambda: str(rows(monitor)))  # it completes after 3 s
    assert found["KINDS"] == "put" and found["IOCS"] == ioc.name and not found["SINCES"].startswith("before"), found
    assert before - 1 <= time.mktime(time.strptime(time.strftime("%Y%m%d ") + found["SINCES"], "%Y%m%d %H:%M:%S")) <= after, found
    line, = text(monitor, pv)
    assert f"waits for {drive} (calcout, ODLY 1000, active for at least" in line and "MOT" not in line and client.address not in line
    until(lambda: monitor.get("PUT_WAIT_CNT") == 1 and monitor.get("PUT_WAIT_CNT.SEVR") == 1, 30, "the alarm")
    assert ca.get(monitor.prefix + "PUT_WAIT_CNT.AMSG").startswith(f"{pv} waits for {drive}"[:34])
    until(lambda: monitor.get("HOST_STATUS") == 1 and monitor.text("HOST_STATUS_MSG") == f"{pv} waits for {drive}", 10, lambda: monitor.text("HOST_STATUS_MSG"))
    assert monitor.get("PUT_WAIT_MAX") >= 5 and not row(monitor, ioc.prefix + "PLAIN")
    until(lambda: any(f"put to {pv} by waiting@test" in e and drive in e for e in monitor.lines("IOC_EVENTS").splitlines()), 30, "the event")
    def logged():
        return [json.loads(line) for line in log.read_text().splitlines() if f'"{pv}"' in line]

    until(lambda: len(logged()) > 1, 30, lambda: log.read_text())
    written, pending = logged()
    same = {k: written[k] for k in ("time", "pv", "ioc", "value", "user", "host", "peer", "through")}
    assert written["result"] == "ok" and pending.items() >= same.items() and pending["result"] == "pending"
    assert re.fullmatch(rf"pending \d+ s, waits for {drive}", pending["message"])
    assert monitor.get("PUT_CNT") == 2  # it is no second put
    for _ in range(3):
        ioc.put("ASK.PROC", 1)
    until(lambda: "asked 3x to process meanwhile" in str(text(monitor, pv)), 30, lambda: monitor.lines("WAITS_TEXT"))
    client.send(rawca.message(12, cid=client.sid(pv), extra=1))  # CLEAR_CHANNEL, which cancels it; the client stays connected
    client.until(12)  # else there is a light for a client that does not read
    until(lambda: not row(monitor, pv) and monitor.get("PUT_WAIT_CNT") == 0 and monitor.get("PUT_WAIT_CNT.SEVR") == 0, 30,
          lambda: str(rows(monitor)))
    until(lambda: monitor.get("HOST_STATUS") == 0, 10, lambda: monitor.text("HOST_STATUS_MSG"))
    assert row(monitor, drive)["KINDS"] == "active" and monitor.get("ACTIVE_CNT") == 1
    client.close()
    other.close()


def test_waits_that_are_older_than_the_monitor(new_ioc, new_monitor):
    """A put that waits for a record which another put holds; one of the IOC itself, by a device. All began before the monitor."""
    ioc = new_ioc(DB).start()
    first, second = begin(ioc, "HELD.A", "first"), begin(ioc, "HELD.A", "second")
    ioc.put("DEVICE.PROC", 1, wait=False)
    until(lambda: ioc.get("DEVICE.PACT") == 1 and ioc.get("HELD.PACT") == 1, 30, "the records")
    monitor = new_monitor().start()
    held = ioc.prefix + "HELD.A"
    until(lambda: row(monitor, held, "first@test") and row(monitor, held, "second@test") and row(monitor, ioc.prefix + "DEVICE"), 30,
          lambda: monitor.lines("WAITS_TEXT"))
    found = {who.split("@")[0]: r for (pv, who), r in rows(monitor).items() if pv == held}
    assert len(found) == 2 and all(r["SINCES"].startswith("before") for r in found.values()), found
    assert [l for l in text(monitor, "first@test") if f"waits for {held[:-2]} (calcout" in l]
    assert [l for l in text(monitor, "second@test") if f"waits for {held[:-2]}, which another put holds" in l]
    assert [l for l in text(monitor, f"active {ioc.prefix}DEVICE") if f"(ai, Async Soft Channel, INP {ioc.prefix}READ" in l]
    assert row(monitor, ioc.prefix + "READ")["KINDS"] == "process"
    first.close()  # now the second one is to have it, as soon as it is no more active
    until(lambda: not row(monitor, held, "first@test"), 30, lambda: monitor.lines("WAITS_TEXT"))
    second.close()
    until(lambda: not row(monitor, held, "second@test"), 30, lambda: monitor.lines("WAITS_TEXT"))


@pytest.mark.parametrize("kind", ["softIocPVA", "pvxs"])
def test_put_by_pvaccess(new_ioc, new_monitor, kind):
    """pvput -r block: its user is known from the put, because the server's memory does not tell. QSRV of Base, and of pvxs."""
    ioc, monitor = new_ioc(DB, kind=kind).start(), new_monitor().start()
    monitor.wait_ioc(ioc)
    monitor.wait_text("WAITS_MSG", lambda t: "of 1 IOCs" in t, 30)
    pv = ioc.prefix + "ACQUIRE"
    client = Process([paths.BASE_BIN / "pvput", "-w", "1000", "-r", "record[block=true]field(value)", pv, "1"], loopback.client(ioc.port))
    found = until(lambda: row(monitor, pv), 30, lambda: monitor.lines("WAITS_TEXT") + client.output())
    assert "root" in next(who for name, who in rows(monitor) if name == pv) and not found["SINCES"].startswith("before"), rows(monitor)
    client.signal(signal.SIGKILL)
    until(lambda: not row(monitor, pv), 30, lambda: monitor.lines("WAITS_TEXT"))


def test_who_began(new_ioc, new_monitor):
    """A record is active for good: a CP link began it, or a scan thread by way of another record."""
    ioc = new_ioc(db.READY + db.record("bo", "DIS", VAL="1", PINI="YES") + db.record("ao", "OTHER") +
                  db.record("calcout", "CP", INPA="$(P)OTHER CP", SDIS="$(P)DIS CP", CALC="VAL+1", ODLY=1000) +
                  db.counter("FIRST", SCAN=".5 second", FLNK="$(P)BEHIND") + db.record("calcout", "BEHIND", CALC="VAL+1", ODLY=1000, DISA=1)).start()
    monitor = new_monitor(before=["var ebpfMonWaitLimit 2"]).start()
    monitor.wait_ioc(ioc)
    ioc.put("DIS", 0)
    ioc.put("BEHIND.DISA", 0)
    for name, who in ("CP", f"CP link SDIS from {ioc.prefix}DIS"), ("BEHIND", f"thread scan-0.5 in the chain of {ioc.prefix}FIRST"):
        wanted = re.compile(rf"active {ioc.prefix}{name} .*active for at least \d+ s, begun by {who}[,)]")
        until(lambda: any(wanted.match(line) for line in monitor.command("ebpfMonWaits")), 30, lambda: f"{wanted.pattern} {monitor.command('ebpfMonWaits')}")
        line = next(l for l in monitor.command(f'ebpfMonWhy "{ioc.prefix}{name}"') if l.startswith("record:"))
        assert re.match(rf"record: PACT is 1: it is processing, .*begun by {who}\)", line), line


def test_puts_one_after_the_other(new_ioc, new_monitor):
    """At nearly each look a put of this channel is under way and its record active, but each time it is another one: nothing waits
    for long. The same for a record that is scanned."""
    ioc = new_ioc(db.READY + "".join(db.record("calcout", name, CALC="1", ODLY=0.9, SCAN=scan) for name, scan in (("PUT", "Passive"), ("SCAN", "1 second")))).start()
    monitor = new_monitor(before=["var ebpfMonWaitLimit 2"]).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port, "busy", "test")
    for value in range(8):
        assert client.put(ioc.prefix + "PUT.A", rawca.STRING, [str(value)], notify=True) == 1
        assert monitor.lines("WAITS_TEXT") == "" and monitor.get("PUT_WAIT_CNT") == monitor.get("ACTIVE_CNT") == 0
    client.close()


HANGS = ["var ebpfMonHangLimit 2", "var ebpfMonWaitLimit 2"]


def routine(name, snam, **fields):
    return db.record("aSub", name, SNAM=snam, **fields)


LOCKS = (routine("L0", "lockTwo", INAM="initLockTwo", FTA="DOUBLE", FTB="DOUBLE", FLNK="$(P)BEHIND") + db.record("calc", "BEHIND", CALC="1", SCAN=".2 second") +
         routine("L1", "lockTwo", INAM="initLockTwo", FTA="DOUBLE", FTB="DOUBLE") + routine("ORPHAN", "lockOrphan") +
         routine("PIPE", "readInput", FTA="CHAR", NOA=200) + routine("SOCKET", "readInput", FTA="CHAR", NOA=200) + routine("JOIN", "joinLocked") + routine("RUN", "runProgram", FTA="CHAR", NOA=200) + routine("SLEEP", "sleepFor", FTA="DOUBLE", FTVA="DOUBLE", FLNK="$(P)AFTER") +
         db.record("calc", "AFTER", CALC="1", SCAN=".1 second"))


@pytest.fixture
def hanging(new_ioc, new_monitor):
    """An IOC with routines that hang, and its monitor."""
    ioc = new_ioc(db.READY + LOCKS, kind="latencyIoc").start()
    monitor = new_monitor(before=HANGS).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="chains")
    return ioc, monitor


def cause(monitor, *parts):
    """Waits for the sentence of a thread that has all these parts."""
    return until(lambda: next((l for l in text(monitor, "thread ") if all(p in l for p in parts)), None), 60, lambda: monitor.lines("WAITS_TEXT") + monitor.lines("HANG_STACKS"))


@pytest.mark.parametrize("kind, mutex", [(0, "a mutex,"), (1, "a mutex of latencySub.c:"), (2, "a read-write lock,")])
def test_deadlock(hanging, kind, mutex):
    """Two mutexes in opposite order: one sentence for both threads. Who waits behind them is in no deadlock of its own. The second
    time, one of the mutexes is of Base, and has priority inheritance; the third time, one is a read-write lock."""
    ioc, monitor = hanging
    ioc.put("L1.A", 1)
    for n in 0, 1:
        ioc.put(f"L{n}.B", kind)
    ioc.put("L0.SCAN", "1 second", wait=False)
    ioc.put("L1.SCAN", ".5 second", wait=False)
    line = cause(monitor, ": deadlock")
    assert re.search(r"scan-(1|0\.5) waits for a (mutex|read-write lock).*, which scan-(1|0\.5) has; scan-(1|0\.5) waits for a (mutex|read-write lock).*, which scan-(1|0\.5) has: deadlock", line), line
    assert mutex in line
    until(lambda: monitor.get("DEADLOCK_CNT") == 1 and monitor.get("DEADLOCK_CNT.SEVR") == 2, 30, "the alarm")
    until(lambda: ca.get(monitor.prefix + "HANG_CNT.AMSG").startswith("deadlock of scan-"), 30, lambda: ca.get(monitor.prefix + "HANG_CNT.AMSG"))
    until(lambda: any(line.split(": ", 1)[1] in e for e in monitor.lines("IOC_EVENTS").splitlines()), 30, lambda: monitor.lines("IOC_EVENTS"))
    assert monitor.get("DEADLOCK_CNT") == 1
    ioc.kill()
    until(lambda: monitor.get("DEADLOCK_CNT") == monitor.get("DEADLOCK_CNT.SEVR") == 0 and not text(monitor, "thread "), 30, lambda: monitor.lines("WAITS_TEXT"))
    until(lambda: not ca.get(monitor.prefix + "HANG_CNT.AMSG"), 30, "the message is over")


def test_end_of_a_thread(hanging):
    """A thread waits for the end of one that waits for its lock set; one waits for the end of a program, one for a datagram, one in select."""
    ioc, monitor = hanging
    with socket.create_server(("127.0.0.1", 0)) as device, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port, udp = (s.getsockname()[1] for s in (device, other))
        for name, source, scan in ("RUN", "exec sleep 300", ".2 second"), ("PIPE", f"u{udp}", "2 second"), ("SOCKET", f"s{port}", ".5 second"):
            ioc.put(name + ".A", [*source.encode(), 0])
            ioc.put(name + ".SCAN", scan, wait=False)
        program = int(re.search(r"\(pid (\d+)", cause(monitor, "scan-0.2 waits for the end of sleep (pid "))[1])
        cause(monitor, f"scan-2 waits in recvfrom for UDP 127.0.0.1:{udp}, at readInput")
        cause(monitor, f"select6 for 127.0.0.1:{port}, at readInput")
        ioc.put("JOIN.SCAN", "1 second", wait=False)
        line = cause(monitor, ": deadlock")
        lock = rf"(\S+) waits for the lock set of {ioc.prefix}JOIN, which scan-1 has"
        assert re.search(rf"scan-1 waits for the end of (\S+); {lock}: deadlock|{lock}; scan-1 waits for the end of \S+: deadlock", line), line
    ioc.kill()
    os.kill(program, signal.SIGKILL)


def test_mutex_whose_owner_has_ended(hanging):
    ioc, monitor = hanging
    ioc.put("ORPHAN.SCAN", "1 second", wait=False)
    line = cause(monitor, "whose owner has ended")
    assert "scan-1 waits for a mutex, whose owner has ended (thread" in line, line
    until(lambda: monitor.get("DEADLOCK_CNT") == 1, 30, "the alarm")


def test_waits_that_are_none_of_each_other(hanging):
    """A pipe, a device that does not answer, a sleep, and an IOC that is stopped: the last cause is named, and nobody calls it a deadlock."""
    ioc, monitor = hanging
    device = socket.create_server(("127.0.0.1", 0))  # it accepts and never answers
    port = device.getsockname()[1]
    for name, source, scan in ("PIPE", "/proc/self/fd/0", "1 second"), ("SOCKET", str(port), "2 second"):
        ioc.put(name + ".A", [*source.encode(), 0])
        ioc.put(name + ".SCAN", scan, wait=False)
    cause(monitor, "scan-1 waits in read for a pipe of ", f"(pid {os.getpid()}), at readInput (latencyIoc)")
    cause(monitor, f"scan-2 waits in recvfrom for 127.0.0.1:{port}, at readInput (latencyIoc)")
    ioc.put("SLEEP.A", 60e6)
    ioc.put("SLEEP.SCAN", ".5 second", wait=False)
    cause(monitor, "scan-0.5 sleeps, at sleepFor (latencyIoc)")
    cause(monitor, "scan-0.5 sleeps, at sleepFor (latencyIoc); for it wait: scan-0.1")
    listed = rf"^for thread scan-0.5 in {ioc.name} wait:\n  scan-0.1 waits for the lock set of {ioc.prefix}\w+, at dbScanLock \(libdbCore.*\) < scanList < periodicTask"
    until(lambda: re.search(listed, monitor.lines("WAITS_TEXT"), re.M), 30, lambda: monitor.lines("WAITS_TEXT"))
    ioc.process.halt()
    cause(monitor, "is stopped by a signal or a debugger")
    assert monitor.get("DEADLOCK_CNT") == 0 and "deadlock" not in monitor.lines("IOC_EVENTS")
    ioc.process.signal(signal.SIGCONT)
    device.close()


def test_pipe_that_nobody_reads(hanging):
    """As soon as the pipe is read, nothing waits. Its reader is named, not who can only write."""
    ioc, monitor = hanging
    reader, writer = os.pipe()
    other = Process(["sleep", "1000"], os.environ, pass_fds=[writer])
    ioc.put("PIPE.A", [*f">/proc/{os.getpid()}/fd/{writer}".encode(), 0])
    ioc.put("PIPE.SCAN", "1 second", wait=False)
    line = cause(monitor, "waits in write for a pipe that ", f"(pid {os.getpid()}) has to read")
    assert f"(pid {other.pid})" not in line and line.count("(pid") == 1, line
    threading.Thread(target=lambda: [os.read(reader, 65536) for _ in iter(int, 1)], daemon=True).start()
    until(lambda: not text(monitor, "thread "), 60, lambda: monitor.lines("WAITS_TEXT"))
    other.kill()  # it does not read its input, so close() would wait


@contextlib.contextmanager
def stalled(folder):
    """A FUSE file system with one file, whose content never comes (linux/fuse.h)."""
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    if libc.mount(b"far:/disk", bytes(folder), b"fuse", 0, f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()):
        os.close(fuse)
        pytest.skip(f"no FUSE: {os.strerror(ctypes.get_errno())}")

    def attributes(node):
        return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, 0o100644 if node > 1 else 0o40755, 1, 0, 0, 0, 4096, 0)

    def serve():
        with contextlib.suppress(OSError):  # it is unmounted
            while True:
                request = os.read(fuse, 1 << 17)
                code, unique, node = struct.unpack_from("<4xIQQ", request)
                answer = {26: struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 65536, 0, 0, 0, *[0] * 8), 1: struct.pack("<4Q2I", 2, 1, 0, 0, 0, 0) + attributes(2),
                          3: struct.pack("<Q2I", 0, 0, 0) + attributes(node), 14: struct.pack("<QII", 1, 0, 0), 15: None}.get(code, b"")
                if answer is not None:
                    os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0 if answer else -38, unique) + answer)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        libc.umount2(bytes(folder), 3)  # MNT_FORCE, MNT_DETACH
        os.close(fuse)


def test_file_that_does_not_come(hanging, tmp_path):
    """A file of a FUSE file system that stands still: who serves it is named. An ordinary file is read meanwhile."""
    ioc, monitor = hanging
    (tmp_path / "plain").write_text("x")
    folder = tmp_path / "far"
    folder.mkdir()
    with stalled(folder):
        ioc.put("PIPE.A", [*f"{folder}/file".encode()[:200], 0])
        ioc.put("PIPE.SCAN", "1 second", wait=False)
        cause(monitor, f"waits in read for {folder}/file (fuse far:/disk, served by ", f"(pid {os.getpid()}))")
        ioc.put("SOCKET.A", [*str(tmp_path / "plain").encode(), 0])
        ioc.put("SOCKET.PROC", 1)
        assert monitor.get("DEADLOCK_CNT") == 0
    until(lambda: not text(monitor, "thread "), 60, lambda: monitor.lines("WAITS_TEXT"))


@pytest.mark.skipif(not (paths.STREAM_IOC.exists() and paths.ASYN.exists()), reason="no IOC with asyn: EBPFMON_STREAM names its folder")
def test_ports_of_asyn(new_ioc, new_monitor, tmp_path):
    """Two records have their lock sets and wait for two ports, whose threads wait for these lock sets. A third record waits for a port that
    waits for its device: no deadlock. So do active records, one served and one in the queue; of asyn, and of StreamDevice."""
    device = Device({"MUTE?": (0, None)})
    prefix = f"T{os.getpid()}:ports:"

    (tmp_path / "mute.proto").write_text('Terminator = CR LF;\nLockTimeout = 1000000; ReplyTimeout = 1000000;\nask { out "MUTE?"; in "%s"; }\n')
    (tmp_path / "ports.db").write_text(db.READY + "".join(routine(f"WAIT{n}", "waitForPort", FTA="CHAR", NOA=40, FTB="CHAR", NOB=40) for n in range(3)) +
                                       "".join(db.record("stringin", n, DTYP="asynOctetCmdResponse", INP="@asyn(L2,0,1000)MUTE?") for n in ("SERVED", "QUEUED")) +
                                       "".join(db.record("stringin", n, DTYP="stream", INP="@mute.proto ask L3") for n in ("STREAM1", "STREAM2")))
    (tmp_path / "st.cmd").write_text("\n".join([f'dbLoadDatabase "{paths.STREAM}/dbd/streamApp.dbd"', "streamApp_registerRecordDeviceDriver", f'epicsEnvSet STREAM_PROTOCOL_PATH "{tmp_path}"',
        *(f"drvAsynIPPortConfigure L{n} 127.0.0.1:{device.port}\nasynSetQueueLockPortTimeout L{n} 0" for n in range(4)),
        f'dbLoadRecords "{tmp_path}/ports.db" "P={prefix}"', "iocInit", ""]))
    ioc = new_ioc(kind="streamIoc", prefix=prefix, files=[tmp_path / "st.cmd"], environ=preload_asyn(tmp_path)).start()
    monitor = new_monitor(before=HANGS).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="chains")
    active = {"SERVED": ("", "L2"), "QUEUED": ("waits for ", "L2"), "STREAM1": ("", "L3"), "STREAM2": ("waits for ", "L3")}
    for name in active:
        ioc.put(f"{name}.PROC", 1, wait=False)
    until(lambda: all(ioc.get(f"{name}.PACT") == 1 for name in active), 30, "the records")
    for n, fields in enumerate((("L0", "L1"), ("L1", "L0"), ("L2", ""))):
        for field, port in zip("AB", fields):
            ioc.put(f"WAIT{n}.{field}", [*port.encode(), 0])
        ioc.put(f"WAIT{n}.SCAN", ["1 second", ".5 second", "2 second"][n], wait=False)
    line = cause(monitor, ": deadlock")
    for who, port, lock in ("scan-1", "L0", "WAIT1"), ("scan-0.5", "L1", "WAIT0"):
        assert f"{who} waits for port {port}, which {port} has" in line and f"{port} waits for the lock set of {prefix}{lock}" in line, line
    end = f"L2 waits in poll for 127.0.0.1:{device.port}"
    cause(monitor, f"scan-2 waits for port L2, which L2 has; {end}")
    for name, (how, port) in active.items():
        until(lambda: [t for t in text(monitor, f"active {prefix}{name} ") if f"; {how}port {port}, which {port} has: {end.replace('L2', port)}" in t], 30, lambda: monitor.lines("WAITS_TEXT"))
    assert monitor.get("DEADLOCK_CNT") == 1
    device.close()


PYTHON = """import ctypes, sys, threading, time
from epicscorelibs.path import get_lib
from softioc import asyncio_dispatcher, builder
from softioc import softioc as ioc
builder.SetDeviceName(sys.argv[-1].rstrip(":"))
builder.aOut("READY", initial_value=1)
ask = builder.aOut("ASK", always_update=True)
ask.SCAN = ".1 second"
def write(kind):
    put, find, address = kind(get_lib("dbCore")).dbPutField, ctypes.CDLL(get_lib("dbCore")).dbNameToAddr, ctypes.create_string_buffer(256)
    find((sys.argv[-1] + "ASK.DESC").encode(), address)
    while True:
        put(address, 0, b"x".ljust(40, b"\\0"), ctypes.c_long(1))
        time.sleep(0)
go = builder.longOut("GO", on_update=lambda n: threading.Thread(target=write, args=[ctypes.PyDLL if n > 1 else ctypes.CDLL]).start())
builder.LoadDatabase()
ioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
sys.stdin.read()
"""


def test_lock_of_python(new_ioc, new_monitor, tmp_path):
    """A put that keeps Python's GIL, against a record that Python processes. One that releases it does no harm."""
    (tmp_path / "gil.py").write_text(PYTHON)
    ioc = new_ioc(kind="pythonSoftIOC", files=[tmp_path / "gil.py"]).start()
    monitor = new_monitor(before=HANGS).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="chains")
    ioc.put("GO", 1)
    until(lambda: ioc.get("ASK.DESC") == "x", 30, "it writes")
    before = ioc.run("caget", "-a", ioc.prefix + "ASK").stdout
    until(lambda: ioc.run("caget", "-a", ioc.prefix + "ASK").stdout != before, 30, "the record processes meanwhile")
    ioc.put("GO", 2, wait=False)
    line = cause(monitor, ": deadlock")
    assert re.search(rf"scan-0.1 waits for the GIL of Python, which (\S+) has; \1 waits for the lock set of {ioc.prefix}ASK, which scan-0.1 has: deadlock|"
                     rf"(\S+) waits for the lock set of {ioc.prefix}ASK, which scan-0.1 has; scan-0.1 waits for the GIL of Python, which \2 has: deadlock", line), line


def test_late_scan(new_ioc, new_monitor):
    """The thread does not hang: it is late in each period. The alarm of the late scan says why."""
    ioc, monitor = new_ioc(db.READY + LOCKS, kind="latencyIoc").start(), new_monitor().start()
    monitor.wait_ioc(ioc)
    ioc.put("SLEEP.A", 4e6)
    ioc.put("SLEEP.SCAN", ".5 second", wait=False)
    cause(monitor, "scan-0.5 sleeps, at sleepFor (latencyIoc)")
    until(lambda: ca.get(monitor.prefix + "SCAN_LATE_NOW.AMSG").startswith("scan-0.5 sleeps, at sleepFor"), 30,
          lambda: ca.get(monitor.prefix + "SCAN_LATE_NOW.AMSG"))
    until(lambda: re.search(rf"IOC {ioc.name}: scan late: .*scan-0.5 sleeps, at sleepFor", monitor.lines("IOC_EVENTS")), 30, lambda: monitor.lines("IOC_EVENTS"))
    assert monitor.get("HANG_CNT") == 0
