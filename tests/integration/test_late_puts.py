# SPDX-License-Identifier: BSD-3-Clause
"""Puts that an IOC makes late, or answers and never makes. Each is published once, with what became of it, and none stands
in front of a newer one."""
import socket
import struct

from tests.harness import db, rawca
from tests.harness.putlog import PutLog
from tests.harness.wait import stays_false, until

ENDS = {"fin": None, "rst": struct.pack("ii", 1, 0)}  # how a client ends its connection: SO_LINGER


def slow(name, seconds):
    """A record that takes so long when it is written."""
    return db.record("ao", name, FLNK=f"$(P){name}:WAIT") + \
        db.record("aSub", f"{name}:WAIT", SNAM="sleepFor", FTA="DOUBLE", INPA=int(seconds * 1e6), FTVA="DOUBLE")


class Burst:
    """A client that writes 0, 1, 2, … to a slow record and one value to another record behind them, then goes."""

    def __init__(self, ioc, record, count, end):
        self.pv, self.last, self.count = ioc.prefix + record, ioc.prefix + record + ":END", count
        client = rawca.RawCa(ioc.port, user=record)
        client.sid(self.pv), client.sid(self.last)
        client.send(b"".join(rawca.write(client.sid(self.pv), rawca.DOUBLE, [i]) for i in range(count)) +
                    rawca.write(client.sid(self.last), rawca.DOUBLE, [777]))
        if ENDS[end]:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ENDS[end])
        client.close()

    def check(self, log):
        until(lambda: log.of(self.last), 60, lambda: f"the last put: {log.of(self.pv)[-3:]}")
        lines = [o for o in log.of(self.pv) if o["pv"] == self.pv]
        assert [(int(o["value"]), o["result"]) for o in lines] == [(i, "ok") for i in range(self.count)]
        assert [(int(o["value"]), o["result"]) for o in log.of(self.last)] == [(777, "ok")]
        assert {o["seen"] for o in lines} <= {"both", "inside"}


def test_backlog_of_a_slow_ioc(tmp_path, new_ioc, new_monitor):
    """Clients write faster than the IOC serves them, and go. What waits in the sockets, and in the buffer of the server, is made
    many seconds later: none of it is lost, or unknown, and none is logged twice. FIN: more than the server reads at once; its last
    read takes the end of the connection, too. RST: the kernel has forgotten the socket, and the IOC still reads it."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(db.READY + slow("FIN", 0.004) + slow("RST", 1) + db.record("ao", "FIN:END") + db.record("ao", "RST:END"),
                  kind="latencyIoc").start()
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    bursts = [Burst(ioc, "RST", 14, "rst"), Burst(ioc, "FIN", 1500, "fin")]
    for b in reversed(bursts):
        b.check(log)
    total = sum(b.count + 1 for b in bursts)
    # the monitor waits 2.5 s before it publishes a put that was not seen in the IOC
    assert stays_false(lambda: len(log.of(ioc.prefix)) > total, 4), log.of(ioc.prefix)[total:]
