# SPDX-License-Identifier: BSD-3-Clause
"""Puts that an IOC makes late, or answers and never makes. Each is published once, with what became of it, and none stands
in front of a newer one."""
import getpass
import json
import socket
import struct

from tests.harness import db, loopback, rawca
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


GROUP = 'record(ao, "$(P)A") { info(Q:group, { "$(P)GRP": { "a": { +channel: "VAL", +type: "plain" } } }) }\n' \
    'record(ao, "$(P)B") { info(Q:group, { "$(P)GRP": { "b": { +channel: "VAL", +type: "plain", +putorder: 1 } } }) }\n'
UNWRITTEN = " UNWRITTEN: answered OK, but no record was written"


def test_puts_that_are_answered_and_write_nothing(tmp_path, new_ioc, new_monitor):
    """Such a put is published some seconds after it was made, says so, and is behind the put that was made after it: in all lists,
    in the PV of the record, in the newest line for caPutLog. A rule says who may write, and which values: only the writer counts."""
    log = PutLog(tmp_path / "puts.json")
    ioc = new_ioc(db.READY + db.record("ao", "AO") + GROUP, kind="softIocPVA").start()
    ao, group = ioc.prefix + "AO", ioc.prefix + "GRP"
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"name": "range", "pv": ao, "users": getpass.getuser(), "min": 0, "max": 10},
                                           {"name": "nobody", "pv": group, "users": "nobody"}]}))
    monitor = new_monitor(watch=[ao], before=[log.command(), f'ebpfMonRules "{rules}"', "ebpfMonCaPutLog PV text all"]).start()
    monitor.wait_ioc(ioc)
    unwritten = {ao: '{"display": {"units": "mm"}}', group: '{"a": 1.5}'}
    with loopback.pva_context(ioc.port, nt=False) as context:
        context.put(ao, {"display.units": "mm"}, timeout=60)
        context.put(group, {"a": 1.5}, timeout=60)
        context.put(group, {"b": 1.5}, timeout=60)
        context.put(ao, {"value": 2.0}, timeout=60)
    assert ioc.get("A") == 0 and ioc.get("AO") == 2 and ioc.get("AO.EGU") == ""
    total = len(unwritten) + 2
    until(lambda: len(log.of(ioc.prefix)) >= total, 30, lambda: log.of(ioc.prefix))
    lines = {(o["pv"], o["value"]): o for o in log.of(ioc.prefix)}
    assert len(lines) == total and lines[ao, "2"]["result"] == lines[ioc.prefix + "B", "1.5"]["result"] == "ok"
    for put in unwritten.items():
        assert put in lines and (lines[put]["result"], lines[put]["seen"], lines[put]["through"]) == ("unwritten", "wire", "PVA"), (put, lines)

    monitor.wait("PUT_CNT", lambda n: n == total)
    assert f" {ao} 0 -> 2 by " in monitor.text("PUT_LAST") and f" {ao} 0 -> 2 by " in monitor.text(ao + ":PUT_LAST")
    assert monitor.get(ao + ":PUT_CNT") == 2
    assert f"{ao} new=2 " in monitor.text("PUT_LAST_CAPUTLOG")
    until(lambda: len(monitor.lines("PUT_LOG").splitlines()) == total, 10, "all lines")
    shown = monitor.lines("PUT_LOG").splitlines()
    assert shown == sorted(shown, reverse=True) and sum(s.endswith(UNWRITTEN) for s in shown) == len(unwritten)
    assert monitor.get("PUT_BAD_CNT") == 1
    bad = monitor.text("PUT_BAD_LAST")
    assert f" {group} ? -> " in bad and bad.endswith(UNWRITTEN), bad
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")
