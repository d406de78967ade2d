# SPDX-License-Identifier: BSD-3-Clause
"""Operators may write to the monitor's own PVs: users of this host by their real uid, whatever name they claim, and
hosts on a list. Each put of a client is logged, also if it is refused."""
import os
import pwd
import subprocess
import sys

import pytest
from tests.harness import badlink, ca, paths, rawca
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.wait import settled, until

NOBODY = pwd.getpwnam("nobody").pw_uid
OPERATOR = 4711  # a uid without a name
PUTFAIL = 160    # ECA_PUTFAIL

VALUES = iter([f"{n / 64}" for n in range(65, 4800)])  # each test writes another value, none the default


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("operators") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, log):
    return module_monitor(before=[log.command(), f'ebpfMonOperators "root, {OPERATOR}"']).start()


putters = {}  # what is put in front → Putter


@pytest.fixture(scope="module", autouse=True)
def _putters():
    yield
    for putter in putters.values():
        putter.discard()
    putters.clear()


def put(monitor, kind, uid, claim, name, value, wrap=None, address="127.0.0.1"):
    if wrap not in putters:
        putters[wrap] = Putter(wrap) if wrap else Putter()
    return putters[wrap].put(kind, uid, claim, monitor.port, monitor.prefix + name, value, address)


class Logged:
    """The lines of one PV in the log, from this moment on."""

    def __init__(self, monitor, log, name):
        self.log, self.pv = log, monitor.prefix + name
        self.mark = len(self.lines())

    def lines(self):
        return [l for l in self.log.all() if l["pv"] == self.pv]

    def one(self):
        until(lambda: len(self.lines()) > self.mark, 10, lambda: f"a put to {self.pv}: {self.log.all()[-5:]}")
        line, = settled(lambda: self.lines()[self.mark:], 5)
        return line


def check_allowed(monitor, log, *how, value=None, **more):
    value = value or next(VALUES)
    logged = Logged(monitor, log, "FILTER_BUDGET")
    assert put(monitor, *how, "FILTER_BUDGET", value, **more) in ("ok", "sent")
    until(lambda: monitor.get("FILTER_BUDGET") == float(value), 5,
          lambda: f"FILTER_BUDGET {value}: {monitor.get('FILTER_BUDGET')}")
    line = logged.one()
    assert line["result"] == "ok" and float(line["value"]) == float(value), line
    return line


def check_refused(monitor, log, *how, name="FILTER_BUDGET", value=None, said="refused", **more):
    """The put has no effect: the record does not even process. The log tells who tried."""
    value = value or next(VALUES)
    before = monitor.get(name), monitor.time_stamp(name)
    logged = Logged(monitor, log, name)
    assert put(monitor, *how, name, value, **more).startswith(said)
    line = logged.one()
    assert line["result"] == "denied", line
    assert (monitor.get(name), monitor.time_stamp(name)) == before
    return line


# --- users of this host ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind, uid, claim", [
    ("ca", 0, "root"), ("cacb", 0, "liar"), ("pva", 0, "root"), ("ca", OPERATOR, "whoever"), ("cacb", OPERATOR, "root"),
    ("pva", OPERATOR, "root"), ("pvablock", OPERATOR, "root")])
def test_operator(monitor, log, kind, uid, claim):
    line = check_allowed(monitor, log, kind, uid, claim)
    assert line["uid"] == str(uid) and line["user"] == claim, line
    assert line["real_user"] == {0: "root", OPERATOR: str(OPERATOR)}[uid], line
    assert int(line["pid"]) > 0 and line["command"].startswith("python"), line
    assert line["through"] == ("PVA" if kind.startswith("pva") else "CA"), line


@pytest.mark.parametrize("kind, claim", [
    ("ca", "nobody"), ("cacb", "nobody"), ("pva", "nobody"), ("ca", "root"), ("cacb", "root"), ("pva", "root"),
    ("ca", str(OPERATOR)), ("pvaquiet", "root"), ("pvablock", "root")])
def test_another_user(monitor, log, kind, claim):
    line = check_refused(monitor, log, kind, NOBODY, claim, said="ok" if kind == "pvaquiet" else "refused")
    assert line["real_user"] == "nobody" and line["uid"] == str(NOBODY) and line["user"] == claim, line
    assert "ebpfMonOperators" in line["message"], line
    until(lambda: "uid nobody" in monitor.text("PUT_LAST"), 5, lambda: monitor.text("PUT_LAST"))


def test_root_of_a_user_namespace(monitor, log):
    line = check_refused(monitor, log, "libca", NOBODY, "-", said="writable")
    assert line["real_user"] == "nobody" and line["user"] == "root", line


@pytest.mark.parametrize("name", ["LOST_RESET", "PUT_BAD_ACK", "RULES_LOAD"])
@pytest.mark.parametrize("kind", ["ca", "cacb", "pva"])
def test_buttons(monitor, log, kind, name):
    check_refused(monitor, log, kind, NOBODY, "root", name=name, value="1")


def test_patterns(monitor, log):
    check_refused(monitor, log, "cacb", NOBODY, "root", name="FILTER_IOC", value="nothing")
    raw = [monitor.get(f) for f in ("FILTER_LEVEL.RVAL", "FILTER_BUDGET.RVAL", "LOST_RESET.RVAL")]
    check_refused(monitor, log, "ca", NOBODY, "root", name="FILTER_LEVEL", value="off")
    check_refused(monitor, log, "ca", NOBODY, "root", name="FILTER_BUDGET", value="nan")
    check_refused(monitor, log, "ca", NOBODY, "root", name="LOST_RESET", value="1")
    assert raw == [monitor.get(f) for f in ("FILTER_LEVEL.RVAL", "FILTER_BUDGET.RVAL", "LOST_RESET.RVAL")]
    assert monitor.get("FILTER_BUDGET.OVAL") == monitor.get("FILTER_BUDGET") and not monitor.get("FILTER_BUDGET.SEVR")


def test_alarms_are_not_acknowledged(monitor, log):
    """Alarms are acknowledged by their own CA type (DBR_PUT_ACKS), for which the record does not process."""
    name = monitor.prefix + "RULES_LOAD"
    monitor.put("RULES_LOAD", 1)  # there is no file: MINOR until the button is back
    until(lambda: ca.get(name + ".SEVR") == 0 and ca.get(name + ".ACKS") == 1, 5, "an alarm that nobody has acknowledged")
    logged = Logged(monitor, log, "RULES_LOAD")
    put(monitor, "ack", NOBODY, "root", "RULES_LOAD", 1)
    assert logged.one()["result"] == "denied" and ca.get(name + ".ACKS") == 1
    put(monitor, "ack", 0, "root", "RULES_LOAD", 1)
    until(lambda: ca.get(name + ".ACKS") == 0, 5, "the operator acknowledges it")


def test_values_without_processing(monitor, log):
    """PVA can write without processing the record. Nobody's value reaches the filter this way, while an operator sets it."""
    name, seen = monitor.prefix + "FILTER_IOC", []
    program = """if True:
        import os
        from p4p.client.thread import Context
        os.setgid(%d); os.setuid(%d)
        conf = {"EPICS_PVA_ADDR_LIST": "127.0.0.1:%d", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
        with Context("pva", conf=conf, useenv=False) as context:
            context.get(%r)
            print(flush=True)
            while True:
                context.put(%r, "evil", process="false", get=False)
        """ % (NOBODY, NOBODY, monitor.port + 2000, name, name)
    pv = ca.subscribed(monitor.prefix + "FILTER_STATUS.VAL$")
    number = pv.add_callback(lambda char_value, **_: seen.append(char_value))
    before = monitor.text("FILTER_IOC")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=paths.TOP) as attacker:
        assert attacker.stdout.readline()
        for pattern in [*(f"r{n}" for n in range(100)), "*"]:
            monitor.put("FILTER_RECORD", pattern)
        attacker.kill()
    until(lambda: 'records "*"' in monitor.text("FILTER_STATUS"), 5, lambda: monitor.text("FILTER_STATUS"))
    pv.remove_callback(number)
    assert len(seen) > 50 and not [text for text in seen if "evil" in text], seen[-3:]
    until(lambda: monitor.text("FILTER_IOC") == before, 5, lambda: monitor.text("FILTER_IOC"))
    until(lambda: {l["result"] for l in log.all() if l["value"] == "?" and l["pv"] == name} == {"denied"}, 10,
          lambda: [l for l in log.all() if l["pv"] == name][-3:])
    line = check_refused(monitor, log, "pvaquiet", 0, "root", said="ok")
    assert "did not process" in line["message"], line


def test_many_put_callbacks(monitor, log):
    """Of nobody, while an operator makes some, too: each is told by its own answer, and nobody's value is ever seen."""
    program = """if True:
        import os, sys
        from tests.harness import rawca
        os.setgid(%d); os.setuid(%d)
        clients = [rawca.RawCa(%d, user="root") for _ in range(8)]
        sids = [c.sid(%r) for c in clients]
        for n in range(100):
            for c, sid in zip(clients, sids):
                c.send(rawca.write(sid, rawca.STRING, ["77.5"], True, n))
        for c in clients:
            for n in range(100):
                assert (cid := c.until(rawca.WRITE_NOTIFY)[-1].cid) == %d, (n, cid)
        """ % (NOBODY, NOBODY, monitor.port, monitor.prefix + "FILTER_BUDGET", PUTFAIL)
    seen = []
    pv = ca.subscribed(monitor.prefix + "FILTER_BUDGET")
    number = pv.add_callback(lambda value, **_: seen.append(value))
    operator = rawca.RawCa(monitor.port, user="operator")
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=paths.TOP) as attacker:
        while attacker.poll() is None:
            value = float(next(VALUES))
            assert operator.put(monitor.prefix + "FILTER_BUDGET", rawca.STRING, [str(value)], notify=True) == 1
            assert operator.put(monitor.prefix + "FILTER_BUDGET", rawca.STRING, [str(value + 1)]) == 1
        assert attacker.returncode == 0, attacker.stderr.read()
    operator.close()
    until(lambda: value + 1 in seen, 5, lambda: f"{value}: {seen}")
    pv.remove_callback(number)
    assert 77.5 not in seen


def test_client_that_leaves(monitor, log):
    """The client has closed its socket before the server looks for the owner. The kernel says uid 0 for such a
    socket."""
    for _ in range(5):
        put(monitor, "leave", NOBODY, "root", "FILTER_BUDGET", "99.5")
    left = until(lambda: len(got) == 5 and got if (got := [l for l in log.all() if l["value"] == "99.5"]) else None, 10,
                 lambda: f"five puts: {log.all()[-7:]}")
    assert {l["result"] for l in left} == {"denied"}, left
    logged = Logged(monitor, log, "FILTER_BUDGET")
    put(monitor, "leave", 0, "root", "FILTER_BUDGET", "98.5")  # perhaps nobody knows any more that it was root
    assert (logged.one()["result"] == "ok") == (monitor.get("FILTER_BUDGET") == 98.5)


def test_many_unowned_connections(monitor):
    """The client sends all messages at once, so it has ended before the server makes its channel."""
    name = monitor.prefix + "FILTER_BUDGET"
    program = """if True:
        import os, socket
        from tests.harness import rawca
        os.setgid(%d); os.setuid(%d)
        for n in range(200):
            s = socket.create_connection(("127.0.0.1", %d))
            s.sendall(rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.USER, b"root\\0") +
                      rawca.message(rawca.CREATE, %r + b"\\0", cid=1, extra=rawca.MINOR) +
                      b"".join(rawca.write(sid, rawca.STRING, ["88.5"]) for sid in range(0, 400)))
            s.close()
        """ % (NOBODY, NOBODY, monitor.port, name.encode())
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False, cwd=paths.TOP).returncode == 0
    assert settled(lambda: monitor.get("FILTER_BUDGET"), 5) != 88.5


def test_reading_after_a_refused_put(monitor):
    text = put(monitor, "ca", NOBODY, "root", "FILTER_IOC", "x")
    assert text == f"refused {PUTFAIL}"
    assert monitor.text("FILTER_IOC")


def test_from_inside(monitor, log):
    """Puts by dbpf at the shell are always allowed."""
    value = next(VALUES)
    monitor.command(f'dbpf "{monitor.prefix}FILTER_BUDGET" "{value}"')
    assert monitor.get("FILTER_BUDGET") == float(value)


def test_only_values(monitor):
    """Even an operator may not change the configuration of a record, or process it."""
    client = rawca.RawCa(monitor.port, user="root")
    for field in ("DESC", "FLNK", "PROC", "ASG", "DISP", "SCAN", "OUT", "DTYP", "DOL", "TSE", "HIHI"):
        assert client.put(monitor.prefix + "FILTER_BUDGET." + field, rawca.STRING, ["1"], notify=True) != 1, field
    for field in ("VAL", "A", "INPA", "VALA", "PROC", "SNAM"):
        assert client.put(monitor.prefix + "FILTER." + field, rawca.STRING, ["1"], notify=True) != 1, field
    client.close()


# --- the commands ----------------------------------------------------------------------------------------
def test_commands(monitor):
    assert any("operators: users root, 4711; other hosts none" in l for l in monitor.command("ebpfMonOperators"))
    assert monitor.text("OPERATORS") == "users root, 4711; other hosts none"
    assert any("before iocInit" in l for l in monitor.command('ebpfMonOperators "nobody"'))
    assert any("operators: users" in l for l in monitor.command("dbior drvEbpfMon"))
    check = monitor.command("help ebpfMonOperatorHosts")
    assert any("numeric" in l for l in check), check


def test_wrong_lists(new_monitor):
    m = new_monitor(before=['ebpfMonOperators "root nosuchuser"', 'ebpfMonOperatorHosts "opi1.example"']).start()
    for text in "this host has no user 'nosuchuser'", "'opi1.example' is not a numeric address":
        assert any(text in l for l in m.process.lines), (text, m.process.lines)
    assert any("users root; other hosts none" in l for l in m.command("ebpfMonOperators")), m.process.output()


# --- the monitor watches itself --------------------------------------------------------------------------
def test_logged_once_if_the_monitor_watches_itself(new_monitor, tmp_path):
    log = PutLog(tmp_path / "puts.json")
    m = new_monitor(iocs="mon*", before=["ebpfMonConfigure 0 0 0 1", log.command()]).start()
    until(lambda: any(row[3] == "chains" for row in m.iocs().values()), 20, lambda: str(m.iocs()))
    for kind in ("ca", "cacb", "pva"):
        line = check_refused(m, log, kind, NOBODY, "root")
        assert line["real_user"] == "nobody", line
        check_allowed(m, log, kind, 0, "root")
    until(lambda: "uid root" in m.lines("PUT_LOG"), 5, lambda: m.lines("PUT_LOG"))


# --- the access security file -----------------------------------------------------------------------------
def test_without_a_file(new_monitor, tmp_path):
    log = PutLog(tmp_path / "puts.json")
    m = new_monitor(before=[log.command()])
    script = m.script()
    script.write_text(script.read_text().replace("\nasSetFilename", "\n#asSetFilename"))
    m.script = lambda: script
    m.start()
    for kind in ("ca", "cacb", "pva"):
        check_refused(m, log, kind, NOBODY, "root")
        check_allowed(m, log, kind, 0, "root")
    client = rawca.RawCa(m.port, user="root")
    assert client.put(m.prefix + "FILTER_BUDGET.DESC", rawca.STRING, ["x"], notify=True) != 1
    assert client.put(m.prefix + "STATE", rawca.STRING, ["1"], notify=True) != 1
    client.close()


def test_a_file_that_grants_too_much(new_monitor, tmp_path):
    """The access security file lacks the groups, or lets clients change the configuration of records, or write without
    TRAPWRITE. Then no value is taken from anybody, until the file is right."""
    path = tmp_path / "site.acf"
    path.write_text("ASG(DEFAULT) { RULE(1, WRITE) }\n")
    log = PutLog(tmp_path / "puts.json")
    m = new_monitor(before=[f'asSetFilename "{path}"', log.command()]).start()
    assert any("has no group EBPFMON" in l for l in m.process.lines)
    before = m.get("FILTER_BUDGET")
    for rules in None, "RULE(1, WRITE, TRAPWRITE)", "RULE(0, WRITE)", "RULE(0, WRITE, TRAPWRITE) RULE(1, WRITE, TRAPWRITE) { UAG(x) }":
        if rules:
            path.write_text(f"UAG(x) {{ root }} ASG(EBPFMON_RO) {{ RULE(1, READ) }} ASG(EBPFMON) {{ RULE(1, READ) {rules} }}\n")
            m.command("asInit")
        for kind in ("ca", "cacb", "pva", "pvablock"):
            assert put(m, kind, 0, "root", "FILTER_BUDGET", "3").startswith("refused"), (kind, rules)
        put(m, "pvaquiet", 0, "root", "FILTER_BUDGET", "3")
        m.command(f'dbpf "{m.prefix}FILTER_BUDGET" 4')
        assert m.get("FILTER_BUDGET") == before, rules
        assert any("closed for all clients" in l for l in m.command("ebpfMonOperators")), rules
    path.write_text((paths.MONITOR_BOOT / "ebpfMon.acf").read_text())
    m.command("asInit")
    settled(log.all, 10)
    for kind in ("ca", "cacb", "pva"):
        check_refused(m, log, kind, NOBODY, "root")
        check_allowed(m, log, kind, 0, "root")


# --- other hosts -----------------------------------------------------------------------------------------
FAR, NEAR = "192.0.2.1", "192.0.2.2"  # RFC 5737: no real host has them


@pytest.fixture(scope="module")
def far():
    """A network namespace that is another host, connected by a virtual cable. Yields the words to put in front of a
    command that runs there."""
    name = f"{badlink.PREFIX}-{os.getpid()}-far"
    badlink.ip("netns", "add", name)
    try:
        badlink.ip("link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", name)
        badlink.ip("addr", "add", f"{NEAR}/24", "dev", "near0")
        badlink.ip("link", "set", "near0", "up")
        badlink.ip("-n", name, "addr", "add", f"{FAR}/24", "dev", "far0")
        badlink.ip("-n", name, "link", "set", "far0", "up")
        badlink.ip("-n", name, "link", "set", "lo", "up")
        yield lambda argv: badlink.in_namespace(name, argv)
    finally:
        badlink.ip("netns", "del", name)


@pytest.fixture(scope="module", params=["", FAR, NEAR], ids=["nobody", "listed", "ourselves"])
def open_monitor(request, module_monitor, log, far):
    """A monitor that serves other hosts, too, and has a list of operator hosts."""
    hosts = [f'ebpfMonOperatorHosts "{request.param}"'] if request.param else []
    m = module_monitor(before=[log.command(), *hosts],
                       environ={"EPICS_CAS_INTF_ADDR_LIST": f"127.0.0.1 {NEAR}",
                                "EPICS_PVAS_INTF_ADDR_LIST": "0.0.0.0"}).start()
    yield m, request.param
    m.stop()


@pytest.mark.parametrize("kind", ["ca", "cacb", "pva"])
def test_another_host(open_monitor, log, far, kind):
    monitor, hosts = open_monitor
    if hosts == FAR:
        line = check_allowed(monitor, log, kind, NOBODY, "who", wrap=far, address=NEAR)
    else:
        line = check_refused(monitor, log, kind, 0, "root", wrap=far, address=NEAR)
        assert "ebpfMonOperatorHosts" in line["message"], line
    assert line["peer"].startswith(FAR + ":"), line


def test_an_address_of_our_own(open_monitor, log):
    """The user decides, even if an address of this host is in the list of hosts."""
    monitor, _ = open_monitor
    line = check_refused(monitor, log, "ca", NOBODY, "root", address=NEAR)
    assert line["real_user"] == "nobody", line
    check_allowed(monitor, log, "ca", 0, "root", address=NEAR)


def test_ipv6_socket(open_monitor, log):
    """An IPv4 connection from a socket of IPv6."""
    monitor, _ = open_monitor
    for address in "127.0.0.1", NEAR:
        line = check_refused(monitor, log, "mapped", NOBODY, "root", address=address)
        assert line["real_user"] == "nobody", line
        check_allowed(monitor, log, "mapped", 0, "root", address=address)
