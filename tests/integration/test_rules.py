# SPDX-License-Identifier: BSD-3-Clause
"""Unexpected puts are found by rules, are in alarm until an operator acknowledges them, and rules can be loaded again."""
import json
import pwd
import re

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.clients import Client
from tests.harness.wait import until

MAJOR = 2
BAD = ["CNT", "OPEN_CNT", "LAST", "REASON", "LOG", "TIMES", "PVS", "VALUES", "WRITERS", "REASONS"]


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.record("ao", "SET") + db.record("ao", "CLOSED") + db.record("ao", "FREE") +
                      db.record("ao", "WIRED") + db.record("longout", "LONG") + db.record("ao", "FIELDS") + db.record("mbbo", "TYPES") + db.record("calcout", "SRC", CALC="7", OUT="$(P)WIRED PP",
                                                           OOPT="Every Time"), kind="softIocPVA").start()


@pytest.fixture(scope="module")
def rules(ioc):
    p = ioc.prefix
    return {"rules": [
        {"name": "setpoint", "pv": p + "SET", "users": "root", "min": 0, "max": 100},
        {"name": "closed", "pv": [p + "CLOSED", p + "NOTHERE"], "allow": False},
        {"name": "wired", "pv": p + "WIRED", "origins": ["CA"]},
        {"name": "long", "pv": p + "LONG", "min": 5, "max": 100},
        {"name": "fields", "pv": p + "FIELDS.*", "allow": False},
        {"name": "greatest", "pv": p + "TYPES.*", "max": 50},
    ]}


@pytest.fixture(scope="module")
def file(rules, tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    path.write_text(json.dumps(rules))
    return path


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, file, tmp_path_factory):
    own = tmp_path_factory.mktemp("db") / "own.db"
    text = (paths.TOP / "documentation" / "use" / "rules.md").read_text()
    own.write_text(re.search(r"```\n(record\(aSub.*?)```", text, re.S).group(1))
    m = module_monitor(before=[f'ebpfMonRules "{file}"'])
    m.before.append(f'dbLoadRecords("{own}", "P={m.prefix}")')
    m.start()
    m.wait_ioc(ioc)
    return m


@pytest.fixture(autouse=True)
def acknowledged(monitor):
    """Each test begins without an alarm."""
    yield
    acknowledge(monitor)


def acknowledge(monitor):
    def done():
        monitor.put("PUT_BAD_ACK", 1)
        return monitor.get("PUT_BAD_OPEN_CNT") == 0

    until(done, 5, lambda: f"all acknowledged, {monitor.get('PUT_BAD_OPEN_CNT')} open")


def severities(monitor):
    return {n: monitor.get(f"PUT_BAD_{n}.SEVR", as_string=True) for n in BAD}


def wait_severity(monitor, severity):
    until(lambda: set(severities(monitor).values()) == {severity}, 5, lambda: f"{severity}: {severities(monitor)}")


def seen(monitor, pv, value):
    """Waits until this put is the last one."""
    monitor.wait("PUT_LAST_VALUE_S", lambda t: t == str(value))
    assert monitor.text("PUT_LAST_PV") == pv


@pytest.mark.parametrize("text, made, good", [
    ("7", 7, True), ("1e3", 1, False), ("12abc", 12, True), (" 42", 42, True), ("101", 101, False),
    ("0x10", {0, 16}, False), ("010", {10, 8}, True), ("08", {8, 0}, False)])  # before 7.0.10, and from then on
def test_a_text_is_what_the_ioc_makes_of_it(monitor, ioc, text, made, good):
    ioc.put("LONG", 50)
    seen(monitor, ioc.prefix + "LONG", 50)
    before = monitor.get("PUT_BAD_CNT")
    client = rawca.RawCa(ioc.port)
    client.put(ioc.prefix + "LONG", rawca.STRING, [text])
    client.close()
    assert ioc.get("LONG") in (made if isinstance(made, set) else {made})
    seen(monitor, ioc.prefix + "LONG", text)
    monitor.wait("PUT_BAD_CNT", lambda n: n == before + (not good))


@pytest.mark.parametrize("field, dbr, sent, stored, good", [
    ("ZRVL", "LONG", -1, 2**32 - 1, False), ("ZRVL", "DOUBLE", -1.0, 2**32 - 1, False), ("ZRVL", "LONG", 50, 50, True),
    ("SHFT", "SHORT", -1, 2**16 - 1, False), ("SHFT", "LONG", 2**16 + 7, 7, False), ("SHFT", "DOUBLE", 49.9, 49, True),
    ("ZRVL", "STRING", "0x40", {0, 64}, False), ("ZRVL", "STRING", "0b111", {0, 7}, False), ("ZRVL", "STRING", "0x20", {0, 32}, True)])
def test_a_number_for_which_there_is_no_room(monitor, ioc, field, dbr, sent, stored, good):
    """A rule with "max" only: the number that was sent is small, but the IOC stores a large one; or the other way round."""
    before, pv = monitor.get("PUT_BAD_CNT"), f"TYPES.{field}"
    client = rawca.RawCa(ioc.port)
    client.put(ioc.prefix + pv, getattr(rawca, dbr), [sent])
    client.close()
    assert ioc.get(pv) in (stored if isinstance(stored, set) else {stored})
    monitor.wait("PUT_LAST_PV", lambda t: t == ioc.prefix + pv)
    monitor.wait("PUT_BAD_CNT", lambda n: n == before + (not good))


@pytest.mark.parametrize("field", ["", ".VAL", ".DESC", ".HIHI"])
def test_a_rule_for_all_fields(monitor, ioc, field):
    """RECORD means RECORD.VAL, so a rule for RECORD.* also applies to it."""
    before = monitor.get("PUT_BAD_CNT")
    ioc.put("FIELDS" + field, "3" if field == ".DESC" else 3)
    monitor.wait("PUT_BAD_CNT", lambda n: n == before + 1)


def test_expected(monitor, ioc):
    before = monitor.get("PUT_BAD_CNT")
    ioc.put("SET", 55)
    seen(monitor, ioc.prefix + "SET", 55)
    ioc.put("FREE", 1000)
    seen(monitor, ioc.prefix + "FREE", 1000)
    assert monitor.get("PUT_BAD_OPEN_CNT") == 0
    wait_severity(monitor, "NO_ALARM")  # rows may still show what was acknowledged before
    assert monitor.get("PUT_BAD_CNT") == before
    assert monitor.get("RULES_CNT") == 6
    assert "in force since" in monitor.text("RULES_MSG")


def test_out_of_range(monitor, ioc):
    before = monitor.get("PUT_BAD_CNT")
    ioc.put("SET", 150)
    wait_severity(monitor, "MAJOR")
    line = monitor.text("PUT_BAD_LAST")
    assert f"{ioc.prefix}SET" in line and "-> 150 by root@" in line, line
    assert monitor.text("PUT_BAD_REASON") == 'rule "setpoint": 150 is not 100 or less'
    assert monitor.get("PUT_BAD_LAST.AMSG") == 'rule "setpoint": 150 is not 100 or ...'  # 39 characters
    assert monitor.get("PUT_BAD_CNT") == before + 1
    # it is also in the list of recent puts
    until(lambda: monitor.list("PUT_BAD_FLAGS")[0] == 1, 5, "the flag, after the values")
    until(lambda: monitor.list("PUT_REASONS")[0].startswith('rule "setpoint"'), 5, "the reason, after the values")
    ioc.put("SET", 50)  # an expected put does not end the alarm
    seen(monitor, ioc.prefix + "SET", 50)
    until(lambda: monitor.list("PUT_BAD_FLAGS")[:2] == [0, 1] and monitor.list("PUT_REASONS")[0] == "", 5, "the put in all lists")
    wait_severity(monitor, "MAJOR")
    acknowledge(monitor)
    wait_severity(monitor, "NO_ALARM")
    assert monitor.text("PUT_BAD_LAST") == line
    assert monitor.get("PUT_BAD_CNT") == before + 1


def test_each_unexpected_put_is_an_alarm_of_its_own(monitor, ioc):
    """An alarm server that has acknowledged the first alarm gets the second one, too, although nobody pressed
    PUT_BAD_ACK."""
    seen = []  # the severities and values that an alarm server gets
    channel = ca.subscribed(monitor.prefix + "PUT_BAD_ALARM")
    index = channel.add_callback(lambda severity, char_value, **_: seen.append((severity, char_value)), run_now=True)
    try:
        until(lambda: seen and seen[-1][0] == 0, 60, lambda: f"no alarm: {seen}")  # no pulse of an earlier test
        for value in (171, 172):  # no other test puts these: the pulse of an earlier test may still be seen
            ioc.put("SET", value)
            brief = f"{ioc.prefix}SET = {value} by root"
            until(lambda: any(s == MAJOR and v.startswith(brief) for s, v in seen), 60, lambda: f"{brief}: {seen}")
            assert monitor.get("PUT_BAD_ALARM.AMSG") == f'rule "setpoint": {value} is not 100 or ...'
            until(lambda: seen[-1][0] == 0, 60, lambda: f"the alarm ends: {seen}")
        risen = [v for (s, v), (before, _) in zip(seen[1:], seen) if s == MAJOR and before == 0]
        assert len(risen) >= 2 and monitor.get("PUT_BAD_OPEN_CNT") >= 2
    finally:
        channel.remove_callback(index)


def test_three_users_in_a_row(monitor, ioc):
    """Each unexpected put is kept, with its writer."""
    users = [p.pw_uid for p in pwd.getpwall() if 0 < p.pw_uid < 50][:2]
    clients = [Client(kind, uid, ioc, "SET") for kind, uid in zip(("ca", "pva"), users, strict=True)]
    try:
        for c in clients:
            c.ready()
        for c in clients:
            c.begin(10, 1)
            c.finish()
        ioc.put("CLOSED", 1)
        monitor.wait("PUT_BAD_OPEN_CNT", lambda n: n == 3)
        until(lambda: len(monitor.lines("PUT_BAD_LOG").splitlines()) == 3, 5, lambda: monitor.lines("PUT_BAD_LOG"))
        log = monitor.lines("PUT_BAD_LOG").splitlines()
        assert "CLOSED" in log[0] and clients[1].user in log[1] and clients[0].user in log[2], log
        assert monitor.list("PUT_BAD_REASONS") == ['rule "closed": no put is allowed'] + [
            ca.utf8(f'rule "setpoint": user "{c.user}" is not allowed')[:36] + "..." for c in reversed(clients)]
        assert any("unexpected puts:" in l for l in monitor.command("ebpfMonRulesShow"))
        with loopback.pva_context(monitor.port, nt=False) as context:
            def read():
                return context.get(monitor.prefix + "BAD_PUTS", timeout=60)

            assert list(read().labels) == ["Time", "PV", "New value", "Writer", "Why unexpected"]
            expected = [ioc.prefix + n for n in ("CLOSED", "SET", "SET")]  # a table may be some time behind other PVs
            until(lambda: list(read().value.pv) == expected, 5, lambda: f"{list(read().value.pv)}")
    finally:
        for c in clients:
            c.discard()


def test_origin(monitor, ioc):
    """A rule allows a value by a client and not by a link."""
    ioc.put("WIRED", 3)
    seen(monitor, ioc.prefix + "WIRED", 3)
    assert monitor.get("PUT_BAD_OPEN_CNT") == 0
    ioc.put("SRC.PROC", 1)
    wait_severity(monitor, "MAJOR")
    assert monitor.text("PUT_BAD_REASON") == 'rule "wired": put through link is not allowed'


def test_filter_does_not_hide_unexpected_puts(monitor, ioc):
    monitor.set_filter(RECORD="nothing")
    try:
        before = monitor.get("PUT_CNT")
        ioc.put("CLOSED", 5)
        wait_severity(monitor, "MAJOR")
        assert monitor.get("PUT_CNT") == before
    finally:
        monitor.set_filter(RECORD="*")


def test_a_flood_is_counted(monitor, ioc):
    before = monitor.get("PUT_BAD_CNT")
    for i in range(100):
        ioc.put("CLOSED", i, wait=False)
    monitor.wait("PUT_BAD_CNT", lambda n: n == before + 100)
    monitor.wait("PUT_BAD_OPEN_CNT", lambda n: n == 100)
    until(lambda: monitor.list("PUT_BAD_VALUES") == [str(i) for i in range(99, 35, -1)], 5,
          lambda: str(monitor.list("PUT_BAD_VALUES")))


def test_reload(monitor, ioc, rules, file):
    good = file.read_text()
    try:
        file.write_text('{"rules": [\n  {"name": "free", "pv": "%sFREE", "allow": false},\n  {"nam": 1}\n]}' %
                        ioc.prefix)
        monitor.put("RULES_LOAD", 1)
        text = monitor.wait_text("RULES_MSG", lambda t: "refused" in t)
        assert re.search(r'rules\.json:3:4: a rule cannot have "nam"', text) and "6 rules before stay" in text, text
        assert monitor.get("RULES_MSG.SEVR", as_string=True) == monitor.get("RULES_LOAD.SEVR", as_string=True) == "MINOR"
        assert monitor.get("RULES_CNT") == 6
        ioc.put("FREE", 61)
        seen(monitor, ioc.prefix + "FREE", 61)
        assert monitor.get("PUT_BAD_OPEN_CNT") == 0
        ioc.put("CLOSED", 62)
        wait_severity(monitor, "MAJOR")
        acknowledge(monitor)
        file.write_text(json.dumps({"rules": [{"name": "free", "pv": ioc.prefix + "FREE", "allow": False}]}))
        monitor.put("RULES_LOAD", 1)
        monitor.wait("RULES_CNT", lambda n: n == 1)
        assert monitor.get("RULES_MSG.SEVR", as_string=True) == monitor.get("RULES_LOAD.SEVR", as_string=True) == "NO_ALARM"
        ioc.put("CLOSED", 63)
        seen(monitor, ioc.prefix + "CLOSED", 63)
        assert monitor.get("PUT_BAD_OPEN_CNT") == 0
        ioc.put("FREE", 64)
        wait_severity(monitor, "MAJOR")
    finally:
        file.write_text(good)
        monitor.command("ebpfMonRules")
    assert monitor.text("RULES_FILE") == str(file)
    monitor.wait("RULES_CNT", lambda n: n == 6)


def test_shipped_file_is_valid(monitor, file):
    try:
        assert any("0 rules in force" in l for l in monitor.command(f'ebpfMonRules "{paths.MONITOR_BOOT}/rules.json"'))
    finally:
        monitor.command(f'ebpfMonRules "{file}"')


def test_own_logic(monitor, ioc):
    """The example of documentation/use/rules.md."""
    ioc.put("CLOSED", 71)
    monitor.wait("MY:PUT.VALA", lambda pv: pv == ioc.prefix + "CLOSED")
    assert monitor.get("MY:PUT.VALF") == 1


def test_nobody_else_acknowledges(monitor, ioc):
    """Only operators may acknowledge."""
    ioc.put("CLOSED", 81)
    monitor.wait("PUT_BAD_OPEN_CNT", lambda n: n == 1)
    uid = next(p.pw_uid for p in pwd.getpwall() if 0 < p.pw_uid < 50)
    stranger = Client("ca", uid, monitor, "PUT_BAD_ACK")
    try:
        # either the client refuses, because its library knows the access rights, or the server refuses the put
        stranger.ready().begin(1, 1)
        until(lambda: not stranger.process.running or "done" in stranger.process.lines, 10, "the put refused")
    finally:
        stranger.discard()
    assert monitor.get("PUT_BAD_OPEN_CNT") == 1
