# SPDX-License-Identifier: BSD-3-Clause
"""A port of this host is published for a server in a network namespace of its own (DNAT), as of a container: a put of another host is
one line, with the client as that host knows it, and both addresses of the server. Refused puts, too."""
import os
import shutil
import subprocess
import sys

import pytest
from tests.harness import badlink, db, loopback, paths
from tests.harness.far import FarIoc, there
from tests.harness.lan import Lan
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.soak import IS_LONG, soak
from tests.harness.wait import settled, until

pytestmark = pytest.mark.skipif(not shutil.which("nft"), reason="nft is not installed")

CLIENT, PUBLISHED, GATEWAY, SERVER = "192.0.2.11", "192.0.2.1", "198.51.100.1", "198.51.100.2"  # RFC 5737
NAMES = "192.0.2."  # names of IOCs begin as the address: one pattern selects both
PEER = paths.PROGRAMS / "peer_ioc.py"


class Box:
    """A namespace behind this one, with one address."""

    def __init__(self, base):
        self.b = f"{base}-c"

    def __enter__(self):
        badlink.ip("netns", "add", self.b)
        badlink.ip("-n", self.b, "link", "set", "lo", "up")
        badlink.ip("link", "add", "box0", "type", "veth", "peer", "name", "eth0", "netns", self.b)
        badlink.ip("addr", "add", f"{GATEWAY}/24", "dev", "box0")
        badlink.ip("link", "set", "box0", "up")
        badlink.ip("-n", self.b, "addr", "add", f"{SERVER}/24", "dev", "eth0")
        badlink.ip("-n", self.b, "link", "set", "eth0", "up")
        badlink.ip("-n", self.b, "route", "add", "default", "via", GATEWAY)
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.b], check=False, capture_output=True)

    def address(self, _):
        return SERVER


@pytest.fixture(scope="module")
def lan():
    with Lan() as made:
        badlink.ip("addr", "add", f"{PUBLISHED}/24", "dev", made.bridge)
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
            f.write("1")
        badlink.ip("-n", made.hosts[0], "route", "add", "default", "via", PUBLISHED)
        yield made


@pytest.fixture(scope="module")
def box(lan):
    with Box(f"{badlink.PREFIX}-{lan.base.split('-')[2]}-{next(badlink.BadLink.numbers)}") as made:
        yield made


@pytest.fixture(scope="module", params=["dnat", "masquerade"])
def nat(request, box):
    """Translates the address of the server; with "masquerade" that of the client, too."""
    post = f"chain post {{ type nat hook postrouting priority 100; ip daddr {SERVER} masquerade; }}"
    rules = f"table ip published {{\nchain pre {{ type nat hook prerouting priority -100; ip daddr {PUBLISHED} " \
            f"tcp dport 1024-65535 dnat to {SERVER}; }}\n{post if request.param == 'masquerade' else ''}\n}}"
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
    yield request.param
    subprocess.run(["nft", "delete", "table", "ip", "published"], check=True)


@pytest.fixture(scope="module")
def ioc(tmp_path_factory, box):
    ioc = FarIoc(tmp_path_factory.mktemp("ioc"), box, kind="pvxs", name=f"{NAMES}{os.getpid()}", acf=paths.TESTS / "ioc" / "roads.acf",
                 db=db.READY + db.record("ao", "AO") + db.record("ao", "RO", ASG="DENIED")).start()
    yield ioc
    ioc.discard()


@pytest.fixture(scope="module")
def far(lan):
    putter = Putter(wrap=lambda argv: badlink.in_namespace(lan.hosts[0], argv))
    yield putter
    putter.discard()


@pytest.fixture(scope="module")
def watched(module_monitor, tmp_path_factory, nat, ioc):
    monitor, log = start(module_monitor, tmp_path_factory.mktemp("log"), ioc)
    yield monitor, log
    monitor.discard()  # not later: it would see the puts of those after it


def start(new_monitor, tmp_path, ioc=None):
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(iocs=NAMES + "*", before=[log.command()]).start()
    if ioc:
        until(lambda: ioc.pid in monitor.iocs() and monitor.iocs()[ioc.pid][3] == "chains", 30, monitor.iocs)
    monitor.wait("PACKET_STATE", lambda state: state == 1, 20)
    return monitor, log


@pytest.mark.parametrize("kind", ["ca", "cacb", "pvatcp"])
def test_one_line(watched, ioc, far, kind):
    monitor, log = watched
    mark, port = len(log.of(ioc.prefix)), ioc.port + 1000 * (kind == "pvatcp")
    before, denied = monitor.get("PUT_CNT"), monitor.get("PUT_DENIED_CNT")
    for value in (1, 2, 3):
        assert far.put(kind, 0, "anna", ioc.port, ioc.prefix + "AO", value, PUBLISHED) in ("ok", "None")
    refused = far.put(kind, 0, "anna", ioc.port, ioc.prefix + "RO", 4, PUBLISHED)
    assert kind == "ca" or "refused" in refused, refused
    until(lambda: len(log.of(ioc.prefix)) >= mark + 4, 15, log.all)
    lines = settled(lambda: log.of(ioc.prefix)[mark:], 15, quiet=3)  # copies would be published later
    assert [(o["pv"].removeprefix(ioc.prefix), o["value"], o["result"]) for o in lines] == \
        [*(("AO", str(v), "ok") for v in (1, 2, 3)), ("RO", "4", "denied")], lines
    for o in lines:
        assert o["ioc"] == ioc.name and o["peer"].startswith(f"{CLIENT}:"), o
        assert o["server"] == f"{SERVER}:{port}" and o["published"] == f"{PUBLISHED}:{port}", o
        assert o["host"] != GATEWAY and o["user"] == ("anna" if kind != "pvatcp" else "root"), o
    assert monitor.get("PUT_CNT") == before + 4 and monitor.get("PUT_DENIED_CNT") == denied + 1
    assert f", to {PUBLISHED}:{port}" in monitor.lines("PUT_LOG")


@soak
@pytest.mark.skipif(not IS_LONG, reason="make soak")
def test_many_puts(watched, ioc, far, lan, box):
    """250 connections with 4 puts each to the IOC, as many to a server that is none, and 100 of pvAccess: each put is one line."""
    _, log = watched
    port, mark, sent, made = loopback.take_port(), len(log.all()), {}, []
    server = there(box.b, [sys.executable, "-u", "-m", "tests.programs.raw_server", SERVER, str(port)], {**os.environ, "IOC": f"{NAMES}raw"})
    server.wait_line("listens")
    for i, at in enumerate((ioc.port, port)):
        pv, first = (ioc.prefix + "AO", "RAW:AO")[i], 1000000 * (i + 1)
        made.append(there(lan.hosts[0], [sys.executable, "-m", "tests.programs.short_puts", PUBLISHED, at, pv, first, 250, 4]))
        sent.update({(pv, float(v)): at for v in range(first, first + 1000)})
    for value in range(100):
        assert far.put("pvatcp", 0, "", ioc.port, ioc.prefix + "AO", value, PUBLISHED) == "ok"
        sent[ioc.prefix + "AO", float(value)] = ioc.port + 1000
    for process in made:
        process.wait(300)
        assert "done" in process.lines, process.output()
    until(lambda: len(log.all()) >= mark + len(sent), 60, lambda: f"{len(log.all()) - mark} of {len(sent)}")
    lines = settled(lambda: log.all()[mark:], 120, quiet=14)
    server.kill()
    loopback.give_port(port)
    assert sorted((o["pv"], float(o["value"])) for o in lines) == sorted(sent), len(lines)
    wrong = [o for o in lines if o["result"] != "ok" or not o["peer"].startswith(f"{CLIENT}:") or
             o.get("published") != f"{PUBLISHED}:{sent[o['pv'], float(o['value'])]}"]
    print(f"{len(sent)} puts, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {len(lines)}: {wrong[:5]}"


def test_older_connection(new_monitor, tmp_path, nat, ioc, lan):
    """The monitor starts while the connection is open: the first put that is seen twice tells."""
    client = Process(badlink.in_namespace(lan.hosts[0], [sys.executable, "-m", "tests.programs.put_lines", PUBLISHED, ioc.port,
                                                        ioc.prefix + "AO"]), loopback.environment(), cwd=paths.TOP)
    client.wait_line("ready")
    _, log = start(new_monitor, tmp_path, ioc)
    for value in (11, 12, 13):
        client.send(str(value))
        client.wait_line(f"made {value}")
    until(lambda: len(log.of(ioc.prefix)) >= 3, 15, log.all)
    lines = settled(lambda: log.of(ioc.prefix), 15, quiet=3)
    client.kill()
    assert [o["value"] for o in lines] == ["11", "12", "13"], lines
    assert all(o["published"] == f"{PUBLISHED}:{ioc.port}" and o["peer"].startswith(f"{CLIENT}:") for o in lines), lines


def test_server_without_base(new_monitor, tmp_path, nat, box, far):
    """A server of p4p, which only packets show."""
    server = FarIoc(tmp_path, box, kind="pythonSoftIOC", name=f"{NAMES}p4p{os.getpid()}", files=[PEER, "p4p"])
    try:
        server.start()
        monitor, log = start(new_monitor, tmp_path)
        for value in (21.5, 22.5):
            if value == 22.5:
                until(lambda: log.of(server.prefix), 15, log.all)
                monitor.process.halt()  # the client has closed its connection when the packets are read
            assert far.put("pvatcp", 0, "", server.port, server.prefix + "DOUBLE", value, PUBLISHED) == "ok"
        monitor.process.go_on()
        until(lambda: len(log.of(server.prefix)) >= 2, 15, log.all)
        lines = settled(lambda: log.of(server.prefix), 15, quiet=3)
        assert [o["value"] for o in lines] == ["21.5", "22.5"], lines
        assert all(o["peer"].startswith(f"{CLIENT}:") and o["server"] == f"{SERVER}:{server.port + 1000}" and
                   o["published"] == f"{PUBLISHED}:{server.port + 1000}" for o in lines), str(lines)
    finally:
        server.discard()
