# SPDX-License-Identifier: BSD-3-Clause
"""Clients put steadily while the monitor begins to watch their IOC and lets it go again. Each put is in the log once, in
order, and without a gap, from the first to the last one of a time in which the IOC is watched."""
import collections
import itertools
import os
import pwd
import signal
import socket
import struct
import threading
import time

from tests.harness import db, rawca
from tests.harness.clients import Client
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import until

PACE = 0.003  # s between two puts of a client
PUTS = 50000   # of a shell, as fast as it can


class Stream(threading.Thread):
    """One client. It puts 1, 2, 3 … to its own record. "sent": when it began to send each put, and when the IOC had made
    it for certain."""

    def __init__(self, record):
        super().__init__(daemon=True)
        self.record, self.sent, self.error = record, [], None
        self.ends = threading.Event()

    def run(self):
        try:
            for n in itertools.count(1):
                if self.ends.wait(PACE):
                    return
                begin = time.monotonic()
                self.put(n)
                self.sent.append((begin, time.monotonic()))
        except Exception as e:  # pylint: disable=broad-exception-caught
            self.error = e


class CaStream(Stream):
    """"how": "plain": a write without a reply, of which nothing is waited for; "sync": … and the answer to an echo behind it;
    "notify": with a reply."""

    def __init__(self, ioc, record, how):
        super().__init__(ioc.prefix + record)
        self.client, self.how = rawca.RawCa(ioc.port), how
        self.client.sid(self.record)

    def put(self, n):
        self.client.put(self.record, rawca.LONG, [n], notify=self.how == "notify", sync=self.how != "plain")


class PvaStream(Stream):
    def __init__(self, ioc, record):
        super().__init__(ioc.prefix + record)
        self.client = Client("pva", pwd.getpwnam("daemon").pw_uid, ioc, record).ready()

    def put(self, n):
        self.client.begin(n, 1)
        self.client.finish()


def count_gaps(values):
    return sum(b != a + 1 for a, b in zip(values, values[1:]))


def judge(stream, lines, times):
    """"times": (all puts from then on are seen, the filter goes off then)."""
    own = [o for o in lines if o["pv"] == stream.record]
    for seen in (True, False):  # what is published from packets while probes are attached comes later than what follows
        part = [int(o["value"]) for o in own if (o["seen"] == "wire") == seen]
        assert part == sorted(part), f"{stream.record}: not in order: {part}"
    values = sorted(int(o["value"]) for o in own)
    twice = [o for o in own if values.count(int(o["value"])) > 1]
    assert not twice, f"{stream.record}: twice: {twice}"
    edge, gaps = 0, 0  # the first put was not seen, as if the filter had gone on before
    for since, off in times:
        wanted = {n + 1 for n, (begin, end) in enumerate(stream.sent) if begin >= since and end <= off}
        assert wanted, f"{stream.record}: no put in this time"
        missing = wanted - set(values)
        assert not missing, f"{stream.record}: not in the log: {sorted(missing)}"
        between = values[edge:values.index(min(wanted)) + 1]
        assert count_gaps(between) <= gaps, f"{stream.record}: more than one gap: {between}"
        edge, gaps = values.index(max(wanted)), 1
    assert not count_gaps(values[edge:]), f"{stream.record}: a gap: {values[edge:]}"
    return len(values)


def wait_puts(streams):
    marks = [len(s.sent) + 20 for s in streams]
    until(lambda: all(len(s.sent) >= m or s.error for s, m in zip(streams, marks)), 30, "20 puts of each client")


@soak
def test_steady_puts(tmp_path, new_ioc, new_monitor):
    log = PutLog(tmp_path / "puts.json")
    records = db.READY + "".join(db.record("longout", n) for n in ("PLAIN", "SYNC", "NOTIFY", "PVA"))
    ioc = new_ioc(records, kind="softIocPVA").start()
    monitor = new_monitor(before=[log.command()]).start()
    monitor.at_level("off", ioc)
    streams = [CaStream(ioc, "PLAIN", "plain"), CaStream(ioc, "SYNC", "sync"), CaStream(ioc, "NOTIFY", "notify"),
               PvaStream(ioc, "PVA")]
    for s in streams:
        s.start()
    times = []
    try:
        for n in range(size(4, 20)):
            if n % 4 > 1:
                wait_puts(streams)  # else it is watched again at once
            if n % 2:  # its probes are attached, or go, while it stands still; it makes the puts when it goes on
                os.kill(ioc.pid, signal.SIGSTOP)
            monitor.set_filter(LEVEL="chains")
            monitor.wait_ioc(ioc)
            if n % 2:
                wait_puts(streams[:1])  # they go into its socket
                os.kill(ioc.pid, signal.SIGCONT)
            since = time.monotonic()
            wait_puts(streams)
            times.append((since, time.monotonic()))
            if n % 2:
                os.kill(ioc.pid, signal.SIGSTOP)
            monitor.set_filter(LEVEL="off")
            monitor.wait_ioc(ioc, level="off")
            if n % 2:
                wait_puts(streams[:1])
                os.kill(ioc.pid, signal.SIGCONT)
    finally:
        for s in streams:
            s.ends.set()
        for s in streams:
            s.join(60)
    assert not [s.error for s in streams if s.error]
    last = len(streams[0].sent)
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(ioc)
    ioc.put("PLAIN", 1000000)
    until(lambda: any(o["value"] == "1000000" for o in log.of(streams[0].record)), 30, "the last put")
    lines = [o for o in log.of(ioc.prefix) if o["value"] != "1000000"]
    found = [judge(s, lines, times) for s in streams]
    assert not {o["result"] for o in lines} & {"lost"}
    print(f"{last} puts a client, {found} of them while the IOC was watched, "
          f"{sum(o['seen'] == 'wire' for o in lines)} published from packets")


def test_probes_are_set_again_at_once(tmp_path, new_ioc, new_monitor):
    """The kernel removes a probe some time after the monitor has taken it away, on a busy host long after. A probe that is set there
    meanwhile does not make each put two."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(db.READY + db.record("longout", "LONG")).start()
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    puts = threading.Thread(target=lambda: ioc.process.send("\n".join(f"dbpf {ioc.prefix}LONG {n}" for n in range(1, PUTS))))
    puts.start()
    times = 0
    while ioc.get("LONG") < PUTS - 1:
        monitor.set_filter(LEVEL="off")
        monitor.set_filter(LEVEL="puts")
        times += 1
    puts.join()
    ioc.put("LONG", PUTS)
    until(lambda: any(int(o["value"]) == PUTS for o in log.of(ioc.prefix)), 30, "the last put")
    values = [int(o["value"]) for o in log.of(ioc.prefix)]
    twice = sorted(v for v, n in collections.Counter(values).items() if n > 1)
    assert not twice, twice[:20]  # not all in order: one whose result was not seen is published later
    assert times > 3 and len(values) > 1000, (times, len(values))


def test_client_ends_while_the_ioc_stands_still(tmp_path, new_ioc, new_monitor):
    """Its put is published from its packet ten seconds after the connection was reset. When the IOC goes on it makes the put. It is not
    published again."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(db.READY + db.record("longout", "LONG")).start()
    monitor = new_monitor(iocs=ioc.name, before=[log.command()]).start()
    monitor.at_level("puts", ioc)
    monitor.wait("PACKET_STATE", lambda state: state == 1, 20)
    client = rawca.RawCa(ioc.port)
    client.sid(ioc.prefix + "LONG")
    ioc.process.halt()
    try:
        client.put(ioc.prefix + "LONG", rawca.LONG, [5], sync=False)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by RST
        client.close()
        until(lambda: log.of(ioc.prefix), 30, "the put is published")
    finally:
        ioc.process.go_on()
    until(lambda: ioc.get("LONG") == 5, 30, "the IOC makes the put")
    ioc.put("LONG", 6)
    until(lambda: any(o["value"] == "6" for o in log.of(ioc.prefix)), 30, "the next put is published")
    assert [(o["value"], o["seen"] == "wire") for o in log.of(ioc.prefix)] == [("5", True), ("6", False)], log.of(ioc.prefix)
