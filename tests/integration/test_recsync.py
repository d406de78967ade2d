# SPDX-License-Identifier: BSD-3-Clause
"""The inventory for Channel Finder: the data of each watched IOC that a RecSync server gets, and when. The server is
our own, which checks every message; RecSync's own programs are in test_recceiver.py."""
import os
import re

import pytest
from tests.harness import db, loopback, paths
from tests.harness.ioc import OURS
from tests.harness.receiver import Receiver
from tests.harness.wait import stays_false, until

DATABASE = db.READY + r'''
record(ai, "$(P)CURRENT") {
    field(DESC, "Beam current")
    info(archive, "monitor 1")
    info(Q:group, {"$(P)G": {"v": {+channel: "VAL"}}})
    alias("$(P)DCCT")
}
record(stringout, "$(P)NAME") { info(owner, "Müller") }
alias("$(P)CURRENT", "$(P)BEAM")
record(bo, "$(P)SWITCH") { field(DESC, "Ein Schalter für \"alles\"") }
'''
LINES = ['epicsEnvSet("ENGINEER", "K. Operator")', 'epicsEnvSet("LOCATION", "Hall 3")', 'epicsEnvSet("SECTOR", "7")',
         'epicsEnvSet("SECRET", "nobody is to know")']


@pytest.fixture
def port():
    number = loopback.take_port()
    yield number
    loopback.give_port(number)


@pytest.fixture
def receiver(port):
    made = []

    def new(**how):
        made.append(Receiver(port, **how))
        return made[-1]

    yield new
    for r in made:
        r.check()
        r.close()


def on(port, variables="", others=""):
    return f'ebpfMonRecSync on {port} "{variables}" "{others}"'


@pytest.fixture
def announce(idle_monitor, port):
    """announce(): the monitor of the module announces the IOCs of this process. Returns that monitor."""
    def begin():
        idle_monitor.set_filter(LEVEL="chains", IOC=OURS)
        idle_monitor.command(on(port))
        return idle_monitor

    yield begin
    idle_monitor.command("ebpfMonRecSync off")


@pytest.fixture
def ioc(tmp_path, new_ioc):
    """An IOC with an st.cmd that sets variables, as at a site."""
    made = new_ioc(DATABASE)
    script = tmp_path / f"{made.name}.cmd"
    script.write_text("\n".join([*LINES, f'dbLoadRecords "{made.files[0]}", "P={made.prefix}"', "iocInit", ""]))
    made.argv = lambda: [paths.BASE_BIN / "softIoc", script]
    return made.start()


def test_whole_inventory(ioc, new_monitor, receiver, port):
    server = receiver()
    monitor = new_monitor(before=[on(port, "SECTOR")]).start()
    session = until(lambda: server.open().get(ioc.name), 30, lambda: f"{ioc.name} in {server.sessions}")
    p = ioc.prefix
    assert session.names == {p + n for n in ("READY", "CURRENT", "NAME", "SWITCH")}
    assert session.types[p + "CURRENT"] == "ai" and session.types[p + "SWITCH"] == "bo"
    assert session.alias(p + "CURRENT") == {p + "DCCT", p + "BEAM"}
    assert session.info(p + "CURRENT")["archive"] == "monitor 1"
    assert session.info(p + "CURRENT")["recordDesc"] == "Beam current"
    assert p + "G" in session.info(p + "CURRENT")["Q:group"]
    assert session.info(p + "NAME") == {"owner": "Müller"}
    assert session.info(p + "SWITCH")["recordDesc"].startswith('Ein Schalter für "alles"')
    variables = session.variables
    assert variables["ENGINEER"] == "K. Operator" and variables["LOCATION"] == "Hall 3" and variables["SECTOR"] == "7"
    assert variables["IOC"] == ioc.name and variables["HOSTNAME"] == os.environ.get("HOSTNAME", paths.HOST)
    assert variables["RSRV_SERVER_PORT"] == str(ioc.port) and "SECRET" not in variables
    assert variables["EPICS_VERSION"] == f"EPICS {monitor.iocs()[ioc.pid][1]}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", variables["IOC_STARTED"])
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 1)
    monitor.wait("RECSYNC_RECORD_CNT", lambda n: n == 4)
    assert monitor.get("RECSYNC_STATE", as_string=True) == "Ok" and "has 1 of 1 IOCs" in monitor.text("RECSYNC_MSG")
    for count in (1, 2):
        session.ping()
        until(lambda: session.pongs == count, 10, "a pong")


def test_iocs_come_and_go(new_ioc, new_monitor, receiver, port):
    server = receiver()
    first = new_ioc(DATABASE).start()
    monitor = new_monitor(before=[on(port)]).start()
    until(lambda: set(server.open()) == {first.name}, 30, "the first IOC")
    second = new_ioc(DATABASE).start()
    until(lambda: set(server.open()) == {first.name, second.name}, 30, "the second IOC")
    kept = server.open()[first.name]
    second.kill()
    until(lambda: set(server.open()) == {first.name}, 30, "the second IOC is gone")
    assert server.open()[first.name] is kept
    monitor.set_filter(LEVEL=0)
    until(lambda: not server.open(), 30, "no IOC is watched")
    monitor.set_filter(LEVEL=3)
    until(lambda: set(server.open()) == {first.name}, 30, "it is watched again")
    monitor.process.command("ebpfMonRecSync off")
    until(lambda: not server.open(), 30, "it is off")
    monitor.wait_text("RECSYNC_MSG", lambda t: "ebpfMonRecSync begins it" in t)
    monitor.process.command(on(port))
    until(lambda: set(server.open()) == {first.name}, 30, "it is on again")
    monitor.process.close()
    until(lambda: not server.open(), 30, "the monitor ended")


def test_variable_set_after_the_upload(new_ioc, announce, receiver):
    """An IOC that sets a variable late, as one does whose PVA server starts late: everything is sent once more."""
    server = receiver()
    ioc = new_ioc(DATABASE).start()
    announce()
    first = until(lambda: server.open().get(ioc.name), 30, "the IOC")
    ioc.command('epicsEnvSet("LOCATION", "Hall 4")')
    second = until(lambda: (s := server.open().get(ioc.name)) is not first and s, 60, "the second upload")
    assert second.variables == {**first.variables, "LOCATION": "Hall 4"} and second.names == first.names
    assert stays_false(lambda: server.open().get(ioc.name) is not second, 3)


def test_ioc_that_speaks_for_itself(tmp_path, new_ioc, announce, receiver):
    """An IOC with the thread of RecSync's client is not announced a second time. (test_recceiver.py has a real one.)"""
    program = tmp_path / "casting.py"
    program.write_text(f"""
import ctypes, threading, time
def cast():
    ctypes.CDLL(None).prctl(15, b"reccaster")  # PR_SET_NAME
    time.sleep(3600)
threading.Thread(target=cast, daemon=True).start()
exec(open({str(paths.PROGRAMS / "exec_ioc.py")!r}).read())
""")
    server = receiver()
    casting = new_ioc(kind="pythonSoftIOC", files=[program]).start(ready="AO")
    other = new_ioc(DATABASE).start()
    monitor = announce()
    monitor.wait_ioc(casting)
    monitor.wait_text("RECSYNC_MSG", lambda t: t.endswith("has 1 of 1 IOCs; 1 more with a RecSync client of its own"), 30)
    assert set(server.open()) == {other.name} and len(server.sessions) == 1
    assert monitor.get("RECSYNC_STATE", as_string=True) == "Ok"


@pytest.fixture
def peer(new_ioc):
    """A server made with caproto. It has its name from its environment, as an operator would set it."""
    made = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "caproto"])
    made.environ["ENGINEER"] = "K. Operator"
    return made.start()


def test_servers_that_are_not_base(peer, new_ioc, new_monitor, receiver, port):
    """A server made with caproto is announced with its environment, its port, and the PVs that clients have. PVs that a client
    has later follow."""
    server, ioc = receiver(), new_ioc(DATABASE).start()
    monitor = new_monitor(before=[on(port, others="pvs")]).start()

    def announced():  # by the first connection the monitor learns the port; a later one is followed from its first byte
        assert peer.run("caput", peer.prefix + "DOUBLE", 6.5).returncode == 0
        return (s := server.open().get(peer.name)) and s.names and s

    session = until(announced, 60, lambda: f"{server.open()}, {monitor.process.output()}")
    assert session.names == {peer.prefix + "DOUBLE"} and session.types == {peer.prefix + "DOUBLE": "unknown"}
    assert not session.infos
    variables = session.variables
    assert variables["RSRV_SERVER_PORT"] == str(peer.port) and "PVAS_SERVER_PORT" not in variables
    assert variables["ENGINEER"] == "K. Operator" and "EPICS_VERSION" not in variables
    assert variables["HOSTNAME"] == os.environ.get("HOSTNAME", paths.HOST) and variables["IOC_STARTED"]
    monitor.wait("RECSYNC_RECORD_CNT", lambda n: n == 4)
    monitor.wait_text("RECSYNC_MSG", lambda t: t.endswith("has 1 of 1 IOCs; and 1 server without EPICS Base"), 20)
    assert peer.run("caput", peer.prefix + "LONG", 3).returncode == 0
    until(lambda: (s := server.open().get(peer.name)) and s.names == {peer.prefix + n for n in ("DOUBLE", "LONG")}, 60,
          lambda: server.open()[peer.name].names)
    monitor.process.command(on(port, others="servers"))
    until(lambda: (s := server.open().get(peer.name)) and not s.names and s.variables == variables, 30, "without its PVs")
    peer.discard()
    until(lambda: set(server.open()) == {ioc.name}, 90, "it has ended")
    monitor.process.command(on(port))


def test_other_servers_are_not_announced_unasked(peer, new_ioc, new_monitor, receiver, port):
    server, ioc = receiver(), new_ioc(DATABASE).start()
    monitor = new_monitor(before=[on(port)]).start()
    peer.put("DOUBLE", 6.5)
    until(lambda: peer.pid in monitor.iocs(), 40, lambda: monitor.iocs())
    until(lambda: ioc.name in server.open(), 30, "the IOC")
    assert stays_false(lambda: peer.name in server.open(), 3)


def test_server_restarts(new_ioc, announce, receiver, port):
    ioc = new_ioc(DATABASE).start()
    monitor = announce()
    monitor.wait_text("RECSYNC_MSG", lambda t: t == f"waiting for a server to announce itself at UDP port {port}", 20)
    server = receiver()
    until(lambda: set(server.open()) == {ioc.name}, 30, "the IOC")
    server.close()
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 0)
    again = receiver()
    session = until(lambda: again.open().get(ioc.name), 30, "the IOC at the next server")
    assert session.names == {ioc.prefix + n for n in ("READY", "CURRENT", "NAME", "SWITCH")}
    monitor.wait_text("RECSYNC_MSG", lambda t: t == f"the server at 127.0.0.1:{again.port} has 1 of 1 IOCs")


def test_unreadable_ioc_harms_no_other(new_ioc, announce, receiver):
    """An IOC that cannot be read does not stand before an IOC that waits for the next server, too."""
    ioc, server = new_ioc(DATABASE).start(), receiver()
    monitor = announce()
    until(lambda: ioc.name in server.open(), 30, "the IOC")
    broken = new_ioc(db.READY + db.unreadable("TAGS")).start()
    why = f"IOC {broken.name} now (tried again): the info tags of {broken.prefix}TAGS cannot be believed"
    until(lambda: any(why in l for l in monitor.process.lines), 30, monitor.process.output)
    server.close()
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 0)
    again = receiver()
    until(lambda: set(again.open()) == {ioc.name}, 40, monitor.process.output)
    monitor.wait_text("RECSYNC_MSG", lambda t: "cannot be believed; the server has 1 of 2 IOCs" in t, 20)


def test_silent_server_harms_nobody(new_ioc, announce, receiver):
    """A server accepts the connection and never greets. The monitor continues to work, and says what is wrong."""
    ioc = new_ioc(DATABASE).start()
    server = receiver(isSilent=True)
    monitor = announce()
    until(lambda: server.sessions, 30, "a connection")
    monitor.wait_ioc(ioc)
    ioc.put("SWITCH", 1)
    monitor.wait_text("PUT_LAST", lambda t: "SWITCH" in t)
    monitor.wait_text("RECSYNC_MSG", lambda t: "the server does not answer" in t, 30)
    assert monitor.get("RECSYNC_STATE", as_string=True) == "Trouble" and monitor.get("RECSYNC_STATE.SEVR") == 1
    assert monitor.get("RECSYNC_STATE.AMSG").startswith("the server does not answer"[:20]), monitor.get("RECSYNC_STATE.AMSG")
    server.close()
    other = receiver()
    until(lambda: ioc.name in other.open(), 40, "the IOC at the next server")
    until(lambda: (monitor.get("RECSYNC_STATE.SEVR"), monitor.get("RECSYNC_STATE.AMSG")) == (0, ""), 10, lambda: monitor.text("RECSYNC_MSG"))
    assert monitor.get("STATE", as_string=True) == "Running"


def test_off_by_default(new_ioc, new_monitor, receiver):
    server = receiver_at_default = Receiver(5049)
    try:
        ioc = new_ioc(DATABASE).start()
        monitor = new_monitor().start()
        monitor.wait_ioc(ioc)
        assert stays_false(lambda: server.sessions, 1)
        assert monitor.get("RECSYNC_STATE", as_string=True) == "Off"
    finally:
        receiver_at_default.close()


@pytest.mark.parametrize("line, why", [("ebpfMonRecSync maybe", "say on or off"),
                                       ("ebpfMonRecSync on 70000", "up to 65535"),
                                       ('ebpfMonRecSync on 0 "" all', "say servers or pvs")])
def test_refused(idle_monitor, line, why):
    assert any(why in text for text in idle_monitor.command(line))
