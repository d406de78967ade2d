# SPDX-License-Identifier: BSD-3-Clause
"""What IOCs send to their clients (ebpfMonModules/subscriptions), and where it stops: told from what a raw client has got, from
dbel in the IOC, and from processes that the test stops. Each fault has a neighbour that is not ill."""
import re
import signal
import struct
import sys
import threading
import time

import pytest
from tests.harness import badlink, db, loopback, paths, rawca
from tests.harness.far import FarIoc, there
from tests.harness.process import Process
from tests.harness.wait import until

EVENT_ADD, EVENTS_OFF, EVENTS_ON = 1, 8, 9
STEPS = ["IOC", "record", "post", "queue", "send buffer", "network", "client", "write"]
DB = (db.READY + "".join(db.record("ao", name, PINI="YES") for name in ("A", "B")) + db.counter("TICK", SCAN=".1 second") +
      db.record("waveform", "WAVE", NELM=100000, FTVL="DOUBLE", SCAN=".1 second") +
      db.record("ao", "LIMITED", DRVH=100, DRVL=-100, PINI="YES") + db.record("ao", "NO", DISP=1, PINI="YES") +
      db.record("ao", "DELAYED", FLNK="$(P)LATE") + db.record("calcout", "LATE", CALC="1", ODLY=8) +
      db.record("ao", "BAND", MDEL=1, ADEL=1, PINI="YES") + db.record("calc", "NEVER", CALC="1") + db.record("ao", "SLOW", PINI="YES", SCAN="10 second") +
      db.record("ai", "COPY", INP="$(P)TICK", SCAN=".1 second") + db.counter("DISABLED", SCAN=".1 second", DISA=1) + db.record("ai", "BROKEN", INP="NO:SUCH:PV CA", SCAN=".1 second"))


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DB).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(before=[
        f'dbLoadRecords("{paths.DB / "ebpfMonWatchSubscriptions.db"}", "P=$(EBPFMON_P),REC={ioc.prefix}{r},N={r}")' for r in ("WAVE", "A", "TICK", "GONE")
    ] + [f'dbLoadRecords("{paths.DB / "ebpfMonIocSubscriptions.db"}", "P=$(EBPFMON_P),IOC={ioc.name},N=IOC")']).start()
    m.wait_ioc(ioc)
    return m


class Subscriber(rawca.RawCa):
    """Counts what it has got."""

    def __init__(self, ioc, name, user, count=1, mask=7):
        super().__init__(ioc.port, user, "test")
        self.send(rawca.message(EVENT_ADD, struct.pack(">fffHH", 0, 0, 0, mask, 0), rawca.DOUBLE, count, self.sid(name), 1))
        self.values = []
        self.take(1)

    def take(self, count):
        """Waits until so many updates have come in all."""
        while len(self.values) < count:
            message = self.until(EVENT_ADD)[-1]
            self.values.append(struct.unpack(">d", message.payload[:8])[0])
        return self.values


def command(monitor, line):
    """What the command has printed, without its echo and what others have logged meanwhile."""
    return [l for l in monitor.command(line) if l != line and not re.match("epics>|sevr=", l)]


def why(monitor, pv, client=""):
    """The first line, and the verdict and text of each step."""
    lines = command(monitor, f'ebpfMonWhy "{pv}" "{client}"')
    found = {}
    for line in lines[1:]:
        step = re.match(r"  (" + "|".join(STEPS) + r") +(fine|held up|not known|here it stops) +(.*)$", line)
        assert step, lines
        found[step[1]] = step[2], step[3]
    assert list(found) == STEPS, lines
    return lines[0], found


def answers(monitor, begin, pv, client=""):
    """Waits for an answer that begins so."""
    seen = []

    def asked():
        seen[:] = why(monitor, pv, client)
        return seen[0].startswith(begin)

    until(asked, 30, lambda: f"{begin}: {seen}")
    return seen


def rows(monitor):
    """(PV, client) → row of the table, as soon as all columns are of one moment."""
    names = "PVS CLIENTS STATES RATES MERGED_CNTS WAITING_CNTS UNSENTS PROCESSES IOCS TIMES".split()
    lists = [monitor.list("SUBSCRIPTION_" + n) for n in names]
    return {r[:2]: dict(zip(names[2:], r[2:])) for r in zip(*lists)} if len(set(map(len, lists))) == 1 else {}


def dbel(ioc, record):
    """What the IOC itself says of subscriptions to a record: waiting and replaced updates of each."""
    found = []
    for line in ioc.command(f"dbel {ioc.prefix}{record} 3"):
        if "{" in line:
            waiting, replaced = re.search(r"undelivered=(\d+)", line), re.search(r"discarded by replacement=(\d+)", line)
            found.append((int(waiting[1]) if waiting else 0, int(replaced[1]) if replaced else 0))
    return found


def sums(monitor, what, names):
    """The PVs of one record, or of the IOC."""
    return [monitor.get(f"{what}:SUBSCRIPTION_{name}") for name in names.split()]


def is_invalid(monitor, name):
    return monitor.get(name + ".SEVR", as_string=True) == "INVALID"


def test_a_client_that_asks_for_a_pause(ioc, monitor):
    """What is merged meanwhile is what the client does not get, and what dbel says. The neighbour gets all."""
    name = ioc.prefix + "A"
    paused, neighbour = Subscriber(ioc, name, "paused"), Subscriber(ioc, name, "neighbour")
    nothing, _ = answers(monitor, "nothing stops", name, "paused@test")
    paused.send(rawca.message(EVENTS_OFF) + rawca.message(rawca.ECHO))
    paused.until(rawca.ECHO)
    for value in range(1, 101):
        ioc.put("A", value)
    assert neighbour.take(101)[-1] == 100
    line, steps = answers(monitor, "queue: the client has asked for a pause", name, "paused@test")
    merged = int(re.search(r"(\d+) merged", line)[1])
    waiting = int(re.search(r"(\d+) updates wait", line)[1])
    assert sorted(dbel(ioc, "A")) == [(0, 0), (waiting, merged)] and waiting >= 1 and steps["record"][0] == "fine"
    line, steps = why(monitor, name, "neighbour@test")
    assert line.startswith("nothing stops") and "0 merged" in steps["queue"][1]
    for who, words in (("paused@test", f"{101 - merged - waiting} sent, {merged} merged, {waiting} waiting; the last one seen is "),
                       ("neighbour@test", "101 sent, 0 merged, 0 waiting; the last one seen is 100, ")):
        def posted():  # packets are read later; never is it more than there was
            text = why(monitor, name, who)[1]["post"][1]
            assert int(re.search(r"; at least (\d+) updates were posted to it: ", text)[1]) <= 101, text
            return f"; at least 101 updates were posted to it: {words}" in text

        until(posted, 20, lambda: why(monitor, name, who)[1]["post"][1])
    until(lambda: rows(monitor).get((name, "paused@test"), {}).get("STATES", "").startswith("client asked for a pause since") and
          monitor.get("SUBSCRIPTION_STALLED_CNT") == 1, 30, lambda: str(rows(monitor)))
    assert monitor.get("SUBSCRIPTION_STALLED_CNT.SEVR") == 1
    sent = [rows(monitor)[name, who]["TIMES"] for who in ("paused@test", "neighbour@test")]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", at) for at in sent), sent
    cause = f"client asked for a pause: paused@test of {ioc.name}"
    until(lambda: monitor.get("HOST_STATUS") == 1 and monitor.text("HOST_STATUS_MSG") == cause, 10, lambda: monitor.text("HOST_STATUS_MSG"))
    assert monitor.get("SUBSCRIPTION_STALLED_CNT.AMSG").startswith(cause[:34])
    assert rows(monitor)[name, "neighbour@test"]["STATES"] == "ok"
    assert sums(monitor, "A", "CNT STALLED_CNT WAITING_CNT") == [2, 1, waiting] and sums(monitor, "TICK", "CNT STALLED_CNT") == [0, 0]
    for client in ("", paused.address):  # without a client, the worst
        assert why(monitor, name, client)[0].startswith("queue: the client has asked for a pause")
    paused.send(rawca.message(EVENTS_ON))
    assert paused.take(1 + 100 - merged)[-1] == 100
    answers(monitor, "nothing stops", name, "paused@test")
    until(lambda: monitor.get("SUBSCRIPTION_STALLED_CNT") == monitor.get("SUBSCRIPTION_STALLED_CNT.SEVR") == monitor.get("HOST_STATUS") == 0, 30,
          lambda: monitor.text("HOST_STATUS_MSG"))
    paused.send(rawca.message(rawca.ECHO))
    assert not [m for m in paused.until(rawca.ECHO) if m.command == EVENT_ADD]  # not one more, and not one less
    paused.close()
    neighbour.send(rawca.message(EVENTS_OFF) + rawca.message(rawca.ECHO))
    neighbour.until(rawca.ECHO)
    until(lambda: [ioc.put("A", value) for value in range(50)] and monitor.get("A:SUBSCRIPTION_MERGE_RATE") > 5, 30, "what is merged")
    assert monitor.get("IOC:SUBSCRIPTION_MERGE_RATE") > 0
    neighbour.close()


def test_a_client_that_does_not_read(ioc, monitor):
    """camonitor is stopped while arrays are posted: the newest is named as not delivered. A raw client on the same record reads."""
    name = ioc.prefix + "WAVE"
    ioc.put("WAVE", [1.0] * 100000)
    stopped = Process([paths.BASE_BIN / "camonitor", name], loopback.client(ioc.port))
    neighbour = Subscriber(ioc, name, "neighbour", 100000)
    until(lambda: stopped.lines, 30, "the first array")
    stopped.halt()

    def events():
        return [line for line in monitor.lines("IOC_EVENTS").splitlines() if f"pid {stopped.pid})" in line]

    def blocked():
        neighbour.take(len(neighbour.values) + 1)
        line, steps = why(monitor, name, str(stopped.pid))
        if "asked for a pause" in steps["queue"][1]:  # libca did, just before it was stopped: once more
            stopped.go_on()
            stopped.halt()
        return line.startswith("client: the client does not read since") and steps["queue"][0] == "held up" and steps

    steps = until(blocked, 60, lambda: str(why(monitor, name, str(stopped.pid))))
    assert "the newest is not delivered" in steps["queue"][1] and f"pid {stopped.pid}" in steps["client"][1]
    assert steps["network"][0] == steps["record"][0] == "fine"
    assert dbel(ioc, "WAVE")[0][0] + dbel(ioc, "WAVE")[1][0] >= 1
    neighbour.take(len(neighbour.values) + 2)

    def row():
        return next((r for r in rows(monitor).values() if r["PROCESSES"] == f"camonitor ({stopped.pid})" and r["UNSENTS"] > 0 and
                     r["STATES"].startswith("client does not read since")), None)

    assert until(row, 30, lambda: str(rows(monitor)))["WAITING_CNTS"] == 1
    until(events, 30, "the event")

    def table():  # the neighbour does not read now
        of = [r for r in rows(monitor).values() if r["IOCS"] == ioc.name]
        return [len(of), sum(r["STATES"].startswith("client does not read") for r in of), sum(r["WAITING_CNTS"] for r in of)]

    until(lambda: sums(monitor, "WAVE", "CNT STALLED_CNT WAITING_CNT") == sums(monitor, "IOC", "CNT STALLED_CNT WAITING_CNT") == table() and
          table()[1] >= 1, 10, lambda: f'{sums(monitor, "WAVE", "CNT STALLED_CNT WAITING_CNT")} {table()}')
    assert monitor.get("WAVE:SUBSCRIPTION_SILENCE_MAX") >= 2 <= monitor.get("IOC:SUBSCRIPTION_SILENCE_MAX")
    assert is_invalid(monitor, "WAVE:SUBSCRIPTION_MERGE_RATE"), "what is merged of an array is not known"
    assert is_invalid(monitor, "GONE:SUBSCRIPTION_CNT"), "no IOC has it"
    assert sums(monitor, "TICK", "CNT STALLED_CNT WAITING_CNT MERGE_RATE SILENCE_MAX") == [0, 0, 0, 0, 0], "the neighbour"
    stopped.go_on()
    until(lambda: any("client reads again" in e for e in events()), 30, lambda: str(events()))
    answers(monitor, "nothing stops", name, str(stopped.pid))
    stopped.kill()
    neighbour.close()
    until(lambda: sums(monitor, "WAVE", "CNT STALLED_CNT SILENCE_MAX") == [0, 0, 0], 30, lambda: str(rows(monitor)))


def test_a_client_that_was_stopped_in_a_pause(ioc, monitor):
    """It had asked for a pause; what keeps the values from it now is that it is stopped."""
    name = ioc.prefix + "A"
    client = Process([sys.executable, "-u", "-c", f"""
import time, types
from tests.harness import rawca
from tests.integration.test_subscriptions import EVENTS_OFF, Subscriber
c = Subscriber(types.SimpleNamespace(port={ioc.port}), {name!r}, "stopped")
c.send(rawca.message(EVENTS_OFF) + rawca.message(rawca.ECHO))
c.until(rawca.ECHO)
print("paused", flush=True)
time.sleep(1000)
"""], loopback.client(ioc.port))
    client.wait_line("paused")
    answers(monitor, "queue: the client has asked for a pause", name, str(client.pid))
    client.halt()
    _, steps = answers(monitor, "client: the client does not read", name, str(client.pid))
    assert steps["queue"][0] == "held up" and "had asked for a pause" in steps["queue"][1] and "has stopped its process" in steps["client"][1]
    client.kill()


def test_a_client_that_reads_slowly(ioc, monitor):
    """It reads always, and less than comes; a neighbour reads all. The thread of the IOC that sends is not to blame."""
    name, ended = ioc.prefix + "WAVE", threading.Event()
    ioc.put("WAVE", [1.0] * 100000)
    slow, neighbour = (Subscriber(ioc, name, user, 100000) for user in ("slow", "neighbour"))

    def read():
        while not ended.wait(0.05) and slow.socket.recv(2000):
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def asked():
        neighbour.take(len(neighbour.values) + 1)
        line, steps = why(monitor, name, "slow@")
        assert not line.startswith("queue: updates wait in the IOC"), line
        return line.startswith("client: the client reads too slowly: updates wait for it since") and steps["queue"][0] == "held up"

    until(asked, 60, lambda: str(why(monitor, name, "slow@")))
    assert why(monitor, name, "neighbour@")[0].startswith("nothing stops")
    until(lambda: rows(monitor).get((name, "slow@test"), {}).get("STATES", "").startswith("client reads too slowly since"), 30, lambda: str(rows(monitor)))
    ended.set()
    reader.join()
    for client in slow, neighbour:
        client.close()


def test_a_client_in_a_long_callback(ioc, monitor):
    name = ioc.prefix + "TICK"
    text = f"import epics, time; p = epics.PV('{name}', callback=lambda **_: time.sleep(1000)); time.sleep(1000)"
    slow = Process([sys.executable, "-c", text], loopback.client(ioc.port))
    neighbour = Subscriber(ioc, name, "neighbour")
    answers(monitor, "client: the client does not read since", name, str(slow.pid))
    neighbour.take(len(neighbour.values) + 5)
    answers(monitor, "nothing stops", name, "neighbour@test")
    slow.kill()
    neighbour.close()


def test_a_network_that_takes_nothing(monitor, tmp_path):
    """Clients on another host: one is stopped, so its host has no room any more; then the cable is drawn. The IOC's host has a
    neighbour that reads."""
    with badlink.BadLink() as link:
        ioc = FarIoc(tmp_path, link, db=DB)
        environ = loopback.environment(EPICS_CA_ADDR_LIST=f"{link.addrB}:{ioc.port}")
        try:
            ioc.start()
            monitor.wait_ioc(ioc)
            tick, wave = ioc.prefix + "TICK", ioc.prefix + "WAVE"
            there(link.b, [paths.BASE_BIN / "caput", "-a", wave, 20000, *[1] * 20000], environ).wait(60)
            here = there(link.b, [paths.BASE_BIN / "camonitor", tick], environ)
            far, stopped = (there(link.a, [paths.BASE_BIN / "camonitor", pv], environ) for pv in (tick, wave))
            until(lambda: here.lines and far.lines and stopped.lines, 30, "the first values")
            stopped.halt()
            line, steps = answers(monitor, "client: the client does not read since", wave)
            assert steps["network"][0] == "fine" and "at least" in line
            answers(monitor, "nothing stops", tick, link.addrA + ":")
            badlink.ip("-n", link.middle, "link", "set", "linkA", "down")
            line, steps = answers(monitor, "network: nothing is acknowledged since", tick, link.addrA + ":")
            assert steps["client"][0] == "not known"
            until(lambda: any(s.startswith("network does not take bytes since") for s in monitor.list("SUBSCRIPTION_STATES")), 30,
                  lambda: str(monitor.list("SUBSCRIPTION_STATES")))
            answers(monitor, "nothing stops", tick, link.addrB + ":")
        finally:
            ioc.discard()


def test_an_ioc_that_stands_still(ioc, monitor, new_ioc):
    other = new_ioc(DB).start()
    monitor.wait_ioc(other)
    clients = [Subscriber(i, i.prefix + "TICK", "reader") for i in (ioc, other)]
    clients[0].take(5)
    clients[1].take(5)
    answers(monitor, "nothing stops", other.prefix + "TICK", "reader")
    other.process.halt()
    line, steps = answers(monitor, "IOC: ", other.prefix + "TICK", "reader")
    assert "stands still" in line and other.name in line and steps["client"][0] != "here it stops"
    until(lambda: rows(monitor).get((other.prefix + "TICK", "reader@test"), {}).get("STATES", "").startswith("IOC stands still since"),
          30, lambda: str(rows(monitor)))
    clients[0].take(len(clients[0].values) + 5)
    answers(monitor, "nothing stops", ioc.prefix + "TICK", "reader")
    other.process.signal(signal.SIGCONT)
    clients[1].take(len(clients[1].values) + 5)
    answers(monitor, "nothing stops", other.prefix + "TICK", "reader")
    for client in clients:
        client.close()


def test_changes_that_are_not_posted(ioc, monitor):
    """MDEL hides a change of 0.5. The neighbour has no deadband."""
    clients = [Subscriber(ioc, ioc.prefix + name, "reader") for name in ("BAND", "B")]
    for name, client in zip(("BAND", "B"), clients):
        ioc.put(name, 10)
        client.take(2)
        ioc.put(name, 10.5)
    assert clients[1].take(3)[-1] == 10.5
    line, _ = why(monitor, ioc.prefix + "BAND", "reader")
    assert line == "post: VAL is 10.5 and was not posted: it is within MDEL (1) of the last posted value, 10"
    assert why(monitor, ioc.prefix + "B", "reader")[0].startswith("nothing stops")
    clients[0].send(rawca.message(rawca.ECHO))
    assert not [m for m in clients[0].until(rawca.ECHO) if m.command == EVENT_ADD]
    ioc.put("BAND", 12)
    assert clients[0].take(3)[-1] == 12
    assert why(monitor, ioc.prefix + "BAND", "reader")[0].startswith("nothing stops")
    ioc.put("SLOW.SCAN", "Event")
    clients.append(Subscriber(ioc, ioc.prefix + "SLOW", "reader"))
    ioc.put("SLOW", 3)
    line = why(monitor, ioc.prefix + "SLOW")[0]
    assert line.startswith("post: VAL is 3, and the last value that its processing has posted is 0: it was written and has not processed since"), line
    clients[2].send(rawca.message(rawca.ECHO))
    assert not [m for m in clients[2].until(rawca.ECHO) if m.command == EVENT_ADD]
    for client in clients:
        client.close()


def test_records_that_do_not_process(ioc, monitor):
    assert why(monitor, ioc.prefix + "DISABLED")[0] == "record: it is disabled: DISA is 1, as DISV"
    assert why(monitor, ioc.prefix + "NEVER")[0].startswith("record: it has never completed a processing, so it has no value: UDF is 1, SCAN is Passive")
    assert why(monitor, ioc.prefix + "BROKEN")[0].startswith("record: its input INP is NO:SUCH:PV, which is not connected")
    line, steps = why(monitor, ioc.prefix + "TICK")
    assert line.startswith("nothing stops") and steps["record"][0] == "fine" and "no CA client" in steps["post"][1]
    assert why(monitor, ioc.prefix + "TICK", "nobody")[0].startswith('post: no client "nobody" has subscribed')
    assert why(monitor, ioc.prefix + "TICK.NOSUCH")[0] == "record: it is of the type calc, which has no field NOSUCH"
    assert command(monitor, "ebpfMonWhy NO:SUCH:RECORD") == ["no IOC that is watched has the record of NO:SUCH:RECORD"]


def test_a_question_by_pv(ioc, monitor):
    monitor.put("WHY_PV.VAL$", ioc.prefix + "DISABLED")
    until(lambda: monitor.lines("WHY_TEXT").startswith("record: it is disabled"), 30, lambda: monitor.lines("WHY_TEXT"))
    until(lambda: monitor.list("WHY_STEPS") == STEPS, 10, lambda: str(monitor.list("WHY_STEPS")))
    assert monitor.list("WHY_VERDICTS")[1] == "here it stops" and monitor.list("WHY_REASONS")[1] == "it is disabled: DISA is 1, as DISV"


def test_subscriptions_of_others(ioc, monitor, new_ioc):
    """pvAccess subscribes through QSRV: it is counted, besides the clients of Channel Access, and a link within the IOC."""
    ioc = new_ioc(DB + db.record("ai", "OWN", INP="$(P)TICK CA"), kind="softIocPVA").start()
    monitor.wait_ioc(ioc)
    name = ioc.prefix + "TICK"
    client = Subscriber(ioc, name, "reader")
    with loopback.pva_context(ioc.port, nt=False) as context:
        subscription = context.monitor(name, lambda _: None)
        until(lambda: len(dbel(ioc, "TICK")) >= 3, 30, lambda: str(ioc.command(f"dbel {name} 3")))
        others = len(dbel(ioc, "TICK")) - 2
        line, steps = answers(monitor, "nothing stops", name, "reader")
        assert re.fullmatch(rf"1 subscription of reader@test(; .* updates were posted to it: .*)?; QSRV has {others} for pvAccess; 1 within the IOC", steps["post"][1]), steps["post"]
        assert steps["post"][0] == "fine"
        subscription.close()
    until(lambda: "QSRV" not in why(monitor, name, "reader")[1]["post"][1], 30, "they are gone")
    client.close()


def test_alarms_only(ioc, monitor):
    client = Subscriber(ioc, ioc.prefix + "TICK", "alarms", mask=4)
    answers(monitor, "post: the client has not subscribed to values, only to alarms", ioc.prefix + "TICK", "alarms@")
    client.close()


def test_filter(ioc, monitor):
    """What "dbnd", "dec" and "utag" leave out is read, "ts" and "arr" leave out nothing."""
    name = ioc.prefix + "A"
    ioc.put("A", 0)
    utag = '{"utag":{"M":1,"V":0}}'
    band, few, stamped, other = (Subscriber(ioc, f"{name}.{f}", user) for f, user in (('{"dbnd":{"abs":5}}', "band"), ('{"dec":{"n":3}}', "few"), ('{"ts":{}}', "stamped"), (utag, "other")))
    ioc.put("A", 10)
    assert band.take(2)[-1] == 10
    ioc.put("A", 12)
    assert other.take(3)[-1] == 12
    line, _ = answers(monitor, "post: the filter dbnd ", name, "band@")
    assert line == ('post: the filter dbnd of the channel, {"dbnd":{"abs":5}}, lets a change of more than 5 through, and VAL is 12 and was not sent: '
                    'the last value that it let through is 10')
    _, steps = answers(monitor, "nothing stops", name, "other@")
    assert steps["post"] == ("fine", f"the filter utag of the channel, {utag}, lets updates through of which UTAG & 1 is 0, and UTAG is 0")
    tagged = Subscriber(ioc, ioc.prefix + 'TICK.{"utag":{"M":1,"V":1}}', "tagged")
    answers(monitor, 'post: the filter utag of the channel, {"utag":{"M":1,"V":1}}, lets updates through of which UTAG & 1 is 1, and UTAG is 0', ioc.prefix + "TICK", "tagged@")
    assert answers(monitor, "nothing stops", name, "stamped@")[1]["post"] == ("fine", 'the filter ts of the channel, {"ts":{}}, leaves no update out')
    wave, part = ioc.prefix + "WAVE", '{"arr":{"s":0,"e":1}}'
    ioc.put("WAVE", [1.0] * 100)
    first = Subscriber(ioc, f"{wave}.{part}", "first")
    assert answers(monitor, "nothing stops", wave, "first@")[1]["post"] == ("fine", f"the filter arr of the channel, {part}, leaves no update out")
    line, _ = answers(monitor, "post: the filter", name, "few@")
    assert line == 'post: the filter dec of the channel, {"dec":{"n":3}}, lets one of 3 updates through; it has left out 2 since the last one'
    ioc.put("A", 13)
    assert few.take(2)[-1] == 13
    assert "it has left out 0" in answers(monitor, "nothing stops", name, "few@")[1]["post"][1]
    for client in (band, few, stamped, other, first, tagged):
        client.close()


def write_step(monitor, begin, pv, client=""):
    """Waits until the step of the write begins so. Returns the first line, and its verdict."""
    seen = []

    def asked():
        seen[:] = why(monitor, pv, client)
        return seen[1]["write"][1].startswith(begin) or re.search(begin, seen[1]["write"][1])

    until(asked, 30, lambda: f"{begin}: {seen}")
    return seen[0], seen[1]["write"][0]


HIDDEN = (db.READY + db.counter("TICK", SCAN=".1 second") + db.record("stringout", "TEXT", VAL="old", PINI="YES") + db.record("stringin", "TEXT_IN", INP="$(P)TEXT", PINI="YES") +
          db.record("bo", "SWITCH", VAL="0", PINI="YES") + db.record("bi", "SWITCH_IN", INP="$(P)SWITCH", PINI="YES") +
          db.counter("OFF", SCAN=".5 second", DISA=1) + db.record("ao", "BEHIND", PINI="YES") + db.record("ao", "DRIVES", SCAN=".5 second", DISA=1, OUT="$(P)BEHIND PP") +
          db.record("fanout", "FAN", SCAN=".5 second", DISA=1, LNK3="$(P)FANNED") + db.counter("FANNED", PINI="YES") + db.record("fanout", "WRONG", SELM="Specified", SELN=20, SCAN=".5 second") +
          db.record("sub", "NOTHING", SCAN=".5 second") + db.record("ao", "EVENT", SCAN="Event", EVNT="never", PINI="YES") + db.record("waveform", "TEN", NELM=10, FTVL="DOUBLE", PINI="YES") +
          db.counter("OWN", SCAN="1 second") + db.record("ao", "LEVEL", ASG="LEVEL", PINI="YES") + db.record("ao", "BAND", PINI="YES") +
          db.counter("HAND", SCAN=".1 second") + db.counter("UNSCANNED", SCAN=".1 second") + db.record("ao", "RAMP", OROC=0.001, PINI="YES", VAL="1"))


def test_reasons_that_hide(new_ioc, monitor, tmp_path):
    """What keeps a value from where it should be, and leaves no alarm: each with the right first line."""
    (tmp_path / "level.acf").write_text("ASG(DEFAULT) { RULE(1, READ) RULE(1, WRITE) }\nASG(LEVEL) { RULE(1, READ) RULE(0, WRITE) }\n")
    ioc = new_ioc(HIDDEN, acf=tmp_path / "level.acf").start()
    monitor.wait_ioc(ioc)
    ioc.command("dbStateCreate beam")
    client, p = rawca.RawCa(ioc.port, "hidden", "test"), ioc.prefix
    sync, two = Subscriber(ioc, p + 'TICK.{"sync":{"m":"unless","s":"beam"}}', "sync"), Subscriber(ioc, p + 'BAND.{"ts":{},"dbnd":{"abs":5}}', "two")
    event = Subscriber(ioc, p + "EVENT", "event")
    assert answers(monitor, "nothing stops", p + "TICK", "sync@")[1]["post"][0] == "fine"
    ioc.command("dbStateSet beam")
    ioc.put("TEXT", "new")
    ioc.put("SWITCH", 1)
    ioc.put("EVENT", 43)
    for value in 10, 12:
        ioc.put("BAND", value)
    client.put(p + "TEN", rawca.DOUBLE, [1.0] * 20, True)
    client.put(p + "OWN", rawca.DOUBLE, [-500.0], True)
    client.put(p + "RAMP", rawca.DOUBLE, [900.0], True)
    client.put(p + "LEVEL.DRVH", rawca.DOUBLE, [1.0], True)
    client.put(p + "HAND.DISA", rawca.LONG, [1], True)
    client.put(p + "UNSCANNED.SCAN", rawca.STRING, ["Passive"], True)
    for pv, user, wanted in (
            ("TEXT_IN", "", rf"record: SCAN is Passive, and it has not processed for \d+ s; INP is {p}TEXT and has changed: it is new, and this record old"),
            ("SWITCH_IN", "", rf"record: SCAN is Passive, and .* INP is {p}SWITCH and has changed: it is 1, and this record 0"),
            ("BEHIND", "", rf"record: SCAN is Passive, and .* OUT of {p}DRIVES processes it: it is disabled"),
            ("FANNED", "", rf"record: SCAN is Passive, and .* LNK3 of {p}FAN processes it: it is disabled"),
            ("HAND", "", "record: it is disabled: DISA is 1, as DISV; DISA was put: 1 of .* by hidden@test"),
            ("UNSCANNED", "", "record: SCAN is Passive, and it has not processed since that was put: Passive of .* by hidden@test"),
            ("RAMP", "", "record: VAL is 900, and its output OVAL 1.00"),
            ("TICK.val", "", "record: it is of the type calc, which has no field val"),
            ("WRONG", "", "record: its value is not valid: alarm INVALID, SOFT"),
            ("NOTHING", "", "record: it never processes: PACT is 1, because SNAM is empty"),
            ("EVENT", "event@", r"post: VAL is 43, and .* posted is 0: it was written and has not processed since \(SCAN is Event\)"),
            ("TICK", "sync@", "post: the filter sync of the channel, .*, lets updates through unless beam is set, and it is set"),
            ("BAND", "two@", "post: the filter dbnd of the channel, .* VAL is 12 and was not sent: the last value that it let through is 10"),
            ("TEN", "hidden@", "write: .* was made, but only the first 10 of 20 elements: NELM is 10"),
            ("OWN", "hidden@", r"write: -500 .* overwritten by its processing, which makes it by CALC \(VAL\+1\)"),
            ("LEVEL.DRVH", "hidden@", r"write: 1 .* was refused: .*ASG LEVEL: RULE\(0,WRITE\) is not for this field, of level 1")):
        until(lambda: re.match(wanted, why(monitor, p + pv, user)[0]), 30, lambda: f"{wanted}: {why(monitor, p + pv, user)}")
    for one in client, sync, two, event:
        one.close()


def test_what_became_of_a_write(ioc, monitor):
    """Refused, limited, overwritten, or made; told of the client that is asked for, which has not subscribed."""
    one, two = (rawca.RawCa(ioc.port, user, "test") for user in ("one", "two"))
    name = ioc.prefix + "LIMITED"
    one.put(name, rawca.DOUBLE, [5.0], True)
    line, verdict = write_step(monitor, r"^5 of .* by one@test.* was made$", name, "one@test")
    assert line.startswith("nothing stops") and verdict == "fine"
    two.put(name, rawca.DOUBLE, [5000.0], True)
    line, verdict = write_step(monitor, r"^5000 of .* by two@test.* was made, and the field is 100 afterwards: its limit is DRVH$", name, "two@test")
    assert line.startswith("write: 5000") and verdict == "here it stops"
    line, _ = write_step(monitor, r"^5 of .* by one@test.* was made, and then overwritten: 5000 of .* by two@test", name, "one@test")
    assert line.startswith("write: 5 of")
    assert write_step(monitor, "no write by nobody", name, "nobody")[1] == "not known"
    one.put(ioc.prefix + "B", rawca.DOUBLE, [3.0], True)
    assert write_step(monitor, r"^3 of .* by one@test.* was made$", ioc.prefix + "B")[0].startswith("nothing stops")
    one.put(ioc.prefix + "COPY", rawca.DOUBLE, [-1.0], True)
    line, _ = write_step(monitor, "overwritten by its processing", ioc.prefix + "COPY", "one@test")
    assert re.match(rf"write: -1 of .* by one@test.* was made, and then overwritten by its processing, which reads INP \({ioc.prefix}TICK NPP NMS\): it is \d+ now", line), line
    one.put(ioc.prefix + "NO", rawca.DOUBLE, [1.0], True)
    line, verdict = write_step(monitor, r"^1 of .* by one@test.* was refused: DISP is 1$", ioc.prefix + "NO", "one@test")
    assert line.startswith("write: 1 of") and verdict == "here it stops"
    for client in (one, two):
        client.close()


def test_a_write_that_waits(ioc, monitor):
    """A put-callback waits for a record behind the one that was written. The neighbour waits for nothing."""
    caput = Process([paths.BASE_BIN / "caput", "-c", "-w", "30", ioc.prefix + "DELAYED", "4"], loopback.client(ioc.port))
    _, verdict = write_step(monitor, f"a put-callback waits for {ioc.prefix}LATE, which is processing", ioc.prefix + "DELAYED")
    assert verdict == "held up" and "put-callback" not in why(monitor, ioc.prefix + "A")[1]["write"][1]
    caput.wait(60)
    assert "put-callback" not in why(monitor, ioc.prefix + "DELAYED")[1]["write"][1]


def test_rights_that_change_by_themselves(new_ioc, monitor, tmp_path):
    """The input of a rule goes with its IOC, though its value was right; it comes back; then the rules are read again. The group
    without inputs, and the IOC of the other tests, have no such line."""
    permit = new_ioc(db.READY + db.record("ao", "PERMIT", VAL="1", PINI="YES")).start()
    (tmp_path / "rules.acf").write_text(f'ASG(DEFAULT) {{ RULE(1, READ) RULE(1, WRITE) }}\nASG(PERMIT) {{ INPA("{permit.prefix}PERMIT") '
                                        'RULE(1, READ) RULE(1, WRITE) { CALC("A=1") } }\n')
    ioc = new_ioc(db.READY + db.record("ao", "SET", ASG="PERMIT"), acf=tmp_path / "rules.acf").start()
    monitor.wait_ioc(ioc)
    client = Subscriber(ioc, ioc.prefix + "SET", "permitted")
    until(lambda: client.put(ioc.prefix + "SET", rawca.DOUBLE, [1.0], True) == 1, 30, "it may write")
    until(lambda: (ioc.prefix + "SET", "permitted@test") in rows(monitor), 30, "its client is seen")

    def told():
        return [line for line in monitor.lines("IOC_EVENTS").splitlines() if f"IOC {ioc.name}: " in line and re.search("ASG|asInit", line)]

    assert not told()
    permit.kill()
    lost = (f"IOC {ioc.name}: rights have changed by themselves: ASG PERMIT: RULE(1,WRITE) wants A=1, which is not known: INPA ({permit.prefix}PERMIT) "
            "is not connected or INVALID")
    until(lambda: len(told()) == 1 and told()[0].endswith(lost), 30, lambda: str(told()))
    assert client.put(ioc.prefix + "SET", rawca.DOUBLE, [2.0], True) != 1
    permit.start()
    until(lambda: len(told()) == 2 and told()[0].endswith(f"IOC {ioc.name}: ASG PERMIT: its rules allow to write again"), 60, lambda: str(told()))
    assert client.put(ioc.prefix + "SET", rawca.DOUBLE, [3.0], True) == 1
    ioc.command("asInit")
    until(lambda: len(told()) == 3 and told()[0].endswith("were read again (asInit): rights may be others"), 30, lambda: str(told()))
    client.close()


def feedback(monitor, pv):
    return [e.split(f"{pv}: ", 1)[1] for e in monitor.lines("IOC_EVENTS").splitlines() if f": {pv}: " in e]


def test_clients_that_write_in_turn(new_ioc, new_monitor):
    """Two clients overwrite each other, a third answers the updates that it causes. No fault: two clients write the same value; a client
    writes as often without a subscription, or has a subscription and writes once."""
    ioc = new_ioc(db.READY + "".join(db.record("ao", name) for name in ("FIGHT", "SAME", "ANSWER", "RAMP", "ONCE"))).start()
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    left, right = (rawca.RawCa(ioc.port, user, "test") for user in ("left", "right"))
    answer, once = Subscriber(ioc, ioc.prefix + "ANSWER", "answer"), Subscriber(ioc, ioc.prefix + "ONCE", "once")
    once.put(ioc.prefix + "ONCE", rawca.DOUBLE, [1.])

    def write():
        for name, values in ("FIGHT", (1., 2.)), ("SAME", (3., 3.)):
            for client, value in zip((left, right), values):
                client.put(ioc.prefix + name, rawca.DOUBLE, [value], notify=True)
        left.put(ioc.prefix + "RAMP", rawca.DOUBLE, [float(len(answer.values))], notify=True)
        answer.put(ioc.prefix + "ANSWER", rawca.DOUBLE, [answer.values[-1] + 1], sync=False)
        answer.take(len(answer.values) + 1)
        time.sleep(0.1)  # a client that is not fast
        return feedback(monitor, ioc.prefix + "FIGHT") and feedback(monitor, ioc.prefix + "ANSWER")

    until(write, 60, lambda: monitor.lines("IOC_EVENTS"))
    assert re.fullmatch(r"left@test.* and right@test.* overwrite each other in turn, \d+ times in \d+ s", feedback(monitor, ioc.prefix + "FIGHT")[0])
    assert re.fullmatch(rf"answer@test.* \({answer.address}\) writes \d+(\.\d+)?/s, and has subscribed to it: perhaps it answers its own writes", feedback(monitor, ioc.prefix + "ANSWER")[0])
    assert not any(feedback(monitor, ioc.prefix + name) for name in ("SAME", "RAMP", "ONCE"))
    write()
    assert "overwrite each other in turn" in why(monitor, ioc.prefix + "FIGHT")[1]["write"][1]
    for client in left, right, answer, once:
        client.close()


def test_links_in_a_circle(new_ioc, new_monitor):
    """Each of two IOCs writes to the other by a CA link, again and again. The neighbours do so once each time they are told to."""
    one, two = new_ioc(name="circle1"), new_ioc(name="circle2")
    for here, there in (one, two), (two, one):
        path = here.tmp / f"{here.name}.db"
        path.write_text(db.READY + db.record("calcout", "GO", CALC="A+1", ODLY=0.1, OUT=f"{there.prefix}GO.A CA") +
                        db.record("calcout", "FIRST", CALC="A+1", OUT=f"{there.prefix}{'LAST' if here is two else 'FIRST'}.A CA") + db.record("calcout", "LAST", CALC="A"))
        here.files.append(str(path))
        here.environ = {"EPICS_CA_ADDR_LIST": f"127.0.0.1:{there.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}
        here.start()
    monitor = new_monitor(iocs="circle*").start()
    for ioc in one, two:
        monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="chains")

    def told():
        one.put("FIRST.A", time.monotonic())  # it goes to the other, and to LAST
        return feedback(monitor, one.prefix + "GO.A") + feedback(monitor, two.prefix + "GO.A")

    one.put("GO.A", 1)
    line, = until(told, 60, lambda: monitor.lines("IOC_EVENTS"))
    names = [(i.prefix + "GO.A", f" ({i.name})") for i in (one, two)]
    ways = [f"{a[0]}{a[1]} → {b[0]}{b[1]} → {a[0]}" for a, b in (names, names[::-1])]
    assert re.fullmatch(r"links through CA write in a circle, \d+(\.\d+)?/s: .*", line) and line.split("/s: ")[1] in ways, line
    assert not any(feedback(monitor, i.prefix + n) for i in (one, two) for n in ("FIRST.A", "LAST.A"))
    assert "links through CA write in a circle" in why(monitor, one.prefix + "GO.A")[1]["write"][1]


def test_metrics(new_ioc, new_monitor, rotel):
    """OpenTelemetry gets sums for each IOC and kind of client, and the subscriptions that are ill by name; others not."""
    ioc, monitor = new_ioc(DB).start(), new_monitor(before=["epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000", f'ebpfMonOtlp "{rotel.url}" "metrics"']).start()
    monitor.wait_ioc(ioc)
    name = ioc.prefix + "A"
    paused, neighbour = Subscriber(ioc, name, "paused"), Subscriber(ioc, ioc.prefix + "B", "neighbour")
    ioc.put("WAVE", [1.0] * 100000)
    deaf = Subscriber(ioc, ioc.prefix + "WAVE", "deaf", 100000)  # it reads once
    paused.send(rawca.message(EVENTS_OFF) + rawca.message(rawca.ECHO))
    paused.until(rawca.ECHO)
    for value in range(1, 11):
        ioc.put("A", value)

    def point(metric, *attributes):
        """The value of the only point with these attributes."""
        text = "\n".join(rotel.metric(f"epics.subscription.{metric}"))
        found = [p for p in re.split(r"NumberDataPoints #\d+", text)[1:] if all(f": Str({a})" in p for a in attributes)]
        return float(re.search(r"Value: (\S+)", found[0])[1]) if len(found) == 1 else None

    until(lambda: [point(m, ioc.name, "CA") for m in ("count", "stalled")] == [3, 2] and point("clients", ioc.name, "CA") >= 3, 30, lambda: "\n".join(rotel.metric("epics.subscription.count")))
    until(lambda: (point("waiting", ioc.name, "CA") or 0) >= 1 and (point("worst.waiting", ioc.name, name, "paused@test") or 0) >= 1, 30,
          lambda: "\n".join(rotel.metric("epics.subscription.worst.waiting")))

    def put_and_see_merged():
        for value in range(5):
            ioc.put("A", value)  # the paused client will get the last one
        return point("merged", ioc.name, "CA") or 0

    until(lambda: 0 < put_and_see_merged() < 1e5 < (point("unsent", ioc.name, "CA") or 0), 30,
          lambda: "\n".join(rotel.metric("epics.subscription.merged") + rotel.metric("epics.subscription.unsent")))
    until(lambda: (point("worst.unsent", ioc.name, ioc.prefix + "WAVE", "deaf@test") or 0) > 1000 and point("worst.unsent", "paused@test") == 0, 30,
          lambda: "\n".join(rotel.metric("epics.subscription.worst.unsent")))
    until(lambda: point("worst.waiting", "neighbour@test") is None, 30, lambda: "\n".join(rotel.metric("epics.subscription.worst.waiting")))
    for client in paused, neighbour, deaf:
        client.close()
    until(lambda: not point("stalled", ioc.name, "CA"), 30, lambda: "\n".join(rotel.metric("epics.subscription.stalled")))
