# SPDX-License-Identifier: BSD-3-Clause
"""What goes to clients of pvAccess, and where it stops: told from what clients of p4p have got, from dbel in the IOC, and from
processes that the test stops. QSRV 1 and 2; a server that is no IOC. Each fault has a neighbour that is not ill."""
import collections
import math
import re
import sys
import time

import pytest
from tests.harness import db, loopback
from tests.harness.process import Process
from tests.harness.wait import until
from tests.integration.test_subscriptions import answers, dbel, rows, why

DB = (db.READY + db.counter("TICK", SCAN=".1 second") + db.record("ao", "A", PINI="YES") +
      db.record("waveform", "WAVE", NELM=100000, FTVL="DOUBLE", SCAN=".1 second") + "".join(db.record("ao", f"M{i}", PINI="YES") for i in range(50)) +
      db.counter("COUNT") + db.record("fanout", "BURST", **{f"LNK{i}": "$(P)MANY" for i in "123456789"}) +
      db.record("fanout", "MANY", **{f"LNK{i}": "$(P)MORE" for i in "123456789"}) +
      db.record("fanout", "MORE", **{f"LNK{i}": "$(P)COUNT" for i in "123456789"}))


COLUMNS = "STATES RATES MERGED_CNTS WAITING_CNTS UNSENTS IOCS TIMES".split()


@pytest.fixture(scope="module", params=["softIocPVA", "pvxs"])
def served(request, module_ioc):
    return module_ioc(DB, kind=request.param).start()


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor().start()


@pytest.fixture
def ioc(served, monitor):
    monitor.wait_ioc(served)
    return served


class Client(Process):
    """A client of p4p in a process of its own. Prints a line for each update that its callback has got."""

    def __init__(self, ioc, names, request="", work="", name_server=""):
        names = [ioc.prefix + n for n in names]
        super().__init__([sys.executable, "-u", "-c", f"""
import os, time
from tests.harness import loopback
def got(v):  # several threads call it
    os.write(1, b"got %r\\n" % (len(v.value) if hasattr(v.value, "__len__") else v.value))
    {work}
c = loopback.pva_context({ioc.port}, nt=False, name_server={name_server!r})
s = [c.monitor(n, got, request={request!r} or None) for n in {names!r}]
time.sleep(1000)
"""], loopback.client(ioc.port))
        until(lambda: len(self.got()) >= len(names), 30, lambda: self.output())

    def got(self):
        return [line for line in self.lines if line.startswith("got ")]


class Served:
    """A server that is no IOC, as Client takes it."""
    prefix = ""

    def __init__(self, port):
        self.port = port


def of(monitor, client):
    """PV → row of this client process; between two moments of the columns, rows of nothing."""
    names, nothing = ("PVS", "PROCESSES", *COLUMNS), dict.fromkeys(COLUMNS, math.nan) | {"STATES": ""}
    lists = [monitor.list("SUBSCRIPTION_" + n) for n in names]
    found = {r[0]: dict(zip(names, r)) for r in zip(*lists) if r[1].endswith(f"({client.pid})")} if len(set(map(len, lists))) == 1 else {}
    return collections.defaultdict(lambda: nothing, found)


def both(monitor, client, number):
    """Waits until the table has so many rows of this client."""
    until(lambda: len(of(monitor, client)) == number, 30, lambda: str(rows(monitor)))
    return of(monitor, client)


def posted(monitor, client, pv):
    """What was posted to its monitor: at least in all, sent, at least merged, waiting; None while it is not known."""
    found = re.search(r"; at least (\d+) updates were posted to it: (\d+) sent, at least (\d+) merged, (\d+) waiting",
                      why(monitor, pv, str(client.pid))[1]["post"][1])
    return found and tuple(map(int, found.groups()))


def test_two_clients(ioc, monitor):
    """QSRV 1 has one subscription for both clients, QSRV 2 one for each; their counters are those of dbel. All updates are counted."""
    tick, a = ioc.prefix + "TICK", ioc.prefix + "A"
    clients = [Client(ioc, ["TICK", "A"]), Client(ioc, ["A"])]
    both(monitor, clients[1], 1)
    own = both(monitor, clients[0], 2)
    assert set(own) == {tick, a} and all(row["IOCS"] == ioc.name for row in own.values())
    shared = "ok, one of QSRV for 2 clients" if ioc.kind == "softIocPVA" else "ok"
    def state(client, pv):  # None: between two looks it is in no row
        return of(monitor, client).get(pv, {}).get("STATES")

    until(lambda: state(clients[0], a) == state(clients[1], a) == shared and state(clients[0], tick) == "ok", 30, lambda: str(rows(monitor)))
    for value in range(1, 301):
        ioc.put("A", value, wait=False)
    ioc.put("A", 301)
    until(lambda: clients[0].got()[-1] and any("301" in line for line in clients[0].got()), 30, lambda: clients[0].output())
    until(lambda: of(monitor, clients[0])[tick]["RATES"] > 5, 30, lambda: str(rows(monitor)))
    least, sent, merged, waiting = posted(monitor, clients[1], a)
    assert len(clients[1].got()) <= sent <= least == sent + merged + waiting <= 302, (least, sent, merged, waiting)  # all posts, with the first
    if ioc.kind == "softIocPVA":  # what was merged before a monitor began is not its loss
        first = Client(ioc, ["COUNT"])
        until(lambda: ioc.put("BURST.PROC", 1) or max(replaced for _, replaced in dbel(ioc, "COUNT")) > 0, 60, "some are merged")
        later = Client(ioc, ["COUNT"])
        count = ioc.prefix + "COUNT"
        until(lambda: "0 updates wait, 0 merged, in the one subscription of QSRV for 2 clients" in why(monitor, count, str(later.pid))[1]["queue"][1],
              30, lambda: str(why(monitor, count, str(later.pid))))
        assert posted(monitor, later, count) == (1, 1, 0, 0)
        for c in (first, later):
            c.kill()
    last = Client(ioc, ["M0"])
    for value in range(1, 11):
        ioc.put("M0", value)
        until(lambda: len(last.got()) == value + 1, 30, lambda: last.output())
    at = time.time()
    until(lambda: any(of(monitor, last).get(ioc.prefix + "M0", {}).get("TIMES") == time.strftime("%H:%M:%S", time.localtime(at - s)) for s in (0, 1, 2)),
          30, lambda: str(of(monitor, last)))
    until(lambda: posted(monitor, last, ioc.prefix + "M0") == (11, 11, 0, 0), 10, lambda: str(posted(monitor, last, ioc.prefix + "M0")))
    last.kill()
    _, steps = why(monitor, a, str(clients[1].pid))
    assert steps["post"][1].startswith("1 subscription of root@") and "QSRV has" in steps["post"][1]
    if ioc.kind == "softIocPVA":
        merged = max(replaced for _, replaced in dbel(ioc, "A"))
        assert f"0 updates wait, {merged} merged, in the one subscription of QSRV for 2 clients" in steps["queue"][1]
    line, steps = answers(monitor, "nothing stops", tick, str(clients[0].pid))
    assert "0 updates wait, 0 merged" in steps["queue"][1] and f"pid {clients[0].pid}" in steps["client"][1]
    assert why(monitor, tick, str(clients[1].pid))[0].startswith(f'post: no client "{clients[1].pid}" has subscribed')
    for c in clients:
        c.kill()
    until(lambda: not of(monitor, clients[0]) and "QSRV" not in why(monitor, tick)[1]["post"][1], 30, lambda: str(why(monitor, tick)))


def test_a_client_that_does_not_read(ioc, monitor):
    """It is stopped while arrays are posted. A neighbour on the same record reads."""
    wave = ioc.prefix + "WAVE"
    ioc.put("WAVE", [1.0] * 100000)
    stopped, neighbour = Client(ioc, ["WAVE"]), Client(ioc, ["WAVE"])
    both(monitor, stopped, 1)
    stopped.halt()
    line, steps = answers(monitor, "client: the client does not read since", wave, str(stopped.pid))
    assert f"pid {stopped.pid}" in line and steps["record"][0] == steps["network"][0] == "fine"
    until(lambda: why(monitor, wave, str(stopped.pid))[1]["send buffer"][0] == "held up", 30, lambda: str(why(monitor, wave, str(stopped.pid))))
    before = len(neighbour.got())
    until(lambda: len(neighbour.got()) > before + 5, 30, "the neighbour reads")
    answers(monitor, "nothing stops", wave, str(neighbour.pid))
    row = until(lambda: next((r for r in of(monitor, stopped).values() if r["STATES"].startswith("client does not read since") and
                              r["UNSENTS"] > 0), None), 30, lambda: str(rows(monitor)))
    assert row["PROCESSES"] == f"python ({stopped.pid})"
    until(lambda: monitor.get("SUBSCRIPTION_STALLED_CNT") == 1 and monitor.get("SUBSCRIPTION_STALLED_CNT.SEVR") == 1, 30, "the alarm")
    until(lambda: f"pid {stopped.pid})" in monitor.lines("IOC_EVENTS"), 30, lambda: monitor.lines("IOC_EVENTS"))
    until(lambda: of(monitor, neighbour)[wave]["STATES"].startswith("ok"), 10, lambda: str(rows(monitor)))
    stopped.go_on()
    answers(monitor, "nothing stops", wave, str(stopped.pid))
    until(lambda: monitor.get("SUBSCRIPTION_STALLED_CNT") == 0, 30, "nobody is stalled")
    stopped.kill()
    neighbour.kill()


def test_one_slow_callback_of_fifty(ioc, monitor):
    """With a queue of 2 and pipeline, the server sends no more than the client takes. 49 others of the same process, in another
    context, go on; so does one whose library reads, although its callback is slow: what it does then is its own."""
    names = [f"M{i}" for i in range(49)]
    slow, others = Client(ioc, ["TICK"], "record[queueSize=2,pipeline=true]", "time.sleep(1000)"), Client(ioc, names)
    plain = Client(ioc, ["TICK"], "record[queueSize=2]", "time.sleep(1000)")
    both(monitor, others, 49)
    line, steps = answers(monitor, "client: the client takes no updates since", ioc.prefix + "TICK", str(slow.pid))
    assert "queueSize, pipeline" in line and steps["record"][0] == "fine"
    row = until(lambda: next((r for r in of(monitor, slow).values() if r["STATES"].startswith("client takes no updates since")), None), 30,
                lambda: str(rows(monitor)))
    assert row["UNSENTS"] == 0
    answers(monitor, "nothing stops", ioc.prefix + "TICK", str(plain.pid))
    assert {r["STATES"] for r in both(monitor, others, 49).values()} == {"ok"}
    for i in range(49):
        ioc.put(f"M{i}", 7)
    until(lambda: len(others.got()) == 98, 30, lambda: others.output())
    assert why(monitor, ioc.prefix + "M7", str(others.pid))[0].startswith("nothing stops")
    for c in (slow, others, plain):
        c.kill()


def test_an_ioc_that_stands_still(ioc, monitor):
    c = Client(ioc, ["TICK"])
    both(monitor, c, 1)
    ioc.process.halt()
    answers(monitor, "IOC: ", ioc.prefix + "TICK", str(c.pid))
    until(lambda: of(monitor, c)[ioc.prefix + "TICK"]["STATES"].startswith("IOC stands still since"), 30, lambda: str(rows(monitor)))
    ioc.process.go_on()
    answers(monitor, "nothing stops", ioc.prefix + "TICK", str(c.pid))
    c.kill()


def test_a_connection_that_is_older(ioc, new_monitor):
    """The PV of an older monitor is not in the packets; the subscription of QSRV is in the memory of the IOC."""
    c = Client(ioc, ["TICK"])
    m = new_monitor().start()
    m.wait_ioc(ioc)
    who = "all pvAccess clients of this PV" if ioc.kind == "softIocPVA" else "a pvAccess client"
    row = until(lambda: rows(m).get((ioc.prefix + "TICK", who)), 30, lambda: str(rows(m)))
    assert row["STATES"] == "not known" and row["WAITING_CNTS"] == row["MERGED_CNTS"] == 0
    until(lambda: of(m, c).get("not known", {}).get("RATES", 0) > 5, 60, lambda: str(rows(m)))
    line, steps = why(m, ioc.prefix + "TICK", str(c.pid))
    assert line.startswith("nothing stops") and "older than the monitor" in steps["post"][1]
    if ioc.kind == "softIocPVA":  # the memory of QSRV 1 does not tell which channels a client has
        lines = m.command("ebpfMonClients")
        assert [line for line in lines if re.search(rf" PVA +{c.pid} +>1 +>1 +\d+ +- +python", line)], lines
    c.kill()


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_a_server_that_is_no_ioc(monitor, tmp_path, address):
    """Its monitors are seen in packets; whether its clients read, the kernel knows. They are in the table of clients."""
    name, port = f"{tmp_path.name}:X", loopback.take_port()
    serve = f"""
import time
from p4p.nt import NTScalar
from p4p.server import Server
from p4p.server.thread import SharedPV
pv = SharedPV(nt=NTScalar("ad"), initial=[0.0] * 100000)
with Server(providers=[{{{name!r}: pv}}]):
    print("serves", flush=True)
    while True:
        time.sleep(0.1)
        pv.post([1.0] * 100000)
"""
    server = Process([sys.executable, "-c", serve], loopback.server(port, **({"EPICS_PVAS_INTF_ADDR_LIST": "[::]"} if ":" in address else {})))
    until(lambda: "serves" in server.lines, 30, lambda: server.output())
    clients = [Client(Served(port), [name], name_server=f"{address}:{port + 1000}" * (":" in address)) for _ in range(2)]
    for c in clients:
        both(monitor, c, 1)
    clients[0].halt()
    row = until(lambda: next((r for r in of(monitor, clients[0]).values() if r["STATES"].startswith("client does not read since")), None),
                30, lambda: str(rows(monitor)))
    assert str(server.pid) in row["IOCS"] or "python" in row["IOCS"], row
    assert of(monitor, clients[1])[name]["STATES"] == "ok"
    until(lambda: [n.startswith(f"root@{address}:") for p, n in zip(monitor.list("CLIENT_PIDS"), monitor.list("CLIENT_NAMES"))
                   if p == clients[1].pid] == [True], 30, lambda: str(monitor.list("CLIENT_NAMES")))
    for p in (*clients, server):
        p.kill()
    loopback.give_port(port)


def test_table_of_clients(ioc, monitor):
    c = Client(ioc, ["TICK", "A"])

    def row():
        names = "NAMES IOCS PIDS CHANNEL_CNTS SUBSCRIPTION_CNTS COMMANDS".split()
        found = [r for r in zip(*(monitor.list("CLIENT_" + n) for n in names)) if r[2] == c.pid]
        return found and found[0]

    found = until(row, 30, lambda: str(monitor.list("CLIENT_NAMES")))
    assert re.fullmatch(r"root@127.0.0.1:\d+ PVA", found[0]) and found[1:] == (ioc.name, c.pid, 2, 2, "python"), found
    assert any(f" {c.pid} " in line and " PVA " in line for line in monitor.command("ebpfMonClients"))
    c.kill()
