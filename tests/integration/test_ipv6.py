# SPDX-License-Identifier: BSD-3-Clause
"""Clients of pvAccess over IPv6: their addresses are the real ones, and so are their users and processes."""
import json
import pwd

import pytest
from tests.harness import badlink, db
from tests.harness.lan import Lan
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.wait import until

HERE, THERE = "fd99:1::1", "fd99:1::2"  # RFC 4193: of a private network
USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:2]


@pytest.fixture(scope="module")
def lan():
    with Lan() as made:
        badlink.ip("addr", "add", f"{HERE}/64", "dev", made.bridge, "nodad")
        badlink.ip("-n", made.hosts[0], "addr", "add", f"{THERE}/64", "dev", "eth0", "nodad")
        yield made


@pytest.fixture(scope="module")
def ioc(module_ioc, lan):
    return module_ioc(db.READY + db.record("ao", "OWN") + db.record("ao", "NEAR") + db.record("ao", "FAR") + db.record("ao", "OLD"),
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


def put(log, putter, ioc, record, value, address, user):
    """Makes one put. Returns its line of the log."""
    assert putter.put("pvatcp", user.pw_uid, "", ioc.port, ioc.prefix + record, value, address) == "ok"
    found = until(lambda: [o for o in log.of(ioc.prefix + record) if o["value"] == str(value)], 10,
                  lambda: f"{record} {value}: {log.all()}")
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("record, value, end, address, server, reason", [
    ("NEAR", 1, "near", "::1", "::1", None),
    ("OWN", 2, "near", "::1", "::1", 'rule "own": host "::1" is not allowed'),
    ("FAR", 3, "far", THERE, HERE, None),
    ("FAR", 4, "near", "::1", "::1", 'rule "far": host "::1" is not allowed'),
    ("OWN", 5, "far", THERE, HERE, f'rule "own": host "{THERE}" is not allowed'),
])
def test_addresses(monitor, log, ioc, near, far, record, value, end, address, server, reason):
    """The address of the client, never 127.0.0.6, which the kernel has in the socket. Rules judge it."""
    user = USERS[value % 2]
    line = put(log, {"near": near, "far": far}[end], ioc, record, value, server, user)
    assert line["peer"].startswith(f"[{address}]:") and line["server"] == f"[{server}]:{ioc.port + 1000}", line
    assert line["uid"] == str(user.pw_uid) and line["real_user"] == user.pw_name and "pid" in line, line
    assert line.get("rule") == reason and line["result"] == "ok", line
    assert f"@{line['host']} " in monitor.text("PUT_LAST_WRITER"), monitor.text("PUT_LAST_WRITER")


def test_older_connection(new_monitor, ioc, monitor, tmp_path):
    """A connection that is older than the monitor: the kernel's list of sockets tells who has it."""
    from p4p.client.thread import Context  # see loopback.pva_context
    import os
    with Context("pva", conf={"EPICS_PVA_NAME_SERVERS": f"[::1]:{ioc.port + 1000}", "EPICS_PVA_ADDR_LIST": "",
                              "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False) as client:
        client.put(ioc.prefix + "OLD", 1, timeout=30)
        later = PutLog(tmp_path / "puts.json")
        new_monitor(before=[later.command()]).start().wait_ioc(ioc)
        client.put(ioc.prefix + "OLD", 2, timeout=30)
        line, = until(lambda: later.of(ioc.prefix + "OLD"), 10, later.all)
    assert line["peer"].startswith("[::1]:") and line["pid"] == str(os.getpid()), line
