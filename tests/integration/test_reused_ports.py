# SPDX-License-Identifier: BSD-3-Clause
"""Clients that end with a RST and come again from the same port at once, also as another user, and clients with TCP_FASTOPEN: each put
is shown, by its own client. A connection belongs to who opened it, whoever puts through it."""
import os
import pwd
import socket
import struct
import sys

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.wait import stays_false, until

USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:2]
CONNECTIONS = 20
FAST_OPEN = "/proc/sys/net/ipv4/tcp_fastopen"  # here for IPv6, too (ip-sysctl.rst)
WITHOUT_COOKIES = 0x207

# Comes from a port, says "connected", puts each line of its stdin without waiting for an answer, and ends with a RST. "again": its
# socket had another connection before (AF_UNSPEC in connect(2)), so its sequence numbers are no new ones of the kernel.
CLIENT = """
import ctypes, socket, struct, sys
from tests.harness import rawca
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
s.bind(("127.0.0.1", int(sys.argv[2])))
if sys.argv[4] == "again":
    before = socket.create_server(("127.0.0.1", 0))
    s.connect(before.getsockname())
    assert ctypes.CDLL(None).connect(s.fileno(), struct.pack("=H14x", 0), 16) == 0
s.connect(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
client = rawca.RawCa(connection=s)
sid = client.sid(sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    client.send(rawca.write(sid, rawca.DOUBLE, [float(line)], notify=True, ioid=1))
    print("sent", flush=True)
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module", autouse=True)
def monitor(log, module_monitor):
    return module_monitor(before=[log.command()]).start()


@pytest.fixture(params=["", "fast"])
def server(request):
    """A server that is no IOC: port, and how its clients connect."""
    port, before = loopback.take_port(), None
    argv = [sys.executable, "-u", "-m", "tests.programs.raw_server", "127.0.0.1", str(port)]
    if request.param:
        with open(FAST_OPEN, encoding="ascii") as f:
            before = f.read()
        with open(FAST_OPEN, "w", encoding="ascii") as f:
            f.write(str(WITHOUT_COOKIES))
    process = Process(argv, {**os.environ, "IOC": OURS.replace("*", f"reused{request.param}")}, cwd=paths.TOP)
    process.wait_line("listens")
    yield port, request.param, process
    process.kill()
    if before:
        with open(FAST_OPEN, "w", encoding="ascii") as f:
            f.write(before)
    loopback.give_port(port)


@pytest.fixture
def server_of(request, new_ioc, monitor):
    """Starts a server, "ioc" or "other": its port, a PV, and its process."""
    def start(kind):
        if kind == "ioc":
            ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
            monitor.wait_ioc(ioc)
            return ioc.port, ioc.prefix + "AO", ioc.process
        port = loopback.take_port()
        process = Process([sys.executable, "-u", "-m", "tests.programs.raw_server", "127.0.0.1", str(port)],
                          {**os.environ, "IOC": OURS.replace("*", f"other{port}")}, cwd=paths.TOP)
        request.addfinalizer(lambda: loopback.give_port(port))
        request.addfinalizer(process.kill)
        process.wait_line("listens")
        return port, f"S{os.getpid()}:OF{port}", process

    return start


def connect(port, own, how):
    s = socket.socket()
    s.settimeout(20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.bind(("127.0.0.1", own))
    if how == "fast":
        s.sendto(rawca.message(rawca.VERSION, count=rawca.MINOR), socket.MSG_FASTOPEN, ("127.0.0.1", port))
    else:
        s.connect(("127.0.0.1", port))
    return rawca.RawCa(connection=s)


def test_one_port_again_and_again(log, monitor, server):
    """At a server that is no IOC. The first client makes the server known."""
    port, how, _ = server
    pv, own, made = f"S{os.getpid()}:AGAIN{how}", loopback.take_port(), CONNECTIONS * 3
    client = rawca.RawCa(port)
    client.put(pv, rawca.DOUBLE, [0.0], notify=True)
    until(lambda: log.of(pv), 20, log.all)
    client.close()
    for value in range(1, made, 3):
        client = connect(port, own, how)
        for i in range(3):
            assert client.put(pv, rawca.DOUBLE, [float(value + i)], notify=True) == 1
        client.close()
    until(lambda: len(log.of(pv)) > made, 20, lambda: f"{len(log.of(pv))} of {made + 1}: {monitor.losses()}")
    assert sorted(float(o["value"]) for o in log.of(pv)) == list(range(made + 1))
    assert {o.get("pid") for o in log.of(pv)} == {str(os.getpid())}
    loopback.give_port(own)


@pytest.mark.parametrize("kind, how", [("other", "new"), ("ioc", "new"), ("other", "again"), ("ioc", "again")])
def test_two_users_of_one_port(server_of, log, monitor, kind, how):
    """The server stands still, and reads the put of the first one when the second one has its port."""
    port, pv, process = server_of(kind)
    own = loopback.take_port()

    def start(user, how="new"):
        return Process(["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", sys.executable, "-u", "-c",
                        CLIENT, str(port), str(own), pv, how], {**os.environ, "PYTHONPATH": str(paths.TOP)})

    clients = [start(USERS[0])]
    clients[0].wait_line("ready")
    process.halt()
    try:
        clients[0].send("1")
        clients[0].wait_line("sent")
        clients[0].end_input()
        clients[0].wait(20)
        clients.append(start(USERS[1], how))
        clients[1].wait_line("connected")
    finally:
        process.go_on()
    clients[1].wait_line("ready")
    clients[1].send("2")
    until(lambda: len(log.of(pv)) == 2, 20, lambda: f"{log.of(pv)}, {monitor.losses()}")
    clients[1].end_input()
    seen = {float(o["value"]): (o.get("real_user"), o.get("pid")) for o in log.of(pv)}
    assert seen == {i + 1.0: (USERS[i].pw_name, str(c.pid)) for i, c in enumerate(clients)}, log.of(pv)
    loopback.give_port(own)


@pytest.mark.parametrize("kind", ["other", "ioc"])
@pytest.mark.parametrize("how", ["mapped-0", "mapped-7", "pass", "deferred", "setuid", "exec", "reused"])
def test_connection_that_is_handed_on(server_of, log, how, kind):
    """Another process puts than the one that has connected, or it has other rights then. No user gets the name of another one, and no
    process the pid of one that has ended."""
    port, pv, _ = server_of(kind)
    user = USERS[0]
    client = Process([sys.executable, "-u", "-m", "tests.programs.hand_on", how, str(user.pw_uid), str(port), pv], {**os.environ},
                     cwd=paths.TOP)
    opener = client.wait_line("connected").split()[1]
    client.wait_line("ready")
    client.send("1")
    until(lambda: log.of(pv), 20, log.all)
    client.end_input()
    line, = log.of(pv)
    uid = {"setuid": 0, "exec": 0, "mapped-7": 100006}.get(how, user.pw_uid)
    assert int(line["uid"]) == uid and line["real_user"] in (str(uid), *(p.pw_name for p in pwd.getpwall() if p.pw_uid == uid)), line
    assert line.get("pid") == (None if how == "reused" else opener), line


def test_odd_clients(server_of, log):
    """Connections that are made and used in other ways than by connect() and send(): each put has its own client, and the value that the
    IOC has got, also if that is another one than the packet's."""
    port, pv, process = server_of("ioc")
    for number, how in enumerate(("uring", "mptcp", "options", "vmsplice")):
        client = Process([sys.executable, "-u", "-m", "tests.programs.odd_client", how, str(port), pv], {**os.environ}, cwd=paths.TOP)
        client.wait_line("ready")
        process.halt()
        client.send(str(number))
        client.wait_line("sent")
        process.go_on()
        until(lambda: len(log.of(pv)) > number, 20, log.all)
        line = log.of(pv)[number]
        assert float(line["value"]) == number + (how == "vmsplice") / 2 and line["pid"] == str(client.pid), line
        client.end_input()
    assert stays_false(lambda: len(log.of(pv)) > 4, 3), log.of(pv)
