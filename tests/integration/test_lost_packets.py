# SPDX-License-Identifier: BSD-3-Clause
"""Packets are lost between the kernel and the monitor. What is left of them may add to what is seen in a watched IOC,
but never makes a put that nobody made, nor hides one."""
import collections
import random
import signal

import pytest
from tests.harness import db, rawca
from tests.harness.putlog import PutLog
from tests.harness.wait import Late, until

CLIENTS, PVS = 6, 5
RECORDS = db.READY + "".join(db.record("longout", f"L{c}x{p}") + db.record("stringout", f"S{c}x{p}")
                             for c in range(CLIENTS) for p in range(PVS)) + db.record("longout", "END")


class Sender:
    """One client with its own records; "sent" is what it wrote: (PV, value) in order."""

    def __init__(self, ioc, number, rng):
        self.ca = rawca.RawCa(ioc.port, user=f"user{number}")
        self.prefix, self.number, self.rng = ioc.prefix, number, rng
        self.sent, self.opened = [], set()

    def open(self):
        for p in range(PVS):
            for kind in "LS":
                pv = f"{self.prefix}{kind}{self.number}x{p}"
                self.ca.sid(pv)
                self.opened.add(pv)
        return self

    def send(self, count):
        """Plain writes, several in one segment or one write over two segments; never the same value twice."""
        data = b""
        for _ in range(count):
            kind, value = self.rng.choice("LS"), f"{self.number}{len(self.sent):06}"
            pv = f"{self.prefix}{kind}{self.number}x{self.rng.randrange(PVS)}"
            if pv not in self.opened: # sid() sends, too
                self.ca.send(data)
                data = b""
                self.opened.add(pv)
            dbr, elements = (rawca.LONG, [int(value)]) if kind == "L" else (rawca.STRING, [value])
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


def compare(log, senders, ioc):
    """Each put once, with its author, in the order of its circuit."""
    total = sum(len(s.sent) for s in senders)
    until(lambda: len(log.of(ioc.prefix)) >= total, 20, lambda: f"{total} puts: {len(log.of(ioc.prefix))}")
    try: # a gap is waited for 2 s, a put that only packets show for 2.5 s
        until(lambda: len(log.of(ioc.prefix)) > total, 8, "nothing more comes")
    except Late:
        pass
    lines = log.of(ioc.prefix)
    truth = collections.Counter(item for s in senders for item in s.sent)
    seen = collections.Counter((o["pv"], str(o["value"])) for o in lines)
    assert not truth - seen, f"not logged: {list((truth - seen).items())[:10]}"
    extra = seen - truth
    assert not extra, f"{sum(extra.values())} more than were sent: " + "\n".join(
        str(o) for o in lines if (o["pv"], str(o["value"])) in extra)[:3000]
    for s in senders:
        mine = [o for o in lines if o["user"] == f"user{s.number}"]
        assert [(o["pv"], str(o["value"])) for o in mine] == s.sent, f"order and author of client {s.number}"
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


@pytest.mark.parametrize("opened", ["before", "meanwhile"])
def test_monitor_stands_still(scene, opened):
    """The ring of packets fills up while the monitor does not run: the last packets are lost. Then it is emptied, and
    the next packets begin in the middle of a stream."""
    ioc, monitor, log = scene(64)
    rng = random.Random(opened)
    senders = [Sender(ioc, n, rng) for n in range(CLIENTS)]
    if opened == "before":
        for s in senders:
            s.open()
    for _ in range(4):
        monitor.process.signal(signal.SIGSTOP)
        try:
            for _ in range(60):
                for s in senders:
                    s.send(rng.randrange(1, 20))
            for s in senders:
                s.finish()
        finally:
            monitor.process.signal(signal.SIGCONT)
        for s in senders:
            s.send(rng.randrange(1, 20))
            s.finish()
    compare(log, senders, ioc)
    assert monitor.get("PACKET_LOST_CNT") > 0, "no packet was lost"
