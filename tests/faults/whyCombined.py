# SPDX-License-Identifier: BSD-3-Clause
"""More faults of whyFaults.py: what is not connected and why, other causes, and combinations of them."""
import os
import socket
import threading
import time

from tests.faults.whyFaults import EVENTS_OFF, Question, Subscriber, TICK, camonitor, fault, pva, write, written
from tests.harness import badlink, db, kernel, loopback, paths, rawca
from tests.harness.far import FarIoc, there
from tests.harness.process import Process
from tests.harness.wait import until
from tests.integration.test_unconnected import answer_searches


# --- not connected, and why ----------------------------------------------------------------------------------
@fault("link to a field that the record has not")
def no_field(t):
    ioc = t.new(db.READY + TICK + db.record("ai", "FAR", INP=f"{t.pv('TICK.VALL')} CA", SCAN=".1 second") + db.record("ai", "GOOD", INP=f"{t.pv('TICK.VAL')} CA", SCAN=".1 second"))
    yield Question(ioc.prefix + "FAR", rf"record: .*INP.*TICK.VALL, which is not connected: IOC {t.ioc.name} .* has the record, and it has no field VALL", neighbour=ioc.prefix + "GOOD",
                   also=r"record: .*INP.*TICK.VALL, which is not connected")


@fault("an IOC's own client does not reach its own server (pvAccess)")
def own_client(t):
    port = t.ioc.port + 2000  # of a server that the monitor knows
    ioc = t.new(db.READY + TICK + 'record(ai, "$(P)OWN") { field(INP, {pva: {pv: "$(P)TICK", proc: "CP"}}) }\n', kind="pvxs",
                environ={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{port}"})
    yield Question(ioc.prefix + "OWN", rf"record: .*INP.*{ioc.prefix}TICK, which is not connected: IOC {ioc.name} .* has it itself, and its own client does not reach its own server.*127.0.0.1:{port}",
                   neighbour=ioc.prefix + "TICK", also="record: it has never completed")


@fault("the server's TCP port refuses the connection")
def refused_connect(t):
    """A server that has ended, and answers still: a name server, or a proxy of searches. It has an IOC's port at another address."""
    ended = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, socket.socket() as bound:
        server.bind(("127.0.0.2", t.ioc.port))
        bound.bind(("127.0.0.2", 0))
        port = bound.getsockname()[1]
        thread = threading.Thread(target=answer_searches, args=(server, "NO:SUCH:SERVER", [port], ended))
        thread.start()
        ioc = t.new(db.READY + TICK + db.record("ai", "FAR", INP="NO:SUCH:SERVER CA", SCAN=".1 second"), environ={"EPICS_CA_ADDR_LIST": f"127.0.0.2:{t.ioc.port}"})
        try:
            yield Question(ioc.prefix + "FAR", rf"record: .*INP.*NO:SUCH:SERVER, which is not connected: answered by 127.0.0.2:{port}, whose TCP port refuses", neighbour=ioc.prefix + "TICK",
                           also="record: .*INP.*NO:SUCH:SERVER, which is not connected")
        finally:
            ended.set()
            thread.join()


@fault("a client of a minor version that no server speaks")
def minor(t):
    name = t.pv("A")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind(("127.0.0.1", 0))
        ended = threading.Event()

        def search():
            while not ended.wait(0.5):
                client.sendto(rawca.message(rawca.VERSION, count=3) + rawca.message(rawca.SEARCH, name.encode() + b"\0", 5, 3, 1, 1), ("127.0.0.1", t.ioc.port))

        thread = threading.Thread(target=search)
        thread.start()
        neighbour = camonitor(t.ioc, name)
        try:
            yield Question(name, r"post: the client .* is not connected: the client speaks Channel Access 4.3", str(os.getpid()), (name, str(neighbour.pid)), also="post: no client")
        finally:
            ended.set()
            thread.join()
            neighbour.kill()


@fault("two hosts have the name")
def two_hosts(t):
    with badlink.BadLink() as link:
        prefix = f"T{os.getpid()}:both:"
        first, second = (FarIoc(t.tmp, link, end, db=db.READY + TICK, prefix=prefix) for end in (link.a, link.b))
        third = FarIoc(t.tmp, link, db=db.READY + TICK)
        environ = loopback.environment(EPICS_CA_ADDR_LIST=" ".join(f"{i.address}:{i.port}" for i in (first, second, third)))
        try:
            for ioc in first, second, third:
                t.watch(ioc.start())
            client = there(link.a, [paths.BASE_BIN / "camonitor", prefix + "TICK", third.prefix + "TICK"], environ)
            until(lambda: len(client.lines) > 1, 30, "the first values")
            ends = [f"192.0.2.[12]:({first.port}|{second.port})"] * 2
            yield Question(prefix + "TICK", rf"IOC: two servers have answered for the name in the last 10 minutes, {' and '.join(ends)}", neighbour=third.prefix + "TICK")
        finally:
            for ioc in first, second, third:
                ioc.discard()


def refused_pva(t, kind):
    ioc = t.new(db.READY + TICK, kind=kind)
    bad = ioc.prefix + "TICK.VAL{nofilter:{}}"
    client = Process([paths.BASE_BIN / "pvget", "-w", "1000", bad], loopback.client(ioc.port))
    neighbour = pva(ioc, "TICK")
    yield Question(bad, r"post: the client .* is not connected: IOC .* refuses the channel: .", str(client.pid), (ioc.prefix + "TICK", str(neighbour.pid)), also="post: no client")
    client.kill()
    neighbour.kill()


for kind in "softIocPVA", "pvxs":
    fault(f"channel of pvAccess refused ({kind})")(lambda t, kind=kind: refused_pva(t, kind))


@fault("IOC killed by the kernel: out of memory")
def out_of_memory(t):
    ioc = t.new(db.READY + TICK + db.record("waveform", "BIG", NELM=20000000, FTVL="DOUBLE"))
    with kernel.out_of_memory(ioc.pid, 16 << 20):
        client = rawca.RawCa(ioc.port)
        client.send(rawca.message(15, b"", rawca.DOUBLE, 20000000, client.sid(ioc.prefix + "BIG"), 1))
        ioc.process.wait(30)
    yield Question(ioc.prefix + "TICK", rf"IOC: IOC {ioc.name} had it, and is gone since .*out of memory", neighbour=t.pv("TICK"), also="(no IOC that is watched has the record|IOC: .* had it, and is gone$)")


# --- combinations --------------------------------------------------------------------------------------------
@fault("input of a sel record that it does not choose is fine, the chosen one is gone")
def chosen(t):
    ioc = t.new(db.READY + TICK + "".join(db.record("sel", name, SELM="Specified", SELN=n, INPA="$(P)TICK CA", INPB="NO:SUCH:INPUT CA", SCAN=".1 second") for n, name in enumerate(("GOOD", "BAD"))))
    yield Question(ioc.prefix + "BAD", r"record: its input INPB is NO:SUCH:INPUT, which is not connected", neighbour=ioc.prefix + "GOOD")


@fault("calc uses a disabled input; its neighbour has it, and does not use it")
def unused(t):
    ioc = t.new(db.READY + TICK + db.counter("OFF", SCAN=".1 second", DISA=1) + "".join(
        db.record("calc", name, CALC=calc, INPA="$(P)TICK", INPB="$(P)OFF", SCAN=".1 second") for name, calc in (("USES", "A+MAX(b,1)"), ("NOT", "A+ABS(1)"))))
    yield Question(ioc.prefix + "USES", r"record: its input INPB is .*OFF: it is disabled", neighbour=ioc.prefix + "NOT")


@fault("put refused by access security; DISP was set afterwards")
def disp_afterwards(t):
    client = write(t, "LOCKED", 2.0, "lateDisp")
    client.put(t.pv("B"), rawca.DOUBLE, [2.0], True)
    t.ioc.command(f"dbpf {t.pv('LOCKED')}.DISP 1")
    yield Question(t.pv("LOCKED"), r"write: 2 .* was refused: access security.*ASG LOCKED has no rule", "lateDisp@", (t.pv("B"), "lateDisp@"), also="post: no client")
    t.ioc.command(f"dbpf {t.pv('LOCKED')}.DISP 0")
    client.close()


@fault("put refused by DISP, which was cleared afterwards")
def disp_healed(t):
    ioc = t.new(db.READY + db.record("ao", "SET", DISP=1, PINI="YES") + db.record("ao", "FREE", PINI="YES"))
    client = rawca.RawCa(ioc.port, "earlyDisp", "test")
    for name in "SET", "FREE":
        client.put(ioc.prefix + name, rawca.DOUBLE, [2.0], True)
    client.put(ioc.prefix + "SET.DISP", rawca.DOUBLE, [0.0], True)
    yield Question(ioc.prefix + "SET", r"write: 2 .* was refused: DISP was 1; now it is 0", "earlyDisp@", (ioc.prefix + "FREE", "earlyDisp@"), also="post: no client")
    client.close()


@fault("time stamp from the future")
def future(t):
    ioc = t.new(db.READY + TICK + db.record("ai", "AHEAD", INP="$(P)TICK", SCAN=".1 second", TSEL="$(P)SOURCE.TIME") + db.record("ao", "SOURCE", PINI="YES") +
                'record(aSub, "$(P)LATER") { field(SNAM, "stampLater") field(FTA, "STRING") field(INPA, ["$(P)SOURCE"]) }\n', kind="latencyIoc")
    ioc.put("LATER.PROC", 1)  # by an hour
    yield Question(ioc.prefix + "AHEAD", r"record: its time stamp is 3[56]\d\d s in the future: .*TSEL is .*SOURCE", neighbour=ioc.prefix + "TICK")


@fault("written before the IOC was restarted")
def before_restart(t):
    ioc = t.new(db.READY + db.record("ao", "SET", PINI="YES") + db.record("ao", "KEPT", VAL=7, PINI="YES"))
    client = rawca.RawCa(ioc.port, "early", "test")
    client.put(ioc.prefix + "SET", rawca.DOUBLE, [5.0], True)
    client.put(ioc.prefix + "KEPT", rawca.DOUBLE, [7.0], True)
    client.close()
    ioc.kill()
    until(lambda: "is gone" in t.why(ioc.prefix + "SET")[0], 30, "its end is told")
    time.sleep(0.1)  # the kernel tells the start of a process to 0.01 s
    t.watch(ioc.start())
    yield Question(ioc.prefix + "SET", r"write: 5 .* by early@test.* was made, and the IOC has been restarted since; the field is 0 now", "early@", (ioc.prefix + "KEPT", "early@"), also="(post: no client|IOC: |no IOC)")


@fault("disabled by another IOC, which is gone")
def disabler_gone(t):
    other = t.new(db.READY + db.record("ao", "PERMIT", VAL="1", PINI="YES"))
    ioc = t.new(db.READY + TICK + "".join(db.counter(n, SCAN=".1 second", SDIS=f"{other.prefix}PERMIT CA", DISV=v) for n, v in (("OFF", 1), ("ON", 2))))
    until(lambda: ioc.get("OFF.DISA") == 1, 30, "it is disabled")
    other.kill()
    yield Question(ioc.prefix + "OFF", rf"record: it is disabled: DISA is 1, as DISV; SDIS is {other.prefix}PERMIT.*, which is not connected", neighbour=ioc.prefix + "TICK", also="record: it is disabled")


@fault("not disabled, and INVALID: the IOC that could disable it is gone")
def disabler_unknown(t):
    other = t.new(db.READY + db.record("ao", "PERMIT", VAL="1", PINI="YES"))
    ioc = t.new(db.READY + TICK + db.counter("ON", SCAN=".1 second", SDIS=f"{other.prefix}PERMIT CA", DISV=2))
    until(lambda: ioc.get("ON.DISA") == 1, 30, "the link is connected")
    other.kill()
    until(lambda: ioc.get("ON.SEVR") == 3, 30, "INVALID")
    yield Question(ioc.prefix + "ON", rf"record: its link SDIS is {other.prefix}PERMIT, which is not connected", neighbour=ioc.prefix + "TICK")


@fault("two at once: the record is disabled, its client paused")
def two_at_once(t):
    clients = [Subscriber(t.ioc, t.pv(name), "twice") for name in ("DISABLED", "TICK")]
    clients[0].send(rawca.message(EVENTS_OFF))
    yield Question(t.pv("DISABLED"), r"record: it is disabled: DISA is 1", "twice@", (t.pv("TICK"), str(clients[1].socket.getsockname()[1])))
    for client in clients:
        client.close()


@fault("two at once: the client is paused, and the one of two with its name is not")
def same_name(t):
    ill, well = (Subscriber(t.ioc, t.pv("TICK"), "samename") for _ in range(2))
    ill.send(rawca.message(EVENTS_OFF))
    port = ill.socket.getsockname()[1]
    yield Question(t.pv("TICK"), rf"queue: the client has asked for a pause", str(port), (t.pv("TICK"), str(well.socket.getsockname()[1])))
    ill.close()
    well.close()


@fault("a client is stopped; the number of another is a part of its own")
def part_of_a_number(t):
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        number = chosen.getsockname()[1]
    ill = Subscriber(t.ioc, t.pv("TICK"), "parted")
    ill.send(rawca.message(EVENTS_OFF))
    port = str(ill.socket.getsockname()[1])
    yield Question(t.pv("TICK"), r"queue: the client has asked for a pause", port, None)
    assert not t.why(t.pv("TICK"), port[1:])[0].startswith("queue:"), "a part of a number names nobody"
    ill.close()


@fault("a fault that heals uncovers the next one")
def heals(t):
    ioc = t.new(db.READY + TICK + db.counter("OFF", SCAN=".1 second", DISA=1))
    ioc.process.halt()
    until(lambda: "stands still" in t.why(ioc.prefix + "OFF")[0], 30, "the first one is told")
    ioc.process.go_on()
    yield Question(ioc.prefix + "OFF", r"record: it is disabled", neighbour=ioc.prefix + "TICK", also="IOC: ")


@fault("overwritten, and written back by another")
def written_back(t):
    one, two = (rawca.RawCa(t.ioc.port, user, "test") for user in ("backOne", "backTwo"))
    for client, value in ((one, 31.0), (two, 32.0)):
        for name in "A", "B":
            client.put(t.pv(name), rawca.DOUBLE, [value], True)
    two.put(t.pv("B"), rawca.DOUBLE, [31.0], True)
    yield Question(t.pv("A"), r"write: 31 .* overwritten: 32 .* by backTwo", "backOne@", (t.pv("B"), "backOne@"), also="post: no client")
    one.close()
    two.close()


@fault("a PV of pvAccess that is no record: its client is stopped")
def no_record(t):
    ioc = t.new(db.READY + TICK + 'record(calc, "$(P)M") { field(SCAN, ".1 second") field(CALC, "VAL+1") info(Q:group, {"$(P)GROUP": {"m": {"+channel": "VAL", "+trigger": "*"}}}) }\n', kind="softIocPVA")
    client = Process([paths.BASE_BIN / "pvmonitor", ioc.prefix + "GROUP"], loopback.client(ioc.port))
    until(lambda: client.lines, 30, "the first value")
    neighbour = pva(ioc, "TICK")
    client.halt()
    yield Question(ioc.prefix + "GROUP", rf"no watched IOC has a record of .*GROUP: IOC {ioc.name} serves it by pvAccess: client does not read since .*pid {client.pid}", str(client.pid), (ioc.prefix + "TICK", str(neighbour.pid)),
                   also="no (IOC that is watched|watched IOC) has (the|a) record of .*(: IOC .* serves it by pvAccess: ok.*)?$")
    client.kill()
    neighbour.kill()


@fault("seq: what it passes on is not connected")
def seq(t):
    ioc = t.new(db.READY + TICK + "".join(db.record("seq", n, DOL1=s, LNK1="$(P)TO PP", SCAN=".1 second") for n, s in (("BAD", "NO:SUCH:DOL CA"), ("GOOD", "$(P)TICK CA"))) + db.record("ao", "TO"))
    yield Question(ioc.prefix + "BAD", r"record: its input DOL1 is NO:SUCH:DOL, which is not connected", neighbour=ioc.prefix + "GOOD")


@fault("output to a PV that the IOC may not write")
def no_write(t):
    ioc = t.new(db.READY + TICK + "".join(db.record("ao", n, OUT=f"{t.pv(to)} CA", PINI="YES") for n, to in (("BAD", "LOCKED"), ("GOOD", "B"))))
    until(lambda: ioc.put("BAD", 3) or ioc.get("BAD.SEVR") == 3 and ioc.put("GOOD", 3) is None and ioc.get("GOOD.SEVR") == 0, 30, "the links are connected")
    yield Question(ioc.prefix + "BAD", rf"record: its output OUT is {t.pv('LOCKED')}, which it may not write", neighbour=ioc.prefix + "GOOD", also="record: its output OUT is")


@fault("input that the IOC may not read")
def no_read(t):
    ioc = t.new(db.READY + TICK + "".join(db.record("ai", n, INP=f"{t.pv(to)} CA", SCAN=".1 second") for n, to in (("BAD", "SECRET"), ("GOOD", "B"))))
    until(lambda: ioc.get("GOOD.SEVR") == 0, 30, "the links are connected")
    yield Question(ioc.prefix + "BAD", rf"record: its input INP is {t.pv('SECRET')}, which it may not read", neighbour=ioc.prefix + "GOOD", also="record: its input INP is .*SECRET, which is not connected")


@fault("INVALID by a link with MS, two IOCs away")
def far_invalid(t):
    first = t.new(db.READY + TICK + db.record("ai", "BROKEN", INP="NO:SUCH:FAR CA", SCAN=".1 second"))
    second = t.new(db.READY + TICK + db.record("calc", "MIDDLE", CALC="A", INPA=f"{first.prefix}BROKEN CP MS"))
    third = t.new(db.READY + TICK + db.record("ai", "END", INP=f"{second.prefix}MIDDLE CP MSS"))
    until(lambda: third.get("END.SEVR") == 3 and second.get("MIDDLE.SEVR") == 3, 30, "INVALID")
    yield Question("ca://" + third.prefix + "END", rf"record: its input INP is {second.prefix}MIDDLE: its input INPA is {first.prefix}BROKEN: its input INP is NO:SUCH:FAR, which is not connected",
                   neighbour="pva://" + third.prefix + "TICK", also="record: its input INP is")


@fault("momentary output: bo goes back by itself (HIGH)")
def momentary(t):
    ioc = t.new(db.READY + TICK + db.record("bo", "PULSE", HIGH="0.5", PINI="YES") + db.record("bo", "HELD", PINI="YES"))
    client = rawca.RawCa(ioc.port, "pulser", "test")
    for name in "PULSE", "HELD":
        client.put(ioc.prefix + name, rawca.ENUM, [1], True)
    until(lambda: ioc.get("PULSE") == 0, 10, "it is back")
    yield Question(ioc.prefix + "PULSE", r"write: 1 .* was made; .*HIGH is 0.5 s, so it went back by itself", "pulser@", (ioc.prefix + "HELD", "pulser@"), also="post: no client")
    client.close()


@fault("what processes it is disabled")
def forward_link(t):
    ioc = t.new(db.READY + TICK + db.counter("FIRST", SCAN=".1 second", DISA=1, FLNK="$(P)SECOND") + db.counter("SECOND"))
    ioc.put("SECOND.PROC", 1)
    yield Question(ioc.prefix + "SECOND", rf"record: SCAN is Passive, and .*{ioc.prefix}FIRST.*disabled", neighbour=ioc.prefix + "TICK")
