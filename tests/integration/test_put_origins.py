# SPDX-License-Identifier: BSD-3-Clause
"""For each way of a put, the monitor finds its writer, origin, cause, value and result. No origin is "unknown". The
tests read the JSON log. In the log and in the expected puts, a: and b: are the prefixes of two roadsIoc (b has a CA
link to a), q: is the prefix of a softIocPVA, x: of an IOC with pvxs."""
import getpass
import itertools
import json
import os
import re
import socket
import struct

import pytest
from tests.harness import ca, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.wait import settled, until

USER = getpass.getuser()
BY_CLIENT = f"put by {USER}@{paths.HOST}"
PEER = re.compile(r"127\.0\.0\.1:\d+")
FULL, VALUES = "x" * 39, itertools.count(1000)  # the longest text of a STRING; no put has the value of another one

PVA_DB = """
record(calc, "$(P)READY")   { field(CALC, "1") field(PINI, "YES") }
record(ao, "$(P)AO")        { field(DRVH, "10") field(DRVL, "-10") field(FLNK, "$(P)CO") alias("$(P)ALIAS") }
record(calcout, "$(P)CO")   { field(INPA, "$(P)AO") field(CALC, "A") field(OUT, "$(P)DST PP") }
record(ao, "$(P)DST")       { }
record(mbbo, "$(P)MODE")    { field(ZRST, "Off") field(ONST, "On") }
record(ao, "$(P)T{A:1}SP")  { alias("$(P)T[1]") }
record(lso, "$(P)LSO")      { field(SIZV, "200") }
record(waveform, "$(P)WF")  { field(FTVL, "DOUBLE") field(NELM, "1000") }
record(waveform, "$(P)WFS") { field(FTVL, "STRING") field(NELM, "10") }
record(ao, "$(P)DISABLED")  { field(DISP, "1") }
record(ao, "$(P)DENIED")    { field(ASG, "DENIED") }
record(seq, "$(P)BUSY")     { field(DLY1, "1.5") field(DO1, "1") field(LNK1, "$(P)BUSY:DST PP") }
record(ao, "$(P)BUSY:DST")  { }
record(ao, "$(P)CP:SRC")    { }
record(calcout, "$(P)CP:MID") { field(INPA, "$(P)CP:SRC CP") field(CALC, "A") field(OUT, "$(P)CP:DST PP") }
record(ao, "$(P)CP:DST")    { }
record(ao, "$(P)G1")        { info(Q:group, {"$(P)GRP": {"a": {+channel: "VAL", +putorder: 1}}}) }
record(ao, "$(P)G2")        { info(Q:group, {"$(P)GRP": {"b": {+channel: "VAL", +putorder: 2}}}) }
"""


class World:
    def __init__(self, path, monitor, iocs):
        self.path, self.monitor, self.iocs = path, monitor, iocs
        self.at = 0

    def full(self, text):
        """The PV name of "a:AO" in its IOC."""
        return re.sub(r"(?<![\w:])([abqx]):", lambda m: self.iocs[m[1]].prefix, str(text))

    def ioc(self, name):
        return self.iocs[name[0]]

    def objects(self, start=None):
        data = self.path.read_bytes()[self.at if start is None else start:] if self.path.exists() else b""
        text = data[:data.rfind(b"\n") + 1].decode()
        for short, ioc in self.iocs.items():
            text = text.replace(ioc.prefix, short + ":").replace(f'"{ioc.name}"', f'"{short}"')
        return [json.loads(line) for line in text.splitlines()]

    def mark(self):
        """Ignores all lines of the log until now."""
        self.at = self.path.stat().st_size if self.path.exists() else 0

    def expect(self, *rows, seconds=8):
        """Waits for all these puts. The puts to each PV have this order, and there is no other put to these PVs."""
        found = []

        def there():
            found[:] = [o for o in self.objects() if any(o["pv"] == r["pv"] for r in rows)]
            return len(found) >= len(rows)

        until(there, seconds, lambda: f"{rows}\n{found}\nin {self.objects()}")
        assert len(found) == len(rows), found
        for row in rows:
            o = next(o for o in found if o["pv"] == row["pv"])
            found.remove(o)
            wrong = {k: o.get(k) for k, v in row.items() if not same(o.get(k), v)}
            assert not wrong, f"{wrong} is not {({k: row[k] for k in wrong})} in {o}"
            if o["through"] in ("CA", "PVA") and o["seen"] != "wire":
                assert o.get("hash") or o["seen"] == "inside"
        return self

    def run(self, program, name, *args):
        """Runs a client program of Base. Returns its pid."""
        ioc = self.ioc(name.split()[-1])
        options = name.split()[:-1]
        p = Process([paths.BASE_BIN / program, "-w", "5", *options, self.full(name.split()[-1]), *map(self.full, args)],
                    loopback.client(ioc.port))
        p.wait(15)
        return p.pid

    def caput(self, name, *args):
        return self.run("caput", name, *args)

    def pv(self, name):
        return ca.pv(self.full(name))


def same(got, want):
    return bool(isinstance(got, str) and want.fullmatch(got)) if isinstance(want, re.Pattern) else got == want


def client(pid, command="caput"):
    return {"user": USER, "host": paths.HOST, "peer": PEER, "real_user": USER, "pid": pid, "command": command}


def link(name, root, cause=BY_CLIENT, **more):
    return {"through": "link", "link": name, "root": root, "cause": cause, "result": "ok", **more}


def no_client(thread, through="thread", **more):
    return {"through": through, "thread": thread, "user": None, "peer": None, "result": "ok", **more}


@pytest.fixture(scope="module")
def started(module_ioc, module_monitor, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "puts.json"
    monitor = module_monitor(before=[f'ebpfMonJsonLog "{path}" 100 0 1 all']).start()
    db = [paths.TESTS / "ioc" / "roads.db"]
    a = module_ioc(kind="roadsIoc", files=db, macros="SCAN=Passive", environ={"ROADS_WAIT": "1"})
    a.start(wait=False)
    monitor.wait_ioc(a, level="puts", records=60)  # before its iocInit
    a.process.send("go")
    a.wait_ready()
    b = module_ioc(kind="roadsIoc", files=db, macros=f"SCAN=Passive,OTHER={a.prefix}AO").start()
    q = module_ioc(PVA_DB, kind="softIocPVA", acf=paths.TESTS / "ioc" / "roads.acf").start()
    x = module_ioc(PVA_DB, kind="pvxs").start()
    for ioc in (a, b, q, x):
        monitor.wait_ioc(ioc)
    return World(path, monitor, {"a": a, "b": b, "q": q, "x": x})


@pytest.fixture
def world(started):
    started.mark()
    return started


def test_restored_at_start_up(started):
    """Arrays that autosave restores are seen. It writes scalars without dbPut (dbPutString), so they are not seen."""
    started.at = 0
    started.expect({"pv": "a:KEPT:ARRAY", "value": "[3] 1 2.5 4", "count": 3, "old": "[0]",
                    **no_client("roadsIoc", "start-up")})
    started.expect({"pv": "a:CP:DST", "value": 0, "link": "a:CP:MID.OUT", "through": "link", "thread": "scanOnce"})
    assert started.pv("a:KEPT").get() == 13.5 and started.pv("a:KEPT:TEXT").get() == "from the file"
    assert not [o for o in started.objects() if o["pv"] in ("a:KEPT", "a:KEPT:TEXT")]


@pytest.mark.parametrize("program, name, through, thread", [
    ("caput", "a:AO", "CA", "CAS-client"),
    ("caput", "-c a:AO", "CA", "CAS-client"),
    ("pvput", "q:AO", "PVA", "TCP-rx"),
    ("pvput", "-r record[block=true] q:AO", "PVA", "TCP-rx"),
    ("pvput", "x:AO", "PVA", "PVXTCP"),
    ("pvput", "-r record[block=true] x:AO", "PVA", "PVXTCP"),
])
def test_client(world, program, name, through, thread):
    pid = world.run(program, name, 2.5)
    world.expect({"pv": name.split()[-1], "value": 2.5, "through": through, "thread": thread, "result": "ok",
                  **client(pid, program)})


@pytest.mark.parametrize("name, args, pv, value, old", [
    ("a:LIM:ALIAS", [3], "a:LIM", 3, 0),
    ("a:LIM:SECOND:ALIAS.VAL", [4], "a:LIM", 4, 3),
    ("a:AO.DESC", ["text"], "a:AO.DESC", "text", ""),
    ("-S a:AO.DESC$", ["café"], "a:AO.DESC", "café", "text"),
    ("-S a:AO.DESC$", [""], "a:AO.DESC", "", "café"),
    ("-S a:LSO.VAL$", ["long " * 30], "a:LSO", "long " * 30, ""),
    ("-S a:LSO.VAL$", ["7"], "a:LSO", "7", "long " * 30),
    ("a:NPP:SRC.OUT", ["a:PP:DST NPP"], "a:NPP:SRC.OUT", "a:PP:DST NPP", "a:NPP:DST NPP NMS"),
    ("-S a:NPP:SRC.OUT$", ["a:NPP:DST PP"], "a:NPP:SRC.OUT", "a:NPP:DST PP", "a:PP:DST NPP NMS"),
    ("a:NPP:SRC.OUT", ["a:NPP:DST NPP"], "a:NPP:SRC.OUT", "a:NPP:DST NPP", "a:NPP:DST PP NMS"),
    # CA writes from the first element on
    ('-a a:WF:DOUBLE.{"arr":{"s":1}}', [2, 4, 5], "a:WF:DOUBLE", "[2] 4 5", "[0]"),
    ("-a a:WF:DOUBLE.VAL[1:2]", [2, 6, 7], "a:WF:DOUBLE", "[2] 6 7", "[2] 4 5"),
    ("q:ALIAS", [3], "q:AO", 3, 2.5),
    ("x:ALIAS", [3], "x:AO", 3, 2.5),
    ("q:AO.DESC", ["text"], "q:AO.DESC", "text", ""),
    ("x:AO.DESC", ["text"], "x:AO.DESC", "text", ""),
    ("q:CO.OUT", ["q:DST NPP"], "q:CO.OUT", "q:DST NPP", "q:DST PP NMS"),
    ("x:CO.OUT", ["x:DST NPP"], "x:CO.OUT", "x:DST NPP", "x:DST PP NMS"),
    ('q:WF.{"arr":{"s":1}}', ["[4,5]"], "q:WF", "[2] 4 5", "[0]"),
    ("x:WF.VAL[1:2]", ["[4,5]"], "x:WF", "[2] 4 5", "[0]"),
])
def test_channel_names(world, name, args, pv, value, old):
    """The log has the name that the client used, and the field of the record."""
    pid = world.run("pvput" if name[0] in "qx" else "caput", name, *args)
    channel = name.split()[-1]
    world.expect({"pv": pv, "channel": channel if channel != pv else None, "value": value, "old": old, "result": "ok",
                  "pid": pid})


@pytest.mark.parametrize("program, options", [("caput", ""), ("caput", "-c "), ("pvput", "")])
@pytest.mark.parametrize("name", ["T{A:1}SP", "T{A:1}SP.VAL[0:0]", "T[1]", "T[1].DESC"])
def test_record_names_with_braces(world, program, options, name):
    """A name ends at the dot, only modifiers follow it. The last test of this file would see a put that is shown twice."""
    for ioc in "qx" if program == "pvput" else "q":
        pv, channel = f"{ioc}:T{{A:1}}SP" + (".DESC" if "DESC" in name else ""), f"{ioc}:{name}"
        pid = world.run(program, options + channel, next(VALUES))
        world.expect({"pv": pv, "channel": channel if channel != pv else None, "pid": pid, "result": "ok"}).mark()


@pytest.mark.parametrize("name, sent, value, after", [
    ("a:LIM", 50, 50, "10"),
    ("a:LIM", -50, -50, "-10"),
    ("a:LIM", 3, 3, None),
    ("a:LONG", 3.7, 3.7, "3"),
    ("-s a:LONG", "4.7", 4.7, "4"),
    ("a:LONG", 300, 300, "100"),
    ("a:AO", "nan", "Nan", None),
    ("a:AO", "inf", "Infinity", None),
    ("a:AO", "-inf", "-Infinity", None),
    ("-s a:MODE", "Run", "Run", None),
    ("a:MODE", "Test mode", "Test mode", None),
    ("-n a:MODE", 1, "Standby", None),
    ("a:STRING", FULL, FULL, None),
    ("a:STRING", "", "", None),
    ("q:AO", 50, 50, "10"),
    ("x:AO", 50, 50, "10"),
    ("q:AO", "nan", "Nan", None),
    ("x:AO", "inf", "Infinity", "10"),
    ("q:MODE", "On", "On", None),
    ("x:LSO", "long " * 30, "long " * 30, None),
    ("q:WFS", '["a","bc"]', "[2] a bc", None),
])
def test_values(world, name, sent, value, after):
    """The value that was sent, and the value that the record had afterwards."""
    pv = name.split()[-1]
    world.run("pvput" if pv[0] in "qx" else "caput", name, sent)
    world.expect({"pv": pv, "value": value, "after": after, "result": "ok"})


@pytest.mark.parametrize("payload, value, after", [
    (b"y" * 40, "y" * 40, FULL.replace("x", "y")),  # no zero at the end
    (b"\xff\xfelatin \xe9\0", "\\xff\\xfelatin \\xe9", None),
    (b"a\n\x1b[31m\0", "a\\x0a\\x1b[31m", None),
    (b"\0", "", None),
    (b"", "", None),
])
def test_strings_of_any_bytes(world, payload, value, after):
    ca.write(world.ioc("a").port, world.full("a:STRING"), payload, 0)
    world.expect({"pv": "a:STRING", "value": value, "after": after, "user": "tester", "host": "testhost",
                  "real_user": USER, "pid": os.getpid(), "result": "ok"})


@pytest.mark.parametrize("kind, values, code, text", [
    ("CHAR", [-1, 2, 0], "b", "[3] 255 2 0"),  # CHAR of CA is unsigned
    ("UCHAR", [255, 2, 0], "b", "[3] 255 2 0"),
    ("SHORT", [-32768, 7], "h", "[2] -32768 7"),
    ("LONG", list(range(3000)), "i", "[3000] 0 1 2 3 4 5 6 7 ..."),
    ("FLOAT", [0.5, -0.25], "f", "[2] 0.5 -0.25"),
    ("DOUBLE", [0.1 * i for i in range(20000)], "d", "[20000] 0 0.1 0.2 0.30000000000000004 0.4 0.5 0.6000000000000001"
                                                     " 0.7000000000000001 ..."),
    ("STRING", ["a", FULL, ""], "s", f"[3] a {FULL} "),
])
def test_arrays(world, kind, values, code, text):
    pv = world.pv(f"a:WF:{kind}")
    pv.put(values, wait=True, timeout=60)
    if code == "s":
        data = b"".join(v.encode().ljust(40, b"\0") for v in values)
    else:
        data = struct.pack(f">{len(values)}{code.upper() if kind == 'UCHAR' else code}", *values)
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    world.expect({"pv": f"a:WF:{kind}", "value": text, "count": len(values),
                  "hash": re.compile(f"{h:016x}")})


@pytest.mark.parametrize("name, sent, result, status, message", [
    ("-c -s a:AO", "no number", "failed", 33030145, None),  # S_stdlib_noConversion
    ("a:LONG", "nan", "failed", 33030145, None),
    ("-c a:DISABLED", 3, "failed", 33488937, None),         # S_db_putDisabled
    ("a:DISABLED", 4, "failed", 33488937, None),
    ("q:AO.NAME", "name", "failed", 33488901, None),        # S_db_noMod
    ("x:AO.NAME", "name", "failed", 33488901, None),
    ("q:DISABLED", 3, "failed", None, "Put Disabled"),
    ("x:DISABLED", 3, "failed", None, re.compile(".*putDisabled")),
    ("q:DENIED", 3, "denied", None, "Put not permitted"),
])
def test_failed(world, name, sent, result, status, message):
    pv = name.split()[-1]
    pid = world.run("pvput" if pv[0] in "qx" else "caput", name, sent)
    world.expect({"pv": pv, "result": result, "status": status, "message": message, "pid": pid})


@pytest.mark.parametrize("name, payload, dtype, result, value, status", [
    ("a:DENIED", struct.pack(">d", 5), 6, "denied", 5, None),
    ("a:AO.NAME", b"other\0", 0, "denied", "other", None),
    ("a:MODE", b"no state\0", 0, "failed", "no state", 33488909), # S_db_badChoice
])
@pytest.mark.parametrize("callback", [False, True])
def test_denied_to_a_client_that_ignores_rights(world, name, payload, dtype, result, value, status, callback):
    ca.write(world.ioc("a").port, world.full(name), payload, dtype, callback=callback)
    world.expect({"pv": name, "value": value, "result": result, "status": status, "user": "tester",
                  "real_user": USER, "pid": os.getpid(), "through": "CA"})


def test_record_that_asks_a_server_of_its_own(world):
    """Between two messages of a client, its thread of the CA server reads from another connection."""
    client = rawca.RawCa(world.ioc("a").port, "tester", "testhost")
    with socket.create_server(("127.0.0.1", 0)) as server:
        rows = [("a:INT64", next(VALUES)), ("a:ASK", server.getsockname()[1]), ("a:INT64", next(VALUES))]
        client.send(b"".join([rawca.write(client.sid(world.full(pv)), rawca.DOUBLE, [value]) for pv, value in rows] +
                             [rawca.message(rawca.ECHO)]))
        with server.accept()[0] as asked:
            asked.sendall(b"x")
            client.until(rawca.ECHO)
    world.expect(*({"pv": pv, "value": value, "user": "tester", "peer": client.address, "real_user": USER, "pid": os.getpid(),
                    "result": "ok"} for pv, value in rows))
    client.close()


@pytest.mark.parametrize("callback", [False, True])
def test_acknowledged_alarms(world, callback):
    for name, pv, channel, result in (("a:LIM:ALIAS", "a:LIM.ACKS", "a:LIM:ALIAS.ACKS", "ok"),
                                      ("a:DENIED.HIGH", "a:DENIED.ACKS", None, "denied")):
        ca.write(world.ioc("a").port, world.full(name), b"\0\2", 36, callback=callback)  # DBR_PUT_ACKS
        world.expect({"pv": pv, "channel": channel, "value": "acknowledge MAJOR", "old": None, "after": None, "result": result,
                      "user": "tester", "pid": os.getpid(), "through": "CA"}).mark()


@pytest.mark.parametrize("name, sent, rows", [
    ("a:PP:SRC.A", 4, [{"pv": "a:PP:DST", "value": 4, **link("a:PP:SRC.OUT", "a:PP:SRC")}]),
    ("a:NPP:SRC.A", 5, [{"pv": "a:NPP:DST", "value": 5, **link("a:NPP:SRC.OUT", "a:NPP:SRC")}]),
    ("a:DFAN", 6, [{"pv": f"a:DFAN:{c}", "value": 6, **link(f"a:DFAN.OUT{c}", "a:DFAN")} for c in "AB"]),
    ("a:SEQ.PROC", 1, [{"pv": "a:SEQ:A", "value": 11, **link("a:SEQ.LNK1", "a:SEQ")},
                       {"pv": "a:SEQ:B", "value": 22, **link("a:SEQ.LNK2", "a:SEQ", thread="cbLow")}]),
    ("a:FAN.PROC", 1, [{"pv": "a:FAN:DST", "value": 1, **link("a:FAN:A.OUT", "a:FAN")}]),
    ("a:ASYN.PROC", 1, [{"pv": "a:ASYN:DST", **link("a:ASYN:SRC.OUT", "a:ASYN", thread="cbLow")}]),
    ("-a a:AAO", [2, 1.5, 2.5], [{"pv": "a:AAO:DST", "value": "[2] 1.5 2.5", **link("a:AAO.OUT", "a:AAO")}]),
    ("a:TICK:IN.PROC", 1, [{"pv": "a:TICK:MID", **link("a:TICK:OUT.OUT", "a:TICK:IN")},
                           {"pv": "a:TICK:DST", **link("a:TICK:MID.OUT", "a:TICK:IN")}]),
])
def test_links_for_a_client(world, name, sent, rows):
    """The client's put is the cause of all puts by links, also of later ones in other threads."""
    pid = world.caput(name, *(sent if isinstance(sent, list) else [sent]))
    world.expect(*({**client(pid), **row} for row in rows), {"pv": name.split()[-1], "through": "CA", **client(pid)})


@pytest.mark.parametrize("ioc, thread", [("q", "TCP-rx"), ("x", "PVXTCP")])
def test_links_for_a_pva_client(world, ioc, thread):
    pid = world.run("pvput", f"{ioc}:AO", 7)
    world.expect({"pv": f"{ioc}:DST", "value": 7, "thread": thread, "pid": pid, "peer": PEER,
                  # the names that a PVA client sends are seen in packets only
                  **link(f"{ioc}:CO.OUT", f"{ioc}:AO", f"put by {USER}@127.0.0.1")})


def test_pva_group(world):
    for name in "qx":
        with loopback.pva_context(world.ioc(name).port) as c:
            c.put(world.full(f"{name}:GRP"), {"a.value": 1.5, "b.value": 2.5}, timeout=60)
        world.expect(*({"pv": f"{name}:G{i}", "value": i + 0.5, "through": "PVA", "user": USER, "pid": os.getpid(),
                        "result": "ok"} for i in (1, 2)))


def test_ca_links(world):
    """CA links to the same IOC and to another one."""
    pid = world.caput("a:CA:SRC", 5)
    world.expect({"pv": "a:CA:SRC", **client(pid)},
                 {"pv": "a:CA:DST", **link("a:CA:SRC.OUT", "a:CA:SRC", through="CA link", link_ioc="a",
                                           thread="dbCaLink")})
    world.caput("b:OTHER:SRC", 6)
    world.expect({"pv": "a:AO", **client(world.ioc("b").pid, "roadsIoc"),
                  **link("b:OTHER:SRC.OUT", "b:OTHER:SRC", through="CA link", link_ioc="b")})


def test_two_ca_links_to_one_pv(world):
    """If both links wrote within one second, the monitor cannot know which link made a put. It names one link and says
    that this is not certain."""
    world.pv("a:CA:SRC").put(7, wait=True)
    world.pv("a:CA:SRC2").put(8, wait=True)
    world.expect(*[{"pv": "a:CA:DST", "through": "CA link", "link": re.compile(r"a:CA:SRC2?\.OUT")}] * 2)
    second = [o for o in world.objects() if o["pv"] == "a:CA:DST"][-1]
    assert second["link"] == "a:CA:SRC2.OUT" and second["cause"] == BY_CLIENT + "; or one of 1 other links"


def test_cp_link(world):
    """The record with the CP link writes, in another thread. The cause names the record that the link reads."""
    world.caput("a:CP:SRC", 9)
    world.expect({"pv": "a:CP:DST", "value": 9, "user": None,
                  **link("a:CP:MID.OUT", "a:CP:MID", "CP link from a:CP:SRC", thread="scanOnce")})
    world.run("pvput", "x:CP:SRC", 9)  # Base 7.0.10; the put that the link makes when it connects may come now, too
    row = until(lambda: next((o for o in world.objects() if o["pv"] == "x:CP:DST" and o["value"] == 9), None), 20, "the link writes")
    want = link("x:CP:MID.OUT", "x:CP:MID", "CP link from x:CP:SRC", thread="dbCaLink")
    assert {k: row.get(k) for k in want} == want and "user" not in row, row


def test_several_cp_links(world):
    """Of several CP links of a record the one that made it process is named, also when it writes later."""
    for value, source in ((3, "a:CP:OTHER"), (5, "a:CP:ONE"), (7, "a:CP:OTHER")):
        world.mark()
        world.caput(source, value)
        by = f"CP link from {source}"
        world.expect({"pv": "a:CP:TWO:DST", "user": None, **link("a:CP:TWO.OUT", "a:CP:TWO", by, thread="scanOnce")},
                     {"pv": "a:CP:LATER:DST", "user": None, **link("a:CP:LATER.OUT", "a:CP:LATER", by)})


def test_scanned(world):
    """Puts of a chain that a scan thread started, also after an asynchronous record, in another thread."""
    for name, pv, by in (("a:TICK:IN", "a:TICK:DST", "a:TICK:MID.OUT"), ("a:ASYN", "a:ASYN:DST", "a:ASYN:SRC.OUT")):
        world.mark()
        world.caput(name + ".SCAN", ".1 second")
        until(lambda: len([o for o in world.objects() if o["pv"] == pv]) > 2, 5, pv)
        world.caput(name + ".SCAN", "Passive")
        puts = [o for o in world.objects() if o["pv"] == pv]
        want = link(by, name, "scan 0.1 second")
        assert not [o for o in puts if {k: o.get(k) for k in want} != want or "user" in o], puts
    settled(lambda: len(world.objects()), 5, quiet=0.3)


def test_within_the_ioc(world):
    """Puts by the shell, a driver, an interrupt, and a thread with its own CA context."""
    a = world.ioc("a")
    for command, *rows in [
        ("dbpf a:AO 1.5", {"pv": "a:AO", "value": 1.5, **no_client("roadsIoc", "shell")}),
        ("dbpf a:PP:SRC.A 2.5", {"pv": "a:PP:SRC.A", "value": 2.5, **no_client("roadsIoc", "shell")},
         {"pv": "a:PP:DST", "value": 2.5, "user": None, **link("a:PP:SRC.OUT", "a:PP:SRC", "shell")}),
        ("dbtr a:PP:SRC", {"pv": "a:PP:DST", "user": None, **link("a:PP:SRC.OUT", "a:PP:SRC", "shell")}),
        ("dbpf a:ASYN.PROC 1", {"pv": "a:ASYN:DST", "user": None, "thread": "cbLow",
                                **link("a:ASYN:SRC.OUT", "a:ASYN", "shell")}),
        ("roadsSeq a:AO 3.5", {"pv": "a:AO", "value": 3.5, **no_client("seqDemo")}),
        ("roadsDriver a:AO 4.5", {"pv": "a:AO", "value": 4.5, **no_client("drvDemo")}),
        ("roadsDriver a:AO 5.5 put", {"pv": "a:AO", "value": 5.5, **no_client("drvDemo")}),
        ("roadsDriver a:PP:SRC.A 6.5", {"pv": "a:PP:DST", **link("a:PP:SRC.OUT", "a:PP:SRC", "thread drvDemo")}),
        ("roadsInterrupt 7.5", {"pv": "a:INTR:DST", "value": 7.5,
                                **link("a:INTR:SRC.OUT", "a:INTR", "I/O Intr", thread="cbLow")}),
    ]:
        world.mark()
        a.command(world.full(command))
        world.expect(*rows)
    world.mark()
    a.command(world.full("roadsSeq b:AO 8.5"))  # the other IOC sees a client; the thread is not known there
    world.expect({"pv": "b:AO", "value": 8.5, "through": "CA", "result": "ok", **client(a.pid, "roadsIoc")})


def test_put_callback_to_a_busy_record(world):
    """A callback thread makes the put later. The writer is the client, also of puts that the record then makes by
    links. The put is seen once."""
    world.caput("a:ASYN.A", 1500000)
    world.mark()
    pid = world.caput("a:ASYN.PROC", 1)
    me = {"user": USER, "host": paths.HOST, "pid": os.getpid(), "result": "ok"}
    world.pv("a:ASYN.B")
    world.pv("a:ASYN.PROC").put(1, wait=True, timeout=60)
    dst = {"pv": "a:ASYN:DST", **link("a:ASYN:SRC.OUT", "a:ASYN", thread="cbLow")}
    world.expect({"pv": "a:ASYN.PROC", "thread": "CAS-client", **client(pid)},
                 {"pv": "a:ASYN.PROC", "thread": "cbLow", "through": "CA", **me},
                 {**dst, "pid": pid}, {**dst, "pid": os.getpid()})
    world.mark()
    world.caput("a:ASYN.PROC", 1)
    world.pv("a:ASYN.B").put(5, wait=True, timeout=60)
    world.expect({"pv": "a:ASYN.B", "value": 5, "thread": "cbLow", "through": "CA", "peer": PEER, **me})


def test_put_callback_waits_long_for_a_busy_record(world):
    """Meanwhile the IOC serves other requests of this client: the waiting put is late, not lost."""
    world.caput("a:ASYN.A", 1800000)
    world.caput("a:ASYN.PROC", 1)
    world.pv("a:ASYN.B").put(6, use_complete=True)
    world.pv("a:LONG").put(7, wait=True)
    world.mark()
    world.expect({"pv": "a:ASYN.B", "value": 6, "through": "CA", "result": "ok", "pid": os.getpid(),
                  "seen": re.compile("both|inside")})


@pytest.mark.parametrize("name", ["q", "x"])
def test_pva_put_to_a_busy_record(world, name):
    world.caput(f"{name}:BUSY.PROC", 1)
    pid = world.run("pvput", f"-r record[block=true] {name}:BUSY.PROC", 1)
    dst = {"pv": f"{name}:BUSY:DST", "thread": "cbLow", "through": "link", "link": f"{name}:BUSY.LNK1"}
    world.expect({"pv": f"{name}:BUSY.PROC", "through": "CA"},
                 {"pv": f"{name}:BUSY.PROC", "through": "PVA", "thread": "cbLow", **client(pid, "pvput")},
                 {**dst, "cause": BY_CLIENT}, {**dst, "pid": pid, "cause": f"put by {USER}@127.0.0.1"})


def test_dbpf_to_a_record_that_is_busy_for_a_client(world):
    world.caput("q:BUSY.PROC", 1)
    world.ioc("q").process.send(world.full("dbpf q:BUSY.DESC hello"))
    world.expect({"pv": "q:BUSY.PROC", "through": "CA"}, {"pv": "q:BUSY:DST", "cause": BY_CLIENT},
                 {"pv": "q:BUSY.DESC", "cause": None, "root": None, **no_client("softIocPVA", "shell")})


def test_no_origin_is_unknown_and_no_put_is_twice(started):
    """Checks all puts until now, and makes one more of each kind. Waits longer than 2.5 s, because puts that were seen
    in packets only are published so late."""
    for name in ("a:PP:SRC.A", "a:CA:SRC", "q:AO", "x:AO", "q:DISABLED"):
        started.run("pvput" if name[0] in "qx" else "caput", name, 0.75)
    started.ioc("a").command(started.full("dbpf a:AO 0.25"))
    started.ioc("a").command(started.full("roadsSeq a:AO 0.5"))

    def ways():
        return {o["through"] for o in started.objects(0)}

    until(lambda: ways() >= {"CA", "PVA", "link", "CA link", "shell", "thread"}, 8, lambda: str(ways()))
    settled(lambda: len(started.objects(0)), 15, quiet=3)
    every = started.objects(0)
    for o in every:
        assert o["result"] in ("ok", "failed", "denied"), o
        if o["through"] in ("CA", "PVA"):
            assert o.get("peer") and o.get("user") and o.get("host") and o.get("pid") and o.get("command"), o
        elif o["through"] in ("link", "CA link"):
            assert o.get("link") and o.get("cause"), o
        else:
            assert o.get("thread"), o
    keys = [(o["peer"], o["pv"], str(o["value"])) for o in every if o["through"] in ("CA", "PVA")]
    wire = {o["pv"] for o in every if o["seen"] == "wire"}
    assert wire <= {"q:DISABLED", "x:DISABLED", "q:DENIED"}, wire  # QSRV refuses it
    twice = {k for k in keys if keys.count(k) > 1}
    assert not twice, twice
    assert started.monitor.losses() == {}
