# SPDX-License-Identifier: BSD-3-Clause
"""ebpfMonUnused is the list by which people delete PVs: a use of pvAccess is in it, also one that lasts, and what the monitor cannot see
is a gap."""
import re
import socket
import sqlite3

import pytest
from tests.harness import db, loopback
from tests.harness.wait import until

DAY = 86400
ALL, CONNECTIONS = 15, 8
CHANNEL, SUBSCRIBED, READ = 4, 3, 1
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(200)  # the begin of a ClientHello of TLS (RFC 8446, 5.1)


@pytest.fixture(scope="module")
def ioc(module_ioc):
    group = 'record(ao, "$(P)G1") { info(Q:group, {"$(P)GRP": {"a": {+channel: "VAL"}}}) }\n'
    return module_ioc(db.READY + "".join(db.record("ao", f"A{i}") for i in range(6)) + group, kind="pvxs").start()


class Watched:
    def __init__(self, monitor, ioc, file):
        self.monitor, self.ioc, self.file = monitor, ioc, file

    def query(self, sql, *values):
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as c:
            return c.execute(sql, [self.ioc.name, *values]).fetchall()

    def ways(self):
        """In which ways the IOC is watched now."""
        self.monitor.command("ebpfMonUnused 1")
        found = self.query("SELECT ways FROM watched WHERE ioc = ? ORDER BY ended DESC, began DESC LIMIT 1")
        return found[0][0] if found else None

    def wait_ways(self, test):
        until(lambda: test(self.ways()), 60, lambda: f"{self.query('SELECT * FROM watched WHERE ioc = ?')}")

    def kinds(self, record):
        self.monitor.command("ebpfMonUnused 1")
        return {kind for kind, in self.query("SELECT kind FROM uses WHERE ioc = ? AND record = ?", self.ioc.prefix + record)}

    def unused(self):
        lines = self.monitor.command(f'ebpfMonUnused 1 "{self.ioc.prefix}*"')
        return lines, {line.split()[0].removeprefix(self.ioc.prefix) for line in lines if re.match(r"\S+:\S+ +(never seen|not known|\d{4}-)", line)}


@pytest.fixture
def watch(new_monitor, ioc, tmp_path):
    def start():
        file = tmp_path / "uses.db"
        monitor = new_monitor(before=[f'ebpfMonUsage "{file}"']).start()
        monitor.wait_ioc(ioc)
        monitor.wait("USAGE_STATE", lambda s: s == 1, 60)
        return Watched(monitor, ioc, file)

    return start


def test_uses_of_pva(watch, ioc):
    """A channel of pvAccess, by whatever request; a subscription; a group."""
    w = watch()
    w.wait_ways(lambda ways: ways == ALL)
    with loopback.pva_context(ioc.port, nt=False) as context:
        context.get(ioc.prefix + "A0", timeout=30)
        subscription = context.monitor(ioc.prefix + "A1", lambda value: None)
        try:
            context.rpc(ioc.prefix + "A2", context.get(ioc.prefix + "A0", timeout=30), timeout=10)
        except Exception:  # noqa: BLE001, S110: QSRV has no RPC for records
            pass
        context.get(ioc.prefix + "GRP", timeout=30)
        until(lambda: READ in w.kinds("A0") and SUBSCRIBED in w.kinds("A1") and CHANNEL in w.kinds("A2") and w.kinds("GRP"), 30,
              lambda: f"{[w.kinds(f'A{i}') for i in range(3)]}")
        lines, names = w.unused()
        assert not names & {"A0", "A1", "A2", "G1"} and {"A3", "A4"} <= names, lines
        assert any(f"{ioc.prefix}GRP was used, a group of pvAccess with 1 records" in line for line in lines), lines
        assert not any("perhaps" in line for line in lines), lines
        w.wait_ways(lambda ways: ways == ALL)  # this connection is seen
        subscription.close()


def test_older_connection_is_a_gap(watch, ioc):
    with loopback.pva_context(ioc.port, nt=False) as context:
        context.get(ioc.prefix + "A3", timeout=30)
        w = watch()
        w.wait_ways(lambda ways: ways is not None)
        context.get(ioc.prefix + "A3", timeout=30)
        w.wait_ways(lambda ways: not ways & CONNECTIONS)
        with sqlite3.connect(w.file) as c:  # this went on for an hour
            c.execute("UPDATE watched SET began = began - 3600 WHERE ways & 8 = 0")
        lines, _ = w.unused()
        assert any("0.04 days: what came through connections with TLS, or older than the monitor" in l for l in lines), lines
        assert not any("; 0 gaps" in l for l in lines), lines
    w.wait_ways(lambda ways: ways == ALL)


def test_older_connection_to_qsrv_1(new_ioc, new_monitor, tmp_path):
    """What it has subscribed to is known. What else it uses is not, so no record is "never seen" before it ends."""
    ioc = new_ioc(db.READY + "".join(db.record("ao", f"A{i}") for i in range(4)), kind="softIocPVA").start()
    with loopback.pva_context(ioc.port, nt=False) as context:
        context.get(ioc.prefix + "A0", timeout=30)
        subscription = context.monitor(ioc.prefix + "A1", lambda value: None)
        file = tmp_path / "uses.db"
        monitor = new_monitor(before=[f'ebpfMonUsage "{file}"']).start()
        monitor.wait_ioc(ioc)
        w = Watched(monitor, ioc, file)
        until(lambda: SUBSCRIBED in w.kinds("A1"), 40, lambda: "\n".join(w.unused()[0]))
        with sqlite3.connect(file) as c:  # this went on for an hour
            c.execute("UPDATE watched SET began = began - 3600 WHERE ways & 8 = 0")
        lines, names = w.unused()
        assert {"A0", "A2"} <= names and "A1" not in names, lines
        assert not any("never seen" in line for line in lines) and any(f"{ioc.prefix}A0 " in line and " not known " in line for line in lines), lines
        subscription.close()
    w.wait_ways(lambda ways: ways == ALL)
    lines, names = w.unused()
    assert any(f"{ioc.prefix}A2 " in line and " never seen " in line for line in lines) and "A1" not in names, lines


def test_what_is_not_read_is_a_gap(watch, ioc):
    """A connection whose bytes we cannot read, and that ends before the next look."""
    w = watch()
    w.wait_ways(lambda ways: ways == ALL)
    with socket.create_connection(("127.0.0.1", ioc.port + 1000)) as s:
        s.sendall(HELLO)
    w.wait_ways(lambda ways: not ways & CONNECTIONS)
