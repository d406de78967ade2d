# SPDX-License-Identifier: BSD-3-Clause
"""Servers of Channel Access and pvAccess in which the monitor finds no records of EPICS Base are listed, with what is missing
and what works. A process that only listens, or whose port somebody else announces, is not listed."""
import os
import pwd
import socket
import struct
import subprocess
import sys

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.wait import until

PEER = paths.PROGRAMS / "peer_ioc.py"
REST = "no records of EPICS Base were found in this server, so there are no counts and no chains"
RSRV_IS_UP = 13

# Listens at the port that it gets, and answers nothing. As nobody, whose processes anybody may start.
SILENT = """
import os, socket, sys
os.setgid({gid}); os.setuid({uid})
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
print("ready", flush=True)
kept = []
while True:
    kept.append(s.accept())
"""


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor().start()


def peer(new_ioc, kind):
    ioc = new_ioc(kind="pythonSoftIOC", files=[PEER, kind]).start(wait=kind != "p4p")
    if kind == "p4p":
        until(lambda: "ready" in ioc.process.lines or not ioc.running, 30, ioc.process.output)
    assert ioc.running, ioc.process.output()
    return ioc


def note_of(monitor, pid):
    return dict(zip(map(int, monitor.list("IOC_PIDS")), monitor.list("IOC_NOTES"))).get(pid)


def logged(monitor, ioc):
    return [line for line in monitor.process.lines if f"{ioc.name} (pid {ioc.pid}): packets only" in line]


def wait_listed(monitor, ioc, ports="CA port {ca}", seconds=40):
    """Waits until the server is listed. Checks its row in the tables and in the list of the shell, and its one message."""
    row = until(lambda: monitor.iocs().get(ioc.pid), seconds,
                lambda: f"{ioc.name} in {monitor.iocs()}\n{monitor.process.output()}")
    assert row == (ioc.name, "", 0, "off"), row
    # operators have an alarm on the number of IOCs: such a server must not stand for one that is missing
    until(lambda: monitor.get("IOC_CNT") == sum(version != "" for _, version, *_ in monitor.iocs().values()), 10,
          lambda: f"{monitor.get('IOC_CNT')}: {monitor.iocs()}")
    begin = f"packets only ({ports.format(ca=ioc.port, pva=ioc.port + 1000)}): "
    until(lambda: (note_of(monitor, ioc.pid) or "").startswith(begin), 10, lambda: note_of(monitor, ioc.pid))
    listed = [line for line in monitor.command("ebpfMonIocs") if line.startswith(ioc.name + " ")]
    assert len(listed) == 1 and begin + REST in listed[0] and listed[0].split()[1] == str(ioc.pid), listed
    until(lambda: len(logged(monitor, ioc)) == 1, 10, lambda: logged(monitor, ioc))


@pytest.mark.parametrize("kind, ports", [("caproto", "CA port {ca}"), ("pcaspy", "CA port {ca}"), ("p4p", "PVA port {pva}")])
def test_is_listed_by_its_answer(new_ioc, monitor, kind, ports):
    """A client connects: the server is in the tables and in the lists of the shell, and the journal says so once. A put to it is
    seen. It is not a trouble of the monitor. It leaves the list when it ends."""
    ioc = peer(new_ioc, kind)
    if kind == "p4p":
        assert ioc.run("pvput", "-w", "10", ioc.prefix + "DOUBLE", 6.5).returncode == 0
    else:
        ioc.put("DOUBLE", 6.5)
    wait_listed(monitor, ioc, ports)
    until(lambda: any(f"{ioc.prefix}DOUBLE " in line and "6.5" in line for line in monitor.lines("PUT_LOG").splitlines()), 10,
          lambda: monitor.lines("PUT_LOG"))
    monitor.wait_state("Running")
    ioc.discard()
    monitor.wait_gone(ioc.pid)


@pytest.mark.parametrize("kind, ports", [("caproto", "CA port {ca}"), ("p4p", "PVA port {pva}")])
def test_is_listed_by_its_beacon(new_ioc, monitor, kind, ports):
    """No client has ever connected to this server. It sends a beacon every 15 s, at least at its start."""
    wait_listed(monitor, peer(new_ioc, kind), ports)


def test_base_without_any_text(new_ioc, monitor, tmp_path):
    """A static IOC, stripped, without the two texts by which the monitor knows such an IOC: as one that was packed."""
    whole, stripped = tmp_path / "whole", tmp_path / "staticIoc"
    data = paths.STATIC_IOC.read_bytes()
    for text in (b"Starting iocInit", b"iocRun: %s"):
        assert text in data
        data = data.replace(text, text.upper())
    whole.write_bytes(data)
    subprocess.run(["strip", "-o", stripped, whole], check=True)
    stripped.chmod(0o755)
    ioc = new_ioc(db.READY + db.record("ao", "AO"), kind="latencyIoc", program=stripped).start()
    ioc.put("AO", 4.5)
    wait_listed(monitor, ioc)


@pytest.fixture
def silent():
    """A process that listens at the port of a CA server. A client talks CA to it: first as a client, then it sends what a server
    would answer."""
    port, who = loopback.take_port(), pwd.getpwnam("nobody")
    p = Process([sys.executable, "-c", SILENT.format(uid=who.pw_uid, gid=who.pw_gid), port], loopback.environment())
    p.wait_line("ready")
    client = socket.create_connection(("127.0.0.1", port))
    name = rawca.as_bytes("SOME:NAME") + b"\0"
    client.sendall(rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.CREATE, name, cid=1, extra=rawca.MINOR))
    client.sendall(rawca.message(rawca.CREATE, b"", rawca.DOUBLE, 1, 1, 7))
    yield p, port
    client.close()
    p.kill()
    loopback.give_port(port)


def beacon(port):
    """A beacon, as a CA server at this port of 127.0.0.1 would send it."""
    data = struct.pack(">HHHHII", RSRV_IS_UP, 0, rawca.MINOR, port, 1, 0x7f000001)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(data, ("127.0.0.1", loopback.REPEATER_PORT))


def test_listening_is_no_proof(new_ioc, monitor, silent):
    """A process of another user listens. Its client sends what a server would answer, and a third process sends beacons for it.
    All of that was read when a real server is listed, which came later."""
    process, port = silent
    beacon(port)
    until(lambda: any(f"127.0.0.1:{port}" in s for s in monitor.list("BEACON_SERVERS")), 10,
          lambda: monitor.list("BEACON_SERVERS"))
    real = peer(new_ioc, "caproto")
    real.put("DOUBLE", 1.5)
    wait_listed(monitor, real)
    beacon(port)
    assert process.pid not in monitor.iocs() and os.getpid() not in monitor.iocs(), monitor.iocs()


def test_base_is_no_other_server(new_ioc, monitor):
    """An IOC of EPICS Base answers by CA, too: it has one row, at the level that was asked for."""
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    monitor.wait_ioc(ioc)
    ioc.put("AO", 2.5)
    real = peer(new_ioc, "caproto")
    real.put("DOUBLE", 1.5)
    wait_listed(monitor, real)
    assert [int(p) for p in monitor.list("IOC_PIDS")].count(ioc.pid) == 1
    assert not logged(monitor, ioc)
