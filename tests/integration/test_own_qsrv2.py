# SPDX-License-Identifier: BSD-3-Clause
"""The monitor's own PVs by QSRV 2, with which it is built if PVXS is set: TCP name servers and IPv6 find them, and writes are judged
as those by QSRV 1. `tools/modules.sh qsrv2` builds such a monitor and runs this, and the tests of operators and PVs."""
import pwd

import pytest
from tests.harness import badlink, db, loopback, paths
from tests.harness.lan import Lan
from tests.harness.putlog import PutLog
from tests.harness.putters import Putter
from tests.harness.wait import settled, until

pytestmark = pytest.mark.skipif("pvxsBaseRegistrar" not in (paths.DBD / "ebpfMon.dbd").read_text(),
                                reason="this monitor has QSRV 1: tools/modules.sh qsrv2")
HERE, THERE = "fd99:2::1", "fd99:2::2"  # RFC 4193: of a private network
NOBODY = pwd.getpwnam("nobody").pw_uid
TABLES = {"IOCS": {"name": "IOC_NAMES", "pid": "IOC_PIDS", "records": "IOC_RECORD_CNTS"}, "PUTS": {"pv": "PUT_PVS", "value": "PUT_VALUES"}}


@pytest.fixture(scope="module")
def lan():
    with Lan() as made:
        badlink.ip("addr", "add", f"{HERE}/64", "dev", made.bridge, "nodad")
        badlink.ip("-n", made.hosts[0], "addr", "add", f"{THERE}/64", "dev", "eth0", "nodad")
        yield made


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module", params=["", THERE], ids=["nobody", "listed"])
def monitor(request, module_monitor, module_ioc, log, lan):
    """It serves IPv4 and IPv6, and takes writes of no other host, or of one."""
    ioc = module_ioc(db.READY + db.record("ao", "AO")).start()
    hosts = [f'ebpfMonOperatorHosts "{request.param}"'] if request.param else []
    made = module_monitor(before=[log.command(), *hosts], environ={"EPICS_PVAS_INTF_ADDR_LIST": "0.0.0.0 [::]"}).start()
    made.wait_ioc(ioc)
    ioc.put("AO", 12)
    made.wait_text("PUT_LAST_VALUE", lambda value: value == "12")
    made.far_may = bool(request.param)
    yield made
    made.stop()
    ioc.stop()


@pytest.fixture(scope="module")
def putters(lan):
    made = {"::1": Putter(), HERE: Putter(wrap=lambda argv: badlink.in_namespace(lan.hosts[0], argv))}
    yield made
    for putter in made.values():
        putter.discard()


def addresses(monitor):
    """How a client can be told where the monitor is."""
    return {"name server": {"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{monitor.port + 1000}"},
            "name server, IPv6": {"EPICS_PVA_NAME_SERVERS": f"[::1]:{monitor.port + 1000}"},
            "search, IPv6": {"EPICS_PVA_ADDR_LIST": f"[::1]:{monitor.port + 2000}"}}


@pytest.mark.parametrize("way", ["name server", "name server, IPv6", "search, IPv6"])
def test_values(monitor, way):
    """Values and tables are those of Channel Access."""
    from p4p.client.thread import Context  # see loopback.pva_context
    conf = {"EPICS_PVA_ADDR_LIST": "", "EPICS_PVA_AUTO_ADDR_LIST": "NO", **addresses(monitor)[way]}
    with Context("pva", conf=conf, useenv=False, nt=False) as context:
        get = lambda name: context.get(monitor.prefix + name, timeout=20)  # noqa: E731
        assert get("IOC_CNT").value == monitor.get("IOC_CNT") and get("PUT_LAST_VALUE").value == "12"
        assert get("STATE").value.index == monitor.get("STATE")
        for table, columns in TABLES.items():
            def differ(table=table, columns=columns):
                """Rows come and go with other IOCs of this host."""
                got = get(table)
                assert got.getID() == "epics:nt/NTTable:1.0" and len(got.labels) == len(dict(got.value.items()))
                return {c: (list(got.value[c]), monitor.list(pv)) for c, pv in columns.items() if list(got.value[c]) != monitor.list(pv)}

            until(lambda differ=differ: not differ(), 10, differ)


def write(monitor, putters, log, address, uid, claim, value, kind="pvatcp"):
    """One put. Returns what the client was told, and its line of the log."""
    name = monitor.prefix + "FILTER_BUDGET"
    before = len(log.of(name))
    said = putters[address].put(kind, uid, claim, monitor.port, name, value, address)
    line, = settled(lambda: until(lambda: log.of(name)[before:], 10, lambda: log.all()[-3:]), 5)
    return said, line


@pytest.mark.parametrize("claim", ["nobody", "root"])
def test_another_user_of_this_host(monitor, putters, log, claim):
    before = monitor.get("FILTER_BUDGET")
    said, line = write(monitor, putters, log, "::1", NOBODY, claim, 3.25)
    assert said.startswith("refused") and line["result"] == "denied" and monitor.get("FILTER_BUDGET") == before, (said, line)
    assert line["real_user"] == "nobody" and line["user"] == claim and line["peer"].startswith("[::1]:"), line
    assert int(line["pid"]) > 0 and line["through"] == "PVA", line


def test_operator(monitor, putters, log):
    value = monitor.get("FILTER_BUDGET") + 0.5
    said, line = write(monitor, putters, log, "::1", 0, "root", value)
    assert said == "ok" and line["result"] == "ok" and monitor.get("FILTER_BUDGET") == value, (said, line)
    assert line["real_user"] == "root" and line["server"] == f"[::1]:{monitor.port + 1000}", line


def test_another_host(monitor, putters, log):
    before = monitor.get("FILTER_BUDGET")
    said, line = write(monitor, putters, log, HERE, 0, "root", before + 0.5)
    assert line["peer"].startswith(f"[{THERE}]:"), line
    assert (line["result"], said == "ok", monitor.get("FILTER_BUDGET")) == \
        (("ok", True, before + 0.5) if monitor.far_may else ("denied", False, before)), (said, line)


def test_clients_side_by_side(monitor, putters, log):
    """One thread serves them all: each put is judged by its own client. Of many connections, some are nobody's."""
    from concurrent.futures import ThreadPoolExecutor

    name, port = monitor.prefix + "FILTER_BUDGET", monitor.port
    more = [Putter() for _ in range(4)]
    before = len(log.of(name))
    try:
        with ThreadPoolExecutor(4) as pool:
            def put(n):
                uid = NOBODY if n % 2 else 0
                return [more[n].put("pvatcp", uid, "root", port, name, 50 + n + i / 64, "127.0.0.1") for i in range(5)]

            said = list(pool.map(put, range(4)))
    finally:
        for putter in more:
            putter.discard()
    assert [{s.split()[0] for s in of} for of in said] == [{"ok"}, {"refused"}] * 2, said
    lines = until(lambda: len(found := log.of(name)[before:]) >= 20 and found, 10, lambda: log.of(name)[before:])
    assert len(lines) == 20 and {(l["result"], l["real_user"]) for l in lines} == {("ok", "root"), ("denied", "nobody")}, lines
    assert int(monitor.get("FILTER_BUDGET")) in (50, 52)


def test_tables_are_read_only(monitor):
    with loopback.pva_context(monitor.port, nt=False) as context:
        table = context.get(monitor.prefix + "PUTS", timeout=20)
        with pytest.raises(Exception, match="Read-only"):
            context.put(monitor.prefix + "PUTS", {"value": {"pv": ["x"]}}, timeout=20, get=False)
        assert list(context.get(monitor.prefix + "PUTS", timeout=20).value.pv) == list(table.value.pv) != ["x"]
