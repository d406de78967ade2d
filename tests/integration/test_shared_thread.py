# SPDX-License-Identifier: BSD-3-Clause
"""A thread of pvxs serves several clients, and may read from one before it makes the put of another. If no packet tells whose put
it is, the client is marked as not certain wherever he is named, and no rule takes him for proved."""
import json
import pwd

import pytest
from tests.harness import db
from tests.harness.clients import Client
from tests.harness.putlog import PutLog
from tests.harness.wait import until

USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:2]


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.record("ao", "X", FLNK="$(P)CO") + db.record("ao", "FREE") + db.record("ao", "DST") +
                      db.record("calcout", "CO", INPA="$(P)X", CALC="A", OUT="$(P)DST PP"), kind="pvxs").start()


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


def test_packets_tell(new_monitor, ioc, clients, tmp_path):
    """The packet of a put proves whose it is."""
    _, log = start(new_monitor, ioc, tmp_path, packets=True)
    lines = [o for o in puts(clients, log, ioc) if o["pv"] == ioc.prefix + "X"]
    assert not [o for o in lines if "who_sure" in o or "rule" in o], lines
    for o in lines:
        assert o["real_user"] == USERS[int(float(o["value"])) // 100].pw_name, o
