# SPDX-License-Identifier: BSD-3-Clause
"""IOCs of other releases of EPICS Base, built with shared libraries, statically, and stripped
(tests/harness/releases.py): counts, puts and chains are right. `make matrix` tries all releases of this machine and
prints a table. Other runs try only the Base of ebpfMon."""
import getpass
import os
import struct
import subprocess

import pytest
from tests.harness import ca, db, paths, rawca, releases
from tests.harness.soak import IS_LONG
from tests.harness.traces import traced
from tests.harness.wait import settled, until

BUILDS = releases.find()
if not IS_LONG:
    BUILDS = [b for b in BUILDS if b.kind == "shared" and b.folder == paths.BASE]

N = 20
DATABASE = "".join([
    db.READY,
    db.chain("FLNK", 10, SCAN=".1 second"),
    # each reads the next and thereby makes it process
    *(db.counter(f"PP{i}", INPB=f"$(P)PP{i + 1} PP NMS", **({"SCAN": ".2 second"} if i == 0 else {})) for i in range(5)),
    db.counter("PP5"),
    # output links: to PROC, to another field with PP, and to one without
    db.out_counter("OUT0", SCAN=".1 second", OUT="$(P)OUT1.PROC"), db.out_counter("OUT1", OUT="$(P)OUT2.B PP"),
    db.out_counter("OUT2", OUT="$(P)OUT3.B NPP", FLNK="$(P)OUT4"), db.counter("OUT3"), db.counter("OUT4"),
    db.record("fanout", "FAN", SCAN=".5 second", SELM="All", **{f"LNK{i}": f"$(P)FAN{i}" for i in range(1, 5)}),
    *(db.counter(f"FAN{i}") for i in range(1, 4)), db.counter("FAN4", FLNK="$(P)FAN5"), db.counter("FAN5"),
    db.record("dfanout", "DFAN", SCAN=".5 second", OUTA="$(P)DFAN1.B PP", OUTB="$(P)DFAN2.B PP"),
    db.counter("DFAN1"), db.counter("DFAN2"),
    db.record("seq", "SEQ", SCAN=".5 second", DLY1="0.02", LNK1="$(P)SEQ1.B PP", LNK2="$(P)SEQ2.B PP"),
    db.counter("SEQ1"), db.counter("SEQ2"),
    db.counter("CP", INPB="$(P)OUT3 CP"), db.counter("CP2", INPB="$(P)FLNK9 CP"),
    # a chain that reaches a record twice
    db.counter("TWICE0", SCAN=".2 second", INPB="$(P)TWICE1 PP", FLNK="$(P)TWICE1"), db.counter("TWICE1"),
    db.counter("PASSIVE0", FLNK="$(P)PASSIVE1"), db.counter("PASSIVE1"),
    db.counter("SDIS", SCAN=".2 second", SDIS="$(P)SDIS1 PP"), db.counter("SDIS1"),
    db.counter("MOVE0", FLNK="$(P)MOVE1"), db.counter("MOVE1"), db.counter("MOVE2"),
    db.record("mbbo", "MBBO", VAL="0", ZRST="Idle", ONST="Moving", TWST="Stopped", ZRVL="0", ONVL="1", TWVL="2", FLNK="$(P)MBBO1"),
    db.counter("MBBO1"),
    # values
    db.record("ao", "AO"), db.record("longout", "LO"), db.record("stringout", "STR"), db.record("bo", "BO", ZNAM="Closed", ONAM="Open"),
    db.record("ai", "AI"), db.record("ao", "OFF", DISP="1"),
    *(db.record("waveform", f"WF{t}", FTVL=t, NELM="5") for t in ("STRING", "CHAR", "SHORT", "LONG", "FLOAT", "DOUBLE")),
])
COUNTERS = [line.split("$(P)")[1].split('"')[0] for line in DATABASE.splitlines() if 'CALC, "VAL+1"' in line]
SCANNED = {line.split("$(P)")[1].split('"')[0]: line.split('SCAN, "')[1].split('"')[0]
           for line in DATABASE.splitlines() if 'SCAN, "' in line}


def test_layout_is_the_known_one(tmp_path):
    """tools/layout.sh finds the numbers of our own Base, as they are in the tree."""
    if not (paths.BASE / "modules" / "database" / "src" / "ioc" / "db" / "dbScan.c").exists():
        pytest.skip("this Base has no sources")
    files = [*(paths.TOP / "bpf" / "contract").glob("layout*.h"), paths.TOP / "ebpfMonModules" / "subscriptions" / "events.h",
             paths.TOP / "ebpfMonModules" / "queues" / "queueLayouts.h"]
    known = {f.name: f.read_text() for f in files}
    for name, text in known.items():
        (tmp_path / name).write_text(text)
    subprocess.run([paths.TOP / "tools" / "layout.sh", paths.BASE, tmp_path], check=True, timeout=300)
    assert {f.name: f.read_text() for f in tmp_path.iterdir()} == known


@pytest.fixture(scope="module", params=BUILDS, ids=map(releases.title, BUILDS))
def build(request):
    return request.param


@pytest.fixture(scope="module")
def ioc(build, module_ioc, tmp_path_factory):
    program, environ = releases.prepare(build, tmp_path_factory.getbasetemp())
    made = module_ioc(DATABASE, program=program, environ=environ).start()
    yield made
    made.discard()  # its port, too: there are not as many as builds


@pytest.fixture(scope="module")
def monitor(module_monitor, build, ioc, tmp_path_factory):
    symbols = releases.symbols(tmp_path_factory.getbasetemp())
    environ = {"EBPFMON_SYMBOLS": str(symbols)} if build.kind == "symbols" else {}
    made = module_monitor(iocs=ioc.name, environ=environ).start()
    yield made
    made.discard()


@pytest.fixture(scope="module")
def watched(monitor, ioc):
    row = monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    until(lambda: len(monitor.records(ioc.name)) == len(DATABASE.splitlines()), 20, "counts")
    return row


def notes(monitor):
    """The notes of the monitor about its IOCs."""
    return [n for n in monitor.list("IOC_NOTES") if n]


def stand_still(ioc):
    """Stops all scans."""
    for record in SCANNED:
        ioc.put(f"{record}.SCAN", "Passive")


def counts(monitor, ioc):
    """The counts of the monitor, and those of the records that count themselves, as soon as they do not change any
    more."""
    def read():
        own = ca.get_integers(ioc.prefix + n for n in COUNTERS)
        return monitor.records(ioc.name), own

    return settled(read, 30, quiet=1.5)


def find_wrong(before, after):
    wrong = []
    for name in after[1]:
        truth, got = after[1][name] - before[1][name], after[0][name].count - before[0][name].count
        marked = "atleast" in after[0][name].flags
        if got > truth or (got < truth and not marked):
            wrong.append(f"{name}: {got}{', at least' if marked else ''}; truly {truth}")
    return wrong


def wait_right(before, monitor, ioc):
    """Waits until no count is wrong."""
    wrong = []

    def is_right():
        wrong[:] = find_wrong(before, counts(monitor, ioc))
        return not wrong

    until(is_right, 5, lambda: "\n".join(wrong))


def process(ioc, record, number):
    for i in range(number):
        ca.pv(f"{ioc.prefix}{record}.PROC").put(1, wait=bool(i % 2), timeout=60)


def test_is_watched(build, watched, monitor, ioc):
    """The IOC is listed with its name and release, at the requested level, and STATE is Running."""
    assert watched[0] == ioc.name
    assert watched[1].removesuffix("-DEV") == build.release
    assert watched[3] == "chains"
    assert monitor.get("STATE", as_string=True) == "Running", monitor.text("STATE_MSG")


def test_counts(watched, monitor, ioc):
    """Records that scans, links and puts process are counted exactly, except one record, which cannot be counted
    exactly with any release."""
    stand_still(ioc)
    before = counts(monitor, ioc)
    for record, scan in SCANNED.items():
        ioc.put(f"{record}.SCAN", scan)
    start = ioc.get("FLNK0")
    for record in ("PASSIVE0", "FLNK0", "PP0", "OUT0", "FAN", "DFAN", "SEQ", "TWICE0", "MOVE0", "MBBO", "SDIS"):
        process(ioc, record, N)
    until(lambda: ioc.get("FLNK0") > start + 30, 30, "scans")
    stand_still(ioc)
    wait_right(before, monitor, ioc)
    after = counts(monitor, ioc)
    assert all(after[1][n] > before[1][n] for n in after[1] if not n.endswith(("MOVE2", "OUT3", ":CP"))), (before[1], after[1])
    assert len(after[1]) >= 40
    assert not [n for n, c in after[0].items() if "atleast" in c.flags]


def test_links_that_change(watched, monitor, ioc):
    """A forward link, an output link and an input link are changed, and changed back. Each count is exact or marked; it
    is exact for records that these links do not reach."""
    stand_still(ioc)
    before = counts(monitor, ioc)
    changes = [("MOVE0.FLNK", "MOVE2"), ("OUT2.OUT", "MOVE1.B PP"), ("PASSIVE1.INPB", "MOVE2 PP"), ("PASSIVE1.INPB", ""),
               ("OUT2.OUT", "OUT3.B NPP"), ("MOVE0.FLNK", ""), ("MOVE0.FLNK", "MOVE1")]
    roots = ("MOVE0", "OUT0", "PASSIVE0", "PP0")
    for field, value in changes:
        ioc.put(field, value and ioc.prefix + value)
        until(lambda: ioc.prefix + field in monitor.list("PUT_PVS"), 10, f"the put to {field}")
        for root in roots:
            process(ioc, root, N)
    wait_right(before, monitor, ioc)
    after = counts(monitor, ioc)
    truth = {n.removeprefix(ioc.prefix): after[1][n] - before[1][n] for n in after[1]}
    assert truth["MOVE0"] == truth["PASSIVE0"] == truth["PP0"] == len(changes) * N, truth
    assert truth["MOVE1"] > 0 and truth["MOVE2"] > 0, truth
    assert not [n for n in ("PP0", "PP5", "OUT0", "OUT1") if "atleast" in after[0][ioc.prefix + n].flags]


PUTS = [  # PV, value, old value and new value as texts
    ("AO", 2.5, "0", "2.5"), ("AO.PREC", 3, "0", "3"), ("AO.DESC", "beam line", "", "beam line"),
    ("AO.SCAN", "1 second", "Passive", "1 second"), ("AO.SCAN", "Passive", "1 second", "Passive"),
    ("AO.TPRO", 1, "0", "1"), ("LO", -70000, "0", "-70000"), ("STR", "text", "", "text"), ("BO", "Open", "Closed", "Open"),
    ("BO", 0, "Open", "Closed"), ("MBBO", "Moving", "Idle", "Moving"), ("MBBO.ONVL", 4000000000, "1", "4000000000"),
    ("AI.DTYP", "Raw Soft Channel", "Soft Channel", "Raw Soft Channel"), ("AO.PROC", 1, "0", "1"),
]


def log(monitor):
    return monitor.lines("PUT_LOG").splitlines()


def put_of(monitor, pv, change, who=""):
    """The line of a put in the log: the field, "old -> new", and the begin of the rest."""
    return until(lambda: next((line for line in log(monitor) if f" {pv} {change} by {who}" in line), None), 10,
                 lambda: f"{pv} {change} by {who}:\n" + "\n".join(log(monitor)[:30]))


def test_puts(watched, monitor, ioc):
    """A field of each type: old value, new value, writer, result."""
    for i, (field, value, old, new) in enumerate(PUTS):
        ca.pv(ioc.prefix + field).put(value, wait=bool(i % 2), timeout=60)
        line = put_of(monitor, ioc.prefix + field, f"{old} -> {new}")
        assert f"{getpass.getuser()}@{paths.HOST}" in line and str(os.getpid()) in line, line


WIRE = {  # types of Channel Access: the value 7, or three times 7
    rawca.STRING: b"7".ljust(40, b"\0"), rawca.SHORT: struct.pack(">h", 7), rawca.FLOAT: struct.pack(">f", 7),
    rawca.ENUM: struct.pack(">H", 7), rawca.CHAR: b"\7", rawca.LONG: struct.pack(">i", 7), rawca.DOUBLE: struct.pack(">d", 7),
}


@pytest.mark.parametrize("dtype", WIRE)
def test_types_of_channel_access(watched, monitor, ioc, dtype):
    """A scalar and arrays, sent as each type."""
    ioc.put("LO", 0)
    ca.write(ioc.port, ioc.prefix + "LO", WIRE[dtype], dtype)
    put_of(monitor, ioc.prefix + "LO", "0 -> 7", "tester@testhost")
    for array in ("STRING", "CHAR", "SHORT", "LONG", "FLOAT", "DOUBLE"):
        pv = f"{ioc.prefix}WF{array}"
        ioc.put(f"WF{array}", [3, 4])
        ca.write(ioc.port, pv, WIRE[dtype] * 3, dtype, 3)
        until(lambda: any(f" {pv} " in line and "7 7 7 by tester@testhost" in line for line in log(monitor)), 10,
              lambda: f"{pv} by type {dtype}:\n" + "\n".join(log(monitor)[:30]))


def test_link_that_writes(watched, monitor, ioc):
    """The link by which a record writes has a name."""
    ioc.put("OUT0.PROC", 1)
    until(lambda: any(f"{ioc.prefix}OUT2.B " in line and f"link {ioc.prefix}OUT1.OUT" in line for line in log(monitor)),
          10, lambda: "\n".join(log(monitor)[:20]))


def test_put_that_is_refused(watched, monitor, ioc):
    """DISP is set: the server refuses the put before the database gets it."""
    ca.write(ioc.port, ioc.prefix + "OFF", struct.pack(">d", 5), rawca.DOUBLE)
    line = put_of(monitor, ioc.prefix + "OFF", "0 -> 5", "tester@testhost")
    assert "FAILED" in line or "DENIED" in line, line


def test_chains(watched, monitor, ioc):
    """The trace of a chain names its records in order, and the author of its start."""
    monitor.at_level("trace", ioc)
    ioc.put("PASSIVE0.PROC", 1)
    lines = traced(monitor, ioc.prefix + "PASSIVE0", lambda t: "put by" in t[0])
    assert str(os.getpid()) in lines[0], lines
    text = "\n".join(lines)
    assert text.index(ioc.prefix + "PASSIVE0") < text.index(ioc.prefix + "PASSIVE1"), lines
    ioc.put("FLNK0.PROC", 1)
    text = "\n".join(traced(monitor, ioc.prefix + "FLNK0"))
    places = [text.index(f"{ioc.prefix}FLNK{i}") for i in range(10)]
    assert places == sorted(places), text


def test_clients_and_subscriptions(ioc, monitor, watched):
    """The monitor understands rsrv's lists of this release: the names of channels, and the number of subscriptions of
    each."""
    raw = rawca.RawCa(ioc.port, "lister", "office")
    raw.sid(ioc.prefix + "LO")
    for i, name in enumerate(("AO", "AO.DESC")):  # EVENT_ADD with mon_info of caProto.h
        for k in range(i + 1):
            raw.send(rawca.message(1, struct.pack(">fffHH", 0, 0, 0, 7, 0), rawca.STRING, 1, raw.sid(ioc.prefix + name),
                                   10 * i + k))

    def listed():
        rows = (line.split() for line in monitor.command(f'ebpfMonUsers "{ioc.prefix}*"'))
        return {r[0].removeprefix(ioc.prefix): int(r[4]) for r in rows if len(r) > 4 and r[2] == "lister@office"}

    # before 3.15 there is no dbChannel, so the server does not keep the name that the client sent
    until(lambda: {n.removesuffix(".VAL"): s for n, s in listed().items()} == {"LO": 0, "AO": 1, "AO.DESC": 2}, 30,
          lambda: f"{listed()}\n" + "\n".join(monitor.command(f'ebpfMonUsers "{ioc.prefix}*"')))
    raw.close()
