# SPDX-License-Identifier: BSD-3-Clause
"""Processes that look like IOCs but are none, or that harm a process that reads them (tests/ioc/hostile.c). The monitor
still finds and watches the real IOCs, soon and with little CPU time, and STATE stays Running."""
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

import pytest
from tests.harness import badlink, db, kernel, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.putlog import PutLog, same
from tests.harness.soak import size, soak
from tests.harness.wait import stays_false, until

DB = db.READY + db.record("ao", "AO")
SOON = 30  # s: on an idle host one or two
SPARSE = 350 << 20  # bytes that may be read for a sparse file. Until its work is used up (elfFile.c) it is 107 million; the monitor
                    # also reads what other tests start meanwhile


@pytest.fixture
def hostile():
    """hostile("silent", 3) starts three of these processes. Their names match the filter."""
    started = []

    def start(mode, count=1, **environ):
        p = Process([paths.HOSTILE, mode, str(count)], {**os.environ, "IOC": f"ioc{os.getpid()}x{mode}", **environ},
                    cwd="/tmp")
        started.append(p)
        until(lambda: sum(line.isdigit() for line in p.lines) == count and p.running, 30, p.output)
        return [int(line) for line in p.lines if line.isdigit()]

    yield start
    for p in started:
        p.close()


def bytes_read(pid):
    """From files, also from /proc (proc_pid_io(5))."""
    with open(f"/proc/{pid}/io") as f:
        return int(f.readline().split()[1])


def is_whole(monitor, new_ioc):
    """A real IOC that starts now is watched soon, and its puts are seen."""
    ioc = new_ioc(DB).start()
    began = time.monotonic()
    monitor.wait_ioc(ioc)
    assert time.monotonic() - began < SOON
    ioc.put("AO", 42)
    until(lambda: ioc.prefix + "AO" in monitor.list("PUT_PVS"), 5, "the put is seen")
    monitor.wait_state("Running")  # on a busy host a thread may make no progress for a while
    return ioc


def is_fine(monitor):
    """True if the monitor reports nothing wrong, except, on a busy host, a thread that makes no progress for a
    while."""
    text = monitor.text("STATE_MSG")
    return text.startswith(("watching", "no progress"))


def wait_listed(monitor, pids):
    """Waits until at least four are listed. The others wait, because their user costs too much."""
    until(lambda: len(set(pids) & set(monitor.iocs())) >= 4, 10,
          lambda: "\n".join([f"some of {pids}: {monitor.iocs()}", *monitor.command("ebpfMonReport 1"), *monitor.command("ebpfMonIocs")]))


@soak
def test_memory_that_never_arrives(hostile, new_ioc, new_monitor):
    """The page that contains pdbbase is never delivered."""
    monitor = new_monitor().start()
    first = is_whole(monitor, new_ioc)
    wait_listed(monitor, hostile("silent", size(10, 20)))
    ioc = is_whole(monitor, new_ioc)
    began = time.monotonic()
    monitor.set_filter(LEVEL="puts")
    monitor.wait_ioc(ioc, level="puts")
    first.stop()
    monitor.wait_gone(first.pid)
    assert time.monotonic() - began < SOON
    until(lambda: any("does not answer" in line for line in monitor.command("ebpfMonIocs")), 10, "the note says so")


@soak
def test_memory_that_never_arrives_before_the_monitor(hostile, new_ioc, new_monitor):
    pids = hostile("silent", size(10, 20))
    monitor = new_monitor().start()
    wait_listed(monitor, pids)
    is_whole(monitor, new_ioc)


@pytest.fixture
def fuse():
    """What a FUSE file system of an ordinary user needs: the device, which every user may open on a usual host, and a
    folder for each process."""
    with tempfile.TemporaryDirectory(prefix="ebpfMonFuse") as top:
        device, folder = f"{top}/device", f"{top}/on"
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            pytest.skip(f"no FUSE: {error}")
        for number in range(8):
            os.makedirs(f"{folder}/{number}")
        os.chmod(device, 0o666)
        os.chmod(top, 0o755)
        yield f"{device} {folder}"


@pytest.mark.parametrize("mode", ["fusePage", "fuseCode", "fuseProgram"])
def test_fuse_that_never_answers(hostile, fuse, new_ioc, new_monitor, mode):
    """Memory, code or the program are in a user's file system that does not answer. New IOCs are watched, processes of
    the host can start, and STATE stays Running."""
    monitor = new_monitor().start()
    first = is_whole(monitor, new_ioc)
    pids = hostile(mode, 4, FUSE=fuse)
    ioc = is_whole(monitor, new_ioc)
    # a program that cannot be read is set aside, and is no IOC
    until(lambda: set(pids) & set(monitor.iocs()) or mode == "fuseProgram", 30, lambda: monitor.command("ebpfMonIocs"))
    for level in ("puts", "chains"):
        monitor.set_filter(LEVEL=level)
        monitor.wait_ioc(ioc, level=level)
    first.stop()
    monitor.wait_gone(first.pid)
    is_whole(monitor, new_ioc)


def test_file_with_endless_tables(hostile, new_ioc, new_monitor):
    """Sparse files with symbol tables of gigabytes are mapped as code."""
    monitor = new_monitor().start()
    is_whole(monitor, new_ioc)
    before = bytes_read(monitor.process.pid)
    pids = set(hostile("sparse", 2))
    is_whole(monitor, new_ioc)
    until(lambda: pids <= set(monitor.iocs()), 15, lambda: f"{pids} were looked at: {monitor.iocs()}")
    is_whole(monitor, new_ioc)
    # each file is read once, and no more when its process is looked at again
    assert bytes_read(monitor.process.pid) - before < 2 * SPARSE


def test_endless_tables_before_the_monitor(hostile, new_ioc, new_monitor):
    """Each of them takes seconds of CPU time. An IOC of another user does not wait for all eight."""
    hostile("sparse", 8)
    ioc = new_ioc(DB).start()
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    assert bytes_read(monitor.process.pid) < 2 * SPARSE


def test_fakes_hide_nothing(hostile, new_ioc, new_monitor):
    """There are more fake IOCs than rows in the tables. A real IOC that starts later is in the tables."""
    monitor = new_monitor().start()
    pids = hostile("fake", 300)
    until(lambda: len(set(monitor.iocs()) & set(pids)) > 200, 30, lambda: f"{len(monitor.iocs())} IOCs are listed")
    is_whole(monitor, new_ioc)
    # longer than the time after which an unreadable database is reported
    assert stays_false(lambda: not is_fine(monitor), 7), monitor.text("STATE_MSG")


def test_message_of_gigabytes(new_monitor):
    """A client announces a message of 2 GB and sends a part of it. The monitor's CA server does not keep the bytes."""
    monitor = new_monitor().start()
    before = kernel.resident(monitor.process.pid)
    client = rawca.RawCa(monitor.port)
    head = struct.pack(">HHHHIIII", rawca.WRITE, 0xffff, rawca.DOUBLE, 0, client.sid(monitor.prefix + "STATE"), 0, 1 << 31, 1 << 28)
    for data in [head] + 300 * [bytes(1 << 20)]:
        client.send(data)
    assert kernel.resident(monitor.process.pid) - before < 100 << 20
    monitor.wait_state("Running")


FILES = 385  # enough for nine of sixteen IOCs: each needs 17 files


def test_few_files(new_ioc, new_monitor):
    """If the limit of open files is low, some IOCs are not watched, or not as closely as asked. STATE says so, and the
    monitor's own server answers. Each probe needs a file only without CAP_SYS_ADMIN (probe/closer.c)."""
    monitor = new_monitor()
    monitor.launch(["prlimit", f"--nofile={FILES}:{FILES}", "setpriv", "--bounding-set", "-sys_admin", "--inh-caps",
                    "-sys_admin"])
    monitor.wait_state("Running")
    iocs = [new_ioc(DB).start() for _ in range(16)]
    monitor.wait_text("STATE_MSG", lambda text: "ulimit -n" in text, 20)
    until(lambda: len({i.pid for i in iocs} & set(monitor.iocs())) == len(iocs), 20, "all are listed")
    seen = monitor.iocs()
    whole = [i for i in iocs if seen[i.pid][3] == "chains"]
    others = [i for i in iocs if i not in whole]
    # an IOC that is watched while it starts stays at level puts, if there are files for that
    assert whole and others and {seen[i.pid][3] for i in others} <= {"off", "puts"}, seen
    assert len(os.listdir(f"/proc/{monitor.process.pid}/fd")) <= FILES - 40
    for i in whole:
        i.kill()
    until(lambda: all(monitor.iocs()[i.pid][3] == "chains" for i in others), 20,
          lambda: "\n".join([f"{[i.pid for i in others]} are watched now", *monitor.command("ebpfMonIocs")]))
    monitor.wait_state("Running", 20)


@pytest.mark.parametrize("files", [70, 90, 103])
def test_no_files(new_monitor, files):
    """Too few files may be open for the monitor itself. STATE says which limit it is."""
    monitor = new_monitor()
    monitor.launch(["prlimit", f"--nofile={files}:{files}"])
    text = monitor.wait_text("STATE_MSG", lambda text: "starting" not in text and "loading" not in text, 20)
    assert "LimitNOFILE" in text or "ulimit -n" in text or text.startswith("watching"), text


@pytest.fixture
def frozen_disk(tmp_path):
    """A file system of its own. After freeze(True) each writer waits."""
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with open(image, "wb") as f:
        f.truncate(8 << 20)
    if subprocess.run(["mkfs.ext4", "-q", image]).returncode or \
            subprocess.run(["mount", "-o", "loop", image, folder]).returncode:
        pytest.skip("no loop device")

    def freeze(on):
        subprocess.run(["fsfreeze", "-f" if on else "-u", folder], check=on)

    yield folder, freeze
    freeze(False)
    subprocess.run(["umount", "-l", folder], check=True)


def test_thread_that_makes_no_progress(frozen_disk, new_ioc, new_monitor):
    """The disk of a log does not answer any more. STATE says which thread waits, and the monitor still sees puts."""
    folder, freeze = frozen_disk
    monitor = new_monitor(before=[f'ebpfMonJsonLog "{folder}/puts.json" 1 24 2 all']).start()
    ioc = is_whole(monitor, new_ioc)
    freeze(True)
    began = time.monotonic()
    ioc.put("AO", 1)
    monitor.wait_state("Degraded", 6)
    took = time.monotonic() - began
    assert "ebpfMonExport" in monitor.text("STATE_MSG")
    assert took < 6, f"after {took:.1f} s"
    ioc.put("AO", 2)
    until(lambda: "2" in monitor.list("PUT_VALUES"), 5, "the put is seen")
    freeze(False)
    monitor.wait_state("Running", 5)


@soak
def test_loads_slowly(new_monitor, tmp_path):
    """The monitor does not read an IOC again and again while it loads slowly."""
    monitor = new_monitor().start()
    many = tmp_path / "many.db"
    many.write_text("".join(f'record(calc, "$(P){i}") {{ field(INPA, "$(P){i + 1}") }}\n' for i in range(4000)))
    name, files = f"ioc{os.getpid()}xslow", size(15, 40)
    ioc = Process([paths.BASE_BIN / "softIoc"], loopback.server(loopback.take_port(), IOC=name), cwd=tmp_path)
    try:
        until(lambda: ioc.pid in monitor.iocs(), 10, "the IOC is found")
        began, before = time.monotonic(), monitor.process.cpu_seconds()
        for i in range(files):
            ioc.command(f'dbLoadRecords("{many}", "P=L{os.getpid()}:{i}:")')
            ioc.command("epicsThreadSleep(0.3)")
        took, used = time.monotonic() - began, monitor.process.cpu_seconds() - before
        monitor.wait_state("Running")
        ioc.command("iocInit")
        until(lambda: monitor.iocs().get(ioc.pid, ("", "", 0, ""))[2] == 4000 * files, 20,
              lambda: f"its records: {monitor.iocs().get(ioc.pid)}")
        # it took 42 % when the IOC was read again and again; other programs that start on this host also cost CPU time
        assert used < 0.25 * took, f"{used:.1f} s of CPU in {took:.1f} s"
    finally:
        ioc.close()


FLOOD = """
import socket, struct
now = struct.pack("ii", 1, 0)  # closed by RST: the port is free at once
listener = socket.create_server(("127.0.0.1", 0))
for i in range({count}):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        s.bind((f"127.0.1.{{1 + i % 200}}", 0))
        s.connect(listener.getsockname())
        listener.accept()[0].close()
"""


def flood(count):
    subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c",
                    FLOOD.format(count=count)], check=True, timeout=300)


def test_many_connections_hide_no_client(new_ioc, new_monitor, tmp_path):
    """Any user may open and close connections as often as he likes. Who opened the others is known all the same: there is room for a
    new connection after more have ended than the table has elements (EBPFMON_OWNERS_MAX), and it stays when more end than are kept
    (EBPFMON_ENDED_SHARE)."""
    ioc = new_ioc(DB).start()
    log = PutLog(tmp_path / "puts.json")
    new_monitor(before=[log.command()]).start().wait_ioc(ioc)
    flood(50000)
    ioc.get("AO")  # the client of this process is connected now
    flood(10000)
    ioc.put("AO", 42)
    line, = log.next(1, ioc.prefix, 0)
    assert (line.get("pid"), line.get("real_user")) == (str(os.getpid()), "root"), line


def test_many_connections_hide_no_client_that_has_gone(new_ioc, new_monitor, tmp_path):
    """An IOC is slow: when it makes a put, the client has ended, and somebody else has opened and closed thousands of connections."""
    ioc = new_ioc(DB).start()
    log = PutLog(tmp_path / "puts.json")
    new_monitor(before=[log.command()]).start().wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)
    sid = client.sid(ioc.prefix + "AO")
    ioc.process.signal(signal.SIGSTOP)
    try:
        client.send(rawca.write(sid, rawca.DOUBLE, [42.0]))
        client.close()
        flood(12000)
    finally:
        ioc.process.signal(signal.SIGCONT)
    line, = log.next(1, ioc.prefix, 0)
    assert (line.get("pid"), line.get("real_user")) == (str(os.getpid()), "root"), line


ADDRESS = "192.0.2.77"  # RFC 5737: no real host has it

# In a network namespace of its own: each time a line comes, a connection from and to the same addresses and ports as that of
# another one, which stays open until the next line.
TWIN = """
import socket, subprocess, sys
for args in (("link", "set", "lo", "up"), ("addr", "add", sys.argv[1] + "/32", "dev", "lo")):
    subprocess.run(["ip", *args], check=True)
for turn, line in enumerate(sys.stdin):
    # first one that was accepted has these addresses and ports, and ends
    with socket.create_server((sys.argv[1], int(line))) as server:
        with socket.create_connection(server.getsockname(), source_address=(sys.argv[1], int(sys.argv[2]))) as client:
            accepted = server.accept()[0]
            for end in accepted, client:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))  # the ports are free at once
            accepted.close()
    server = socket.create_server((sys.argv[1], int(sys.argv[2])))
    with socket.create_connection(server.getsockname(), source_address=(sys.argv[1], int(line))) as twin:
        accepted = server.accept()[0]
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))  # its port is free at once
        print("open", turn, flush=True)
        sys.stdin.readline()
    accepted.close()
    server.close()
    print("closed", turn, flush=True)
"""


@pytest.fixture
def address():
    """One more address of this process's network namespace."""
    badlink.ip("addr", "add", f"{ADDRESS}/32", "dev", "lo")
    yield ADDRESS
    badlink.ip("addr", "del", f"{ADDRESS}/32", "dev", "lo")


def test_a_twin_takes_no_connection(new_ioc, new_monitor, tmp_path, address):
    """Any user can make a network namespace with the addresses of this host, and open a connection there that looks like the one of
    somebody else. The puts of the other one are not his, and the other one is still known."""
    ioc = new_ioc(DB, environ={"EPICS_CAS_INTF_ADDR_LIST": f"127.0.0.1 {address}"}).start()
    log = PutLog(tmp_path / "puts.json")
    new_monitor(before=[log.command()]).start().wait_ioc(ioc)
    client = rawca.RawCa(ioc.port, addr=address)
    port = client.socket.getsockname()[1]
    twin = Process(["unshare", "--net", sys.executable, "-u", "-c", TWIN, address, ioc.port], loopback.environment())

    def put(value):
        mark = len(log.of(ioc.prefix))
        client.send(rawca.write(client.sid(ioc.prefix + "AO"), rawca.DOUBLE, [value]))
        line, = log.next(1, ioc.prefix, mark)
        assert same(line["value"], value), line
        return line.get("pid"), line["user"]

    assert put(1) == (str(os.getpid()), "raw")
    for turn in range(2):  # he may come again
        twin.send(str(port))
        twin.wait_line(f"open {turn}")
        assert put(turn + 2) == (str(os.getpid()), "raw")
        twin.send("")
        twin.wait_line(f"closed {turn}")
        assert put(turn + 12) == (str(os.getpid()), "raw")
    twin.kill()
    client.socket.close()
