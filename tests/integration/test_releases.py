# SPDX-License-Identifier: BSD-3-Clause
"""IOCs of other releases of EPICS Base, built with shared libraries, statically, and stripped
(tests/harness/releases.py): counts, puts and chains are right. `make matrix` tries all releases of this machine and
prints a table. Other runs try only the Base of ebpfMon."""
import getpass
import json
import os
import re
import shutil
import signal
import struct
import subprocess

import pytest
from tests.harness import ca, db, loopback, paths, rawca, releases
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
    db.record("ao", "CPIN"), db.record("calcout", "CPMID", INPA="$(P)CPIN CP NMS", CALC="A", OUT="$(P)CPOUT PP"), db.record("ao", "CPOUT"),
    # a chain that reaches a record twice
    db.counter("TWICE0", SCAN=".2 second", INPB="$(P)TWICE1 PP", FLNK="$(P)TWICE1"), db.counter("TWICE1"),
    db.counter("PASSIVE0", FLNK="$(P)PASSIVE1"), db.counter("PASSIVE1"),
    db.counter("SDIS", SCAN=".2 second", SDIS="$(P)SDIS1 PP"), db.counter("SDIS1"),
    db.counter("MOVE0", FLNK="$(P)MOVE1"), db.counter("MOVE1"), db.counter("MOVE2"),
    db.record("mbbo", "MBBO", VAL="0", ZRST="Idle", ONST="Moving", TWST="Stopped", ZRVL="0", ONVL="1", TWVL="2", FLNK="$(P)MBBO1"),
    db.counter("MBBO1"),
    # values
    db.record("ao", "AO"), db.record("longout", "LO"), db.record("longout", "BASE"), db.record("stringout", "STR"), db.record("bo", "BO", ZNAM="Closed", ONAM="Open"),
    db.record("ai", "AI"), db.record("ao", "OFF", DISP="1"),
    *(db.record("waveform", f"WF{t}", FTVL=t, NELM="5") for t in ("STRING", "CHAR", "SHORT", "LONG", "FLOAT", "DOUBLE")),
])
COUNTERS = [line.split("$(P)")[1].split('"')[0] for line in DATABASE.splitlines() if 'CALC, "VAL+1"' in line]
SCANNED = {line.split("$(P)")[1].split('"')[0]: line.split('SCAN, "')[1].split('"')[0]
           for line in DATABASE.splitlines() if 'SCAN, "' in line}


DB_SOURCES = paths.BASE / "modules" / "database" / "src" / "ioc" / "db"
LAYOUTS = [*(paths.TOP / "bpf" / "contract").glob("layout*.h"), paths.TOP / "ebpfMonModules" / "subscriptions" / "events.h",
           paths.TOP / "ebpfMonModules" / "queues" / "queueLayouts.h"]
with_sources = pytest.mark.skipif(not (DB_SOURCES / "dbScan.c").exists(), reason="this Base has no sources")


def layout(source, folder):
    """Runs tools/layout.sh with a copy of the layouts in this folder. What it has printed; None: it was successful."""
    for file in LAYOUTS:
        (folder / file.name).write_text(file.read_text())
    run = subprocess.run([paths.TOP / "tools" / "layout.sh", source, folder], capture_output=True, text=True, timeout=300, check=False)
    return run.stderr if run.returncode else None


@with_sources
def test_layout_is_the_known_one(tmp_path):
    """tools/layout.sh finds the numbers of our own Base, as they are in the tree."""
    assert layout(paths.BASE, tmp_path) is None
    assert {f.name: f.read_text() for f in tmp_path.iterdir()} == {f.name: f.read_text() for f in LAYOUTS}


@with_sources
@pytest.mark.parametrize("file,before,named", [
    ("dbChannel.h", "struct dbChannel  * chan;", "subscriptions/eventLists.c believes that struct evSubscrip.chan is at 16"),
    ("dbNotify.h", "notifyRequestType requestType;", "waits/iocWaits.c believes that processNotify.chan"),
    ("dbLockPvt.h", "lockSet     *plockSet;", "ALL(LockRecord, plockSet, 24), other releases have ALL(LockRecord, plockSet, 16)"),
], ids=["subscription", "notify", "lock"])
def test_layout_names_a_changed_struct(tmp_path, file, before, named):
    """A release with one more member in a struct that all others share is refused. The message names the code that uses it."""
    source, folder = tmp_path / "base", tmp_path / "layouts"
    folder.mkdir()
    for part in "configure", "modules/libcom", "modules/ca", "modules/database":
        shutil.copytree(paths.BASE / part, source / part, ignore=shutil.ignore_patterns("O.*", "test"))
    changed = source / DB_SOURCES.relative_to(paths.BASE) / file
    text = changed.read_text()
    assert text.count(before) == 1
    changed.write_text(text.replace(before, f"void *added; {before}"))
    assert named in (layout(source, folder) or "accepted")


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
    rules = tmp_path_factory.mktemp("rules") / "rules.json"
    rules.write_text(json.dumps({"rules": [{"name": "base", "pv": ioc.prefix + "BASE", "min": 0, "max": 12}]}))
    made = module_monitor(iocs=ioc.name, environ=environ, before=[f'ebpfMonRules "{rules}"']).start()
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


@pytest.mark.parametrize("text, decimal, other, bad", [("0x10", 0, 16, 1), ("010", 10, 8, 0)])
def test_octal_and_hexadecimal(build, watched, monitor, ioc, text, decimal, other, bad):
    """From 7.0.10 on the IOC reads such texts as C does. A rule asks for both: what another release makes of it, too."""
    stored = other if tuple(map(int, build.release.split("."))) >= (7, 0, 10) else decimal
    ioc.put("BASE", 1)
    before = monitor.get("PUT_BAD_CNT")
    client = rawca.RawCa(ioc.port, "tester", "testhost")
    client.put(ioc.prefix + "BASE", rawca.STRING, [text])
    client.close()
    assert ioc.get("BASE") == stored
    put_of(monitor, ioc.prefix + "BASE", f"1 -> {text} (became {stored})", "tester@testhost")
    monitor.wait("PUT_BAD_CNT", lambda n: n == before + bad)


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


def test_cause_of_a_cp_link(watched, monitor, ioc):
    """Before 7.0.10 scanOnce makes the record process, then the thread of CA links."""
    if monitor.iocs()[ioc.pid][3] != "trace":
        monitor.at_level("trace", ioc)
    ioc.put("CPIN", 12)
    line = put_of(monitor, ioc.prefix + "CPOUT", "0 -> 12")
    assert f"link {ioc.prefix}CPMID.OUT" in line and f"CP link from {ioc.prefix}CPIN" in line, line
    traced(monitor, ioc.prefix + "CPMID", lambda t: t[0].endswith(f"by CP link from {ioc.prefix}CPIN"))


in_matrix = pytest.mark.skipif(not IS_LONG, reason="make matrix has it; of this Base test_health.py and test_queues.py try more")


@in_matrix
def test_health(build, watched, monitor, ioc):
    """How often scan threads come, and that they were late after the IOC has stood still; clients as casr counts them."""
    if build.release.startswith("3.14"):
        pytest.skip("its threads have no names")
    for record, scan in SCANNED.items():
        ioc.put(f"{record}.SCAN", scan)

    def scans(column):
        table = zip(*(monitor.list(f"SCAN_{c}") for c in ("IOCS", "NAMES", column)))
        return {name: value for of, name, value in table if of == ioc.name}

    own = {".1 second": 0.1, ".2 second": 0.2, ".5 second": 0.5}
    until(lambda: scans("PERIODS") == pytest.approx(own, rel=0.1), 30, lambda: f"{scans('PERIODS')}")
    before = scans("LATE_CNTS")
    ioc.process.signal(signal.SIGSTOP)
    try:
        monitor.wait("IOC_STILL_CNT", lambda n: n == 1, 30)
    finally:
        ioc.process.signal(signal.SIGCONT)
    until(lambda: all(n > before[scan] for scan, n in scans("LATE_CNTS").items()), 15, lambda: f"{before}, {scans('LATE_CNTS')}")
    monitor.wait("IOC_STILL_CNT", lambda n: n == 0, 30)
    stand_still(ioc)
    known = [int(re.search(r"(\d+) clients? connected|$", line)[1] or 0) for line in ioc.command("casr 1")]
    clients = dict(zip(monitor.list("IOC_HEALTH_NAMES"), monitor.list("IOC_CLIENT_CNTS")))
    assert clients[ioc.name] == max(known) > 0, (clients, known)


def queues(monitor, ioc):
    """Callback queues: name → high-water mark, entries, size, overflows, as callbackQueueShow has them."""
    table = zip(*(monitor.list(f"QUEUE_{c}") for c in ("IOCS", "NAMES", "HIGHS", "USEDS", "SIZES", "OVERFLOW_CNTS")))
    return {r[1]: r[2:] for r in table if r[0] == ioc.name and r[1].startswith(("cb", "scanOnce"))}


def wait_queues(monitor, ioc):
    lines = ioc.command("callbackQueueShow") + ioc.command("scanOnceQueueShow")
    found = (re.match(r" *(cb\w+|scanOnce) +(\d+) +(\d+) +(\d+) +[\d.]+ +(\d+)$", line) for line in lines)
    truth = {m[1]: tuple(map(int, m.groups()[1:])) for m in found if m}
    assert len(truth) == 4 and truth["cbLow"][0] > 0, lines
    until(lambda: queues(monitor, ioc) == truth, 15, lambda: f"{queues(monitor, ioc)}, {truth}: {monitor.text('QUEUE_MSG')}")


@in_matrix
def test_queues(build, watched, monitor, ioc):
    """Callbacks of a sequence record have passed through a queue."""
    stand_still(ioc)
    process(ioc, "SEQ", N)
    if build.kind in ("stripped", "bare"):
        monitor.wait_text("QUEUE_MSG", lambda text: f"{ioc.name}: not known: its files have no symbols" in text)
    elif "not found" not in "".join(ioc.command("callbackQueueShow")):
        wait_queues(monitor, ioc)
    else:  # the sizes of callback.c and dbScan.c
        until(lambda: {name: row[2] for name, row in queues(monitor, ioc).items()} ==
              {"cbLow": 2000, "cbMedium": 2000, "cbHigh": 2000, "scanOnce": 1000}, 15, lambda: f"{queues(monitor, ioc)}")


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


# --- what 7.0.10 and later have --------------------------------------------------------------------------------------
# tools/buildRelease.sh wheel: 7.0.10.1-DEV with QSRV 2, and with the command dbServerStats

LATE = (7, 0, 10)
LATE_BUILDS = [b for b in BUILDS if tuple(map(int, b.release.split("."))) >= LATE]
EXPRESSION = "VAL+001" + "".join(f"+0*{chr(ord('A') + i % 21)}" for i in range(38))  # 159 letters, and the end of a text
DELAYED, EACH = 120, 15
LATE_DATABASE = "".join([
    db.READY,
    db.record("calc", "LONG", CALC=EXPRESSION, **{f"INP{chr(ord('A') + i)}": i for i in range(20)}, INPU="$(P)SOURCE CP NMS"),
    db.record("ao", "SOURCE"), db.record("calcout", "LAST", CALC="U", INPU="$(P)SOURCE CP NMS", OUT="$(P)READ PP"), db.record("ao", "READ"),
    db.record("dfanout", "FAN16", OUTP="$(P)SIXTEEN PP"), db.record("ao", "SIXTEEN"),
    db.record("stringin", "ILL", DTYP="getenv", INP="@EBPFMON_NO_SUCH", SCAN="1 second"),
    db.counter("PLAIN"),
    # in each pass 120 records end in the threads of one callback queue
    db.counter("START", FLNK="$(P)FAN"),
    db.record("fanout", "FAN", SELM="All", **{f"LNK{i + 1}": f"$(P)F{i}" for i in range(DELAYED // EACH)}),
    *(db.record("fanout", f"F{i}", SELM="All", **{f"LNK{k + 1:X}": f"$(P)D{i * EACH + k}" for k in range(EACH)}) for i in range(DELAYED // EACH)),
    *(db.out_counter(f"D{i}", ODLY="0.01", OUT="$(P)T PP" if i == 0 else "", FLNK=f"$(P)E{i}") for i in range(DELAYED)),
    *(db.counter(f"E{i}") for i in range(DELAYED)), db.record("ao", "T"),
])


@pytest.fixture(scope="module", params=LATE_BUILDS, ids=map(releases.title, LATE_BUILDS))
def late(request, module_ioc, module_monitor, tmp_path_factory):
    """An IOC of this build with 64 threads for each callback queue, and a monitor."""
    program, environ = releases.prepare(request.param, tmp_path_factory.getbasetemp())
    tmp = tmp_path_factory.mktemp("late")
    symbols = str(releases.symbols(tmp_path_factory.getbasetemp()))
    prefix = f"T{os.getpid()}:late{request.param_index}:"
    (tmp / "late.db").write_text(LATE_DATABASE)
    (tmp / "st.cmd").write_text(f'callbackParallelThreads 64 "*"\ndbLoadRecords "{tmp}/late.db" "P={prefix}"\niocInit\n')
    ioc = module_ioc(kind="streamIoc", program=program, environ=environ, prefix=prefix, files=[tmp / "st.cmd"]).start()
    monitor = module_monitor(iocs=ioc.name, environ={"EBPFMON_SYMBOLS": symbols} if request.param.kind == "symbols" else {}).start()
    monitor.wait_ioc(ioc, records=len(LATE_DATABASE.splitlines()))
    until(lambda: len(monitor.records(ioc.name)) == len(LATE_DATABASE.splitlines()), 20, "counts")
    yield ioc, monitor, request.param
    monitor.discard()
    ioc.discard()


def with_qsrv(build):
    return any((build.folder / "lib" / paths.ARCH).glob("libpvxsIoc*"))


def test_long_expression(late):
    """CALC has 160 letters: old and new value are whole over Channel Access and pvAccess (if it has), and the record with inputs to U is
    counted exactly."""
    ioc, monitor, build = late
    pv = ioc.prefix + "LONG"
    other = EXPRESSION.replace("VAL+001", "001+VAL")
    assert len(EXPRESSION) == len(other) == 159
    assert ioc.run("caput", "-S", pv + ".CALC$", other).returncode == 0
    put_of(monitor, pv + ".CALC", f"{EXPRESSION} -> {other}", getpass.getuser())
    assert ioc.run(*("pvput",) if with_qsrv(build) else ("caput", "-S"), pv + (".CALC" if with_qsrv(build) else ".CALC$"), EXPRESSION).returncode == 0
    put_of(monitor, pv + ".CALC", f"{other} -> {EXPRESSION}", getpass.getuser())
    before, own = monitor.records(ioc.name)[pv].count, int(ioc.get("LONG"))
    for i in range(N):
        ioc.put("SOURCE", i + 1)
    until(lambda: int(ioc.get("LONG")) == own + N and monitor.records(ioc.name)[pv].count == before + N, 20,
          lambda: f"{own + N}: {ioc.get('LONG')}; {before + N}: {monitor.records(ioc.name)[pv]}")


def test_last_links(late):
    """Input U and output P are links as the others: who wrote, and why."""
    ioc, monitor, _ = late
    old = int(ioc.get("READ"))
    ioc.put("SOURCE", 77)
    line = put_of(monitor, ioc.prefix + "READ", f"{old} -> 77")
    assert f"link {ioc.prefix}LAST.OUT" in line and f"CP link from {ioc.prefix}SOURCE" in line, line
    ioc.put("FAN16", 5)
    line = put_of(monitor, ioc.prefix + "SIXTEEN", "0 -> 5")
    assert f"link {ioc.prefix}FAN16.OUTP" in line, line


def test_alarm_message(late):
    """ebpfMonWhy repeats the message of an alarm."""
    ioc, monitor, _ = late
    message = until(lambda: ioc.get("ILL.AMSG"), 10, "the message")
    why = "\n".join(monitor.command(f"ebpfMonWhy {ioc.prefix}ILL"))
    assert f"alarm INVALID, UDF ({message})" in why, why


def test_server_statistics(late):
    """As many clients and channels as the servers of the IOC count themselves (dbServerStats)."""
    ioc, monitor, build = late
    if not with_qsrv(build):
        pytest.skip("no PV Access, no such command")

    def stats():
        return tuple(map(int, re.search(r"2 servers, (\d+) channels, (\d+) clients", "\n".join(ioc.command("dbServerStats"))).groups()))

    def ours():
        rows = [line.split() for line in monitor.command(f'ebpfMonClients "{ioc.name}"')]
        rows = [r for r in rows if r[0] == ioc.name]
        return sum(int(r[4]) for r in rows), len(rows)

    raw = [rawca.RawCa(ioc.port, "lister", "office") for _ in range(2)]
    with loopback.pva_context(ioc.port) as pva:
        for i, name in enumerate(("SOURCE", "READ", "T")):
            raw[0].sid(ioc.prefix + name)
            raw[1].sid(ioc.prefix + name + ".DESC")
            pva.get(ioc.prefix + name, timeout=60)
        assert stats()[0] >= 9 and stats()[1] >= 3
        until(lambda: ours() == stats(), 30, lambda: f"{ours()}, {stats()}\n" + "\n".join(monitor.command(f'ebpfMonClients "{ioc.name}"')))
    for r in raw:
        r.close()


def test_callback_threads(late):
    """64 threads take callbacks from one queue: counts are exact, the link that writes and the queue are known."""
    ioc, monitor, build = late
    names = [f"{ioc.prefix}{kind}{i}" for kind in "DE" for i in range(DELAYED)]
    before = monitor.records(ioc.name)
    own = ca.get_integers(names)
    for i in range(N):
        ioc.put("START.PROC", 1)
        until(lambda: set(ca.get_integers(names[DELAYED:]).values()) == {own[names[-1]] + i + 1}, 20, "all end")
    until(lambda: all(monitor.records(ioc.name)[n].count == before[n].count + N for n in names), 20,
          lambda: {n: monitor.records(ioc.name)[n] for n in names if monitor.records(ioc.name)[n].count != before[n].count + N})
    assert not [n for n in names if "atleast" in monitor.records(ioc.name)[n].flags]
    line = put_of(monitor, ioc.prefix + "T", f"{N - 1} -> {N}")
    assert f"link {ioc.prefix}D0.OUT" in line and f"{ioc.prefix}START" in line and str(os.getpid()) in line, line
    if build.kind in ("stripped", "bare"):
        monitor.wait_text("QUEUE_MSG", lambda text: f"{ioc.name}: not known: its files have no symbols" in text)
        return
    wait_queues(monitor, ioc)


@pytest.mark.parametrize("options", ["block=true,process=true", "process=true", "block=true,process=false"])
def test_options_of_a_put(late, options):
    """pvAccess: the client, old and new value, the result of a put that waits; it is a processing if the record processed."""
    ioc, monitor, build = late
    if not with_qsrv(build):
        pytest.skip("no PV Access")
    for field in ("A", "DESC"):  # QSRV 2 decides which of these process it
        pv, old, new = f"{ioc.prefix}PLAIN.{field}", ioc.get(f"PLAIN.{field}", as_string=True), 100 + len(options)
        before, own = monitor.records(ioc.name)[ioc.prefix + "PLAIN"].count, int(ioc.get("PLAIN"))
        done = ioc.run("pvput", "-r", f"record[{options}]field(value)", pv, new)
        assert done.returncode == 0, done
        line = put_of(monitor, pv, f"{old} -> {new}", getpass.getuser())
        assert "pvput[" in line and "FAILED" not in line and "not seen" not in line, line
        processed = int(ioc.get("PLAIN")) - own
        assert processed == 1 or field == "DESC" or "process=false" in options
        until(lambda: monitor.records(ioc.name)[ioc.prefix + "PLAIN"].count == before + processed, 10, lambda: monitor.records(ioc.name))
