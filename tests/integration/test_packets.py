# SPDX-License-Identifier: BSD-3-Clause
"""Puts are seen in packets, with servers and clients of other projects, as the clients sent them."""
import ctypes
import getpass
import os
import time
import warnings

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.caclients import (CHAR, DOUBLE, ENUM, FLOAT, LONG, NAMES, SHORT, STRING, Caproto, Libca, Raw, caput,
                               on_the_wire)
from tests.harness.corpus import ACF, NELM, RECORDS, STATES
from tests.harness.process import Process
from tests.harness.putlog import PutLog, same, same_array
from tests.harness.wait import settled, until

PROGRAM = paths.PROGRAMS / "peer_ioc.py"
INF, NAN = float("inf"), float("nan")
PACKING = {FLOAT: "f"}

SCALARS = {
    STRING: ["", "hello", "x" * 39],
    SHORT: [-32768, 32767],
    FLOAT: [2.5, NAN, INF, -INF, -0.0, 3.4028234663852886e38, 1.401298464324817e-45],
    ENUM: [2, 0, 1],
    CHAR: [255, 65, 0],
    LONG: [-2147483648, 2147483647],
    DOUBLE: [0.1, NAN, INF, -INF, -0.0, 1.7976931348623157e308, 5e-324],
}
ARRAYS = {
    STRING: [["one", "", "y" * 39], ["a"] * 20],
    SHORT: [[-32768, 32767, 0]],
    FLOAT: [[2.5, -0.0, NAN, INF]],
    CHAR: [[0, 128, 255], list(range(200))],
    LONG: [[2147483647, -2147483648], list(range(1000))],
    DOUBLE: [[0.1, -0.0, NAN, -INF], [i / 7 for i in range(NELM)]],
}


@pytest.fixture(scope="module")
def servers(module_ioc, tmp_path_factory):
    """All servers run on one host, each at its own ports."""
    acf = tmp_path_factory.mktemp("acf") / "test.acf"
    acf.write_text(ACF)
    made = {kind: module_ioc(kind="pythonSoftIOC", files=[PROGRAM, kind]).start(wait=False)
            for kind in ("caproto", "pcaspy", "softioc", "p4p")}
    made["softIocPVA"] = module_ioc(RECORDS, kind="softIocPVA", acf=acf).start(wait=False)
    for kind, ioc in made.items():
        if kind == "p4p":
            until(lambda: "ready" in ioc.process.lines or not ioc.running, 30, ioc.process.output)
            assert ioc.running, ioc.process.output()
        else:
            ioc.wait_ready()
    return made


@pytest.fixture(scope="module")
def early(servers):
    """A client that opened its channels before the monitor started."""
    client = Raw()
    for kind in ("caproto", "softIocPVA"):
        client.put(servers[kind], "LONG", LONG, [1], True)
    yield client
    client.close()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, servers, early, log):
    m = module_monitor(before=[log.command()]).start()
    for kind in ("softIocPVA", "softioc"):
        m.wait_ioc(servers[kind])
    return m


def seen_of(kind):
    return "both" if kind in ("softIocPVA", "softioc") else "wire"


def check_seen(log, kind, o):
    """At a busy time a put may be published before its packet has come."""
    log.inside += o["seen"] == "inside"
    assert o["seen"] == seen_of(kind) or (o["seen"] == "inside" and seen_of(kind) == "both"), o


def check(log, kind, ioc, o, record, notify, result=None):
    """Checks all parts of a line, except the value."""
    assert o["pv"] == ioc.prefix + record and o["ioc"] == ioc.name, o
    check_seen(log, kind, o)
    assert o["result"] == (result or ("ok" if notify or seen_of(kind) == "both" else "sent")), o
    assert o["server"] == f"127.0.0.1:{ioc.port}" and o["peer"].startswith("127.0.0.1:"), o


def missing(kind, base, client, many):
    """Types that this server does not have, or this client does not send."""
    return (kind == "pcaspy" and (base == CHAR and not many or base == STRING and many)) or \
        (kind == "softioc" and base == STRING and many) or (client is Caproto and base == STRING and many)


CLIENTS = {"libca": Libca, "caproto": Caproto, "raw": Raw}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["softIocPVA", "softioc", "caproto", "pcaspy"])
def test_channel_access(servers, monitor, log, kind, client):
    """Each type, as a scalar and as an array, by write and write-notify: each put once, in order, with value and
    writer."""
    ioc, client = servers[kind], CLIENTS[client]()
    puts = [(NAMES[t], t, [v], notify) for t, values in SCALARS.items() for notify in (False, True) for v in values
            if not missing(kind, t, type(client), False)]
    puts += [("A" + NAMES[t], t, v, notify) for t, values in ARRAYS.items() for notify in (False, True) for v in values
             if not missing(kind, t, type(client), True)]
    mark = len(log.of(ioc.prefix))
    for put in puts:
        client.put(ioc, *put)
    lines = log.next(len(puts), ioc.prefix, mark, 20)
    client.close()
    before = {}
    for (record, base, values, notify), o in zip(puts, lines):
        check(log, kind, ioc, o, record, notify)
        if len(values) > 1:
            assert int(o["count"]) == len(values) and same_array(o["value"], values, PACKING.get(base, "d")), o
        elif base == ENUM:
            assert o["value"] == (STATES[values[0]] if seen_of(kind) == "both" else str(values[0])), o
        else:
            assert "count" not in o and same(o["value"], values[0], PACKING.get(base, "d")), (values, o)
        if o["seen"] != "inside":
            assert o["hash"] == rawca.fnv(on_the_wire(base, values, client.whole_strings)), o
        assert (o["user"], o["host"], int(o["pid"])) == (client.user, client.host, os.getpid()), o
        assert o["command"].startswith("python") and o["through"] == "CA", o
        if record in before and len(values) == 1:
            assert o["old"] == before[record], o
        before[record] = o["value"]


@pytest.mark.parametrize("kind", ["softIocPVA", "caproto", "pcaspy"])
def test_caput(servers, monitor, log, kind):
    """caput sends values as text. Each put has its own process and connection."""
    ioc = servers[kind]
    mark = len(log.of(ioc.prefix))
    puts = [("DOUBLE", ["-c"], "2.25"), ("LONG", [], "-7"), ("STRING", ["-c"], "two words"), ("ALONG", ["-a"], "7")]
    if kind == "pcaspy":
        puts = puts[:2]  # each takes two seconds
    pids = [caput(ioc, *options, ioc.prefix + record, *(["2", "5"] if "-a" in options else []), value)
            for record, options, value in puts]
    lines = {o["pv"]: o for o in log.next(len(puts), ioc.prefix, mark)}
    for (record, options, value), pid in zip(puts, pids):
        o = lines[ioc.prefix + record]
        check(log, kind, ioc, o, record, "-c" in options)
        assert str(o["value"]) == ("[2] 5 7" if "-a" in options else value), o
        assert (int(o["pid"]), o["user"], o["host"]) == (pid, getpass.getuser(), paths.HOST), o
        assert o["command"].startswith("caput"), o


@pytest.mark.parametrize("kind", ["softIocPVA", "caproto"])
def test_compound_types(servers, monitor, log, kind):
    """DBR_STS_STRING to DBR_CTRL_DOUBLE: other data comes before the value."""
    ioc, client = servers[kind], Raw()
    values = {STRING: "3.5", SHORT: 3, FLOAT: 3.5, ENUM: 1, CHAR: 3, LONG: 3, DOUBLE: 3.5}
    mark = len(log.of(ioc.prefix))
    puts = [(group + base, v) for group in (rawca.STS, rawca.TIME, rawca.GR, rawca.CTRL) for base, v in values.items()]
    status = [client.put(ioc, "DOUBLE", dbr, [v], False) for dbr, v in puts]
    lines = log.next(len(puts), ioc.prefix, mark)
    client.close()
    for (dbr, v), answer, o in zip(puts, status, lines):
        if kind == "softIocPVA" and dbr == rawca.TIME + STRING:
            continue  # dbChannel_put() of Base 7.0.8.1 passes it on as DBR_TIME, which dbPut() takes for a number
        assert o["pv"] == ioc.prefix + "DOUBLE" and float(o["value"]) == float(v), (dbr, answer, o)
        if o["seen"] != "inside":
            assert o["hash"] == rawca.fnv(rawca.elements(dbr % 7, [v])), (dbr, o)
        if kind == "softIocPVA":  # caproto reports errors after the answer to the next request
            assert (o["result"] == "ok") == (answer == 1), (dbr, answer, o)
        else:
            assert o["result"] == ("failed" if "exception" in o.get("message", "") else "sent"), o


PVA = [("DOUBLE", v) for v in SCALARS[DOUBLE]] + [("LONG", -2147483648), ("STRING", ""), ("STRING", "x" * 39),
                                                  ("ADOUBLE", [0.1, -0.0, NAN]), ("ALONG", [1, -2, 3]),
                                                  ("ADOUBLE", [i / 7 for i in range(NELM)])]
PVA_P4P = [("BOOL", True, "true"), ("BYTE", -128, -128), ("SHORT", 32767, 32767), ("INT64", -2**63, -2**63),
           ("UINT64", 2**64 - 1, 2**64 - 1), ("FLOAT", 0.5, 0.5), ("ENUM", 2, "2 (Stopped)"),
           ("ENUM", "Idle", "0 (Idle)"),
           ("STRING", "h\u00e9 \u2192", "h\u00e9 \u2192"), ("ASTRING", ["a", "b c"], '[2] "a" "b c"'),
           ("ABOOL", [True, False], "[2] true false"),
           ("TABLE", {"value.a": [5, 6], "value.b": ["q", "r"]}, '{"value": {"a": [5, 6], "b": ["q", "r"]}}'),
           ("STRUCT", {"x": 2.5, "deep": {"n": 4, "s": "t"}}, '{"x": 2.5, "deep": {"n": 4, "s": "t"}}'),
           ("STRUCT", {"deep.s": "u"}, '{"deep": {"s": "u"}}')]


@pytest.mark.parametrize("kind", ["softIocPVA", "softioc", "p4p"])
def test_pv_access(servers, monitor, log, kind):
    ioc = servers[kind]
    puts = PVA + [("ENUM", 1)] * (kind != "p4p")
    if kind == "softioc":
        puts = [p for p in puts if p[0] != "STRING"] + [("STRING", "x" * 39)]
    mark = len(log.of(ioc.prefix))
    context = loopback.pva_context(ioc.port)
    for record, value in puts:
        context.put(ioc.prefix + record, value, timeout=60)
    expected = [(r, v, None) for r, v in puts]
    if kind == "p4p":
        for record, value, _ in PVA_P4P:
            context.put(ioc.prefix + record, value, timeout=60)
        expected += PVA_P4P
    assert ioc.run("pvput", "-w", "5", ioc.prefix + "DOUBLE", 6.5).returncode == 0
    context.close()
    expected.append(("DOUBLE", 6.5, None))
    # the lines of two connections need not be in the order of the puts
    lines = sorted(log.next(len(expected), ioc.prefix, mark), key=lambda line: line["time"])
    for (record, value, shown), o in zip(expected, lines):
        assert o["pv"] == ioc.prefix + record and o["ioc"] == ioc.name and o["through"] == "PVA", o
        check_seen(log, kind, o)
        assert o["result"] == "ok" and (o["seen"] == "inside" or o["hash"]), o
        assert o["user"] == getpass.getuser() and o["server"] == f"127.0.0.1:{ioc.port + 1000}", o
        if isinstance(value, list) and not shown:
            assert int(o["count"]) == len(value) and same_array(o["value"], value), o
        elif record == "ENUM":
            assert o["value"] == (shown or STATES[value]), o
        else:
            assert same(o["value"], value if shown is None else shown), (value, o)
    assert o["command"].startswith("pvput") and int(o["pid"]) != os.getpid()


TRIES = 5


@pytest.mark.parametrize("kind, record, base, value, result, message", [
    ("caproto", "RO", DOUBLE, 1.5, "denied", "Forbidden"),
    ("pcaspy", "RO", DOUBLE, 1.5, "denied", "rite access denied"),
    ("softIocPVA", "RO", DOUBLE, 1.5, "denied", ""),
    ("caproto", "BAD", DOUBLE, 1.5, "failed", "no such value"),
    ("softIocPVA", "DISABLED", DOUBLE, 1.5, "failed", ""),
    ("softIocPVA", "DOUBLE", STRING, "no number", "failed", ""),
])
def test_refused(servers, monitor, log, kind, record, base, value, result, message):
    """A refused put is seen once, with the answer of the server. Its value does not become the old value of the next
    put."""
    ioc, client = servers[kind], Raw()
    mark = len(log.of(ioc.prefix))
    assert client.put(ioc, record, base, [value], True) != 1
    slow = [False]

    def answered():
        """A plain write. The monitor waits 50 ms for its error; on a busy host a server may need more."""
        begin = time.monotonic()
        if client.put(ioc, record, base, [value], False) == 1:
            client.wait_error(ioc)  # caproto's comes after the answer to the next request
        slow.append(time.monotonic() - begin > 0.03)
        return not slow[-1]

    until(lambda: answered() or len(slow) > TRIES, 10, "an answer within 30 ms, or none of so many")
    missed = False  # an error that came too late
    for late, o in zip(slow, log.next(len(slow), ioc.prefix, mark)):
        sent = late and o["result"] == "sent"
        check(log, kind, ioc, o, record, True, "sent" if sent else result)
        assert same(o["value"], value) and (sent or message in o.get("message", "")), o
        assert missed or o.get("old") != o["value"], o
        missed |= sent
    client.close()


ACKT, ACKS = 35, 36  # DBR_PUT_ACKT, DBR_PUT_ACKS


def test_acknowledgement(servers, monitor, log):
    """dbPut does not touch VAL. It may have any other name of the field, and ask for a reply."""
    ioc, client, raw = servers["softIocPVA"], Libca(), rawca.RawCa(servers["softIocPVA"].port)
    mark = len(log.of(ioc.prefix))
    client.put(ioc, "DOUBLE", DOUBLE, [7.5], True)
    for dtype, value in ((ACKT, 0), (ACKT, 1), (ACKS, 2)):
        status = client.ca.libca.ca_array_put(dtype, 1, client.channel(ioc.prefix + "DOUBLE"),
                                              ctypes.byref(ctypes.c_ushort(value)))
        assert status == 1, status
    client.put(ioc, "DOUBLE", DOUBLE, [8.5], True)
    raw.put_bytes(ioc.prefix + "DOUBLE.DESC", b"\0\3", ACKS, notify=True)
    lines = log.next(6, ioc.prefix, mark)
    assert [(o["pv"][len(ioc.prefix):], o["value"], o.get("old"), o.get("channel")) for o in lines[1:]] == [
        ("DOUBLE.ACKT", "acknowledge transient NO", None, None),
        ("DOUBLE.ACKT", "acknowledge transient YES", None, None),
        ("DOUBLE.ACKS", "acknowledge MAJOR", None, None), ("DOUBLE", "8.5", "7.5", None),
        ("DOUBLE.ACKS", "acknowledge INVALID", None, None)], lines
    for o in lines:
        check_seen(log, "softIocPVA", o)
        assert o["result"] == "ok" and "after" not in o, o
    client.close()
    raw.close()


def test_acknowledgement_in_packets_only(servers, monitor, log):
    """It does not become the old value of the next put. caproto answers that it knows no such put."""
    ioc, client = servers["caproto"], rawca.RawCa(servers["caproto"].port)
    mark = len(log.of(ioc.prefix))
    client.put(ioc.prefix + "DOUBLE", DOUBLE, [7.5], True)
    client.put_bytes(ioc.prefix + "DOUBLE", b"\0\2", ACKS)
    client.put(ioc.prefix + "DOUBLE", DOUBLE, [8.5], True)
    lines = log.next(3, ioc.prefix, mark)
    assert [(o["pv"][len(ioc.prefix):], o["value"], o.get("old")) for o in lines[1:]] == [
        ("DOUBLE.ACKS", "acknowledge MAJOR", None), ("DOUBLE", "8.5", "7.5")], lines
    client.close()


@pytest.mark.parametrize("dtype, message", [(39, "type"), (60000, "type"), (37, "failed")])
def test_type_that_ca_does_not_have(servers, monitor, log, dtype, message):
    """The IOC refuses such a put before it calls dbPut, and closes the connection if the type does not exist."""
    ioc = servers["softIocPVA"]
    mark = len(log.of(ioc.prefix))
    client = rawca.RawCa(ioc.port)
    try:
        client.put_bytes(ioc.prefix + "DOUBLE", bytes(64), dtype)
    except ConnectionError:
        assert dtype != 37
    o, = log.next(1, ioc.prefix, mark, 20)
    assert (o["pv"], o["result"], o["seen"]) == (ioc.prefix + "DOUBLE", "failed", "wire"), o
    assert message in o["message"].lower() and (dtype == 37 or o["value"] == "?"), o
    client.close()


def test_refused_by_p4p(servers, monitor, log):
    from p4p.client.thread import RemoteError

    ioc = servers["p4p"]
    mark = len(log.of(ioc.prefix))
    with loopback.pva_context(ioc.port) as context:
        with pytest.raises(RemoteError):
            context.put(ioc.prefix + "BAD", 5.0, timeout=60)
    o, = log.next(1, ioc.prefix, mark)
    assert (o["pv"], o["result"], o["message"]) == (ioc.prefix + "BAD", "failed", "no such value"), o


def test_old_values_of_the_same_fields(servers, monitor, log):
    """A put to some fields of a structure tells the old value of the next put to these fields, and nothing of other fields."""
    ioc = servers["p4p"]
    puts = [("LONG", {"value": 5}, "?"), ("LONG", {"value": 6}, "5"), ("LONG", {"alarm.severity": 2}, None),
            ("LONG", {"alarm.severity": 1}, '{"alarm": {"severity": 2}}'), ("LONG", {"value": 7}, None),
            ("LONG", {"value": 8}, "7"), ("STRUCT", {"x": 2.0}, None), ("STRUCT", {"deep.n": 3}, None),
            ("STRUCT", {"deep.s": "a"}, None), ("STRUCT", {"deep.s": "b"}, '{"deep": {"s": "a"}}'),
            ("STRUCT", {"deep.n": 4, "deep.s": "c"}, None)]
    mark = len(log.of(ioc.prefix))
    with loopback.pva_context(ioc.port, nt=False) as context:
        for record, value, _ in puts:
            context.put(ioc.prefix + record, value, timeout=60)
    lines = log.next(len(puts), ioc.prefix, mark)
    assert [o.get("old") for o in lines[1:]] == [old for _, _, old in puts[1:]]  # an earlier test may have put the first one


def test_two_servers_with_the_same_names(module_ioc, servers, monitor, log):
    first = servers["caproto"]
    second = module_ioc(kind="pythonSoftIOC", files=[PROGRAM, "caproto"], prefix=first.prefix).start()
    clients = [rawca.RawCa(ioc.port) for ioc in (first, second)]
    mark = len(log.of(first.prefix))
    for i in range(10):
        for n, client in enumerate(clients):
            client.put(first.prefix + "LONG", LONG, [100 * n + i], sync=False)
    for client in clients:
        client.put(first.prefix + "LONG", LONG, [-1], True)
    lines = log.next(22, first.prefix, mark)
    for n, ioc in enumerate((first, second)):
        mine = [o for o in lines if o["ioc"] == ioc.name]
        assert [int(o["value"]) for o in mine] == [100 * n + i for i in range(10)] + [-1]
        assert [int(o["old"]) for o in mine[1:]] == [100 * n + i for i in range(10)]
        assert {(o["peer"], o["server"]) for o in mine} == {(clients[n].address, f"127.0.0.1:{ioc.port}")}
        clients[n].close()


def test_channels_older_than_the_monitor(servers, early, monitor, log):
    """A channel that is older than the monitor: the put has the server's number of the channel instead of a name,
    unless the server is a watched IOC. A later channel has its name."""
    ioc = servers["caproto"]
    sid = early._circuits[ioc.port].sid(ioc.prefix + "LONG")
    mark, mark2 = len(log.of("sid ")), len(log.of(ioc.prefix))
    early.put(ioc, "LONG", LONG, [4711], True)
    o, = log.next(1, "sid ", mark)
    assert (o["pv"], o["value"], o["ioc"]) == (f"sid {sid}", "4711", ioc.name), o
    assert o["server"] == f"127.0.0.1:{ioc.port}" and int(o["pid"]) == os.getpid(), o
    early.put(ioc, "DOUBLE", DOUBLE, [4.5], True)
    o, = log.next(1, ioc.prefix, mark2)
    check(log, "caproto", ioc, o, "DOUBLE", True)
    ioc = servers["softIocPVA"]
    mark = len(log.of(ioc.prefix))
    early.put(ioc, "LONG", LONG, [4712], True)
    o, = log.next(1, ioc.prefix, mark)
    check(log, "softIocPVA", ioc, o, "LONG", True)


def test_stopped_ioc(servers, monitor, log):
    """Puts that a stopped IOC has not read yet are not lost."""
    ioc, client = servers["softIocPVA"], Raw()
    mark = len(log.of(ioc.prefix))
    client.put(ioc, "LONG", LONG, [0], True)
    log.next(1, ioc.prefix, mark)
    mark += 1
    circuit = client._circuits[ioc.port]
    ioc.process.halt()
    try:
        for i in range(20):
            circuit.put(ioc.prefix + "LONG", LONG, [i], sync=False)
        assert settled(lambda: log.of(ioc.prefix)[mark:], 10, quiet=2.5) == []
    finally:
        ioc.process.go_on()
    lines = log.next(20, ioc.prefix, mark)
    assert [int(o["value"]) for o in lines] == list(range(20))
    for o in lines:
        check(log, "softIocPVA", ioc, o, "LONG", False)
    client.close()


def test_restarted_server(module_ioc, monitor, log):
    """When a server restarts that is no IOC of Base, the values of its PVs are unknown again."""
    ioc = module_ioc(kind="pythonSoftIOC", files=[PROGRAM, "caproto"], prefix="AGAIN:").start()
    for first in (5, 7):
        client = rawca.RawCa(ioc.port)
        client.put(ioc.prefix + "LONG", LONG, [first], True)
        client.put(ioc.prefix + "LONG", LONG, [first + 1], True)
        mark = 0 if first == 5 else 3
        lines = log.next(2, ioc.prefix, mark)
        assert [(o.get("old"), str(o["value"])) for o in lines] == [(None, str(first)), (str(first), str(first + 1))]
        if first == 5:  # when a client leaves, the server has not ended
            client.close()
            client = rawca.RawCa(ioc.port)
            client.put(ioc.prefix + "LONG", LONG, [9], True)
            assert [o["old"] for o in log.next(1, ioc.prefix, 2)] == ["6"]
            ioc.kill()
            ioc.start()
        client.close()


def test_an_ioc_killed_with_puts_in_its_queue(module_ioc, monitor, log):
    ioc = module_ioc(db.READY + db.record("longout", "LONG")).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)
    client.put(ioc.prefix + "LONG", LONG, [0], True)
    log.next(1, ioc.prefix, 0)
    ioc.process.halt()
    for i in range(1, 11):
        client.put(ioc.prefix + "LONG", LONG, [i], sync=False)
    ioc.kill()
    # the monitor waits 10 s after the end of a connection: the server may still read puts
    lines = log.next(10, ioc.prefix, 1, 20)
    assert [int(o["value"]) for o in lines] == list(range(1, 11))
    for o in lines:
        assert o["result"] in ("lost", "unknown") and o["seen"] == "wire" and o["ioc"] == ioc.name, o
    client.close()


def test_no_other_puts(monitor, log):
    """In all tests above no put was seen twice, and no line shows a put that was not sent. Half of the puts go to IOCs.
    Few of these are published before their packets come, even on a busy host."""
    lines = settled(log.all, 20, quiet=1.5)
    assert len(lines) == log.expected and log.inside <= log.expected / 8, log.inside
    lost = {name: monitor.get(name) for name in ("PACKET_LOST_CNT", "PACKET_GAP_CNT")}
    assert monitor.losses() == {} and monitor.get("PACKET_STATE") == 1, lost
    if any(lost.values()):
        warnings.warn(f"the machine was too busy to read all packets: {lost}")
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def test_searches(servers, monitor):
    """A name that no server has, and the client that searches for it."""
    name = f"NOBODY:HAS:{os.getpid()}"
    before = monitor.get("SEARCH_CNT")
    port = servers["softIocPVA"].port
    client = Process([paths.BASE_BIN / "caget", "-w", "5", name], loopback.client(port))
    # the list begins with the name that has the most searches
    until(lambda: not rawca.answers(port, name) and name in monitor.list("UNFOUND_NAMES"), 20,
          lambda: str(monitor.list("UNFOUND_NAMES")))
    client.wait()
    assert client.returncode != 0
    at = monitor.list("UNFOUND_NAMES").index(name)
    assert monitor.list("UNFOUND_CNTS")[at] >= 3 and "127.0.0.1" in monitor.list("UNFOUND_CLIENTS")[at]
    assert monitor.get("SEARCH_CNT") >= before + 3
    assert not any(n.startswith(servers["softIocPVA"].prefix) for n in monitor.list("UNFOUND_NAMES"))


def test_beacons(module_ioc, monitor):
    before = monitor.get("BEACON_CNT")
    ioc = module_ioc(db.READY).start()
    monitor.wait("BEACON_CNT", lambda n: n >= before + 3, 10)
    until(lambda: f"127.0.0.1:{ioc.port}" in " ".join(map(str, monitor.list("BEACON_SERVERS"))), 10,
          lambda: str(monitor.list("BEACON_SERVERS")))


def test_no_complaint_about_ports_that_are_not_set(new_ioc, new_monitor):
    """Base has no default for some ports, and prints an error if they are read. The console is for what matters."""
    ioc = new_ioc(db.READY).start()
    names = ("EPICS_CAS_BEACON_PORT", "EPICS_CAS_SERVER_PORT")
    monitor = new_monitor(environ=dict.fromkeys(names, "")).start()
    monitor.wait_ioc(ioc)
    until(lambda: monitor.get("PACKET_STATE", as_string=True) == "On", 20, "packets are read")
    assert not [line for line in monitor.process.lines if "fetch failed" in line]
