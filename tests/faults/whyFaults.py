# SPDX-License-Identifier: BSD-3-Clause
"""Faults that are prepared with real IOCs and clients, and what ebpfMonWhy says of each (tools/whyTrial.sh).

A fault is a generator. It makes the fault, waits until the fault is there by what the IOC or the client says itself, and yields a
question and the cause: the first line has to match it. After that the runner asks for the neighbour, and ends the generator.
"""
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])

from tests.harness import badlink, container, db, paths, rawca  # noqa: E402
from tests.harness.far import FarIoc, there  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.process import Process  # noqa: E402
from tests.harness.wait import until  # noqa: E402
from tests.integration.test_subscriptions_pva import Client  # noqa: E402

EVENT_ADD, EVENTS_OFF = 1, 8
FINE = "nothing stops"
SECONDS = 40  # for an answer; the monitor looks at clients every 10 s
FAULTS = []


def fault(name):
    def add(function):
        FAULTS.append((name, function))
        return function
    return add


class Question:
    """What is asked, and the first line that is right. "also": what is true as well, while the fault begins. "neighbour": what is
    asked of a PV or client that is not ill; None: there is none."""

    def __init__(self, pv, right, client="", neighbour=None, also=None):
        self.pv, self.client, self.right, self.neighbour, self.also = pv, client, right, neighbour, also


class Subscriber(rawca.RawCa):
    """A client that has got its first value."""

    def __init__(self, ioc, name, user, count=1, mask=7):
        super().__init__(ioc.port, user, "test")
        self.send(rawca.message(EVENT_ADD, struct.pack(">fffHH", 0, 0, 0, mask, 0), rawca.DOUBLE, count, self.sid(name), 1))
        self.until(EVENT_ADD)

    def get(self):
        return struct.unpack(">d", self.until(EVENT_ADD)[-1].payload[:8])[0]


def sub(name, snam, **fields):
    return db.record("aSub", name, SNAM=snam, FTA="DOUBLE", FTVA="DOUBLE", **fields)


TICK = db.counter("TICK", SCAN=".1 second")
COMMON = (db.READY + TICK + "".join(db.record("ao", name, PINI="YES") for name in "AB") +
          db.counter("DISABLED", SCAN=".1 second", DISA=1) + db.record("calcout", "STUCK", CALC="1", ODLY=1000) +
          db.record("calc", "NEVER", CALC="1") + db.record("ai", "PASSIVE", INP="$(P)TICK", PINI="YES") +
          db.record("ai", "SCANNED", INP="$(P)TICK", SCAN=".1 second") +
          db.record("ai", "BROKEN", INP="NO:SUCH:PV CA", SCAN=".1 second") +
          db.record("calc", "MS", CALC="A", INPA="$(P)BROKEN NPP MS", SCAN=".1 second") +
          db.record("ai", "FROZEN", INP="$(P)DISABLED", SCAN=".1 second") +
          db.record("ai", "SIMULATED", INP="$(P)A", SIMM="YES", SIOL="$(P)B", SCAN=".1 second") +
          db.counter("STAMP", TSE=-2, SCAN=".1 second") + db.record("ao", "HYST", HIGH=10, HSV="MINOR", HYST=2, PINI="YES") +
          db.record("ao", "BAND", MDEL=1, ADEL=1, PINI="YES") + db.record("ao", "LIMITED", DRVH=100, DRVL=-100, PINI="YES") +
          db.record("ao", "NO", DISP=1, PINI="YES") + db.record("ao", "LOCKED", ASG="LOCKED", PINI="YES") +
          db.record("ao", "INTERLOCK", ASG="INTERLOCK", PINI="YES") + db.record("ao", "SECRET", ASG="SECRET", PINI="YES") +
          db.record("ao", "CLOSED", OMSL="closed_loop", DOL="$(P)A", PINI="YES") + db.record("ao", "TARGET", PINI="YES") +
          db.record("calcout", "WRITER", CALC="VAL+1", OUT="$(P)TARGET PP", SCAN="1 second") +
          db.record("ao", "DELAYED", FLNK="$(P)LATE") + db.record("calcout", "LATE", CALC="1", ODLY=1000) +
          db.record("waveform", "WAVE", NELM=100000, FTVL="DOUBLE", SCAN=".1 second") + 'alias("$(P)TICK", "$(P)ALIAS")\n' +
          db.record("ao", "ARCHIVE", ADEL=5, PINI="YES") + db.record("longout", "ZERO", PINI="YES") +
          db.counter("SDIS", SCAN=".1 second", SDIS="$(P)ZERO", DISV=0, DISA=1) + db.counter("TSEL", TSEL="$(P)DISABLED.TIME", SCAN=".1 second") +
          db.record("ao", "OUTPUT", OMSL="closed_loop", DOL="$(P)DISABLED", SCAN=".5 second") + db.record("ao", "EXPERTS", ASG="EXPERTS", PINI="YES"))
RULES = """UAG(experts) { alice, bob }
ASG(DEFAULT) { RULE(1, READ) RULE(1, WRITE) }
ASG(LOCKED) { RULE(1, READ) }
ASG(SECRET) { RULE(1, NONE) }
ASG(EXPERTS) { RULE(1, READ) RULE(1, WRITE) { UAG(experts) } }
ASG(INTERLOCK) { INPA("NO:SUCH:INTERLOCK") RULE(1, READ) RULE(1, WRITE) { CALC("A=1") } }
"""
HANGS = (db.READY + TICK + sub("SLEEP", "sleepFor", FLNK="$(P)AFTER") + db.counter("AFTER", SCAN=".2 second") +
         db.counter("SAME", SCAN=".5 second") + db.counter("OTHER", SCAN="1 second"))


class Trial:
    def __init__(self, tmp):
        self.tmp = tmp
        self.made = []
        rules = tmp / "rules.acf"
        rules.write_text(RULES)
        self.ioc = self.start(Ioc(tmp, COMMON, acf=rules))
        self.monitor = Monitor(tmp, before=["var ebpfMonHangLimit 2", "var ebpfMonWaitLimit 2"])
        self.made.append(self.monitor)
        self.monitor.start()
        self.watch(self.ioc)

    def start(self, ioc):
        self.made.append(ioc)
        return ioc.start()

    def watch(self, ioc):
        self.monitor.wait_ioc(ioc)
        return ioc

    def new(self, text, **how):
        return self.watch(self.start(Ioc(self.tmp, text, **how)))

    def script(self, name, before, text):
        """An IOC with commands before its iocInit."""
        prefix = f"T{os.getpid()}:{name}:"
        (self.tmp / f"{name}.db").write_text(text)
        (self.tmp / f"{name}.cmd").write_text(f'{before}\ndbLoadRecords "{self.tmp}/{name}.db" "P={prefix}"\niocInit\n')
        return self.watch(self.start(Ioc(self.tmp, kind="streamIoc", program=paths.BASE_BIN / "softIoc", prefix=prefix,
                                         files=[self.tmp / f"{name}.cmd"])))

    def pv(self, name):
        return self.ioc.prefix + name

    def why(self, pv, client=""):
        lines = self.monitor.command(f'ebpfMonWhy "{pv}" "{client}"')
        return [l for l in lines if not re.match("epics>|sevr=|ebpfMon: ", l)] or [""]

    def discard(self):
        for thing in reversed(self.made):
            thing.discard()


# --- the record --------------------------------------------------------------------------------------------
@fault("disabled: DISA is DISV")
def disabled(t):
    yield Question(t.pv("DISABLED"), r"record: it is disabled: DISA is 1", neighbour=t.pv("TICK"))


@fault("PACT stuck")
def stuck(t):
    t.ioc.put("STUCK.PROC", 1, wait=False)
    until(lambda: t.ioc.get("STUCK.PACT") == 1, 10, "PACT")
    time.sleep(10)  # only then it is a fault
    yield Question(t.pv("STUCK"), r"record: PACT is 1.*ODLY 1000", neighbour=t.pv("A"))


@fault("never processed, SCAN Passive, UDF")
def never(t):
    yield Question(t.pv("NEVER"), r"record: it has never completed a processing, so it has no value: UDF is 1, SCAN is Passive", neighbour=t.pv("A"))


@fault("SCAN Passive, its source goes on")
def passive(t):
    before = t.ioc.get("PASSIVE")
    until(lambda: t.ioc.get("TICK") > before + 50, 30, "TICK goes on")
    yield Question(t.pv("PASSIVE"), rf"record: SCAN is Passive, and it has not processed for .*INP.* {t.pv('TICK')} ", neighbour=t.pv("SCANNED"))


@fault("source disconnected: in no IOC")
def disconnected(t):
    yield Question(t.pv("BROKEN"), r"record: .*INP.*NO:SUCH:PV.*not connected", neighbour=t.pv("SCANNED"))


@fault("source INVALID, link with MS")
def invalid(t):
    yield Question(t.pv("MS"), rf"record: .*INPA.*{t.pv('BROKEN')}.*NO:SUCH:PV.*not connected", neighbour=t.pv("SCANNED"))


@fault("source disabled")
def frozen(t):
    yield Question(t.pv("FROZEN"), rf"record: .*INP.*{t.pv('DISABLED')}.*disabled", neighbour=t.pv("SCANNED"))


def linked(t, mask):
    other = t.new(db.READY + TICK)
    ioc = t.new(db.READY + db.record("ai", "FAR", INP=f"{other.prefix}TICK {mask}", SCAN=".1 second" if mask == "CA" else "Passive") + TICK)
    until(lambda: ioc.get("FAR") > 0 and ioc.get("FAR.SEVR") == 0, 30, "the link is connected")
    return other, ioc


@fault("source's IOC stopped (SIGSTOP)")
def source_stopped(t):
    other, ioc = linked(t, "CA")
    other.process.halt()
    yield Question(ioc.prefix + "FAR", rf"record: .*INP.*{other.prefix}TICK.*IOC {other.name}.* stands still", neighbour=ioc.prefix + "TICK")
    other.process.go_on()


@fault("source of a CP link gone (IOC killed)")
def source_gone(t):
    other, ioc = linked(t, "CP")
    other.kill()
    until(lambda: ioc.get("FAR.SEVR") == 3, 30, "INVALID")
    yield Question(ioc.prefix + "FAR", rf"record: .*INP.*{other.prefix}TICK.*not connected", neighbour=ioc.prefix + "TICK")


@fault("simulated: SIMM, SIOL")
def simulated(t):
    yield Question(t.pv("SIMULATED"), rf"record: it is simulated: SIMM is YES.*SIOL.*{t.pv('B')}", neighbour=t.pv("SCANNED"))


@fault("time stamp stands still: TSE -2")
def stamp(t):
    yield Question(t.pv("STAMP"), r"record: .*time stamp.*TSE is -2", neighbour=t.pv("TICK"))


@fault("alarm stays by HYST")
def hysteresis(t):
    t.ioc.put("HYST", 11)
    t.ioc.put("HYST", 9)
    assert t.ioc.get("HYST.SEVR") == 1
    yield Question(t.pv("HYST"), r"record: its alarm HIGH stays.*HYST", neighbour=t.pv("A"))


def sleep(ioc):
    """The thread of .5 second sleeps in SLEEP, which has processed before."""
    ioc.put("SLEEP.SCAN", ".5 second")
    until(lambda: all(ioc.get(name) > 0 for name in ("AFTER", "SAME", "OTHER")) and ioc.get("SLEEP.UDF") == 0, 30, "they process")
    ioc.put("SLEEP.A", 300e6, wait=False)


@fault("device support hangs")
def hang(t):
    ioc = t.new(HANGS, kind="latencyIoc")
    sleep(ioc)
    yield Question(ioc.prefix + "SLEEP", r"record: .*scan-0.5.* sleeps, at sleepFor", neighbour=ioc.prefix + "OTHER", also="record: (its lock set|SCAN)")


@fault("lock set held by another record that hangs")
def lock_held(t):
    ioc = t.new(HANGS, kind="latencyIoc")
    sleep(ioc)
    yield Question(ioc.prefix + "AFTER", rf"record: its lock set is held: .*scan-0.5.*{ioc.prefix}SLEEP", neighbour=ioc.prefix + "OTHER", also="record: SCAN")


@fault("its scan thread hangs in another record")
def thread_hangs(t):
    ioc = t.new(HANGS, kind="latencyIoc")
    sleep(ioc)
    yield Question(ioc.prefix + "SAME", r"record: SCAN is .5 second, and its thread hangs.*scan-0.5.*sleepFor", neighbour=ioc.prefix + "OTHER", also="record: SCAN")


@fault("scan threads wait for each other (deadlock)")
def deadlock(t):
    ioc = t.new(db.READY + TICK + "".join(db.record("aSub", f"L{n}", SNAM="lockTwo", INAM="initLockTwo", FTA="DOUBLE", FTB="DOUBLE") for n in (0, 1)) +
                db.counter("OTHER", SCAN="2 second"), kind="latencyIoc")
    ioc.put("L1.A", 1)
    ioc.put("L0.SCAN", "1 second", wait=False)
    ioc.put("L1.SCAN", ".5 second", wait=False)
    yield Question(ioc.prefix + "L0", r"record: its lock set is held: .*deadlock", neighbour=ioc.prefix + "OTHER", also="record: (its lock set|SCAN|it has never)")


@fault("scanning paused (iocPause)")
def paused(t):
    ioc = t.new(db.READY + TICK)
    ioc.command("iocPause")
    yield Question(ioc.prefix + "TICK", r"(IOC|record): .*(paused|iocPause)", neighbour=t.pv("TICK"), also="record: SCAN")


@fault("scan thread overloaded")
def overloaded(t):
    ioc = t.new(db.READY + TICK + sub("SLEEP", "sleepFor") + db.counter("OTHER", SCAN="1 second"), kind="latencyIoc")
    ioc.put("SLEEP.A", 0.7e6)
    ioc.put("SLEEP.SCAN", ".1 second", wait=False)
    yield Question(ioc.prefix + "TICK", rf"record: SCAN is .1 second, but .*(takes|is late).*{ioc.prefix}SLEEP", neighbour=ioc.prefix + "OTHER", also="record: SCAN")


@fault("CP update lost: queue scanOnce full")
def lost_update(t):
    text = db.READY + TICK + "".join(db.record("ao", f"S{i}", PINI="YES") + db.record("ai", f"T{i}", INP=f"$(P)S{i} CP") for i in range(60))
    text += db.record("fanout", "F", SELM="All") + "".join(db.record("dfanout", f"D{k}", SELM="All", FLNK=f"$(P)D{k + 1}" if k < 5 else "", **{
        f"OUT{c}": f"$(P)S{10 * k + i} PP" for i, c in enumerate("ABCDEFGH")}) for k in range(6))
    ioc = t.script("once", "scanOnceSetQueueSize 2", text)
    until(lambda: ioc.get("T0.SEVR") == 0, 30, "the links are connected")
    lost = []

    def loses():
        value = time.time() % 1000
        ioc.put("D0", value)
        time.sleep(1)
        lost[:] = [i for i in range(60) if i % 10 < 8 and ioc.get(f"T{i}") != ioc.get(f"S{i}")]
        return lost

    until(loses, 60, "a lost update")
    fine = [i for i in range(60) if i % 10 < 8 and i not in lost]
    yield Question(f"{ioc.prefix}T{lost[0]}", rf"record: .*INP.*{ioc.prefix}S{lost[0]} .*(CP|scanOnce)", neighbour=f"{ioc.prefix}T{fine[0]}" if fine else ioc.prefix + "TICK")


# --- the IOC -----------------------------------------------------------------------------------------------
@fault("IOC stopped (SIGSTOP)")
def ioc_stopped(t):
    ioc = t.new(db.READY + TICK)
    ioc.process.halt()
    yield Question(ioc.prefix + "TICK", rf"IOC: IOC {ioc.name} .* stands still", neighbour=t.pv("TICK"))
    ioc.process.go_on()


@fault("IOC gone")
def ioc_gone(t):
    ioc = t.new(db.READY + TICK)
    ioc.kill()
    t.monitor.wait_gone(ioc.pid)
    yield Question(ioc.prefix + "TICK", rf"IOC: .*{ioc.name}.*gone.*signal 9", neighbour=t.pv("TICK"), also=rf"IOC: IOC {ioc.name} had it, and is gone$")


@fault("PV in no IOC")
def nowhere(t):
    yield Question("NO:SUCH:PV", r"no IOC that is watched has the record", neighbour=t.pv("TICK"))


@fault("two IOCs serve it")
def twice(t):
    one, two = (t.new(db.READY + db.record("ao", "DOUBLE", PINI="YES"), prefix=f"T{os.getpid()}:TWO:") for _ in range(2))
    yield Question(one.prefix + "DOUBLE", rf"IOC: .*({one.name}.*{two.name}|{two.name}.*{one.name})", neighbour=t.pv("A"))


# --- what is sent ------------------------------------------------------------------------------------------
@fault("MDEL hides a change")
def deadband(t):
    client, neighbour = Subscriber(t.ioc, t.pv("BAND"), "reader"), Subscriber(t.ioc, t.pv("B"), "reader")
    t.ioc.put("BAND", 10)
    assert client.get() == 10
    t.ioc.put("BAND", 10.5)
    yield Question(t.pv("BAND"), r"post: VAL is 10.5 and was not posted: it is within MDEL", "reader", (t.pv("B"), "reader"))
    client.close()
    neighbour.close()


@fault("a dbnd filter hides a change")
def filtered(t):
    t.ioc.put("A", 0)
    client, neighbour = Subscriber(t.ioc, t.pv('A.{"dbnd":{"abs":5}}'), "filtered"), Subscriber(t.ioc, t.pv("A"), "neighbour")
    t.ioc.put("A", 10)
    assert client.get() == neighbour.get() == 10
    t.ioc.put("A", 12)
    assert neighbour.get() == 12
    yield Question(t.pv("A"), r"post: the filter dbnd .* VAL is 12 and was not sent: .* 10", "filtered@", (t.pv("A"), "neighbour@"))
    client.close()
    neighbour.close()


@fault("subscribed to alarms only")
def alarms(t):
    client, neighbour = Subscriber(t.ioc, t.pv("TICK"), "alarms", mask=4), Subscriber(t.ioc, t.pv("TICK"), "neighbour")
    yield Question(t.pv("TICK"), r"post: the client has not subscribed to values, only to alarms", "alarms@", (t.pv("TICK"), "neighbour@"))
    client.close()
    neighbour.close()


@fault("may not read (ASG)")
def secret(t):
    client, neighbour = rawca.RawCa(t.ioc.port, "secret", "test"), Subscriber(t.ioc, t.pv("A"), "secretNeighbour")
    client.send(rawca.message(EVENT_ADD, struct.pack(">fffHH", 0, 0, 0, 7, 0), rawca.DOUBLE, 1, client.sid(t.pv("SECRET")), 1))
    yield Question(t.pv("SECRET"), r"post: .*may not read.*ASG SECRET", "secret@", (t.pv("A"), "secretNeighbour"))
    client.close()
    neighbour.close()


@fault("client asked for a pause (EVENTS_OFF)")
def events_off(t):
    client, neighbour = Subscriber(t.ioc, t.pv("TICK"), "pausing"), Subscriber(t.ioc, t.pv("TICK"), "neighbour")
    client.send(rawca.message(EVENTS_OFF))
    yield Question(t.pv("TICK"), r"queue: the client has asked for a pause", "pausing@", (t.pv("TICK"), "neighbour@"))
    client.close()
    neighbour.close()


@fault("client stopped (SIGSTOP)")
def client_stopped(t):
    t.ioc.put("WAVE", [1.0] * 100000)
    client = Process([paths.BASE_BIN / "camonitor", t.pv("WAVE")], loopback.client(t.ioc.port))
    until(lambda: client.lines, 30, "the first array")
    client.halt()
    yield Question(t.pv("WAVE"), rf"client: the client does not read.*pid {client.pid}.* stopped its process", str(client.pid), t.pv("TICK"))
    client.kill()


@fault("client in a long callback")
def callback(t):
    text = f"import epics, time; p = epics.PV('{t.pv('TICK')}', callback=lambda **_: time.sleep(1000)); time.sleep(1000)"
    client = Process([sys.executable, "-c", text], loopback.client(t.ioc.port))
    neighbour = Process([paths.BASE_BIN / "camonitor", t.pv("TICK")], loopback.client(t.ioc.port))
    yield Question(t.pv("TICK"), r"client: the client does not read since", str(client.pid), (t.pv("TICK"), str(neighbour.pid)),
                   also="(post: no client|queue: the client has asked for a pause)")
    client.kill()
    neighbour.kill()


@fault("the network takes nothing")
def network(t):
    with badlink.BadLink() as link:
        ioc = FarIoc(t.tmp, link, db=db.READY + TICK)
        environ = loopback.environment(EPICS_CA_ADDR_LIST=f"{link.addrB}:{ioc.port}")
        try:
            ioc.start()
            t.watch(ioc)
            far, here = (there(end, [paths.BASE_BIN / "camonitor", ioc.prefix + "TICK"], environ) for end in (link.a, link.b))
            until(lambda: far.lines and here.lines, 30, "the first values")
            badlink.ip("-n", link.middle, "link", "set", "linkA", "down")
            yield Question(ioc.prefix + "TICK", r"network: nothing is acknowledged since", link.addrA + ":", (ioc.prefix + "TICK", link.addrB + ":"),
                           also="post: no client")
        finally:
            ioc.discard()


# --- writes ------------------------------------------------------------------------------------------------
def write(t, name, value, user):
    client = rawca.RawCa(t.ioc.port, user, "test")
    client.put(t.pv(name), rawca.DOUBLE, [value], True)
    return client


def written(t, name, value, right, user, neighbour="B"):
    """A put by this user; the same user has written to a neighbour, too."""
    client = write(t, name, value, user)
    client.put(t.pv(neighbour), rawca.DOUBLE, [value], True)
    yield Question(t.pv(name), right, user + "@", (t.pv(neighbour), user + "@"), also="post: no client")
    client.close()


@fault("put refused: DISP")
def disp(t):
    yield from written(t, "NO", 1.0, r"write: 1 .* was refused: DISP is 1", "disp")


@fault("put refused: ASG")
def asg(t):
    yield from written(t, "LOCKED", 2.0, r"write: 2 .* was refused: .*ASG LOCKED has no rule", "asg")


@fault("put refused: rule of ASG, its INPA disconnected")
def interlock(t):
    yield from written(t, "INTERLOCK", 3.0, r"write: 3 .* was refused: .*ASG INTERLOCK.*INPA.*NO:SUCH:INTERLOCK", "interlock")


@fault("put changed: DRVH")
def limited(t):
    yield from written(t, "LIMITED", 5000.0, r"write: 5000 .* its limit is DRVH", "limited")


@fault("put overwritten by another client")
def overwritten(t):
    one = write(t, "TARGET", 6.0, "first")
    t.ioc.put("WRITER.SCAN", "Passive")
    one.put(t.pv("TARGET"), rawca.DOUBLE, [7.0], True)
    two = write(t, "TARGET", 8.0, "second")
    yield Question(t.pv("TARGET"), r"write: 7 .* overwritten: 8 .* by second@test", "first@", (t.pv("TARGET"), "second@"), also="post: no client")
    one.close()
    two.close()


@fault("two clients write in turn")
def in_turn(t):
    one, two = (rawca.RawCa(t.ioc.port, user, "test") for user in ("left", "right"))
    for value in range(5):  # nine turns
        one.put(t.pv("A"), rawca.DOUBLE, [1.0], True)
        two.put(t.pv("A"), rawca.DOUBLE, [2.0], True)
    yield Question(t.pv("A"), r"write: 1 .* overwritten: 2 .* by right@test.*; (left|right)@test.* and (left|right)@test.* overwrite each other in turn, 9 times", "left@",
                   (t.pv("A"), "right@"), also="(post: no client|write: 1 .* overwritten)")
    one.close()
    two.close()


@fault("put overwritten by a link")
def by_link(t):
    t.ioc.put("WRITER.SCAN", "1 second")
    yield from written(t, "TARGET", -9.0, rf"write: -9 .* overwritten: .*{t.pv('WRITER')}", "linked")


@fault("put without effect: OMSL closed_loop")
def closed(t):
    yield from written(t, "CLOSED", 4321.0, rf"write: 4321 .*OMSL is closed_loop.*DOL.*{t.pv('A')}", "closed")


@fault("put-callback waits for a record")
def waits(t):
    client = Process([paths.BASE_BIN / "caput", "-c", "-w", "300", t.pv("DELAYED"), "4"], loopback.client(t.ioc.port))
    until(lambda: t.ioc.get("LATE.PACT") == 1, 30, "PACT")
    yield Question(t.pv("DELAYED"), rf"write: .*put-callback waits for {t.pv('LATE')}", neighbour=t.pv("B"))
    client.kill()


# --- the same and others, in other ways --------------------------------------------------------------------
def camonitor(ioc, pv):
    return Process([paths.BASE_BIN / "camonitor", pv], loopback.client(ioc.port))


def pva(ioc, name, request="", work=""):
    """A client of pvAccess in a process of its own, which has got its first value."""
    return Client(ioc, [name], request, work)


@fault("one of two clients reads slowly")
def slow_reader(t):
    t.ioc.put("WAVE", [1.0] * 100000)
    slow, neighbour, ended = Subscriber(t.ioc, t.pv("WAVE"), "slow", 100000), Subscriber(t.ioc, t.pv("WAVE"), "fast", 100000), threading.Event()
    threads = [threading.Thread(target=read, args=(client, size, ended), daemon=True) for client, size in ((slow, 2000), (neighbour, 1 << 20))]
    for thread in threads:
        thread.start()
    yield Question(t.pv("WAVE"), r"(queue: updates are merged|client: the client reads too slowly)", "slow@", (t.pv("WAVE"), "fast@"), also="client: the client does not read")
    ended.set()
    for thread, client in zip(threads, (slow, neighbour)):
        thread.join()
        client.close()


def read(client, size, ended):
    """So many bytes each 0.05 s."""
    while not ended.wait(0.05):
        if not client.socket.recv(size):
            return


@fault("CA client paused, pvAccess beside it")
def paused_beside_pva(t):
    ioc = t.new(db.READY + TICK, kind="softIocPVA")
    client, neighbour = Subscriber(ioc, ioc.prefix + "TICK", "pausing"), pva(ioc, "TICK")
    client.send(rawca.message(EVENTS_OFF))
    yield Question(ioc.prefix + "TICK", r"queue: the client has asked for a pause", "pausing@", (ioc.prefix + "TICK", str(neighbour.pid)))
    client.close()
    neighbour.kill()


@fault("pvAccess client stopped, CA beside it")
def pva_stopped(t):
    ioc = t.new(db.READY + TICK, kind="softIocPVA")
    client, neighbour = pva(ioc, "TICK"), camonitor(ioc, ioc.prefix + "TICK")
    client.halt()
    yield Question(ioc.prefix + "TICK", rf"client: the client does not read.*pid {client.pid}", "", (ioc.prefix + "TICK", str(neighbour.pid)))
    client.kill()
    neighbour.kill()


@fault("pvAccess pipeline of pvxs, slow callback")
def pipeline(t):
    ioc = t.new(db.READY + TICK, kind="pvxs")
    client, neighbour = pva(ioc, "TICK", "record[queueSize=4,pipeline=true]", "time.sleep(1000)"), pva(ioc, "TICK", "record[queueSize=4,pipeline=true]")
    yield Question(ioc.prefix + "TICK", r"client: the client takes no updates since .*queueSize, pipeline", str(client.pid), (ioc.prefix + "TICK", str(neighbour.pid)))
    client.kill()
    neighbour.kill()


@fault("a dec filter leaves updates out")
def decimated(t):
    client, neighbour = Subscriber(t.ioc, t.pv('TICK.{"dec":{"n":1000}}'), "thinned"), camonitor(t.ioc, t.pv('TICK.{"ts":{}}'))
    yield Question(t.pv("TICK"), r'post: the filter dec of the channel.*, lets one of 1000 updates through', "thinned@", (t.pv("TICK"), str(neighbour.pid)))
    client.close()
    neighbour.kill()


@fault("a relative dbnd filter hides a change")
def filtered_relative(t):
    t.ioc.put("B", 0)
    client, neighbour = Subscriber(t.ioc, t.pv('B.{"dbnd":{"rel":50}}'), "relative"), Subscriber(t.ioc, t.pv("B"), "absolute")
    for value in 200, 250:
        t.ioc.put("B", value)
    yield Question(t.pv("B"), r"post: the filter dbnd .* VAL is 250 and was not sent: .* 200", "relative@", (t.pv("B"), "absolute@"))
    client.close()
    neighbour.close()


@fault("ADEL hides a change from an archiver")
def archive_deadband(t):
    client, neighbour = Subscriber(t.ioc, t.pv("ARCHIVE"), "archiver", mask=2), Subscriber(t.ioc, t.pv("ARCHIVE"), "display", mask=1)
    t.ioc.put("ARCHIVE", 100)
    assert client.get() == neighbour.get() == 100
    t.ioc.put("ARCHIVE", 103)
    assert neighbour.get() == 103
    yield Question(t.pv("ARCHIVE"), r"post: VAL is 103 and was not posted: it is within ADEL", "archiver@", (t.pv("ARCHIVE"), "display@"))
    client.close()
    neighbour.close()


@fault("a CA link of a stopped IOC is the client")
def link_as_client(t):
    other = t.new(db.READY + db.record("ai", "FAR", INP=f"{t.pv('TICK')} CP"))
    until(lambda: other.get("FAR") > 0, 30, "the link is connected")
    neighbour = camonitor(t.ioc, t.pv("TICK"))
    other.process.halt()
    yield Question(t.pv("TICK"), rf"client: the client does not read.*pid {other.pid}", str(other.pid), (t.pv("TICK"), str(neighbour.pid)))
    other.process.go_on()
    neighbour.kill()


@fault("paused, asked for by an alias; 200 others")
def alias(t):
    client, neighbour = Subscriber(t.ioc, t.pv("ALIAS"), "same"), Subscriber(t.ioc, t.pv("TICK"), "other")
    for number in range(2, 202):
        neighbour.send(rawca.message(EVENT_ADD, struct.pack(">fffHH", 0, 0, 0, 7, 0), rawca.DOUBLE, 1, neighbour.sid(t.pv("B")), number))
    client.send(rawca.message(EVENTS_OFF))
    yield Question(t.pv("ALIAS"), r"queue: the client has asked for a pause", "", (t.pv("TICK"), "other@"))
    client.close()
    neighbour.close()


@fault("client cannot connect: its server has all files open")
def files(t):
    ioc = t.new(db.READY + TICK)
    limit = len(os.listdir(f"/proc/{ioc.pid}/fd")) + 3
    neighbour = camonitor(ioc, ioc.prefix + "TICK")
    until(lambda: neighbour.lines, 30, "the first value")
    resource.prlimit(ioc.pid, resource.RLIMIT_NOFILE, (limit, limit))
    others = [socket.create_connection(("127.0.0.1", ioc.port)) for _ in range(6)]
    client = camonitor(ioc, ioc.prefix + "TICK")
    yield Question(ioc.prefix + "TICK", r"post: no client .* has all of its \d+ files open", str(client.pid), (ioc.prefix + "TICK", str(neighbour.pid)),
                   also="post: no client")
    client.kill()
    neighbour.kill()
    for other in others:
        other.close()


@fault("disabled by SDIS: DISV is 0")
def sdis(t):
    yield Question(t.pv("SDIS"), rf"record: it is disabled: DISA is 0, as DISV.*SDIS.*{t.pv('ZERO')}", neighbour=t.pv("TICK"))


@fault("DOL of an output is disabled")
def dol(t):
    yield Question(t.pv("OUTPUT"), rf"record: .*DOL.*{t.pv('DISABLED')}.*disabled", neighbour=t.pv("TICK"))


@fault("time stamp of another record: TSEL")
def tsel(t):
    yield Question(t.pv("TSEL"), rf"record: .*time stamp.*TSEL is {t.pv('DISABLED')}", neighbour=t.pv("TICK"))


@fault("PV with a field that the record has not")
def field(t):
    yield Question(t.pv("TICK.NOSUCH"), r"record: .*no field NOSUCH", neighbour=t.pv("TICK.SEVR"))


@fault("iocInit not done")
def not_initialised(t):
    (t.tmp / "early.db").write_text(db.READY + TICK)
    (t.tmp / "early.cmd").write_text(f'dbLoadRecords "{t.tmp}/early.db" "P=T{os.getpid()}:early:"\n')
    ioc = Ioc(t.tmp, kind="streamIoc", program=paths.BASE_BIN / "softIoc", prefix=f"T{os.getpid()}:early:", files=[t.tmp / "early.cmd"])
    t.made.append(ioc)
    ioc.start(wait=False)
    yield Question(ioc.prefix + "TICK", rf"IOC: IOC {ioc.name} .*iocInit is not done", neighbour=t.pv("TICK"), also="no IOC that is watched has the record")


CALLBACKS = (db.READY + TICK + sub("SLEEP", "sleepFor", SCAN="Event", EVNT="7", PRIO="LOW") + db.counter("LISTENER", SCAN="Event", EVNT="8", PRIO="LOW") +
             db.counter("QUICK", SCAN="Event", EVNT="8", PRIO="HIGH") + db.record("event", "SEVEN", VAL="7") + db.record("event", "EIGHT", VAL="8", SCAN="1 second") +
             db.record("calcout", "LATE", CALC="VAL+1", ODLY="0.1", SCAN="1 second"))


def callbacks(t):
    """The thread cbLow sleeps in SLEEP, after all have processed."""
    ioc = t.new(CALLBACKS, kind="latencyIoc")
    until(lambda: all(ioc.get(name) > 0 for name in ("LISTENER", "QUICK", "LATE")), 30, "they process")
    ioc.put("SLEEP.A", 300e6)
    ioc.put("SEVEN.PROC", 1, wait=False)
    return ioc


@fault("SCAN Event, its callback thread hangs")
def event_hangs(t):
    ioc = callbacks(t)
    yield Question(ioc.prefix + "LISTENER", rf"record: SCAN is Event, .*cbLow.*{ioc.prefix}SLEEP.*sleepFor", neighbour=ioc.prefix + "QUICK", also="record: SCAN is Event, and cbLow, which processes it, hangs")


@fault("delayed record, its callback thread hangs")
def completion_hangs(t):
    ioc = callbacks(t)
    yield Question(ioc.prefix + "LATE", r"record: PACT is 1.*cbLow.*sleepFor", neighbour=ioc.prefix + "QUICK", also="record: PACT is 1")


@fault("put refused: user not in UAG")
def uag(t):
    yield from written(t, "EXPERTS", 11.0, r"write: 11 .* was refused: .*ASG EXPERTS.*UAG", "novice")


@fault("put refused: no such choice")
def choice(t):
    client = rawca.RawCa(t.ioc.port, "chooser", "test")
    client.put(t.pv("TICK.SCAN"), rawca.STRING, ["3 second"], True)
    client.put(t.pv("B.DESC"), rawca.STRING, ["x"], True)
    yield Question(t.pv("TICK.SCAN"), r"write: 3 second .* was refused: .*[Cc]hoice", "chooser@", (t.pv("B.DESC"), "chooser@"), also="post: no client")
    client.close()


@fault("put limited: DRVL, by pvAccess; another user is not")
def limited_pva(t):
    ioc = t.new(db.READY + db.record("ao", "LOW", DRVH=10, DRVL=-10, PINI="YES") + db.record("ao", "FREE", PINI="YES"), kind="softIocPVA")
    for name in "LOW", "FREE":
        ioc.run("pvput", ioc.prefix + name, "-55")
    yield Question(ioc.prefix + "LOW", r"write: -55 .* its limit is DRVL", "pvput", (ioc.prefix + "FREE", "pvput"), also="post: no client")


@fault("put-callback of pvAccess waits for a record")
def waits_pva(t):
    ioc = t.new(db.READY + db.record("ao", "DELAYED", FLNK="$(P)MIDDLE") + db.record("fanout", "MIDDLE", LNK2="$(P)LATE") +
                db.record("calcout", "LATE", CALC="1", ODLY=1000) + TICK, kind="softIocPVA")
    client = Process([paths.BASE_BIN / "pvput", "-w", "1000", "-r", "record[block=true]field(value)", ioc.prefix + "DELAYED", "1"], loopback.client(ioc.port))
    until(lambda: ioc.get("LATE.PACT") == 1, 30, "PACT")
    yield Question(ioc.prefix + "DELAYED", rf"write: .*put-callback waits for {ioc.prefix}LATE", neighbour=ioc.prefix + "TICK")
    client.kill()


def with_modules(t, name, modules, dbds, text):
    """An IOC with modules of sites (tools/modules.sh)."""
    prefix, cache = f"T{os.getpid()}:{name}:", paths.CACHE / "modules"
    (t.tmp / f"{name}.db").write_text(text)
    path = ":".join(str(d) for d in (paths.BASE / "dbd", *(cache / m / "dbd" for m in modules)))
    lines = [*(f'dbLoadDatabase("{d}.dbd", "{path}")' for d in ("base", *dbds)), "registerAll", f'dbLoadRecords("{t.tmp}/{name}.db", "P={prefix}")', "iocInit", ""]
    (t.tmp / f"{name}.cmd").write_text("\n".join(lines))
    return t.watch(t.start(Ioc(t.tmp, kind="streamIoc", program=MODULES_IOC, prefix=prefix, files=[t.tmp / f"{name}.cmd"])))


MODULES_IOC = paths.CACHE / "modules" / "modulesIoc"
if MODULES_IOC.exists():
    @fault("put-callback waits for a motor whose DMOV never comes")
    def motor(t):
        ioc = with_modules(t, "motor", ["asyn", "motor"], ["motorSupport", "devSoftMotor"], db.READY + TICK + "".join(
            db.record("ao", f"POS{n}") + db.record("bo", f"DONE{n}", VAL="1", PINI="YES") +
            db.record("motor", f"M{n}", DTYP="Soft Channel", OUT=f"$(P)POS{n} PP", DINP=f"$(P)DONE{n} NPP", RINP=f"$(P)POS{n}", VELO="10", MRES="1", ACCL="0.1", DLLM="-100", DHLM="100", URIP="No") for n in range(2)))
        ioc.put("DONE0", 0)
        client = Process([paths.BASE_BIN / "caput", "-c", "-w", "1000", ioc.prefix + "M0", "4"], loopback.client(ioc.port))
        until(lambda: ioc.get("M0.DMOV") == 0, 30, "it moves")
        yield Question(ioc.prefix + "M0", rf"write: .*put-callback waits for {ioc.prefix}M0, which has not completed \(motor", neighbour=ioc.prefix + "M1")
        client.kill()


    @fault("put-callback waits for a busy record")
    def busy(t):
        ioc = with_modules(t, "busy", ["asyn", "busy"], ["busySupport"], db.READY + TICK + db.record("busy", "BUSY") + db.record("bo", "START", FLNK="$(P)BEGIN") +
                           db.record("seq", "BEGIN", DO1="1", LNK1="$(P)BUSY PP"))
        client = Process([paths.BASE_BIN / "caput", "-c", "-w", "1000", ioc.prefix + "START", "1"], loopback.client(ioc.port))
        until(lambda: ioc.get("BUSY") == 1, 30, "it is busy")
        yield Question(ioc.prefix + "START", rf"write: .*put-callback waits for {ioc.prefix}BUSY, which has not completed \(busy", neighbour=ioc.prefix + "TICK")
        client.kill()


@fault("value written by hand, and read again from its input")
def read_again(t):
    yield from written(t, "SCANNED", -1.0, rf"write: -1 .* overwritten.* its processing.*{t.pv('TICK')}", "hand")


# --- of other kinds ------------------------------------------------------------------------------------------
@fault("put refused: the input of a rule became INVALID, its value had been right")
def rights(t):
    permit = t.new(db.READY + db.record("ao", "PERMIT", VAL="1", PINI="YES"))
    rules = t.tmp / "permit.acf"
    rules.write_text(f'ASG(DEFAULT) {{ RULE(1, READ) RULE(1, WRITE) }}\n'
                     f'ASG(PERMIT) {{ INPA("{permit.prefix}PERMIT") RULE(1, READ) RULE(1, WRITE) {{ CALC("A=1") }} }}\n')
    ioc = t.new(db.READY + db.record("ao", "SET", ASG="PERMIT") + db.record("ao", "FREE"), acf=rules)
    client = rawca.RawCa(ioc.port, "permitted", "test")
    until(lambda: client.put(ioc.prefix + "SET", rawca.DOUBLE, [1.0], True) == 1, 30, "it may write")
    permit.kill()
    until(lambda: client.put(ioc.prefix + "SET", rawca.DOUBLE, [2.0], True) != 1, 30, "it may not write")
    client.put(ioc.prefix + "FREE", rawca.DOUBLE, [2.0], True)
    yield Question(ioc.prefix + "SET", rf"write: 2 .* was refused: .*ASG PERMIT.*INPA.*{permit.prefix}PERMIT.*not connected", "permitted@",
                   (ioc.prefix + "FREE", "permitted@"), also="post: no client")
    client.close()


@fault("channel refused: a filter that the server does not have")
def refused(t):
    client = Process([paths.BASE_BIN / "caget", "-w", "1000", t.pv("TICK.VAL{nofilter:{}}")], loopback.client(t.ioc.port))
    neighbour = camonitor(t.ioc, t.pv("TICK"))
    yield Question(t.pv("TICK.VAL{nofilter:{}}"), r"post: the client .* is not connected: .*refuses the channel: .*filter", str(client.pid),
                   (t.pv("TICK"), str(neighbour.pid)), also="post: no client")
    client.kill()
    neighbour.kill()


@fault("pvAccess link to a PV that nobody has")
def pva_link(t):
    ioc = t.new(db.READY + TICK + f'record(ai, "$(P)FAR") {{ field(INP, {{pva: {{pv: "NO:SUCH:PVA", proc: "CP"}}}}) }}\n', kind="pvxs")
    yield Question(ioc.prefix + "FAR", r"record: .*INP.*NO:SUCH:PVA.*not connected", neighbour=ioc.prefix + "TICK", also="record: it has never completed")


@fault("IOC stopped by a debugger")
def traced(t):
    ioc = t.new(db.READY + TICK)
    text = f"import ctypes, time; c = ctypes.CDLL(None); c.ptrace(0x4206, {ioc.pid}, 0, 0); c.ptrace(0x4207, {ioc.pid}, 0, 0); print('on', flush=True); time.sleep(1000)"
    debugger = Process([sys.executable, "-c", text], os.environ.copy())  # PTRACE_SEIZE, PTRACE_INTERRUPT
    debugger.wait_line("on")
    yield Question(ioc.prefix + "TICK", rf"IOC: IOC {ioc.name} .* stands still", neighbour=t.pv("TICK"))
    debugger.kill()


def frozen_container(t, group, file, on, off):
    ioc = t.new(db.READY + TICK)
    with container.frozen(ioc.pid, group, file, on, off):
        yield Question(ioc.prefix + "TICK", rf"IOC: IOC {ioc.name} .* is frozen", neighbour=t.pv("TICK"))


for place in container.FREEZERS:
    fault(f"IOC frozen, as by docker pause ({place[1]})")(lambda t, place=place: frozen_container(t, *place))


@fault("camonitor prints into a pipe that nobody reads")
def full_pipe(t):
    t.ioc.put("WAVE", [1.0] * 100000)
    reader, writer = os.pipe()
    client = subprocess.Popen([paths.BASE_BIN / "camonitor", t.pv("WAVE")], env=loopback.client(t.ioc.port), stdout=writer)
    neighbour = camonitor(t.ioc, t.pv("TICK"))
    yield Question(t.pv("WAVE"), rf"(queue: the client has asked for a pause|client: the client does not read since .*pid {client.pid})", str(client.pid),
                   (t.pv("TICK"), str(neighbour.pid)), also="post: no client")
    client.kill()
    client.wait()
    neighbour.kill()
    os.close(reader)
    os.close(writer)


@fault("put overwritten by a CA link of another IOC")
def far_link(t):
    ioc = t.new(db.READY + TICK + db.record("calcout", "FARWRITER", CALC="VAL+1", OUT=f"{t.pv('TARGET')} CA", SCAN="1 second"))
    t.ioc.put("WRITER.SCAN", "Passive")
    yield from written(t, "TARGET", -19.0, rf"write: -19 .* overwritten: .*{ioc.prefix}FARWRITER", "farlinked")


@fault("OUT leads to a PV that nobody has")
def out_link(t):
    ioc = t.new(db.READY + TICK + db.record("ao", "DRIVES", OUT="NO:SUCH:OUT CA") + db.record("ao", "FREE", PINI="YES"))
    ioc.put("DRIVES", 3)
    yield Question(ioc.prefix + "DRIVES", r"record: .*OUT.*NO:SUCH:OUT.*not connected", neighbour=ioc.prefix + "FREE")


@fault("input of a calc is gone: its value is the old one")
def old_input(t):
    other = t.new(db.READY + db.counter("SOURCE", SCAN=".1 second"))
    ioc = t.new(db.READY + TICK + db.record("calc", "SUM", CALC="A+B", INPA=f"{other.prefix}SOURCE CA", INPB="$(P)TICK", SCAN=".1 second"))
    until(lambda: ioc.get("SUM") > 0 and ioc.get("SUM.A") > 0, 30, "the link is connected")
    other.kill()
    yield Question(ioc.prefix + "SUM", rf"record: .*INPA.*{other.prefix}SOURCE.*(not connected|is gone)", neighbour=ioc.prefix + "TICK")


@fault("put refused: a field that nobody may write")
def no_modify(t):
    client = rawca.RawCa(t.ioc.port, "modifier", "test")
    client.put(t.pv("TICK.PACT"), rawca.SHORT, [1], True)
    client.put(t.pv("B.DESC"), rawca.STRING, ["x"], True)
    yield Question(t.pv("TICK.PACT"), r"write: 1 .* (was refused|failed): .*(not be|may|write|modif)", "modifier@", (t.pv("B.DESC"), "modifier@"), also="post: no client")
    client.close()


@fault("an average that is not complete: compress, N 1000")
def compress(t):
    ioc = t.new(db.READY + TICK + db.record("compress", "MEAN", INP="$(P)TICK", ALG="Average", NSAM=10, N=100000, SCAN=".1 second"))
    until(lambda: ioc.get("TICK") > 5, 10, "it processes")
    yield Question(ioc.prefix + "MEAN", r"record: it has never completed a processing, so it has no value", neighbour=ioc.prefix + "TICK")
