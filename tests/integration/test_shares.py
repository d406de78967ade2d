# SPDX-License-Identifier: BSD-3-Clause
"""No user fills a table of the monitor for others: namespaces, records. Nor does he take its CPU time."""
import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from tests.harness import db, kernel, lan, loopback, paths, rawca
from tests.harness.far import FarIoc
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.users import FIRST, SECOND, Folder, UsersIoc, as_user
from tests.harness.wait import until

DB = db.READY + db.record("ao", "AO")
SOURCES = 32  # EBPFMON_PACKET_SOURCES_MAX


@pytest.fixture(scope="module")
def folder():
    made = Folder()
    yield made
    made.discard()


@pytest.fixture
def start(folder):
    """start(UsersIoc arguments) starts an IOC of a user."""
    started = []

    def make(*args, **how):
        started.append(UsersIoc(folder, *args, **how).start())
        return started[-1]

    yield make
    for ioc in started:
        ioc.discard()


def wait_used_up(monitor, most):
    """What a user may take at once is used up: the monitor takes less than "most" of a core."""
    def is_low():
        began, before = time.monotonic(), monitor.process.cpu_seconds()
        time.sleep(5)
        return monitor.process.cpu_seconds() - before < most * (time.monotonic() - began)

    until(is_low, 120, f"less than {most:.3f} of a core")


def many(count):
    return db.READY + "".join(db.record("ao", f"X{i}") for i in range(count))


def row(monitor, ioc):
    """Its row, by its name: a wrapper may have the pid that we know."""
    return next((row for row in monitor.iocs().values() if row[0] == ioc.name), ("", "", 0, ""))


def wait_level(monitor, ioc, level):
    until(lambda: row(monitor, ioc)[3] == level, 20, lambda: "\n".join([level, ioc.name, *monitor.command("ebpfMonIocs")]))


def test_records(new_monitor, start):
    """The tables have room for 4,096 records. The first user has IOCs with nearly as many: the records of his newest one are counted
    no more when another user has some, and never those of the other one."""
    monitor = new_monitor(before=["ebpfMonConfigure 4096"]).start()
    first = [start(FIRST, many(1900)) for _ in range(2)]
    for ioc in first:
        wait_level(monitor, ioc, "chains")
    second = start(SECOND, many(1000))
    wait_level(monitor, second, "chains")
    wait_level(monitor, first[1], "puts")
    assert row(monitor, first[0])[3] == "chains"
    third = start(FIRST, many(1500))
    wait_level(monitor, third, "puts")
    assert (row(monitor, first[0])[3], row(monitor, second)[3]) == ("chains", "chains")


def test_namespaces(new_monitor, start, folder, tmp_path):
    """One user has IOCs in more network namespaces than there are places, also later ones. Packets are read in those of others, and
    the rings of his take little memory."""
    log = PutLog(tmp_path / "puts.json")
    hostile = folder.path / "hostile"
    hostile.write_bytes(paths.HOSTILE.read_bytes())
    hostile.chmod(0o755)

    def assert_read(ioc):
        """A put to it is seen in packets, too."""
        pid = next(pid for pid, row in monitor.iocs().items() if row[0] == ioc.name)
        mark = len(log.of(ioc.prefix))
        client = Process(["nsenter", f"--net=/proc/{pid}/ns/net", "--", sys.executable, "-m", "tests.programs.ca_puts",
                          getattr(ioc, "address", "127.0.0.1"), ioc.port, ioc.prefix + "AO", 1], dict(os.environ))
        client.wait(20)
        line, = log.next(1, ioc.prefix, mark)
        assert line["seen"] == "both", (ioc.name, line, monitor.command("ebpfMonIocs"), monitor.losses(), monitor.process.output())

    with lan.Lan() as net:
        monitor = new_monitor(before=[log.command()]).start()
        roots = [FarIoc(tmp_path, net, end=net.hosts[0], db=DB).start()]
        crowd = start(FIRST, DB, own=True)
        wait_level(monitor, crowd, "chains")
        before = kernel.resident(monitor.process.pid)
        fakes = [Process([*as_user(FIRST), "unshare", "-Urn", "--kill-child", hostile, "fake", "1"],
                         loopback.server(5064, IOC=OURS.replace("*", f"fake{i}")), cwd="/") for i in range(SOURCES + 4)]
        found = 0
        try:
            while found < len(fakes):  # this user waits for his share of CPU time, longer on a slow host: but each is found
                found = until(lambda: (now := len([r for r in monitor.iocs().values() if "fake" in r[0]])) > found and now, 20,
                              monitor.iocs)
            roots.append(FarIoc(tmp_path, net, end=net.hosts[1], db=DB).start())
            others = start(SECOND, DB, own=True)
            for ioc in roots[0], roots[1], others, crowd:
                wait_level(monitor, ioc, "chains")
                assert_read(ioc)
            assert kernel.resident(monitor.process.pid) - before < 48 << 20
            assert monitor.text("STATE_MSG").startswith("watching"), monitor.text("STATE_MSG")
        finally:
            for process in fakes:
                process.kill()
            for ioc in roots:
                ioc.discard()


def test_connections(new_monitor, new_ioc, tmp_path):
    """A user opens more connections of Channel Access than are followed. Those of root are followed all the same, and it is counted
    that others are not."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(DB).start()
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)
    sid = client.sid(ioc.prefix + "AO")
    crowd = Process(["prlimit", "--nofile=10000:10000", *as_user(FIRST), sys.executable, "-m", "tests.programs.many_circuits", "4300"],
                    dict(os.environ), cwd=paths.TOP)
    try:
        crowd.wait_line("open")
        until(lambda: monitor.losses().get("too many connections", 0) > 200, 20, monitor.losses)
        client.send(rawca.write(sid, rawca.DOUBLE, [42.0], notify=True))
        line, = log.next(1, ioc.prefix, 0)
        assert line["seen"] == "both", line
    finally:
        crowd.kill()
        client.close()


def test_uses(new_monitor, new_ioc, start, tmp_path):
    """The file of uses is full of those of one user's IOC. Uses of root's IOC are kept all the same, and that it is watched."""
    file = tmp_path / "uses.db"
    crowd = start(FIRST, db.READY + "".join(db.record("ao", f"LONG:NAME:OF:A:RECORD:NUMBER:{i:05}") for i in range(8000)))
    ioc = new_ioc(DB).start()
    monitor = new_monitor(before=[f'ebpfMonUsage "{file}" 1']).start()
    for watched in crowd, ioc:
        wait_level(monitor, watched, "chains")
    raw, own = rawca.RawCa(crowd.port), rawca.RawCa(ioc.port)
    for i in range(8000):
        raw.sid(f"{crowd.prefix}LONG:NAME:OF:A:RECORD:NUMBER:{i:05}")

    def kept(what):
        monitor.command("ebpfMonUnused 1 none")
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as c:
            return c.execute(f"SELECT count(*) FROM {what} WHERE ioc = ?", [ioc.name]).fetchone()[0]

    until(lambda: kept("uses") >= 0 and "is full" in monitor.text("USAGE_MSG"), 60, lambda: monitor.text("USAGE_MSG"))
    own.sid(ioc.prefix + "AO")
    until(lambda: kept("uses") > 0 and kept("watched") > 0, 60, lambda: monitor.text("USAGE_MSG"))
    assert monitor.get("USAGE_STATE") == 1, monitor.text("USAGE_MSG")
    until(lambda: monitor.get("USAGE_LOST_CNT") > 0 and monitor.get("USAGE_LOST_CNT.SEVR") == 1, 20, lambda: monitor.get("USAGE_LOST_CNT"))
    monitor.put("LOST_RESET", 1)
    until(lambda: monitor.get("USAGE_LOST_CNT") == monitor.get("USAGE_LOST_CNT.SEVR") == 0, 10, lambda: monitor.get("USAGE_LOST_CNT"))
    raw.close()
    own.close()


def test_changing_links(new_monitor, start):
    """A user's IOC with many records changes a link all the time: each time its chains are made anew, for 2 % of a core at most. The
    puts cost 4 % more. Unbounded, it would be all of a core. What the host's other processes cost is known from another monitor."""
    monitor, other = new_monitor().start(), new_monitor(iocs="none").start()
    ioc = start(FIRST, db.READY + "".join(db.record("ao", f"X{i}", **({"FLNK": f"$(P)X{i + 1}"} if i % 20 else {})) for i in range(60000)))
    wait_level(monitor, ioc, "chains")
    end = threading.Event()

    def change():
        for i in range(10**6):
            ioc.process.send(f"dbpf {ioc.prefix}X{i % 7}.FLNK {ioc.prefix}X{20 * (i % 1000)}")
            if end.wait(0.01):
                return

    thread = threading.Thread(target=change)
    thread.start()
    try:
        wait_used_up(monitor, 0.15)
        began, before, others = time.monotonic(), monitor.process.cpu_seconds(), other.process.cpu_seconds()
        time.sleep(size(6, 60))
        took, used, others = time.monotonic() - began, monitor.process.cpu_seconds() - before, other.process.cpu_seconds() - others
    finally:
        end.set()
        thread.join()
    assert used - others < 0.15 * took, f"{used:.2f} s of CPU time in {took:.0f} s, {others:.2f} s of it for other processes"


@soak
@pytest.mark.parametrize("records", size([1], [1, 20000]))
def test_short_iocs(new_monitor, folder, records):
    """A user starts and kills IOCs in new namespaces, again and again, in the long form also with large databases. The monitor gives
    2 % of a core for what is new of him; as much as that goes to what cannot be told apart by user. What the host's other processes
    cost is measured before."""
    monitor = new_monitor().start()
    (folder.path / "short.db").write_text("".join(db.record("calc", f"X{i}", SCAN="1 second") for i in range(records)))
    end, started = threading.Event(), []

    def loop(number):
        while not end.is_set():
            started.append(number)
            name = OURS.replace("*", f"s{number}-{len(started)}")
            argv = [*as_user(FIRST), "nice", "unshare", "-Urn", "--kill-child", "sh", "-c",
                    f"ip link set lo up; exec {folder.softioc} -D {folder.dbd} -m P={name}: -d {folder.path}/short.db"]
            environ = {**loopback.server(5064, IOC=name), "LD_LIBRARY_PATH": str(folder.libraries), "HOME": "/"}
            with subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                end.wait(1.5 if records == 1 else 8)
                process.kill()

    time.sleep(2)  # it has read what was there
    began, before = time.monotonic(), monitor.process.cpu_seconds()
    time.sleep(size(5, 20))
    others = (monitor.process.cpu_seconds() - before) / (time.monotonic() - began)
    loops = [threading.Thread(target=loop, args=(n,)) for n in range(6)]
    for thread in loops:
        thread.start()
    try:
        wait_used_up(monitor, 0.05 + others)
        began, before, count = time.monotonic(), monitor.process.cpu_seconds(), len(started)
        time.sleep(size(15, 60))
        took, used = time.monotonic() - began, monitor.process.cpu_seconds() - before
    finally:
        end.set()
        for thread in loops:
            thread.join()
    assert records > 1 or len(started) - count > took, f"{len(started) - count} IOCs in {took:.0f} s"
    assert used < (0.05 + others) * took, f"{used:.2f} s of CPU time in {took:.0f} s, {others:.3f} of a core for other processes"
