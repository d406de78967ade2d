# SPDX-License-Identifier: BSD-3-Clause
"""The users of PVs that the monitor lists are right: compared with casr in the IOC, with the clients' own lists, and with the
counts of the kernel."""
import getpass
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections import namedtuple

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.wait import until

DB = db.READY + db.chain("C", 8) + "".join(db.record("ao", f"A{i}") for i in range(5))
EVENT_ADD = 1
Row = namedtuple("Row", "pv ioc client address subscribed updates bytes since command")


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DB).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor().start()
    m.wait_ioc(ioc)
    return m


@pytest.fixture
def camonitor(ioc):
    """Starts camonitor on records of the IOC."""
    started = []

    def start(*records):
        started.append(Process([paths.BASE_BIN / "camonitor", *(ioc.prefix + r for r in records)],
                               loopback.client(ioc.port)))
        return started[-1]

    yield start
    for p in started:
        p.kill()


def users(monitor, pattern):
    """The table of ebpfMonUsers."""
    rows = []
    for line in monitor.command(f'ebpfMonUsers "{pattern}"'):
        found = re.match(r"(\S+) +(\S+) +(\S*@\S*) +(\d[\d.]+:\d+) +(\d+) +(>?\d+|-) +(>?\d+|-) +([\d-]+ [\d:]+)(?: +(.*))?$",
                         line)
        if found:
            rows.append(Row(*found.groups()[:4], int(found[5]), *found.groups()[5:8], (found[9] or "").strip()))
    return rows


def clients(monitor, pattern):
    """The table of ebpfMonClients: address → (ioc, client, pid, channels, subscribed, bytes, command)."""
    rows = {}
    for line in monitor.command(f'ebpfMonClients "{pattern}"'):
        found = re.match(r"(\S+) +(\S*@\S*) +(\d[\d.]+:\d+) +(\d+|-) +(\d+) +(\d+) +(\d+|-) +(?:-|[\d-]+ [\d:]+)(?: +(.*))?$",
                         line)
        if found:
            rows[found[3]] = (found[1], found[2], found[4], int(found[5]), int(found[6]), found[7],
                              (found[8] or "").strip())
    return rows


def casr(ioc):
    """The report of the server: address → {channel: subscriptions}, and address → user."""
    channels, names, address = {}, {}, None
    for line in ioc.command("casr 3"):
        at = re.search(r"TCP client at (\S+) ", line)
        user = re.search(r"User '([^']*)'", line)
        if at:
            address = at[1]
            channels[address] = {}
        elif "CAS-" in line:
            address = None
        elif address and user:
            names[address] = user[1]
        elif address:
            name = re.search(r"Channel: '([^']+)'", line)
            subscribed = re.search(r"# on eventq=(\d+)", line)
            if name:
                last = name[1]
            elif subscribed:
                channels[address][last] = int(subscribed[1])
    return channels, names


def test_users_are_those_of_casr(ioc, monitor, camonitor):
    camonitor("C0", "C1", "A0")
    camonitor("A0", "A0.HIHI")
    raw = rawca.RawCa(ioc.port, "tester", "nowhere")
    raw.put(ioc.prefix + "A1", rawca.DOUBLE, [1.0], True)
    own = raw.address

    def seen():
        found = {}
        for r in users(monitor, f"{ioc.prefix}*"):
            found.setdefault(r.address, {})[r.pv] = r.subscribed
        return found

    until(lambda: len(casr(ioc)[0]) == 3 and sum(map(len, casr(ioc)[0].values())) == 6 and
          sum(sum(c.values()) for c in casr(ioc)[0].values()) == 5 and seen() == casr(ioc)[0], 60,
          lambda: f"{seen()} and {casr(ioc)}")
    truth, names = casr(ioc)
    assert truth[own] == {ioc.prefix + "A1": 0}
    for r in users(monitor, f"{ioc.prefix}*"):
        assert r.ioc == ioc.name and r.client.split("@")[0] == names[r.address]
    table = clients(monitor, ioc.name)
    assert {a: (r[3], r[4]) for a, r in table.items()} == \
        {a: (len(c), sum(c.values())) for a, c in truth.items()}
    assert table[own][1] == "tester@nowhere" and table[own][2] == str(os.getpid())
    raw.close()
    until(lambda: own not in clients(monitor, ioc.name), 60, "the client that went is gone")


def received(sock):
    """Bytes that this socket has received: tcpi_bytes_received of struct tcp_info (linux/tcp.h)."""
    return struct.unpack_from("Q", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 128)[0]


def test_bytes_process_and_time(ioc, monitor):
    raw = rawca.RawCa(ioc.port, "counter", "here")
    before = int(time.time())
    for n in range(100):
        raw.put(ioc.prefix + "A2", rawca.DOUBLE, [n], True)
    after = int(time.time())
    row = clients(monitor, ioc.name)[raw.address]
    assert row[1] == "counter@here" and row[2] == str(os.getpid()) and row[3:5] == (1, 0)
    until(lambda: int(clients(monitor, ioc.name)[raw.address][5]) == received(raw.socket), 60,
          lambda: f"{clients(monitor, ioc.name)[raw.address]}: {received(raw.socket)} bytes were received")
    user, = [r for r in users(monitor, ioc.prefix + "A2") if r.address == raw.address]
    assert before <= time.mktime(time.strptime(user.since, "%Y-%m-%d %H:%M:%S")) <= after
    raw.close()


def subscribe(raw, name, number):
    """Sends EVENT_ADD for all changes, as DOUBLE (caProto.h: mon_info)."""
    raw.send(rawca.message(EVENT_ADD, struct.pack(">fffHH", 0, 0, 0, 7, 0), rawca.DOUBLE, 1, raw.sid(name), number))


def test_updates_and_bytes(ioc, new_monitor):
    """The updates of a subscription that began before the monitor are unknown. Those of a later subscription are all
    counted."""
    name = ioc.prefix + "A2"
    early, late, writer = rawca.RawCa(ioc.port), rawca.RawCa(ioc.port), rawca.RawCa(ioc.port)
    subscribe(early, name, 7)
    early.until(EVENT_ADD)
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    subscribe(late, name, 8)
    messages = late.until(EVENT_ADD)[-1:]
    for n in range(50):
        writer.put(name, rawca.DOUBLE, [1000 + n], True)
        messages += late.until(EVENT_ADD)[-1:]

    def counted():
        rows = {r.address: (r.subscribed, r.updates, r.bytes) for r in users(monitor, name)}
        return rows.get(early.address), rows.get(late.address)

    size = sum(16 + len(m.payload) for m in messages)
    until(lambda: counted() == ((1, "-", "-"), (1, "51", str(size))), 60, lambda: f"51 updates, {size} bytes: {counted()}")
    for client in (early, late, writer):
        client.close()


def columns(monitor):
    """client → row of CLIENTS, as soon as all columns have the same time."""
    names = "NAMES IOCS COMMANDS PIDS CHANNEL_CNTS SUBSCRIPTION_CNTS BYTE_CNTS TIMES".split()
    lists = [monitor.list("CLIENT_" + n) for n in names]
    return {row[0]: row[1:] for row in zip(*lists)} if len(set(map(len, lists))) == 1 else {}


def test_table_by_pattern(ioc, monitor, camonitor):
    many = camonitor("C3", "C4", "C5", "A3", "A3.HIHI")
    few = camonitor("A3")
    user = getpass.getuser()

    def shown():
        return {int(r[2]): (r[0], int(r[3]), int(r[4])) for n, r in columns(monitor).items() if n.startswith(user + "@")}

    until(lambda: shown().get(many.pid) == (ioc.name, 5, 5) and shown().get(few.pid) == (ioc.name, 1, 1), 60,
          lambda: f"both clients in CLIENTS: {columns(monitor)}")
    monitor.put("CLIENT_FILTER_PV.VAL$", ioc.prefix + "A3*")
    until(lambda: shown() == {many.pid: (ioc.name, 2, 2), few.pid: (ioc.name, 1, 1)}, 60,
          lambda: f"channels to A3 only: {columns(monitor)}")
    assert (monitor.get("CLIENT_CNT"), monitor.get("CLIENT_CHANNEL_CNT"), monitor.get("CLIENT_SUBSCRIPTION_CNT")) == \
        (2, 3, 3)
    monitor.put("CLIENT_FILTER_PV.VAL$", ioc.prefix + "C?")
    until(lambda: shown() == {many.pid: (ioc.name, 3, 3)}, 60, lambda: f"channels to C? only: {columns(monitor)}")
    monitor.put("CLIENT_FILTER_IOC.VAL$", "none*")
    until(lambda: not columns(monitor) and monitor.get("CLIENT_CNT") == 0, 60, "no IOC matches")
    monitor.put("CLIENT_FILTER_IOC.VAL$", "")
    monitor.put("CLIENT_FILTER_PV.VAL$", "")
    until(lambda: many.pid in shown() and monitor.get("CLIENT_UNREAD_CNT") == 0, 60, "all again")
    assert monitor.get("CLIENT_LOOK_TIME") > 0


def test_table_by_pv_access(monitor, camonitor):
    from p4p.client.thread import Context

    camonitor("C6")
    until(lambda: columns(monitor), 60, "a client in CLIENTS")
    with loopback.pva_context(monitor.port, nt=False) as context:
        table = context.get(monitor.prefix + "CLIENTS", timeout=60)
    assert table.getID() == "epics:nt/NTTable:1.0"
    assert list(table.labels) == ["Client", "IOC", "Command", "PID", "Channels", "Subscriptions", "Bytes", "Since"]
    assert len({len(c) for _, c in table.value.items()}) == 1


def test_clients_of_other_libraries(ioc, monitor):
    """The monitor sees for each channel what the library of this channel requested."""
    import epics
    from caproto.threading.client import Context

    def on_value(*_args, **_kw):  # both libraries hold only a weak reference to this function
        pass

    quiet = epics.PV(ioc.prefix + "A4", auto_monitor=False)
    loud = epics.PV(ioc.prefix + "A4.HIHI", auto_monitor=True, callback=on_value)
    assert quiet.wait_for_connection(60) and loud.wait_for_connection(60)
    context = Context()
    other, = context.get_pvs(ioc.prefix + "C7")
    other.wait_for_connection(timeout=60)
    subscription = other.subscribe()
    token = subscription.add_callback(on_value)

    def subscribed():
        return {r.pv.removeprefix(ioc.prefix): r.subscribed for r in users(monitor, ioc.prefix + "*")}

    try:
        until(lambda: subscribed() == {"A4": 0, "A4.HIHI": 1, "C7": 1}, 60, lambda: str(subscribed()))
        subscription.remove_callback(token)
        until(lambda: subscribed() == {"A4": 0, "A4.HIHI": 1, "C7": 0}, 60, lambda: str(subscribed()))
    finally:
        context.disconnect()
        quiet.disconnect()
        loud.disconnect()


def test_an_ioc_that_ends_takes_its_clients_along(new_ioc, monitor):
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    with_channel = rawca.RawCa(ioc.port)
    with_channel.sid(ioc.prefix + "A0")
    until(lambda: clients(monitor, ioc.name), 60, "a client")
    ioc.stop()
    until(lambda: not clients(monitor, ioc.name), 60, "no client")
    with_channel.close()


HOSTILE = [b"", b"\x1b[2J\x1b[31mred", b"two\nlines", b"tab\tand|bar", b"'; DROP TABLE uses; --", b"%s%n%x", b"\xff\xfe\x80", "Anna Müller".encode(),
           b"$(P)", b"a@b@c", b"{\"a\": [1]}", b"x" * 400, b"\r\b\x7f\x9b31m"]


def test_names_that_harm(ioc, monitor):
    """Clients say any names of their users and hosts. Each is in the lists and in the table, as one clean line, and a client beside them is
    shown as before."""
    hostile = [rawca.RawCa(ioc.port, name, name) for name in HOSTILE]
    decent = rawca.RawCa(ioc.port, "decent", "client")
    for client in (*hostile, decent):
        client.put(ioc.prefix + "A3", rawca.DOUBLE, [1.0], True)
    addresses = [client.address for client in (*hostile, decent)]
    for command in f'ebpfMonClients "{ioc.name}"', f'ebpfMonUsers "{ioc.prefix}A3"':
        until(lambda command=command: all(a in "\n".join(monitor.command(command)) for a in addresses), 60,
              lambda command=command: "\n".join(monitor.command(command)))
        lines = monitor.command(command)
        found = {a: [line for line in lines if f"{a} " in line] for a in addresses}
        assert all(len(f) == 1 and all(c.isprintable() for c in f[0]) for f in found.values()), found
        assert "decent@client" in found[decent.address][0]
    until(lambda: all(any(a in t for t in monitor.list("CLIENT_NAMES")) for a in addresses), 20, lambda: str(monitor.list("CLIENT_NAMES")))
    texts = [t for column in ("CLIENT_NAMES", "CLIENT_IOCS", "CLIENT_COMMANDS") for t in monitor.list(column)]
    assert all(c.isprintable() for t in texts for c in t), texts
    for client in (*hostile, decent):
        client.close()
    assert ioc.running and monitor.get("STATE", as_string=True) == "Running"


OLDER = """
import os, sys
from tests.harness import loopback
context = loopback.pva_context(int(sys.argv[1]))
kept = [context.monitor(name, lambda value, name=name: os.write(1, b"got %s\\n" % name.encode())) for name in sys.argv[2:]]
for name in sys.stdin:
    try:
        context.put(name.strip(), 5.5, timeout=60)
    except Exception as why:
        print("refused", why, flush=True)
"""


def test_older_clients_of_qsrv2(new_ioc, new_monitor):
    """Packets cannot tell which PVs a connection has that is older than the monitor. The memory of pvxs tells it, also for what comes
    then: a put that the server refuses, which only packets show, has the name of its PV."""
    server = new_ioc(DB + db.record("ao", "OFF", DISP="1"), kind="pvxs").start()
    names = {server.prefix + r for r in ("A0", "OFF", "C3")}
    client = Process([sys.executable, "-u", "-c", OLDER, server.port, *sorted(names)], loopback.environment())
    try:
        until(lambda: len(client.lines) == len(names), 30, client.output)
        watching = new_monitor().start()
        watching.wait_ioc(server)
        seen = lambda: [r for r in map(str.split, watching.command(f'ebpfMonUsers "{server.prefix}*"')) if r[4:5] == ["PVA"]]  # noqa: E731
        rows = until(lambda: len(seen()) == len(names) and seen(), 20, lambda: str(seen()))
        assert {r[0] for r in rows} == names and all(r[1] == server.name and r[5:8] == ["1", "-", "-"] for r in rows), rows
        row, = (r for r in map(str.split, watching.command(f"ebpfMonClients {server.name}")) if r[3:4] == ["PVA"])
        assert row[4:7] == [str(client.pid), "3", "3"] and row[2] == rows[0][3], row
        assert int(row[7]) > 0 and row[8] == "-" and {r[8] for r in rows} == {"-"}, (row, rows)  # since when is not known
        until(lambda: any(n.endswith(f"@{row[2]} PVA") for n in watching.list("CLIENT_NAMES")), 20, lambda: str(watching.list("CLIENT_NAMES")))
        client.send(server.prefix + "OFF")
        until(lambda: f" {server.prefix}OFF ? -> 5.5 by " in watching.lines("PUT_LOG") and "FAILED" in watching.lines("PUT_LOG"), 20,
              lambda: "\n".join(client.lines) + watching.lines("PUT_LOG"))
    finally:
        client.kill()


def sent(port):
    """Client's port → bytes that the server at this port has sent and that were acknowledged, as the kernel tells it."""
    text = subprocess.run(["ss", "-tinOH", "state", "established", f"( sport = :{port} )"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3].rsplit(":", 1)[1]: int(re.search(r"bytes_acked:(\d+)", line).group(1)) for line in text.splitlines()}


@pytest.mark.parametrize("kind", ["softIocPVA", "p4p"])
def test_clients_of_pvaccess(new_ioc, new_monitor, kind):
    """An older connection: what it opened before is not known, and a line says so; since when it is there is not known. A newer one. Bytes
    are those of the kernel."""
    records = db.record("ao", "DOUBLE") + db.record("ao", "LONG") + db.record("stringout", "STRING")
    server = new_ioc(db.READY + records, kind=kind).start() if kind != "p4p" else \
        new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "p4p"]).start(wait=False)
    until(lambda: kind != "p4p" or "ready" in server.process.lines, 30, server.process.output)

    def subscribe(*names):
        client = Process([sys.executable, "-u", "-c", OLDER, server.port, *(server.prefix + n for n in names)], loopback.environment())
        until(lambda: sum(line.startswith("got ") for line in client.lines) == len(names), 30, client.output)
        return client

    clients = [subscribe("DOUBLE")]
    try:
        watching = new_monitor().start()
        if kind != "p4p":
            watching.wait_ioc(server)
        clients[0].send(server.prefix + "LONG")
        clients.append(subscribe("DOUBLE", "STRING"))
        users = lambda: watching.command(f'ebpfMonUsers "{server.prefix}*"')  # noqa: E731
        rows = until(lambda: len(seen := [r for r in map(str.split, users()) if r[4:5] == ["PVA"]]) == 3 and seen, 30, lambda: "\n".join(users()))
        before = sent(server.port + 1000)
        lines = [r for r in map(str.split, watching.command(f"ebpfMonClients {server.name}")) if r[3:4] == ["PVA"]]
        after = sent(server.port + 1000)
        old, new = (next(r for r in lines if r[4] == str(c.pid)) for c in clients)
        for port, shown in ((r[2].rsplit(":", 1)[1], int(r[7])) for r in (old, new)):
            assert before[port] <= shown <= after[port], (before, lines, after)
        assert {(r[0].removeprefix(server.prefix), r[3], r[5]) for r in rows} == {("LONG", old[2], "0"), ("DOUBLE", new[2], "1"), ("STRING", new[2], "1")}, rows
        assert all((r[8] == "-") == (r[3] == old[2]) and r[1] == server.name for r in rows) and (old[8], new[5:7]) == ("-", ["2", "2"]), (rows, lines)
        assert f"{server.name}: 1 of its clients may have more PVs: the begin of their connections was not seen" in users(), users()
    finally:
        for client in clients:
            client.kill()
