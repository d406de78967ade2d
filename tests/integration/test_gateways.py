# SPDX-License-Identifier: BSD-3-Clause
"""Puts through gateways of pvAccess: each is one line, with the client behind the gateway, or with a mark; none has the name of
somebody else. Who sent what is told by the clients."""
import collections
import contextlib
import json
import os
import random
import re
import sqlite3
import sys

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.gateway import CaGateway, Gateway, Person, Proxy
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.wait import until

RECORDS = [f"A{i}" for i in range(10)]
DB = db.READY + "".join(db.record("ao", r) for r in RECORDS) + db.record("stringout", "S") + "".join(db.record("ao", r, PINI="YES") for r in ("R", "R2")) + \
    db.record("mbbo", "M", ZRST="zero", ONST="one", TWST="two") + db.record("waveform", "W", FTVL="DOUBLE", NELM=100) + \
    db.record("ao", "L", OUT="$(P)TO PP") + db.record("ao", "TO")
ALICE, BOB = "nobody", "games"
ROUNDS = 10


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DB, kind="softIocPVA").start()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module")
def rules(tmp_path_factory, ioc):
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    path.write_text(json.dumps({"rules": [{"name": "who", "pv": f"{ioc.prefix}S", "users": ALICE, "realUsers": ALICE}]}))
    return path


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, log, rules, tmp_path_factory):
    uses = tmp_path_factory.mktemp("uses") / "uses.db"
    m = module_monitor(before=[log.command(), f'ebpfMonRules "{rules}"', f'ebpfMonUsage "{uses}"']).start()
    m.uses = uses
    m.wait_ioc(ioc)
    return m


def discarded(thing):
    yield thing
    thing.discard()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, ioc, monitor):
    yield from discarded(Gateway(tmp_path_factory.mktemp("gateway"), ioc.port))


@pytest.fixture(scope="module")
def alice(gateway):
    yield from discarded(Person(ALICE, gateway.port))


@pytest.fixture(scope="module")
def bob(gateway):
    yield from discarded(Person(BOB, gateway.port))


def lines(log, ioc, number, *persons):
    """What the log says of so many puts that these persons send now; more would be a defect."""
    mark = len(log.of(ioc.prefix))
    yield
    for p in persons:
        assert p.wait() == []
    yield log.next(number, ioc.prefix, mark)


def put(log, ioc, person, *puts):
    """Makes the puts. Returns the lines, by record."""
    step = lines(log, ioc, len(puts), person)
    next(step)
    person.send(*((ioc.prefix + r, v) for r, v in puts))
    return {o["pv"].removeprefix(ioc.prefix): o for o in next(step)}


def check_person(line, user, gateway):
    assert "who_sure" not in line and line["user"] == line["real_user"] == user, line
    assert line["gateway"] in (f"pvagw[{gateway.pid}]", f"proxy.py[{gateway.pid}]"), line
    assert line["gateway_server"] == f"127.0.0.1:{gateway.port + 1000}" and line["gateway_time"] < line["time"], line


def test_each_put_has_its_person(ioc, monitor, log, gateway, alice, bob):
    """Numbers, an enum, a text, an array. What a link writes then has the same client."""
    for person in (alice, bob):
        person.connect(*(ioc.prefix + r for r in RECORDS))
        seen = put(log, ioc, person, ("A0", 3.5), ("M", 1), ("S", "text"), ("W", [1.0, 2.0, 3.0]))
        for record, value in {"A0": "3.5", "M": "one", "S": "text", "W": "[3] 1 2 3"}.items():
            check_person(seen[record], person.user, gateway)
            assert seen[record]["value"] == value and seen[record]["ioc"] == ioc.name and seen[record]["result"] == "ok"
    step = lines(log, ioc, 2, bob)
    next(step)
    bob.send((ioc.prefix + "L", 4))
    for o in next(step):
        assert o["user"] == BOB and o["gateway"] == f"pvagw[{gateway.pid}]" and "who_sure" not in o, o
    until(lambda: f"by {BOB}@" in (text := monitor.lines("PUT_LOG")) and f" through gateway pvagw[{gateway.pid}] " in text, 10,
          lambda: monitor.lines("PUT_LOG"))


def put_at_random(log, ioc, gateway, alice, bob, go=lambda: None):
    """Two clients put few values to the same PVs at the same moments. Of each value each PV has as many lines as were sent, and no client
    has more of them than it has sent. Returns how many lines are marked."""
    chance = random.Random(53)
    sent = {p.user: collections.Counter() for p in (alice, bob)}
    step = lines(log, ioc, 2 * ROUNDS * len(RECORDS))
    next(step)
    for _ in range(ROUNDS):
        for person in (alice, bob):
            puts = [(ioc.prefix + r, float(chance.randrange(3))) for r in chance.sample(RECORDS, len(RECORDS))]
            sent[person.user].update((pv, f"{v:g}") for pv, v in puts)
            person.send(*puts)
        go()
        for person in (alice, bob):
            assert person.wait() == []
    seen = next(step)
    named = {user: collections.Counter() for user in sent}
    for o in seen:
        if "who_sure" in o:
            assert o["gateway_clients"] == "2" and o["gateway"].endswith(f"[{gateway.pid}]"), o
        else:
            check_person(o, o["user"], gateway)
            named[o["user"]][o["pv"], o["value"]] += 1
    assert collections.Counter((o["pv"], o["value"]) for o in seen) == sum(sent.values(), collections.Counter())
    assert all(not named[user] - sent[user] for user in sent), named
    return len(seen) - sum(n.total() for n in named.values())


def test_at_the_same_moment(ioc, monitor, log, gateway, alice, bob):
    assert put_at_random(log, ioc, gateway, alice, bob) < ROUNDS * len(RECORDS)


def test_same_moment(ioc, monitor, log, tmp_path):
    """A gateway that makes the puts of two clients when it has both: of the same value nobody can tell which is whose, of another one or
    to another PV it is certain."""
    proxy = Proxy(tmp_path, "p4p", ioc.port, *(ioc.prefix + r for r in RECORDS))
    alice, bob = (Person(user, proxy.port) for user in (ALICE, BOB))
    came = 0

    def go(number):
        nonlocal came
        came += number
        until(lambda: proxy.process.lines.count("came") == came, 10, proxy.process.output)
        proxy.process.send("go on")

    def both(first, second):
        step = lines(log, ioc, 2, alice, bob)
        next(step)
        alice.send((ioc.prefix + first[0], first[1]))
        bob.send((ioc.prefix + second[0], second[1]))
        go(2)
        return sorted(next(step), key=lambda o: o["time"])

    try:
        for first, second in ((("A0", 78.0), ("A0", 79.0)), (("A1", 80.0), ("A0", 80.0))):
            seen = {(o["pv"].removeprefix(ioc.prefix), float(o["value"])): o for o in both(first, second)}
            check_person(seen[first], ALICE, proxy)
            check_person(seen[second], BOB, proxy)
        one, two = both(("A0", 77.0), ("A0", 77.0))
        assert one["who_sure"] is False and one["gateway_clients"] == "2" and one["user"] not in (ALICE, BOB), one
        until(lambda: f"by one of 2 clients through gateway proxy.py[{proxy.pid}] " in monitor.lines("PUT_LOG"), 10, lambda: monitor.lines("PUT_LOG"))
        # the gateway has answered the first one before it makes the second one
        assert "who_sure" not in two and two["user"] in (ALICE, BOB), two
        marked = put_at_random(log, ioc, proxy, alice, bob, lambda: go(2 * len(RECORDS)))
        assert 0 < marked < ROUNDS * len(RECORDS)
    finally:
        for thing in (alice, bob, proxy):
            thing.discard()


def test_channel_access(ioc, monitor, log, tmp_path):
    """A gateway of Channel Access. Plain writes have no reply, that could tell the end."""
    proxy = Proxy(tmp_path, "caproto", ioc.port, *(ioc.prefix + r for r in ("A0", "A1")))
    clients = {user: rawca.RawCa(proxy.port, user=user) for user in ("anna", "bert")}
    number = {user: c.sid(ioc.prefix + "A0") for user, c in clients.items()}

    def write(user, value):
        clients[user].send(rawca.write(number[user], rawca.DOUBLE, [value]))

    try:
        for user, value in (("anna", 21.0), ("bert", 22.0), ("anna", 22.0)):
            step = lines(log, ioc, 1)
            next(step)
            write(user, value)
            line, = next(step)
            assert line["user"] == user and line["gateway"] == f"proxy.py[{proxy.pid}]" and "who_sure" not in line, line
        step = lines(log, ioc, 2)
        next(step)
        proxy.process.halt()
        write("anna", 23.0)
        write("bert", 23.0)
        until(lambda: proxy.unread() == 2, 10, "the bytes of both have come")
        proxy.process.go_on()
        for line in next(step):
            assert line["who_sure"] is False and line["gateway_clients"] == "2" and line["user"] not in clients, line
    finally:
        for thing in clients.values():
            thing.close()
        proxy.discard()


@pytest.mark.skipif(not os.access(paths.CA_GATEWAY, os.X_OK), reason="no ca-gateway: tools/modules.sh gateway builds it")
def test_ca_gateway(ioc, monitor, log, tmp_path):
    """One, two in a row, and one that changes names, which three plain writes tell. Each put is one line, with its client."""
    first = CaGateway(tmp_path, ioc.port, ioc.prefix + "A0")
    second, changing = CaGateway(tmp_path, first.port, ioc.prefix + "A0"), CaGateway(tmp_path, ioc.port, ioc.prefix + "A0", "GW:")
    puts = [(way, [], f"A{n}", n) for way in (first, second, changing) for n in range(5)] + [
        (first, ["-c"], "A5", 2.5), (second, [], "S", "words"), (first, ["-a"], "W", (3, 1, 2, 3)), (first, ["-c"], "M", "two")]
    step = lines(log, ioc, len(puts))
    next(step)
    try:
        clients = []
        for way, options, record, value in puts:
            name = f"{'GW:' if way is changing else ''}{ioc.prefix}{record}"
            clients.append(Process([paths.BASE_BIN / "caput", *options, name, *(value if isinstance(value, tuple) else (value,))],
                                   loopback.client(way.port)))
            clients[-1].wait(20)
        for (way, _, record, _), client, o in zip(puts, clients, next(step), strict=True):
            assert o["pv"] == ioc.prefix + record and o["ioc"] == ioc.name and o["result"] == "ok" and "who_sure" not in o, o
            if way is changing and int(record[1:]) < 3:
                assert o["pid"] == str(changing.pid) and "gateway" not in o, o
                continue
            names = [f"gateway[{g.pid}]" for g in ((second, first) if way is second else (way,))]
            assert (o["pid"], o["gateway"], o["gateway_server"]) == (str(client.pid), ", ".join(names), f"127.0.0.1:{way.port}"), o
    finally:
        for g in (second, first, changing):
            g.discard()


SUBSCRIBER = """
import sys, time
from tests.harness import loopback
context = loopback.pva_context(int(sys.argv[1]))
subscription = context.monitor(sys.argv[2], lambda value: print("got", flush=True))
time.sleep(1000)
"""


def test_who_is_behind(ioc, monitor, gateway):
    """Two clients of the gateway have subscribed, and it has one subscription at the IOC. One of the two is stopped."""
    name = ioc.prefix + "R2"
    reading, stopped = readers = [Process([sys.executable, "-u", "-c", SUBSCRIBER, gateway.port, name], loopback.environment())
                                  for _ in range(2)]
    try:
        for r in readers:
            r.wait_line("got")
        rows = until(lambda: len(seen := [line.split() for line in monitor.command(f'ebpfMonUsers "{name}"') if " PVA " in line]) == 3
                     and seen, 20, lambda: "\n".join(monitor.command(f'ebpfMonUsers "{name}"')))
        assert all(row[0] == name for row in rows) and rows[0][1] == ioc.name and rows[0][-1] == "pvagw", rows
        assert all(row[-3:] == ["through", "gateway", f"pvagw[{gateway.pid}]"] for row in rows[1:]), rows
        until(lambda: (name, "2 clients through gateway", f"python pvagw ({gateway.pid})") in subscriptions(monitor), 20,
              lambda: str(subscriptions(monitor)))
        stopped.halt()
        why = lambda client: "\n".join(monitor.command(f'ebpfMonWhy "{name}" {client.pid}'))  # noqa: E731
        text = why(stopped)
        assert text.splitlines()[1].startswith("behind: the client behind the gateway does not read: "), text
        assert f"pid {stopped.pid}); a signal or a debugger has stopped its process" in text, text
        text = why(reading)
        assert "nothing stops" in text and f"pid {reading.pid})" in text and re.search("behind +fine +it has read all", text), text
    finally:
        for r in readers:
            r.kill()


def subscriptions(monitor):
    return list(zip(*(monitor.list("SUBSCRIPTION_" + c) for c in ("PVS", "CLIENTS", "PROCESSES"))))


def last_uses(monitor, ioc):
    """(record, kind) → who, of this IOC."""
    monitor.command("ebpfMonUnused 1")  # which writes all noted uses
    with contextlib.closing(sqlite3.connect(monitor.uses)) as database:
        return {(r.removeprefix(ioc.prefix), kind): who for r, kind, who in
                database.execute("select record, kind, who from uses where ioc = ?", (ioc.name,))}


def test_uses_are_of_the_people(ioc, monitor, gateway, alice):
    """Who reads through the gateway is the user in the file, not the gateway."""
    alice.connect(ioc.prefix + "TO")  # nobody else has a channel to it
    wanted = f"{ALICE}@", f" through gateway pvagw[{gateway.pid}]"
    until(lambda: (who := last_uses(monitor, ioc).get(("TO", 1), "")).startswith(wanted[0]) and who.endswith(wanted[1]), 20,
          lambda: str(last_uses(monitor, ioc)))


READER = """
import struct, sys
from tests.harness import rawca
client = rawca.RawCa(int(sys.argv[1]), user=sys.argv[2])
client.send(rawca.message(1, struct.pack(">3f2H", 0, 0, 0, 5, 0), rawca.DOUBLE, 1, client.sid(sys.argv[3]), 7))
print("subscribed", flush=True)
while True:
    client.receive()
"""


def test_readers_through_channel_access(ioc, monitor, tmp_path):
    """A gateway of Channel Access has one channel for two clients."""
    name = ioc.prefix + "R"
    proxy = Proxy(tmp_path, "caproto", ioc.port, name)
    readers = {user: Process([sys.executable, "-u", "-c", READER, proxy.port, user, name], loopback.environment())
               for user in ("anna", "bert")}
    try:
        for r in readers.values():
            r.wait_line("subscribed")
        users = lambda: [line for line in monitor.command(f'ebpfMonUsers "{name}"') if line.startswith(name)]  # noqa: E731
        lines = until(lambda: len(seen := users()) == 3 and seen, 20, lambda: "\n".join(users()))
        assert ioc.name in lines[0].split() and all(line.endswith(f" through gateway proxy.py[{proxy.pid}]") for line in lines[1:]), lines
        assert {line.split()[2].split("@")[0] for line in lines[1:]} == set(readers), lines
        until(lambda: (who := last_uses(monitor, ioc).get(("R", 4), "")).endswith(f" and 1 more through gateway proxy.py[{proxy.pid}]"), 30,
              lambda: str(last_uses(monitor, ioc)))
    finally:
        for r in readers.values():
            r.kill()
        proxy.discard()


def test_two_gateways(ioc, monitor, log, gateway, tmp_path):
    second = Gateway(tmp_path, gateway.port)
    person = Person(BOB, second.port)
    reader = Process([sys.executable, "-u", "-c", SUBSCRIBER, second.port, ioc.prefix + "R2"], loopback.environment())
    try:
        line = put(log, ioc, person, ("A1", 7.25))["A1"]
        assert line["user"] == BOB and line["gateway"] == f"pvagw[{second.pid}], pvagw[{gateway.pid}]", line
        assert line["gateway_server"] == f"127.0.0.1:{second.port + 1000}" and "who_sure" not in line, line
        reader.wait_line("got")
        why = lambda: "\n".join(monitor.command(f'ebpfMonWhy "{ioc.prefix}R2" {reader.pid}'))  # noqa: E731
        until(lambda: re.search(rf"behind +fine +it has read all.* pid {reader.pid}\)", why()), 20, why)
        reader.halt()
        until(lambda: f"pid {reader.pid}); a signal or a debugger has stopped its process" in why().splitlines()[1], 20, why)
    finally:
        reader.kill()
        person.discard()
        second.discard()


OLDER = """
import sys
from tests.harness import loopback
context = loopback.pva_context(int(sys.argv[1]))
kept = context.monitor(sys.argv[2], lambda value: None)
context.get(sys.argv[2], timeout=30)
print("connected", flush=True)
for line in sys.stdin:
    context.put(sys.argv[2], float(line), timeout=30, get=False)
"""


def test_older_channel(ioc, gateway, new_monitor, tmp_path):
    """A client and a gateway that are older than the monitor: each put is one line, perhaps of this client, until the monitor knows which
    PV its channel has."""
    name, later, value = ioc.prefix + "A7", PutLog(tmp_path / "puts.json"), 100
    client = Process([sys.executable, "-u", "-c", OLDER, gateway.port, name], loopback.environment())
    seen = []

    def put_next():
        nonlocal value
        value += 1
        client.send(str(value))
        line, = later.next(1, ioc.prefix, len(seen))
        assert (line["pv"], line["value"], line["pid"], line["gateway"]) == (name, str(value), str(client.pid), f"pvagw[{gateway.pid}]"), line
        seen.append(line)
        return "who_sure" not in line

    try:
        client.wait_line("connected")
        new_monitor(before=[later.command()]).start().wait_ioc(ioc)
        assert not any(put_next() for _ in range(3)), seen
        until(put_next, 60, lambda: str(seen))
        assert later.of(ioc.prefix) == seen  # none is there twice
    finally:
        client.kill()


def test_other_names(ioc, monitor, log, tmp_path):
    """A gateway that changes names: after three puts the monitor knows how, and before that it says that it does not."""
    changing = Gateway(tmp_path, ioc.port, pvlist=r"GW:(.*) ALIAS \1" + "\n")
    person = Person(BOB, changing.port)
    reader = Process([sys.executable, "-u", "-c", SUBSCRIBER, changing.port, f"GW:{ioc.prefix}R"], loopback.environment())
    step = lines(log, ioc, 5, person)
    records = RECORDS[:5]
    next(step)
    try:
        person.connect(*(f"GW:{ioc.prefix}{r}" for r in records))
        for n, record in enumerate(records):
            person.send((f"GW:{ioc.prefix}{record}", 10.0 + n))
            person.wait()
        seen = next(step)
        assert ["gateway" in o for o in seen] == [False] * 3 + [True] * 2, seen
        for o in seen[3:]:
            check_person(o, BOB, changing)
            assert o["channel"] == f"GW:{o['pv']}", o
        reader.wait_line("got")
        why = lambda: "\n".join(monitor.command(f'ebpfMonWhy "{ioc.prefix}R" {reader.pid}'))  # noqa: E731
        until(lambda: re.search(r"post +not known +no client .* a gateway has, perhaps for it", why()), 20, why)
    finally:
        reader.kill()
        person.discard()
        changing.discard()


def test_rules(ioc, monitor, log, alice, bob):
    """The rule judges the client behind the gateway, not the gateway."""
    assert "unexpected" not in put(log, ioc, alice, ("S", "hers"))["S"]
    line = put(log, ioc, bob, ("S", "his"))["S"]
    assert line["unexpected"] is True and f'user "{BOB}"' in line["rule"], line


def test_refused_by_the_gateway(ioc, monitor, log, tmp_path):
    """No inner put follows: the put to the gateway is shown."""
    refusing = Gateway(tmp_path, ioc.port, access='ASG(DEFAULT) { RULE(1, READ) }\n')
    person = Person(BOB, refusing.port)
    mark = len(log.of(ioc.prefix))
    try:
        person.send((ioc.prefix + "A2", 1.0))
        assert person.wait() != []
        line, = log.next(1, ioc.prefix, mark)
        assert line["user"] == BOB and line["result"] in ("denied", "failed") and "gateway" not in line, line
        assert line["server"] == f"127.0.0.1:{refusing.port + 1000}", line
    finally:
        person.discard()
        refusing.discard()
