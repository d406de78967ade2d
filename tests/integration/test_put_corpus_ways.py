# SPDX-License-Identifier: BSD-3-Clause
"""Many puts on ways on which one put can be taken for another: over IPv6, beside a twin connection, with urgent data, by connections
that come and go. Each put is shown once, with its value and its client. Only make soak runs this: make check has shorter tests of
each way (test_ipv6, test_forged_packets, test_urgent_data, test_hostile_packets). Through DNAT: test_translated."""
import collections
import os
import sys

import pytest
from tests.harness import badlink, db, loopback, paths, rawca
from tests.harness.far import FarIoc, there
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.soak import IS_LONG, soak
from tests.harness.wait import settled, until
from tests.integration.test_forged_packets import TWIN, net  # noqa: F401
from tests.integration.test_ipv6 import USERS
from tests.integration.test_translated import PEER

pytestmark = [soak, pytest.mark.skipif(not IS_LONG, reason="make soak")]
DB = db.READY + "".join(db.record("ao", f"AO{i}") for i in range(4))
LATE = 14  # s; a put that only packets show is published 10 s after its reply at the latest
FD = "fd99:1::2"  # RFC 4193


class Judge:
    def __init__(self, monitor, log):
        self.monitor, self.log, self.sent = monitor, log, {}

    def expect(self, pv, values, **members):
        """Each of these puts was made, and its line has these members."""
        for value in values:
            assert self.sent.setdefault((pv, float(value)), members) is members

    def judge(self, may_miss=()):
        pvs = {pv for pv, _ in self.sent}

        def lines():
            return [o for o in self.log.all() if o["pv"] in pvs or o["pv"].startswith("sid")]
        until(lambda: len(lines()) >= len(self.sent) - len(may_miss), 60, lambda: f"{len(lines())} of {len(self.sent)}")
        settled(lambda: len(lines()), 120, quiet=LATE)
        seen, wrong = collections.Counter(), []
        for o in lines():
            key = (o["pv"], float(o["value"]))
            seen[key] += 1
            want = self.sent.get(key)
            if want is None or o["result"] != "ok" or any(o.get(k) != v for k, v in want.items()):
                wrong.append((want, o))
        again = [k for k, n in seen.items() if n > 1]
        missing = sorted(set(self.sent) - set(seen) - set(may_miss))
        text = f"{len(self.sent)} puts: {len(wrong)} wrong, {len(again)} again, {len(missing)} missing, {self.monitor.losses()}"
        print(text)
        assert not wrong and not again and not missing, f"{text}: {wrong[:5]}, {again[:5]}, {missing[:5]}"


@pytest.fixture
def raw():
    """Starts a server that is no IOC."""
    started = []

    def start(end, address):
        port = loopback.take_port()
        process = there(end, [sys.executable, "-u", "-m", "tests.programs.raw_server", address, str(port)],
                        {**os.environ, "IOC": OURS.replace("*", f"raw{port}")})
        process.wait_line("listens")
        started.append((process, port))
        return port

    yield start
    for process, port in started:
        process.kill()
        loopback.give_port(port)


def watch(new_monitor, tmp_path, *iocs):
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(before=[log.command()]).start()
    for ioc in iocs:
        monitor.wait_ioc(ioc)
    monitor.wait("PACKET_STATE", lambda state: state == 1, 20)
    return Judge(monitor, log)


def short(end, address, port, pv, first, connections, puts):
    argv = [sys.executable, "-m", "tests.programs.short_puts", address, port, pv, first, connections, puts]
    return there(end, argv)


def test_connections_that_come_and_go(new_monitor, tmp_path, net, raw):  # noqa: F811
    """10,000 connections, four at a time, of which each puts twice: to an IOC, and to a server that is none."""
    ioc = FarIoc(tmp_path, net, end=net.hosts[0], db=DB).start()
    port, made = raw(net.hosts[1], net.address(net.hosts[1])), []
    judge = watch(new_monitor, tmp_path, ioc)
    to = [(ioc.address, ioc.port, ioc.prefix + f"AO{i}") for i in range(3)] + [(net.address(net.hosts[1]), port, f"S{os.getpid()}:AO")]
    for i, at in enumerate(to):
        made.append(short(net.hosts[2], *at, 1000000 * (i + 1), 2500, 2))
        judge.expect(at[2], range(1000000 * (i + 1), 1000000 * (i + 1) + 5000), pid=str(made[-1].pid))
    for process in made:
        process.wait(600)
        assert "done" in process.lines, process.output()
    judge.judge()
    ioc.discard()


def test_ipv6(new_monitor, tmp_path, new_ioc, net):  # noqa: F811
    """Clients in another namespace, of two users, to a QSRV, and to a server of p4p: 150 connections each."""
    badlink.ip("addr", "add", f"{FD}/64", "dev", net.bridge, "nodad")
    badlink.ip("-n", net.hosts[0], "addr", "add", "fd99:1::3/64", "dev", "eth0", "nodad")
    environ = {"EPICS_PVAS_INTF_ADDR_LIST": "[::]"}
    servers = [new_ioc(DB, kind="pvxs", environ=environ).start(),
               new_ioc(kind="pythonSoftIOC", files=[PEER, "p4p"], environ=environ).start(wait=False)]
    servers[1].process.wait_line("ready")
    far, judge = Putter(wrap=lambda argv: badlink.in_namespace(net.hosts[0], argv)), watch(new_monitor, tmp_path, servers[0])
    for ioc, record in zip(servers, ("AO0", "DOUBLE")):
        for value in range(150):
            user = USERS[value % 2]
            assert far.put("pvatcp", user.pw_uid, "", ioc.port, ioc.prefix + record, value, FD) == "ok"
            judge.expect(ioc.prefix + record, [value], uid=str(user.pw_uid), real_user=user.pw_name)
    judge.judge()
    far.discard()


def test_twins(new_monitor, tmp_path, net, raw):  # noqa: F811
    """Each of 60 connections has a twin in another namespace, which begins and ends between its puts."""
    ioc = FarIoc(tmp_path, net, end=net.hosts[0], db=DB).start()
    port = raw(net.hosts[0], ioc.address)
    judge = watch(new_monitor, tmp_path, ioc)
    for n in range(60):
        at, pv = ((ioc.port, ioc.prefix + "AO0"), (port, f"S{os.getpid()}:AO"))[n % 2]
        client = rawca.RawCa(at, addr=ioc.address)
        for part in range(3):
            for value in range(100 * n + 10 * part, 100 * n + 10 * part + 10):
                assert client.put(pv, rawca.DOUBLE, [float(value)], notify=True) == 1
                judge.expect(pv, [value], pid=str(os.getpid()), peer=client.address)
            if part == 0:
                other = Process(["unshare", "--net", sys.executable, "-u", "-c", TWIN, f"{ioc.address}:{at}", client.address],
                                loopback.environment())
                other.wait_line("open")
            elif part == 1:
                other.kill()
        client.close()
    judge.judge()
    ioc.discard()


def test_urgent_data(new_monitor, tmp_path, net, raw):  # noqa: F811
    """150 connections with an urgent byte, to an IOC: nothing is missing. To another server: only what follows the byte is."""
    ioc = FarIoc(tmp_path, net, end=net.hosts[0], db=DB).start()
    port = raw(net.hosts[0], ioc.address)
    judge, unread = watch(new_monitor, tmp_path, ioc), []
    for n in range(150):
        for at, pv in (ioc.port, ioc.prefix + "AO0"), (port, f"S{os.getpid()}:AO"):
            first, modes = 1000 + 10 * n, ("between", "value", "hide")[:3 - (at == port)]  # that server answers no echo
            argv = [sys.executable, "-m", "tests.programs.urgent_puts", ioc.address, at, pv, modes[n % len(modes)], first]
            done = there(net.hosts[2], argv)
            done.wait(30)
            assert "done" in done.lines, done.output()
            judge.expect(pv, range(first, first + 3), pid=str(done.pid))
            unread += [(pv, float(first + i)) for i in (1, 2) if at == port]
    judge.judge(unread)
    assert judge.monitor.losses()["TCP urgent data"] >= 150
    ioc.discard()
