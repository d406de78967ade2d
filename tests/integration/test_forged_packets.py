# SPDX-License-Identifier: BSD-3-Clause
"""Packets that somebody writes to a network namespace of his own, or sends from another host, make no put of an IOC elsewhere, and
lend nobody's name. Clients in other namespaces are known by their own name."""
import ctypes
import json
import os
import shlex
import signal
import socket
import struct
import sys
import time

import pytest
from tests.harness import badlink, db, lan, loopback, paths, rawca
from tests.harness.far import FarIoc, there
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog, same
from tests.harness.wait import stays_false, until
from tests.programs.forge_session import ACK, PSH, RST, SID, Session, checksum, place

DB = db.READY + db.record("ao", "AO")
QUIET = 4  # s: a put that only packets show is published 2.5 s after its reply
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


@pytest.fixture(scope="module")
def net():
    with lan.Lan() as made:
        badlink.ip("addr", "add", "192.0.2.1/24", "dev", made.bridge)  # the tests' namespace is one more host
        yield made


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module")
def ioc(net, tmp_path_factory):
    made = FarIoc(tmp_path_factory.mktemp("ioc"), net, end=net.hosts[0], db=DB).start()
    yield made
    made.discard()


@pytest.fixture(scope="module", autouse=True)
def monitor(ioc, log, module_monitor):
    made = module_monitor(before=[log.command()]).start()
    made.wait_ioc(ioc)
    return made


class Rogue:
    """Somebody with rights in a network namespace of his own only, as any user can have, and an IOC of his own in it: so packets are
    read there."""

    def __init__(self, tmp, monitor, log):
        self.name, self.pv = OURS.replace("*", "rogue"), f"R{os.getpid()}:AO"
        (tmp / "rogue.db").write_text('record(ao, "$(P)AO") {}\n')
        self.port = loopback.take_port()
        environ = loopback.server(self.port, IOC=self.name)
        softioc = shlex.join(map(str, [paths.BASE_BIN / "softIoc", "-m", f"P=R{os.getpid()}:", "-d", tmp / "rogue.db"]))
        self.process = Process(["unshare", "-Urn", "--kill-child", "sh", "-c", f"ip link set lo up; exec {softioc}"], environ,
                               cwd=tmp)
        self.process.wait_line("iocRun: All initialization complete")
        self.pid = until(lambda: next((pid for pid, row in monitor.iocs().items() if row[0] == self.name), 0), 20, monitor.iocs)
        # his packets are read: a put to his own IOC is seen in both ways
        until(lambda: self.run("tests.programs.ca_puts", "127.0.0.1", self.port, self.pv, 1) and
              any(o["seen"] == "both" for o in log.of(self.pv)), 20, lambda: log.of(self.pv))

    def run(self, module, *args):
        done = Process(["nsenter", f"--user=/proc/{self.pid}/ns/user", f"--net=/proc/{self.pid}/ns/net", "--preserve-credentials", "--",
                        sys.executable, "-m", module, *map(str, args)], dict(os.environ))
        done.wait(20)
        assert "done" in done.lines, done.output()
        return True

    def forge(self, *args):
        self.run("tests.programs.forge_session", "lo", "00:00:00:00:00:00", *args)


@pytest.fixture(scope="module")
def rogue(tmp_path_factory, monitor, log):
    made = Rogue(tmp_path_factory.mktemp("rogue"), monitor, log)
    yield made
    made.process.kill()
    loopback.give_port(made.port)


def test_packets_of_another_namespace(ioc, log, rogue):
    """Root's console has a connection open. The user forges a session with the addresses of both, and one with those of a console
    that does not exist, in his own namespace."""
    pv = ioc.prefix + "AO"
    client = rawca.RawCa(ioc.port, addr=ioc.address, user="root", host="console")
    sid = client.sid(pv)
    for peer in client.address, "192.0.2.200:50001":
        rogue.forge(f"{ioc.address}:{ioc.port}", peer, pv, "root", "console", 222, 223)
    mark = len(log.of(pv))
    client.send(rawca.write(sid, rawca.DOUBLE, [5.0], notify=True))
    line, = log.next(1, pv, mark)
    assert same(line["value"], 5.0) and line["seen"] == "both", line
    assert (line["real_user"], line["pid"]) == ("root", str(os.getpid())), line
    assert stays_false(lambda: len(log.of(pv)) > mark + 1, QUIET), log.of(pv)
    assert not [o for o in log.of(pv) if same(o["value"], 222.0) or same(o["value"], 223.0)]
    client.close()


def test_gateway_in_another_namespace(ioc, log, rogue, monitor):
    """The user has a connection to the IOC. To pass on a put to it he serves, as a gateway, a client that he makes of packets in his own
    namespace. It stays his put, and he is who uses the PV."""
    pv, port = ioc.prefix + "AO", loopback.take_port()
    for value in 301, 302:
        mark = len(log.of(pv))
        process = Process([sys.executable, "-m", "tests.programs.false_gateway", str(rogue.pid), f"{ioc.address}:{ioc.port}", str(port),
                           pv, str(value)], dict(os.environ))
        process.wait_line("made")
        line = log.next(1, pv, mark)[0]
        assert same(line["value"], float(value)) and line["pid"] == str(process.pid) and "gateway" not in line, line
        assert not any("through gateway" in user for user in monitor.command(f'ebpfMonUsers "{pv}"'))
        process.send("go on")
        process.wait(30)
        assert "done" in process.lines, process.output()
    loopback.give_port(port)


def test_clients_elsewhere(ioc, net, log):
    """A client on this host whose socket is in another namespace: its put is seen in up to three namespaces, and shown once, with
    its own process."""
    pv = ioc.prefix + "AO"
    for end in None, net.hosts[1], net.hosts[0]:
        for value in 11, 12:
            mark = len(log.of(pv))
            argv = [sys.executable, "-m", "tests.programs.ca_puts", ioc.address, ioc.port, pv, value]
            client = Process([*NOBODY, *argv], dict(os.environ)) if not end else there(end, [*NOBODY, *argv])
            client.wait(20)
            line, = log.next(1, pv, mark)
            assert same(line["value"], float(value)) and line["seen"] == "both" and line["result"] == "ok", line
            assert line["real_user"] == "nobody" and line["command"].startswith("python"), (end, line)
    mark = len(log.of(pv))
    assert stays_false(lambda: len(log.of(pv)) > mark, QUIET), log.of(pv)[mark:]


def mac(end):
    return json.loads(badlink.ip("-n", end, "-j", "link", "show", "eth0"))[0]["address"]


def local6(end):
    """Its own IPv6 address at the bridge, of which the kernel has made sure that it is alone with it."""
    def find():
        device, = json.loads(badlink.ip("-n", end, "-j", "-6", "addr", "show", "eth0"))
        return [a["local"] for a in device["addr_info"] if not a.get("tentative")]
    return until(find, 10, find)[0]


def losses(monitor, reason="packets of no connection"):
    return dict(zip(monitor.list("LOST_REASONS"), monitor.list("LOST_CNTS"))).get(reason, 0)


@pytest.mark.parametrize("how, reason", [("checksums", "wrong checksum"), ("", "own address from outside"),
                                         ("ipv6", "own address from outside")])
def test_packets_from_another_host(ioc, net, log, monitor, how, reason):
    """Another host sends both directions of a session, with the address of the IOC's host as the source of one of them. No host accepts
    such packets: it is no put, and no refusal. They are counted."""
    pv, before = ioc.prefix + "AO", losses(monitor, reason)
    mark = len(log.of(pv))
    ends = [f"{ioc.address}:{ioc.port}", "192.0.2.60:40200"]
    if how == "ipv6":
        ends = [f"{local6(net.hosts[0])}:{ioc.port}", "fe80::60:40200"]
    sender = there(net.hosts[1], [sys.executable, "-m", "tests.programs.forge_session", "eth0", mac(net.hosts[0]), *ends, pv, "root",
                                  "console", 551, -552], {**os.environ, "FORGE": how})
    sender.wait(20)
    assert "done" in sender.lines, sender.output()
    until(lambda: losses(monitor, reason) >= before + 5, 10, lambda: f"{monitor.losses()}, {log.of(pv)[mark:]}")
    assert stays_false(lambda: len(log.of(pv)) > mark, QUIET), log.of(pv)[mark:]


@pytest.fixture(scope="module")
def server(ioc, net):
    """A server that is no IOC, in the namespace of the IOC: its address and port."""
    port = loopback.take_port()
    process = there(net.hosts[0], [sys.executable, "-u", "-m", "tests.programs.raw_server", ioc.address, str(port)],
                    {**os.environ, "IOC": OURS.replace("*", "raw")})
    process.wait_line("listens")
    yield f"{ioc.address}:{port}"
    process.kill()
    loopback.give_port(port)


def test_packets_to_another_server(net, log, monitor, server):
    """Somebody writes both directions of a session with a server that is no IOC to lo. Its socket has received nothing of it, so it is
    no put. What a real client of another host sends is one, also if it has gone before the packets are read."""
    pv, before = f"S{os.getpid()}:AO", losses(monitor)
    to = ["eth0", mac(net.hosts[0]), server]

    def put(client, value):
        badlink.ip("-n", net.hosts[0], "neigh", "replace", client.split(":")[0], "lladdr", mac(net.hosts[1]), "dev", "eth0", "nud",
                   "permanent")
        done = there(net.hosts[1], [sys.executable, "-m", "tests.programs.put_raw", *to, client, pv, value])
        done.wait(30)
        assert "done" in done.lines, done.output()

    sender = there(net.hosts[0], [sys.executable, "-m", "tests.programs.forge_session", "lo", "00:00:00:00:00:00", server,
                                  "192.0.2.61:40201", pv, "root", "console", 51, 52])
    sender.wait(20)
    assert "done" in sender.lines, sender.output()
    until(lambda: losses(monitor) == before + 2, 20, lambda: f"{losses(monitor)}, {log.of(pv)}")
    put("192.0.2.62:40202", 53)
    monitor.process.signal(signal.SIGSTOP)
    try:
        put("192.0.2.63:40203", 54)
    finally:
        monitor.process.signal(signal.SIGCONT)
    lines = log.next(2, pv, 0)
    assert [float(line["value"]) for line in lines] == [53, 54] and len(log.of(pv)) == 2, log.of(pv)
    assert all(line["result"] == "ok" and "real_user" not in line for line in lines), lines


# In a network namespace of its own: a connection between these two ends, which stays open. With two more arguments, its first
# sequence numbers are these (TCP_REPAIR, TCP_REPAIR_QUEUE and TCP_QUEUE_SEQ of linux/tcp.h).
TWIN = """
import socket, struct, subprocess, sys
ends = [(a, int(p)) for a, p in (end.split(":") for end in sys.argv[2:0:-1])]
for args in ("link set lo up", *(f"addr add {a}/32 dev lo" for a, _ in ends)):
    subprocess.run(["ip", *args.split()], check=True)
if sys.argv[3:]:
    twins, seqs = [socket.socket(), socket.socket()], list(map(int, sys.argv[3:]))
    for i, s in enumerate(twins):
        s.setsockopt(socket.IPPROTO_TCP, 19, 1)
        s.bind(ends[i])
        for queue, seq in (2, seqs[i]), (1, seqs[1 - i]):
            s.setsockopt(socket.IPPROTO_TCP, 20, queue)
            s.setsockopt(socket.IPPROTO_TCP, 21, struct.pack("I", seq))
        s.connect(ends[1 - i])
else:
    listener = socket.create_server(ends[1])
    twin = socket.create_connection(ends[1], source_address=ends[0])
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def twin(ioc):
    started = []

    def start(client, *numbers):
        started.append(Process(["unshare", "--net", sys.executable, "-u", "-c", TWIN, f"{ioc.address}:{ioc.port}", client, *numbers],
                               loopback.environment()))
        started[-1].wait_line("open")
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_twin_of_a_client_elsewhere(ioc, net, log, twin):
    """Somebody makes the same connection in a network namespace of his own: client, server and the other one are in three."""
    pv = ioc.prefix + "AO"
    client = there(net.hosts[1], [sys.executable, "-m", "tests.programs.ca_puts", ioc.address, ioc.port, pv, "-"])

    def put(value):
        mark = len(log.of(pv))
        client.send(str(value))
        line, = log.next(1, pv, mark)
        assert same(line["value"], float(value)) and line["pid"] == str(client.pid), line
        return line["peer"]

    other = twin(put(31))
    put(32)
    other.kill()
    put(33)
    client.kill()


@pytest.mark.parametrize("client, same_numbers", [("192.0.2.50:40123", False), ("192.0.2.50:40124", True)])
def test_no_name_is_lent(ioc, net, log, twin, client, same_numbers):
    """Root has a connection in a network namespace with addresses of others. A client on another host comes from the same address and
    port: he is not root. Nor if root has seen the sequence numbers of that client, and gives them to his sockets."""
    pv = ioc.prefix + "AO"
    if not same_numbers:
        twin(client)
    badlink.ip("-n", net.hosts[0], "neigh", "replace", "192.0.2.50", "lladdr", mac(net.hosts[1]), "dev", "eth0", "nud", "permanent")
    mark = len(log.of(pv))
    done = there(net.hosts[1], [sys.executable, "-m", "tests.programs.put_raw", "eth0", mac(net.hosts[0]), f"{ioc.address}:{ioc.port}",
                                client, pv, "-"])
    until(lambda: done.lines, 30, done.output)
    if same_numbers:
        twin(client, *done.lines[0].split()[1:])
    done.send("41")
    done.wait(30)
    assert "done" in done.lines, done.output()
    line, = log.next(1, pv, mark)
    assert same(line["value"], 41.0) and line["peer"] == client and line["seen"] == "both", line
    assert "pid" not in line and "real_user" not in line, line


class Replay:
    """Takes the packets of connections to a server at the bridge, to send them again."""

    def __init__(self, interface, port):
        self.port = port
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.3)
        self.frames = []

    def read(self):
        try:
            while frame := self.socket.recv(65536):
                if frame[12:14] == b"\x08\x00" and frame[23] == 6 and self.port in struct.unpack_from(">HH", frame, 34):
                    self.frames.append(frame)
        except TimeoutError:
            pass

    def again(self, value=None, ahead=0):
        """All with data, perhaps with another value, and with numbers of the client that are so much further."""
        for frame in self.frames:
            tcp, toServer = bytearray(frame[34:]), struct.unpack_from(">H", frame, 36)[0] == self.port
            data, at = (tcp[12] >> 4) * 4, 4 if toServer else 8
            if len(tcp) == data:
                continue
            struct.pack_into(">I", tcp, at, (struct.unpack_from(">I", tcp, at)[0] + ahead) % (1 << 32))
            if value and toServer and len(tcp) == data + 24:  # one write
                tcp[-8:] = struct.pack(">d", value)
            # as if a network card were to compute it: else the host would answer, which ends what the monitor follows
            tcp[16:18] = struct.pack(">H", checksum(frame[26:34] + struct.pack(">BBH", 0, 6, len(tcp))) ^ 0xffff)
            self.socket.send(frame[:34] + tcp)


@pytest.mark.parametrize("host", [0, 1, None], ids=["packets read", "packets not read", "loopback"])
def test_packets_after_the_end(net, log, monitor, host):
    """A client of a server that is no IOC ends. Somebody sends its packets again, with other values, and with numbers that come next:
    its socket has not received that. Packets are read in the namespace of the server, or only outside of it; or at loopback."""
    pv, port = f"S{os.getpid()}:END{host}", loopback.take_port()
    address = "127.0.0.1" if host is None else net.address(net.hosts[host])
    argv = [sys.executable, "-u", "-m", "tests.programs.raw_server", address, str(port)]
    environ = {**os.environ, "IOC": OURS.replace("*", f"raw{host}")}
    process = Process(argv, environ, cwd=paths.TOP) if host is None else there(net.hosts[host], argv, environ)
    process.wait_line("listens")
    replay = Replay("lo" if host is None else net.bridge, port)
    client = rawca.RawCa(port, addr=address)
    sid = client.sid(pv)
    for value in 71.0, 72.0:
        client.send(rawca.write(sid, rawca.DOUBLE, [value]))
        log.next(1, pv, int(value) - 71)
    client.close()
    replay.read()
    before = losses(monitor)

    def again():
        replay.again()
        replay.again(73.0)
        replay.again(74.0, 200)
        return len(log.all()) > mark

    mark = len(log.all())
    assert stays_false(again, QUIET), log.all()[mark:]
    assert losses(monitor) > before
    process.kill()
    loopback.give_port(port)


def inside(end, make):
    """Makes something with a socket in this namespace, where that stays."""
    with open("/proc/self/ns/net", "rb") as own, open(badlink.RUN / end, "rb") as other:
        setns = ctypes.CDLL(None, use_errno=True).setns
        assert setns(other.fileno(), 0) == 0, ctypes.get_errno()
        try:
            return make()
        finally:
            assert setns(own.fileno(), 0) == 0, ctypes.get_errno()


class Attack:
    """Somebody who sees all packets of a connection, and writes packets of it that its ends do not get. For "twice" he is on the host of
    the IOC: from outside, what he sends for the server would be refused."""

    def __init__(self, net, host, how, client, server, monitor):
        self.client, client = client.socket, client.address
        self.refused = lambda: losses(monitor)
        ends = place(server), place(client), bytes.fromhex("020000000077")
        if how == "twice" and host == 0:
            self.forged = inside(net.hosts[0], lambda: Session("eth0", *ends))
        else:
            self.forged = Session(net.bridge + "abc"[host], *ends)
        self.replay = Replay(net.bridge, place(server)[1])

    def next(self, end):
        """The number that comes next from this end: 0 is the client."""
        self.replay.read()
        numbers = [self.forged.next[end]]
        for frame in self.replay.frames:
            tcp = frame[34:]
            if struct.unpack_from(">H", tcp)[0] == self.forged.ends[end][1] and frame[:6] != self.forged.ether[:6]:
                size = struct.unpack_from(">H", frame, 16)[0] - 20 - (tcp[12] >> 4) * 4
                numbers.append((struct.unpack_from(">I", tcp, 4)[0] + size) % (1 << 32))
        return numbers[-1]

    def reset(self):
        self.begin()
        self.forged.send(0, RST)

    def finish(self):
        self.begin()
        self.forged.close()

    def begin(self):
        self.forged.next = [self.next(0), self.next(1)]

    def session(self):
        """Ends it, and makes another one with other numbers, which puts."""
        self.finish()
        self.forged.next = [77777, 88888]
        self.forged.open()
        self.forged.send(1, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR))
        self.forged.send(0, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.USER, b"root\0") +
                         3 * rawca.write(SID, rawca.DOUBLE, [666.0]))

    def twice(self):
        """Ends it, and makes it again with the same first numbers. What its server has got there has other values now, and is refused."""
        self.begin()
        acked, received = struct.unpack_from("QQ", self.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136), 120)  # linux/tcp.h
        firsts = [(self.forged.next[0] - acked) % (1 << 32), (self.forged.next[1] - received - 1) % (1 << 32)]
        before = self.refused()
        self.forged.close()

        def begin():
            self.forged.next = list(firsts)
            self.forged.open()
            self.forged.send(1, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR))
            self.forged.send(0, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR) +
                             b"".join(rawca.write(SID, rawca.DOUBLE, [666.0], notify=True, ioid=i) for i in range(3)))
            for i in range(3):
                self.forged.send(1, ACK | PSH, rawca.message(rawca.WRITE_NOTIFY, dtype=rawca.DOUBLE, count=1, cid=376, extra=i))
            return self.refused() > before

        until(begin, 10, "the puts are refused: what comes within a second after the end is a copy")

    def far(self):
        """Numbers far away, which the other end acknowledges."""
        self.begin()
        self.forged.next[0] = (self.forged.next[0] + (1 << 30)) % (1 << 32)
        for _ in range(8):
            self.forged.send(0, ACK | PSH, 3 * rawca.write(SID, rawca.DOUBLE, [667.0]))
            self.forged.send(1, ACK)


def wait_known(log, address, port):
    """The monitor looks for new servers in a twentieth of the time at most: on a busy host it misses the first puts of one."""
    pv, client = f"S{os.getpid()}:KNOWN{port}", rawca.RawCa(port, addr=address)
    sid = client.sid(pv)
    until(lambda: client.send(rawca.write(sid, rawca.DOUBLE, [0.0])) or log.of(pv), 10, "a put to the new server")
    client.close()


@pytest.fixture(params=["ioc", "other"])
def attacked(request, net, ioc, log):
    """A watched IOC, or a server that is no IOC: host, address and port, PV."""
    if request.param == "ioc":
        yield 0, f"{ioc.address}:{ioc.port}", ioc.prefix + "AO"
        return
    end, port = net.hosts[1], loopback.take_port()
    process = there(end, [sys.executable, "-u", "-m", "tests.programs.raw_server", net.address(end), str(port)],
                    {**os.environ, "IOC": OURS.replace("*", "attacked")})
    process.wait_line("listens")
    wait_known(log, net.address(end), port)
    yield 1, f"{net.address(end)}:{port}", f"S{os.getpid()}:ATTACKED"
    process.kill()
    loopback.give_port(port)


@pytest.mark.parametrize("how", ["reset", "finish", "session", "twice", "far"])
def test_attacked_connection(net, log, monitor, attacked, how):
    """Somebody ends what is known of an open connection, and sends its packets again: no put is shown that was not made, or again.
    The next ones are shown; of a server that is no IOC not if he has begun another connection with the same ends."""
    host, server, pv = attacked
    client = rawca.RawCa(place(server)[1], addr=place(server)[0])
    attack = Attack(net, host, how, client, server, monitor)
    sid = client.sid(pv)

    def lines():
        return [o for o in log.all() if o.get("server") == server and o["peer"] == client.address]

    for value in 91.0, 92.0:
        client.send(rawca.write(sid, rawca.DOUBLE, [value]))
        until(lambda: lines() and float(lines()[-1]["value"]) == value, 10, lines)
    getattr(attack, how)()

    def again():
        attack.replay.again()
        attack.replay.again(73.0)
        return len(lines()) > 2

    assert stays_false(again, QUIET), lines()
    for value in range(200, 220):
        client.send(rawca.write(sid, rawca.DOUBLE, [float(value)]))
        time.sleep(0.01)  # each one in a packet
    until(lambda: (host == 1 and how == "session") or lines()[-1]["value"] == "219", 10, lines)
    if host == 0:  # what an IOC did not make is shown 2.5 s after a later put
        assert stays_false(lambda: len(lines()) > 22, QUIET), lines()
    values = [float(o["value"]) for o in lines()]
    assert values[:2] == [91, 92] and values[2:] == sorted(set(values[2:])) and set(values[2:]) <= set(range(200, 220)), values
    assert host == 1 or len(values) == 22, values
    client.close()


@pytest.mark.parametrize("host", [1, None], ids=["packets not read", "loopback"])
def test_short_connections(net, log, monitor, host):
    """Clients of a server that is no IOC end as soon as they have put, some of them by a reset: each put counts."""
    pv, port = f"S{os.getpid()}:SHORT{host}", loopback.take_port()
    address = "127.0.0.1" if host is None else net.address(net.hosts[host])
    argv = [sys.executable, "-u", "-m", "tests.programs.raw_server", address, str(port)]
    environ = {**os.environ, "IOC": OURS.replace("*", f"short{host}")}
    process = Process(argv, environ, cwd=paths.TOP) if host is None else there(net.hosts[host], argv, environ)
    process.wait_line("listens")
    wait_known(log, address, port)
    for value in range(100):
        client = rawca.RawCa(port, addr=address)
        sid = client.sid(pv)
        if value % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.send(rawca.write(sid, rawca.DOUBLE, [float(value)]))
        client.close()
    lines = log.next(100, pv, 0)
    assert sorted(float(o["value"]) for o in lines) == list(range(100)), lines
    assert all(o["pid"] == str(os.getpid()) for o in lines), lines
    process.kill()
    loopback.give_port(port)


def test_crowd_of_forged_connections(net, log, monitor):
    """Somebody forges both ends of more connections than are followed, with the address of a client. Its own connection, which begins
    later, keeps the name of the PV and its user."""
    end, pv, port = net.hosts[1], f"S{os.getpid()}:CROWD", loopback.take_port()
    server = there(end, [sys.executable, "-u", "-m", "tests.programs.raw_server", net.address(end), str(port)],
                   {**os.environ, "IOC": OURS.replace("*", "rawcrowd")})
    server.wait_line("listens")
    forger = Process([sys.executable, "-u", "-m", "tests.programs.forge_many", net.bridge + "b", "02:00:00:00:00:77",
                      f"{net.address(end)}:{port}", net.address(net.hosts[2]), pv], dict(os.environ), cwd=paths.TOP)
    clients = []
    try:
        for count in 4200, 400:
            forger.send(str(count))
            forger.wait_line("done", 60)
            clients.append(there(net.hosts[2], [sys.executable, "-m", "tests.programs.put_lines", net.address(end), port, pv]))
            clients[-1].wait_line("ready")
        forger.send("400")
        forger.wait_line("done", 60)
        until(lambda: losses(monitor, "too many connections") > 500, 20, monitor.losses)
        for i, client in enumerate(clients):
            client.send(str(83 + i))
            line, = log.next(1, pv, i)
            assert float(line["value"]) == 83 + i and line["pid"] == str(client.pid) and line["result"] == "ok", line
    finally:
        for process in [*clients, forger, server]:
            process.kill()
        loopback.give_port(port)
