# SPDX-License-Identifier: BSD-3-Clause
"""Packets are lost between the kernel and the monitor, or the IOC is stopped, or a put changes nothing in the IOC.
Packets may add facts to puts that are seen in a watched IOC. They never add a put that nobody made, and never hide
one."""
import collections
import random
import struct

import pytest
from tests.harness import db, loopback, rawca
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import stays_false, until

CLIENTS, PVS = 6, 5
RECORDS = db.READY + "".join(db.record("longout", f"L{c}x{p}") + db.record("stringout", f"S{c}x{p}")
                             for c in range(CLIENTS) for p in range(PVS)) + \
    "".join(db.record("waveform", f"W{c}x0", FTVL="LONG", NELM=4000) for c in range(CLIENTS)) + \
    db.record("ao", "AO") + db.record("longout", "END")
SECONDS = 8  # the monitor waits 2 s for missing packets, and 2.5 s before it publishes a put seen in packets only


class Sender:
    """One client with its own records. "sent": (PV, value) of its puts, in order."""

    def __init__(self, ioc, number, rng):
        self.ca = rawca.RawCa(ioc.port, user=f"user{number}")
        self.prefix, self.number, self.rng = ioc.prefix, number, rng
        self.sent, self.opened = [], set()
        self.ca.sid(self.prefix + "END")

    def open(self):
        for name in [f"{kind}{self.number}x{p}" for p in range(PVS) for kind in "LS"] + [f"W{self.number}x0"]:
            self.ca.sid(self.prefix + name)
            self.opened.add(self.prefix + name)
        return self

    def send(self, count):
        """Plain writes, several in one segment or one write over two segments; never the same value twice. Arrays look
        like writes of 13 to the PV END."""
        data = b""
        for _ in range(count):
            kind, value = self.rng.choice("LLLSSSW"), f"{self.number}{len(self.sent):06}"
            pv = f"{self.prefix}{kind}{self.number}x{0 if kind == 'W' else self.rng.randrange(PVS)}"
            if pv not in self.opened:  # sid() sends messages, too
                self.ca.send(data)
                data = b""
                self.opened.add(pv)
            dbr, elements = (rawca.STRING, [value]) if kind == "S" else (rawca.LONG, [int(value)])
            if kind == "W":
                fake = struct.unpack(">6i", rawca.write(self.ca.sid(self.prefix + "END"), rawca.LONG, [13]))
                elements += [0] * self.rng.randrange(4) + list(fake) * self.rng.randrange(600)
            data += rawca.write(self.ca.sid(pv), dbr, elements)
            self.sent.append((pv, value if kind == "S" else str(int(value))))
            if self.rng.random() < 0.3 or len(data) > 4000:
                cut = self.rng.randrange(len(data)) if self.rng.random() < 0.3 else len(data)
                self.ca.send(data[:cut])
                data = data[cut:]
        self.ca.send(data)

    def finish(self):
        self.ca.send(rawca.message(rawca.ECHO))
        self.ca.until(rawca.ECHO)


def value(line):
    """The value, or the first element of an array."""
    text = str(line["value"])
    return text.split()[1] if text.startswith("[") else text


def no_more_than(log, prefix, total):
    assert stays_false(lambda: len(log.of(prefix)) > total, SECONDS), log.of(prefix)[total:]


def compare(log, senders, ioc):
    """Checks that each put is logged once, with its author, in the order of its circuit."""
    total = sum(len(s.sent) for s in senders)
    until(lambda: len(log.of(ioc.prefix)) >= total, 20, lambda: f"{total} puts: {len(log.of(ioc.prefix))}")
    no_more_than(log, ioc.prefix, total)
    lines = log.of(ioc.prefix)
    truth = collections.Counter(item for s in senders for item in s.sent)
    seen = collections.Counter((o["pv"], value(o)) for o in lines)
    assert not truth - seen, f"not logged: {list((truth - seen).items())[:10]}"
    extra = seen - truth
    assert not extra, f"{sum(extra.values())} more than were sent: " + "\n".join(
        str(o) for o in lines if (o["pv"], value(o)) in extra)[:3000]
    for s in senders:
        mine = [o for o in lines if o["user"] == f"user{s.number}"]
        assert [(o["pv"], value(o)) for o in mine] == s.sent, f"order and author of client {s.number}"
    assert {o.get("result", "ok") for o in lines} <= {"ok"}, collections.Counter(o.get("result") for o in lines)


@pytest.fixture
def scene(new_ioc, new_monitor, tmp_path):
    def make(ring):
        ioc = new_ioc(RECORDS).start()
        log = PutLog(tmp_path / "puts.json")
        monitor = new_monitor(before=[f"ebpfMonConfigure 0 0 0 0 {ring}", log.command()]).start()
        monitor.wait_ioc(ioc)
        return ioc, monitor, log
    return make


@soak
@pytest.mark.parametrize("opened", ["before", "meanwhile"])
def test_monitor_stands_still(scene, opened):
    """The ring of packets fills up while the monitor is stopped, so the last packets are lost. Then the monitor empties
    the ring, and the next packets begin in the middle of a stream."""
    ioc, monitor, log = scene(64)
    rng = random.Random(opened)
    senders = [Sender(ioc, n, rng) for n in range(CLIENTS)]
    if opened == "before":
        for s in senders:
            s.open()
    for _ in range(size(2, 4)):
        monitor.process.halt()
        try:
            for _ in range(60):
                for s in senders:
                    s.send(rng.randrange(1, 20))
            for s in senders:
                s.finish()
        finally:
            monitor.process.go_on()
        for s in senders:
            s.send(rng.randrange(1, 20))
            s.finish()
        sent = sum(len(s.sent) for s in senders)  # the ring of events has no room for the puts of two such times
        until(lambda: monitor.get("PUT_CNT") >= sent, 20, lambda: f"{sent} puts: {monitor.get('PUT_CNT')}")
    compare(log, senders, ioc)
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")
    assert monitor.get("PACKET_LOST_CNT") > 0, "no packet was lost"


@pytest.mark.parametrize("notify", [False, True])
def test_ioc_stands_still(scene, notify):
    """The IOC is stopped for more than 5 s with puts in its queue, then continues."""
    ioc, _, log = scene(8192)
    client = rawca.RawCa(ioc.port)
    for i in range(5):
        client.put(ioc.prefix + "AO", rawca.DOUBLE, [i], notify)
    sid = client.sid(ioc.prefix + "AO")
    ioc.process.halt()
    try:
        for i in range(5, 10):
            client.send(rawca.write(sid, rawca.DOUBLE, [i], notify, 1000 + i))
        no_more_than(log, ioc.prefix, 5)
    finally:
        ioc.process.go_on()
    client.send(rawca.message(rawca.ECHO))
    client.until(rawca.ECHO)
    until(lambda: len(log.of(ioc.prefix)) >= 10, 20, lambda: log.of(ioc.prefix))
    no_more_than(log, ioc.prefix, 10)
    assert [(str(o["value"]), o["result"]) for o in log.of(ioc.prefix)] == [(str(i), "ok") for i in range(10)]


@pytest.mark.parametrize("notify", [False, True])
def test_ioc_stands_still_within_a_put(new_ioc, new_monitor, tmp_path, notify):
    """The signal arrives while the IOC is in dbPut. The put is logged when it is done, with its result."""
    ioc = new_ioc(db.READY + db.record("fair", "FAIR"), kind="latencyIoc").start()
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    client, pv = rawca.RawCa(ioc.port), ioc.prefix + "FAIR.HOLD"
    sid = client.sid(pv)
    for i in range(2):
        try:
            client.send(rawca.write(sid, rawca.LONG, [i], notify, 100 + i))
            until(ioc.process.stands_still, 10, "the IOC stopped itself")
            no_more_than(log, ioc.prefix, i)
        finally:
            ioc.process.go_on()
        until(lambda: len(log.of(ioc.prefix)) > i, 20, f"put {i}")
    no_more_than(log, ioc.prefix, 2)
    assert [(o["pv"], str(o["value"]), o["result"]) for o in log.of(ioc.prefix)] == [(pv, str(i), "ok") for i in range(2)]


def test_pva_puts_that_make_nothing(new_ioc, new_monitor, tmp_path):
    """QSRV 1: a put that DISP refuses, and a put that sets only a display field, have their own lines. Their names and
    hashes do not get into the lines of later puts."""
    from p4p.client.thread import RemoteError

    ioc = new_ioc(db.READY + db.record("ao", "AO"), kind="softIocPVA").start()
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    pv, expected = ioc.prefix + "AO", []
    with loopback.pva_context(ioc.port) as context:
        for i in range(20):
            context.put(pv, float(i), timeout=60)
            expected.append((str(i), "ok"))
            if i % 4 == 1:
                ioc.put("AO.DISP", 1)
                with pytest.raises(RemoteError):
                    context.put(pv, 100.0 + i, timeout=60)
                ioc.put("AO.DISP", 0)
                expected.append((str(100 + i), "failed"))
            if i % 4 == 3:
                context.put(pv, {"display.description": f"d{i}"}, timeout=60)
                expected.append((f'{{"display": {{"description": "d{i}"}}}}', "unwritten"))

    def mine():
        return [o for o in log.of(pv) if o["through"] == "PVA"]

    until(lambda: len(mine()) >= len(expected), 20, lambda: "\n".join(map(str, mine())))
    no_more_than(log, ioc.prefix, len(log.of(ioc.prefix)))
    lines = mine()
    seen = sorted((str(o["value"]), o["result"]) for o in lines)
    assert seen == sorted(expected), "\n".join(map(str, lines))
    hashes = [o["hash"] for o in lines if o["seen"] != "inside"]  # else the packet came too late
    assert hashes and len(set(hashes)) == len(hashes), "each put has the hash of its own packet"
