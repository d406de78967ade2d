# SPDX-License-Identifier: BSD-3-Clause
"""Clients of pvAccess over IPv6: their addresses are the real ones, and so are their users and processes."""
import json
import os
import pwd
import sys
import threading

import pytest
from tests.harness import badlink, db, paths
from tests.harness.far import FarIoc
from tests.harness.far import there as far_process
from tests.harness.lan import Lan
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.wait import until

HERE, THERE = "fd99:1::1", "fd99:1::2"  # RFC 4193: of a private network
REFUSED = f'rule "{{}}": host "{paths.HOST}" is not allowed'  # neither the host that it claims nor its address
USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:2]


@pytest.fixture(scope="module")
def lan():
    with Lan() as made:
        badlink.ip("addr", "add", f"{HERE}/64", "dev", made.bridge, "nodad")
        badlink.ip("-n", made.hosts[0], "addr", "add", f"{THERE}/64", "dev", "eth0", "nodad")
        yield made


@pytest.fixture(scope="module")
def ioc(module_ioc, lan):
    return module_ioc(db.READY + db.record("ao", "OFF", DISP="1") + db.record("ao", "OWN") + db.record("ao", "NEAR") + db.record("ao", "FAR") + db.record("ao", "OLD"),
                      kind="pvxs", environ={"EPICS_PVAS_INTF_ADDR_LIST": "[::]"}).start()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, log, tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.json"
    rules.write_text(json.dumps({"rules": [
        {"name": "own", "pv": ioc.prefix + "OWN", "hosts": ["127.*"]},
        {"name": "near", "pv": ioc.prefix + "NEAR", "hosts": ["127.*", "::1"]},
        {"name": "far", "pv": ioc.prefix + "FAR", "hosts": ["fd99:1::*"]}]}))
    m = module_monitor(before=[log.command(), f'ebpfMonRules "{rules}"']).start()
    m.wait_ioc(ioc)
    return m


@pytest.fixture(scope="module")
def near():
    putter = Putter()
    yield putter
    putter.discard()


@pytest.fixture(scope="module")
def far(lan):
    putter = Putter(wrap=lambda argv: badlink.in_namespace(lan.hosts[0], argv))
    yield putter
    putter.discard()


def pva_context(ioc):
    from p4p.client.thread import Context  # see loopback.pva_context
    return Context("pva", conf={"EPICS_PVA_NAME_SERVERS": f"[::1]:{ioc.port + 1000}", "EPICS_PVA_ADDR_LIST": "",
                                "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)


def put(log, putter, ioc, record, value, address, user):
    """Makes one put. Returns its line of the log."""
    assert putter.put("pvatcp", user.pw_uid, "", ioc.port, ioc.prefix + record, value, address) == "ok"
    found = until(lambda: [o for o in log.of(ioc.prefix + record) if o["value"] == str(value)], 10,
                  lambda: f"{record} {value}: {log.all()}")
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("record, value, end, address, server, reason", [
    ("NEAR", 1, "near", "::1", "::1", None),
    ("OWN", 2, "near", "::1", "::1", REFUSED.format("own")),
    ("FAR", 3, "far", THERE, HERE, None),
    ("FAR", 4, "near", "::1", "::1", REFUSED.format("far")),
    ("OWN", 5, "far", THERE, HERE, REFUSED.format("own")),
])
def test_addresses(monitor, log, ioc, near, far, record, value, end, address, server, reason):
    """The address of the client, never 127.0.0.6, which the kernel has in the socket. Rules judge it."""
    user = USERS[value % 2]
    line = put(log, {"near": near, "far": far}[end], ioc, record, value, server, user)
    assert line["peer"].startswith(f"[{address}]:") and line["server"] == f"[{server}]:{ioc.port + 1000}", line
    assert line["uid"] == str(user.pw_uid) and line["real_user"] == user.pw_name and "pid" in line, line
    assert line.get("rule") == reason and line["result"] == "ok" and "who_sure" not in line, line
    assert line["seen"] == "both" and line["user"] == user.pw_name, line  # as the client claims it in its packets
    assert f"@{line['host']} " in monitor.text("PUT_LAST_WRITER"), monitor.text("PUT_LAST_WRITER")


def test_older_connection(new_monitor, ioc, monitor, tmp_path):
    """A connection that is older than the monitor: the kernel's list of sockets tells who has it."""
    with pva_context(ioc) as client:
        client.put(ioc.prefix + "OLD", 1, timeout=30)
        later = PutLog(tmp_path / "puts.json")
        new_monitor(before=[later.command()]).start().wait_ioc(ioc)
        client.put(ioc.prefix + "OLD", 2, timeout=30)
        line, = until(lambda: later.of(ioc.prefix + "OLD"), 10, later.all)
    assert line["peer"].startswith("[::1]:") and line["pid"] == str(os.getpid()), line


def test_refused(monitor, log, ioc, far):
    """Only packets show that."""
    assert "refused" in far.put("pvatcp", 0, "", ioc.port, ioc.prefix + "OFF", 7, HERE)
    line, = until(lambda: log.of(ioc.prefix + "OFF"), 10, log.all)
    assert line["result"] == "failed" and line["peer"].startswith(f"[{THERE}]:") and line["value"] == "7", line


SEARCHERS = {"CA": """import socket, time
from tests.harness import rawca
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    for _ in range(120):
        s.sendto(rawca.search("%s"), ("%s", 5064))
        time.sleep(0.5)
""", "PVA": """from p4p.client.thread import Context
with Context("pva", conf={"EPICS_PVA_ADDR_LIST": "[%s]", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False) as client:
    client.get("%s", timeout=60)
"""}


@pytest.mark.parametrize("protocol", SEARCHERS)
def test_searches(monitor, lan, protocol):
    """Datagrams: names that clients search and nobody has, and who searches."""
    name = f"NOBODY:{protocol}:{os.getpid()}"
    words = (name, HERE) if protocol == "CA" else (HERE, name)
    client = far_process(lan.hosts[0], [sys.executable, "-c", SEARCHERS[protocol] % words], cwd=paths.TOP)

    def found():
        return dict(zip(monitor.list("UNFOUND_NAMES"), monitor.list("UNFOUND_CLIENTS"))).get(name)

    who = until(found, 30, lambda: (monitor.list("UNFOUND_NAMES"), client.output()))
    client.kill()
    assert who.startswith(f"[{THERE}]:") and who.endswith(protocol), who


def test_beacons(monitor, lan, tmp_path):
    server = FarIoc(tmp_path, lan, end=lan.hosts[0], kind="pvxs", name=f"far{os.getpid()}", db=db.READY,
                    environ={"EPICS_PVAS_BEACON_ADDR_LIST": f"[{HERE}]:5076", "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO"})
    server.start()
    try:
        until(lambda: any(s.startswith(f"[{THERE}]:{server.port + 1000} PVA") for s in monitor.list("BEACON_SERVERS")), 30,
              lambda: monitor.list("BEACON_SERVERS"))
    finally:
        server.discard()


def test_server_without_base(new_ioc, monitor, log, far):
    """A server of p4p, which is not seen inside."""
    server = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "p4p"],
                     environ={"EPICS_PVAS_INTF_ADDR_LIST": "[::]"}).start(wait=False)
    until(lambda: "ready" in server.process.lines or not server.running, 30, server.process.output)
    for value in (1.5, 2.5):
        assert far.put("pvatcp", 0, "", server.port, server.prefix + "DOUBLE", value, HERE) == "ok"
    lines = until(lambda: len(log.of(server.prefix)) >= 2 and log.of(server.prefix), 15, log.all)
    assert [(o["value"], o["ioc"], o["result"]) for o in lines] == [(v, server.name, "ok") for v in ("1.5", "2.5")], lines
    assert all(o["peer"].startswith(f"[{THERE}]:") and o["server"] == f"[{HERE}]:{server.port + 1000}" for o in lines), lines


def test_two_clients_at_once(monitor, log, ioc):
    """One thread of the server serves both: each put has its own client."""
    def run(record, first):
        with pva_context(ioc) as client:
            for n in range(40):
                client.put(ioc.prefix + record, first + n, timeout=30)

    before = len(log.of(ioc.prefix))
    threads = [threading.Thread(target=run, args=(record, first)) for record, first in (("NEAR", 1000), ("OWN", 2000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = log.next(80, ioc.prefix, before, seconds=30)
    assert not [o for o in lines if "who_sure" in o], lines
    for record in ("NEAR", "OWN"):
        assert len({o["peer"] for o in lines if o["pv"] == ioc.prefix + record}) == 1, lines
    assert len({o["peer"] for o in lines}) == 2, lines
