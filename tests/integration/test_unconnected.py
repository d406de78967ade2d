# SPDX-License-Identifier: BSD-3-Clause
"""What is not connected, and why (ebpfMonModules/queues/unconnected.c). Each reason with real IOCs and clients on the
loopback interface; that a link is not connected is what dbcar of the IOC says."""
import contextlib
import os
import re
import resource
import signal
import socket
import struct
import sys
import threading

import pytest
from tests.harness import badlink, ca, db, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.wait import until


def linked(name):
    """A database with one CA link to this name, which is no record of it."""
    return db.READY + db.record("ai", "A", INP=f"{name} CP MS") + db.record("ai", "OK", INP="$(P)READY CA")


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor().start()


def table(monitor):
    """Its rows as the shell prints them: not cut."""
    return [line for line in monitor.command("ebpfMonUnconnected") if not line.startswith("epics>")]


def wait_row(monitor, name, client, reason):
    """Waits until a row has this name, client and reason (a pattern)."""
    wanted = re.compile(rf"{re.escape(name)} +{client} +\d+ {reason}$")
    return until(lambda: next((line for line in table(monitor) if wanted.match(line.strip())), None), 40,
                 lambda: f"{wanted.pattern}\n" + "\n".join(table(monitor)))


def wait_gone(monitor, name):
    until(lambda: not any(line.startswith(name + " ") for line in table(monitor)), 40, lambda: "\n".join(table(monitor)))


def dbcar(ioc):
    """(links, not connected) of dbcar."""
    for line in ioc.command("dbcar"):
        found = re.search(r"Total (\d+) CA links?; \d+ connected, (\d+) not connected", line)
        if found:
            return int(found[1]), int(found[2])
    raise AssertionError(ioc.process.output())


def unfound(monitor, name):
    return dict(zip(monitor.list("UNFOUND_NAMES"), monitor.list("UNFOUND_CLIENTS"))).get(name, "")


def test_nobody_answers_until_an_ioc_starts(new_ioc, monitor):
    """A CA link and a client of which nobody has the name. Both go when an IOC has it."""
    server = new_ioc(db.READY + db.record("ao", "GONE"), prefix="UNC:1:")
    ioc = new_ioc(linked("UNC:1:GONE")).start()
    monitor.wait_ioc(ioc)
    wait_row(monitor, "UNC:1:GONE", rf"IOC {ioc.name}, link {ioc.prefix}A.INP", "no answer was seen")
    assert dbcar(ioc) == (2, 1) == (monitor.get("CA_LINK_CNT"), monitor.get("CA_LINK_UNCONNECTED_CNT"))
    assert monitor.get("UNCONNECTED_FAULT_CNT") == 0
    until(lambda: unfound(monitor, "UNC:1:GONE").startswith(f"IOC {ioc.name}, link"[:30]), 20,
          lambda: unfound(monitor, "UNC:1:GONE"))
    server.start()
    wait_gone(monitor, "UNC:1:GONE")
    until(lambda: dbcar(ioc) == (2, 0), 60, "connected")
    client = Process([paths.BASE_BIN / "caget", "-w", "30", "UNC:1:OTHER"], loopback.client(ioc.port))
    wait_row(monitor, "UNC:1:OTHER", rf"caget \({client.pid}\)", "no answer was seen")
    until(lambda: unfound(monitor, "UNC:1:OTHER").startswith(f"caget ({client.pid})"), 20, lambda: unfound(monitor, "UNC:1:OTHER"))
    client.kill()


def test_name_server_that_refuses(new_ioc, monitor):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]  # bound, and nobody listens
        ioc = new_ioc(linked("UNC:2:GONE"), environ={"EPICS_CA_NAME_SERVERS": f"127.0.0.1:{port}"}).start()
        monitor.wait_ioc(ioc)
        wait_row(monitor, "UNC:2:GONE", rf"IOC {ioc.name}, link {ioc.prefix}A.INP",
                 rf"name server 127.0.0.1:{port} refuses: nobody listens there")
        assert monitor.get("UNCONNECTED_FAULT_CNT") >= 1 and ca.get(f"{monitor.prefix}UNCONNECTED_FAULT_CNT.SEVR") == 1
        assert monitor.text("UNCONNECTED_MSG").startswith("UNC:2:GONE of IOC")
        assert monitor.get("UNCONNECTED_FAULT_CNT.AMSG").startswith("UNC:2:GONE of IOC")
        monitor.put("IOC_GONE_ACK", 1)  # those of other tests are worse
        until(lambda: monitor.get("HOST_STATUS") == 1 and monitor.text("HOST_STATUS_MSG") == monitor.text("UNCONNECTED_MSG"),
              10, lambda: monitor.text("HOST_STATUS_MSG"))
        ioc.discard()
    wait_gone(monitor, "UNC:2:GONE")
    until(lambda: "UNC:2:GONE" not in monitor.text("HOST_STATUS_MSG"), 10, lambda: monitor.text("HOST_STATUS_MSG"))


def test_server_that_stands_still(new_ioc, monitor):
    server = new_ioc(db.READY + db.record("ao", "HALTED"), prefix="UNC:3:").start()
    monitor.wait_ioc(server)
    server.process.signal(signal.SIGSTOP)
    ioc = new_ioc(linked("UNC:3:HALTED")).start()
    monitor.wait_ioc(ioc)
    wait_row(monitor, "UNC:3:HALTED", rf"IOC {ioc.name}, link {ioc.prefix}A.INP",
             rf"IOC {server.name} \(pid {server.pid}\) has it, and stands still: a signal or a debugger has stopped it")
    server.process.signal(signal.SIGCONT)
    wait_gone(monitor, "UNC:3:HALTED")


def test_server_with_all_its_files_open(new_ioc, monitor):
    """It answers searches, and has no file left for a connection; the kernel has made it all the same."""
    server = new_ioc(db.READY + db.record("ao", "FULL"), prefix="UNC:9:").start()
    monitor.wait_ioc(server)
    limit = len(os.listdir(f"/proc/{server.pid}/fd")) + 3
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, limit))
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    ioc = new_ioc(linked("UNC:9:FULL")).start()
    monitor.wait_ioc(ioc)
    wait_row(monitor, "UNC:9:FULL", rf"IOC {ioc.name}, link {ioc.prefix}A.INP",
             rf"answered by 127.0.0.1:{server.port}, and not connected: softIoc \(pid {server.pid}\) has all of its {limit} files open \(ulimit -n\), so it accepts no connection")
    for client in clients:
        client.close()
    wait_gone(monitor, "UNC:9:FULL")


def answer_searches(server, name, ports, ended, address=0xffffffff):
    """Answers each search for this name: it is at these TCP ports, of this server or at this address."""
    server.settimeout(0.1)
    while not ended.is_set():
        try:
            data, client = server.recvfrom(2000)
        except OSError:
            continue
        while len(data) >= 16:
            command, size, _, _, cid, _ = struct.unpack(">HHHHII", data[:16])
            if command == rawca.SEARCH and as_text(data[16:16 + size]) == name:
                for port in ports:
                    server.sendto(rawca.message(0, b"", 0, 13) + rawca.message(rawca.SEARCH, struct.pack(">HHI", 13, 0, 0), port, 0,
                                                                               address, cid), client)
            data = data[16 + size:]


def as_text(payload):
    return payload.split(b"\0")[0].decode()


@pytest.fixture
def elsewhere():
    """The address of a host that does not answer."""
    badlink.ip("link", "add", "away0", "type", "veth", "peer", "name", "away1")
    badlink.ip("addr", "add", "192.0.2.9/24", "dev", "away0")
    for end in "away0", "away1":
        badlink.ip("link", "set", end, "up")
    badlink.ip("neigh", "add", "192.0.2.77", "lladdr", "02:00:00:00:00:01", "dev", "away0")
    yield "192.0.2.77"
    badlink.ip("link", "del", "away0")


def test_answer_that_leads_to_another_host(new_ioc, monitor, elsewhere):
    """It names an address that is not this host's, and nobody answers there."""
    known, ended = new_ioc(db.READY).start(), threading.Event()
    monitor.wait_ioc(known)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.2", known.port))
        address = int.from_bytes(socket.inet_aton(elsewhere), "big")
        thread = threading.Thread(target=answer_searches, args=(server, "UNC:13:FAR", [5064], ended, address))
        thread.start()
        try:
            ioc = new_ioc(linked("UNC:13:FAR"), environ={"EPICS_CA_ADDR_LIST": f"127.0.0.2:{known.port}"}).start()
            monitor.wait_ioc(ioc)
            wait_row(monitor, "UNC:13:FAR", rf"IOC {ioc.name}, link {ioc.prefix}A.INP", rf"answered by {elsewhere}:5064, whose TCP port does not answer")
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize("protocol", ["CA", "PVA"])
def test_search_at_a_wrong_port(new_ioc, monitor, protocol):
    """A client asks where nobody listens, and one asks an IOC that has not the name."""
    other = new_ioc(db.READY, kind="softIocPVA").start()
    nowhere, listens = loopback.take_port(), other.port + (2000 if protocol == "PVA" else 0)
    ioc = new_ioc(db.READY + db.record("ao", "A", PINI="YES") + db.record("ao", "B", PINI="YES") + db.record("ai", "OWN", INP="$(P)A CA"),
                  prefix=f"UNC:14{protocol}:", kind="softIocPVA").start()
    for each in other, ioc:
        monitor.wait_ioc(each)
    clients = [(Process([paths.BASE_BIN / ("camonitor" if protocol == "CA" else "pvmonitor"), ioc.prefix + name], loopback.environment(**{f"EPICS_{protocol}_ADDR_LIST": f"127.0.0.1:{port}"})), name, port)
               for name, port in (("A", nowhere), ("B", listens))]
    for client, name, port in clients:
        wait_row(monitor, ioc.prefix + name, rf"\S+ \({client.pid}\)", rf"IOC {ioc.name} \(pid {ioc.pid}\) has it, and no answer of it was seen; the last search went to UDP 127.0.0.1:{port}, where it does not listen")
        told = monitor.command(f'ebpfMonWhy "{ioc.prefix}{name}" {client.pid}')
        assert any(line.startswith(f'post: the client "{client.pid}" is not connected: ') for line in told), told
    for client, *_ in clients:
        client.kill()
    loopback.give_port(nowhere)


@pytest.mark.parametrize("kind", ["refuses", "is full", "two servers"])
def test_answers_that_lead_to_no_connection(new_ioc, monitor, kind):
    """They name a TCP port at which nobody listens, or where the kernel has no room for one more connection, or two ports. The monitor
    reads packets of ports that it knows, so they come from the port of an IOC, at another address."""
    known, ended = new_ioc(db.READY).start(), threading.Event()
    monitor.wait_ioc(known)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, socket.socket() as bound, socket.socket() as other:
        server.bind(("127.0.0.2", known.port))
        for s in bound, other:
            s.bind(("127.0.0.2", 0))
        port, second = (s.getsockname()[1] for s in (bound, other))
        clients = []
        if kind == "is full":
            bound.listen(0)
            clients = [socket.create_connection(("127.0.0.2", port))]
        thread = threading.Thread(target=answer_searches, args=(server, "UNC:4:ALIVE", [port, second] if kind == "two servers" else [port], ended))
        thread.start()
        try:
            ioc = new_ioc(linked("UNC:4:ALIVE"), environ={"EPICS_CA_ADDR_LIST": f"127.0.0.2:{known.port}"}).start()
            monitor.wait_ioc(ioc)
            wait_row(monitor, "UNC:4:ALIVE", rf"IOC {ioc.name}, link {ioc.prefix}A.INP",
                     {"refuses": rf"answered by 127.0.0.2:{port}, whose TCP port refuses: nobody listens there",
                      "is full": rf"answered by 127.0.0.2:{port}, whose TCP port does not answer: .* \(pid {os.getpid()}\) does not accept: 1 connections wait, and no more may",
                      "two servers": rf"answered by two servers, 127.0.0.2:({port} and 127.0.0.2:{second}|{second} and 127.0.0.2:{port})"}[kind])
        finally:
            ended.set()
            thread.join()
            for client in clients:
                client.close()


def test_two_servers_of_one_udp_port(new_ioc, monitor):
    """A second softIoc takes the same UDP port, and a TCP port of its own. A search by unicast reaches one of them. Which
    one, depends on the CPU of the sender (udp.c of the kernel, compute_score), so the name here is one that none has."""
    first = new_ioc(db.READY, prefix="UNC:5a:").start()
    second = new_ioc(db.READY, prefix="UNC:5b:")
    second_port, second.port = second.port, first.port
    try:
        second.start(wait=False)
        second.process.wait_line("iocRun")
        ioc = new_ioc(linked("UNC:5:GONE"), environ={"EPICS_CA_ADDR_LIST": f"127.0.0.1:{first.port}"}).start()
        monitor.wait_ioc(ioc)
        pids = f"{first.pid}|{second.pid}"
        wait_row(monitor, "UNC:5:GONE", rf"IOC {ioc.name}, link {ioc.prefix}A.INP",
                 rf"it is searched by unicast at UDP port {first.port}, which softIoc \(pid ({pids})\) and softIoc "
                 rf"\(pid ({pids})\) share: only one of them gets it")
    finally:
        second.port = second_port


def test_udp_port_shared_with_a_server_without_base(new_ioc, monitor):
    """An IOC and a caproto server have a name each. By broadcast both are found; by unicast only one of them. The reason says who
    has the other one's name."""
    ioc = new_ioc(db.READY + db.record("ao", "A", PINI="YES"), prefix="UNC:12:", environ={"EPICS_CAS_INTF_ADDR_LIST": ""}).start()
    monitor.wait_ioc(ioc)
    text = ("from caproto.server import pvproperty, PVGroup, run\nclass G(PVGroup):\n    x = pvproperty(value=1.0, name='UNC:12:X')\n"
            "run(G(prefix='').pvdb, interfaces=['0.0.0.0'])")
    other = Process([sys.executable, "-c", text], loopback.environment(EPICS_CA_SERVER_PORT=ioc.port))
    for name in "UNC:12:A", "UNC:12:X":
        client = Process([paths.BASE_BIN / "caget", "-w", "30", name], loopback.environment(EPICS_CA_ADDR_LIST=f"127.255.255.255:{ioc.port}"))
        assert client.wait(40) == 0, client.output()
    shared = rf"it is searched by unicast at UDP port {ioc.port}, which \S+ \(pid ({ioc.pid}|{other.pid})\) and \S+ \(pid ({ioc.pid}|{other.pid})\) share: only one of them gets it"
    wanted = "|".join(rf"{name} +\S+ .*\({os.getpid()}\) +\d+ {shared}; pid {pid} has the name" for name, pid in (("UNC:12:A", ioc.pid), ("UNC:12:X", other.pid)))
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})  # the kernel prefers the socket that got the last packet on this CPU
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5)
            s.connect(("127.0.0.1", ioc.port))
            until(lambda: search(s, "UNC:12:A", "UNC:12:X") or any(re.match(wanted, line.strip()) for line in table(monitor)), 40, lambda: "\n".join(table(monitor)))
    finally:
        os.sched_setaffinity(0, cpus)
    other.kill()


def search(s, *names):
    """Searches each name, and waits for an answer."""
    for name in names:
        s.send(rawca.search(name))
        with contextlib.suppress(socket.timeout):
            s.recv(2000)


def test_refused_channel(new_ioc, monitor):
    """A filter that the server does not understand: it answers the search, and refuses the channel. The neighbour of the same
    record, without a filter, is connected."""
    server = new_ioc(db.READY + db.record("ao", "GOOD"), prefix="UNC:6:").start()
    monitor.wait_ioc(server)
    bad = "UNC:6:GOOD.VAL{nofilter:{}}"
    ioc = new_ioc(db.READY + db.record("ai", "A", INP=f"{bad} CA") + db.record("ai", "OK", INP="UNC:6:GOOD CA")).start()
    monitor.wait_ioc(ioc)
    refused = rf"IOC {server.name}, 127.0.0.1:\d+ refuses the channel: it has no such record or field, or does not understand the filter"
    wait_row(monitor, bad, rf"IOC {ioc.name}, link {ioc.prefix}A.INP", refused)
    assert dbcar(ioc) == (2, 1) and not any(line.startswith("UNC:6:GOOD ") for line in table(monitor))
    client = rawca.RawCa(server.port)
    client.send(rawca.message(rawca.CREATE, b"UNC:6:GONE\0", cid=1, extra=rawca.MINOR))
    assert client.until(26)[-1].cid == 1  # CA_PROTO_CREATE_CH_FAIL
    wait_row(monitor, "UNC:6:GONE", rf"\S+ .*\({os.getpid()}\)", refused)
    ioc.put("A.INP", "UNC:6:GOOD CA")
    wait_gone(monitor, bad)
    assert any(line.startswith("UNC:6:GONE") for line in table(monitor)), "the other one is still refused"
    client.send(rawca.message(rawca.CREATE, b"UNC:6:GONE\0", cid=2, extra=rawca.MINOR))
    client.close()


@pytest.mark.parametrize("kind", ["softIocPVA", "pvxs"])
def test_links_of_pvaccess(new_ioc, monitor, kind):
    """Of a name that nobody has, with a name server that refuses; of one that an IOC has as soon as it starts; and of a client that
    asks a name server only, over TCP."""
    def link(name, pv):
        return f'record(ai, "$(P){name}") {{ field(INP, {{pva: {{pv: "{pv}", proc: "CP"}}}}) }}\n'

    server = new_ioc(db.READY + db.record("ao", "LATE"), prefix=f"UNC:7{kind}:", kind=kind)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]  # bound, and nobody listens
        more = {"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{port}"} if kind == "pvxs" else {}  # the library of Base 7.0.8 has it, too
        ioc = new_ioc(db.READY + link("A", "UNC:7:GONE") + link("B", server.prefix + "LATE"), kind=kind,
                      environ={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{server.port + 2000}", **more}).start()
        monitor.wait_ioc(ioc)
        reason = rf"name server 127.0.0.1:{port} refuses: nobody listens there" if more else "no answer was seen"
        wait_row(monitor, "UNC:7:GONE", rf"IOC {ioc.name}, link {ioc.prefix}A.INP", reason)
        wait_row(monitor, server.prefix + "LATE", rf"IOC {ioc.name}, link {ioc.prefix}B.INP", reason)
        server.start()
        wait_gone(monitor, server.prefix + "LATE")
        if more:
            with loopback.pva_context(name_server=f"127.0.0.1:{server.port + 1000}") as client:
                waits = client.monitor("UNC:7:TCP", lambda value: None)
                wait_row(monitor, "UNC:7:TCP", rf"\S+ .*\({os.getpid()}\)", "no answer was seen")
                waits.close()
        ioc.discard()
    wait_gone(monitor, "UNC:7:GONE")


@pytest.mark.parametrize("kind", ["softIocPVA", "pvxs"])
def test_refused_channel_of_pvaccess(new_ioc, monitor, kind):
    """As by Channel Access, and the server tells the reason. The event comes once."""
    server = new_ioc(db.READY + db.record("ao", "GOOD"), prefix=f"UNC:8{kind}:", kind=kind).start()
    monitor.wait_ioc(server)
    bad = server.prefix + "GOOD.VAL{nofilter:{}}"
    client = Process([paths.BASE_BIN / "pvget", "-w", "1000", bad], loopback.client(server.port))
    row = wait_row(monitor, bad, rf"\S+ \({client.pid}\)", rf"IOC {server.name}, 127.0.0.1:\d+ refuses the channel: .+")
    told = f"{bad} of {os.path.basename(str(client.argv[0]))} ({client.pid}) is not connected: {row.partition('refuses')[0].split(f'({client.pid})')[1].split(maxsplit=1)[1]}refuses the channel"
    until(lambda: monitor.lines("IOC_EVENTS").count(told) == 1, 30, lambda: told + "\n" + monitor.lines("IOC_EVENTS"))
    client.kill()
    wait_gone(monitor, bad)


def test_udp_port_that_servers_of_pvaccess_share(new_ioc, monitor):
    """They pass on what comes by unicast, so that is no reason."""
    first, second = (new_ioc(db.READY, prefix=f"UNC:10{n}:", kind="pvxs") for n in "ab")
    shared = f"127.0.0.1:{first.port + 2000}"
    second.wrap = ["env", f"EPICS_PVAS_BROADCAST_PORT={first.port + 2000}"]
    for server in first, second:
        monitor.wait_ioc(server.start())
    client = Process([paths.BASE_BIN / "pvget", "-w", "1000", "UNC:10:GONE"], loopback.environment(EPICS_PVA_ADDR_LIST=shared))
    wait_row(monitor, "UNC:10:GONE", rf"\S+ \({client.pid}\)", "no answer was seen")
    client.kill()
