# SPDX-License-Identifier: BSD-3-Clause
"""A thread of pvxs serves several clients, and may read from one before it makes the put of another. The monitor sees which client
it begins to serve. In a pvxs without symbols it does not: there, if no packet tells whose put it is, the client is marked as not
certain wherever he is named, and no rule takes him for proved."""
import json
import os
import pwd
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.harness import db, loopback, paths
from tests.harness.clients import Client
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.wait import until

ALL_USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:4]
USERS = ALL_USERS[:2]
MANY = 200  # puts of a client, eight of them at once
DB = db.READY + db.record("ao", "X", FLNK="$(P)CO") + db.record("ao", "FREE") + db.record("ao", "DST") + \
    db.record("calcout", "CO", INPA="$(P)X", CALC="A", OUT="$(P)DST PP") + db.record("ao", "MANY") + db.record("ao", "SAME")


@pytest.fixture(scope="module")
def known(module_ioc):
    return module_ioc(DB, kind="pvxs", environ={"EPICS_PVAS_INTF_ADDR_LIST": "[::]"}).start()


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    """With a copy of pvxs whose functions have other names. The hash of a name stays, by which the loader finds it."""
    site, here = Path(find_spec("pvxslibs").origin).parents[1], tmp_path_factory.mktemp("pvxs")
    shutil.copytree(site / "pvxslibs", here / "pvxslibs")
    (here / "epicscorelibs").symlink_to(site / "epicscorelibs")
    for library in (here / "pvxslibs/lib").glob("libpvxs.so*"):
        code = library.read_bytes()
        assert b"bevReadSEP11buffereventPv" in code
        library.write_bytes(code.replace(b"buffereventPv", b"buffereveoSPv"))
    return module_ioc(DB, kind="pvxs", environ={"PYTHONPATH": str(here)}).start()


@pytest.fixture
def clients(ioc):
    made = [Client("pva", user.pw_uid, ioc, "X") for user in USERS]
    for client in made:
        client.ready()
    yield made
    for client in made:
        client.discard()


def start(new_monitor, ioc, tmp_path, packets):
    rules, log = tmp_path / "rules.json", PutLog(tmp_path / "puts.json")
    rules.write_text(json.dumps({"rules": [{"name": "who", "pv": ioc.prefix + "X", "realUsers": [u.pw_name for u in USERS]},
                                           {"name": "value", "pv": ioc.prefix + "FREE", "max": 10}]}))
    monitor = new_monitor(before=[*([] if packets else ['ebpfMonConfigure 0 0 0 "" -1']), log.command(), f'ebpfMonRules "{rules}"'])
    monitor.start().wait_ioc(ioc)
    return monitor, log


def puts(clients, log, ioc, rounds=5):
    """Both clients put by turns. Returns the lines."""
    for n in range(rounds):
        for k, client in enumerate(clients):
            client.begin(100 * k + n, 1)
        for client in clients:
            client.finish()
    number = rounds * len(clients)
    return until(lambda: [o for o in log.of(ioc.prefix + "X") if o["pv"] == ioc.prefix + "X"][number - 1:] and
                 log.of(ioc.prefix), 20, log.all)


def test_marked(new_monitor, ioc, clients, tmp_path):
    """No packets are read, as of connections with TLS."""
    monitor, log = start(new_monitor, ioc, tmp_path, packets=False)
    lines = puts(clients, log, ioc)
    sure = [o for o in lines if o.get("who_sure") is not False and o["pv"] in (ioc.prefix + "X", ioc.prefix + "DST")]
    assert len(sure) <= 2, sure  # before the thread has received from the other client
    unsure = [o for o in lines if o.get("who_sure") is False]
    assert {o["pv"] for o in unsure} == {ioc.prefix + "X", ioc.prefix + "DST"}
    assert all("it is not certain" in o["rule"] for o in unsure if o["pv"] == ioc.prefix + "X"), unsure
    linked = [o for o in unsure if o["pv"] == ioc.prefix + "DST"]
    assert all(o["cause"].startswith("put by perhaps ") for o in linked), linked
    assert monitor.text("PUT_LAST_WRITER").startswith("perhaps "), monitor.text("PUT_LAST_WRITER")
    assert " by perhaps " in monitor.text("PUT_LAST") and "by perhaps" in monitor.lines("PUT_LOG")


def test_packets_tell(new_monitor, ioc, tmp_path):
    """The packet of a put proves whose it is. These connections are older than the monitor: it does not know names of channels there."""
    made = [Client("pva", user.pw_uid, ioc, "X") for user in ALL_USERS]
    try:
        for client in made:
            client.ready()
        _, log = start(new_monitor, ioc, tmp_path, packets=True)
        for k, client in enumerate(made):
            client.begin(1000 * k, MANY, at_once=8)
        for client in made:
            client.finish()
        lines = [o for o in log.next(2 * MANY * len(made), ioc.prefix, 0, seconds=30) if o["pv"] == ioc.prefix + "X"]
        assert not [o for o in lines if "who_sure" in o], lines
        for o in lines:
            assert o["real_user"] == ALL_USERS[int(o["value"]) // 1000].pw_name, o
        assert not [o for o in lines if "rule" in o and int(o["value"]) < 2000], lines  # those whom the rule expects
    finally:
        for client in made:
            client.discard()


@pytest.mark.parametrize("record, address", [("MANY", "127.0.0.1"), ("MANY", "[::1]"), ("SAME", "127.0.0.1")])
def test_seen_whom_it_serves(new_monitor, known, tmp_path, record, address):
    """Many puts of several users at once, and no packets are read: each put has its own client. SAME: they put the same values."""
    pv = known.prefix + record
    log = PutLog(tmp_path / "puts.json")
    new_monitor(before=['ebpfMonConfigure 0 0 0 "" -1', log.command()]).start().wait_ioc(known)
    made = [Client("pva", user.pw_uid, known, record, address) for user in ALL_USERS]
    try:
        for client in made:
            client.ready()
        for k, client in enumerate(made):
            client.begin(0 if record == "SAME" else 1000 * k, MANY, at_once=8)
        for client in made:
            client.finish()
        lines = log.next(MANY * len(made), pv, 0, seconds=30)
        assert not [o for o in lines if "who_sure" in o], lines
        for k, (user, client) in enumerate(zip(ALL_USERS, made)):
            own = [o for o in lines if o["real_user"] == user.pw_name]
            assert {(o["uid"], o["pid"], o["user"]) for o in own} == {(str(user.pw_uid), str(client.process.pid), user.pw_name)}, own
            assert len({o["peer"] for o in own}) == 1 and own[0]["peer"].startswith(address + ":"), own
            first = 0 if record == "SAME" else 1000 * k
            assert sorted(int(o["value"]) for o in own) == list(range(first, first + MANY)), own
    finally:
        for client in made:
            client.discard()


@pytest.mark.parametrize("kind", ["pvxs", "softIocPVA"])
def test_claim(new_monitor, new_ioc, tmp_path, kind):
    """Without packets, too: the user as the client claims it to the IOC, beside its real one. Nobody can claim a certificate."""
    ioc, putter = new_ioc(DB, kind=kind).start(), Putter()
    log = PutLog(tmp_path / "puts.json")
    new_monitor(before=['ebpfMonConfigure 0 0 0 "" -1', log.command()]).start().wait_ioc(ioc)
    try:
        for n, (protocol, user, claim, shown) in enumerate([
                ("pva", USERS[0], "root", "root"), ("pva", USERS[1], USERS[1].pw_name, USERS[1].pw_name),
                ("ca", USERS[0], "x509/anna", "ca/x509/anna")]):
            assert putter.put(protocol, user.pw_uid, claim, ioc.port, ioc.prefix + "FREE", n + 1) == "ok"
            line, = log.next(1, ioc.prefix + "FREE", n)
            assert (line["user"], line["real_user"], line["uid"]) == (shown, user.pw_name, str(user.pw_uid)), line
            assert "method" not in line, line
    finally:
        putter.discard()


@pytest.mark.skipif(not os.access(paths.PVXS_TLS / "bin" / paths.ARCH / "softIocPVX", os.X_OK),
                    reason=f"no pvxs with TLS in {paths.PVXS_TLS}: tools/modules.sh tls builds it")
def test_tls(new_monitor, new_ioc, tmp_path):
    """No packet can be read. Each put has the name in the certificate of its client, or the one that a client without one claims."""
    programs, certificates = paths.PVXS_TLS / "bin" / paths.ARCH, paths.PVXS_TLS / "test" / f"O.{paths.ARCH}"
    ioc = new_ioc(DB, kind="softIocPVX", program=programs / "softIocPVX",
                  environ={"EPICS_PVAS_TLS_KEYCHAIN": str(certificates / "server1.p12"), "EPICS_PVAS_TLS_PORT": "0"}).start()
    log, rules, made = PutLog(tmp_path / "puts.json"), tmp_path / "rules.json", {}
    rules.write_text(json.dumps({"rules": [{"name": "certificate", "pv": ioc.prefix + "FREE", "users": "x509/*", "authorities": "rootCA",
                                            "verified": True}]}))
    monitor = new_monitor(before=[log.command(), f'ebpfMonRules "{rules}"']).start()
    monitor.wait_ioc(ioc)
    for n in range(6):
        keys, user = [("client1.p12", "x509/client1"), ("ioc1.p12", "x509/ioc1"), ("ca.p12", "root")][n % 3]
        environ = loopback.client(ioc.port, EPICS_PVA_TLS_KEYCHAIN=str(certificates / keys))
        made[str(n)] = (user, Process([programs / "pvxput", ioc.prefix + "FREE", n], environ))
    lines = log.next(len(made), ioc.prefix + "FREE", 0)
    assert {o["seen"] for o in lines} == {"inside"}, lines
    assert {o["value"]: (o["user"], o["pid"], o.get("who_sure")) for o in lines} == \
        {value: (user, str(client.pid), None) for value, (user, client) in made.items()}, lines
    for o in lines:
        proved = o["user"].startswith("x509/")
        assert (o.get("method"), o.get("authority"), "rule" in o) == (("x509", "rootCA", False) if proved else (None, None, True)), o
    until(lambda: any("over TLS: puts that it refuses" in line for line in monitor.command("ebpfMonIocs")), 30, "the note")
    assert "x509/ioc1@127.0.0.1 pvxput[" in monitor.lines("PUT_LOG") and ", issuer rootCA" in monitor.lines("PUT_LOG")
