# SPDX-License-Identifier: BSD-3-Clause
"""The inventory for Channel Finder with RecSync's own programs: what its server stores when the monitor speaks for an IOC,
and when the IOC speaks for itself with RecSync's client."""
import pytest
from tests.harness import db, loopback, paths, recceiver
from tests.harness.wait import stays_false, until

pytestmark = pytest.mark.skipif(bool(recceiver.missing()), reason=recceiver.missing() or "")

DATABASE = (db.READY + r'''
record(ai, "$(P)CURRENT") {
    field(DESC, "Beam current")
    info(archive, "monitor 1")
    info(Q:group, {"$(P)G": {"v": {+channel: "VAL"}}})
    info(autosaveFields, "HIHI HIGH LOW LOLO")
    alias("$(P)DCCT")
}
alias("$(P)CURRENT", "$(P)BEAM")
record(stringout, "$(P)NAME") { info(owner, "Müller") info(nothing, "") info(blank, "  two  blanks ") }
record(bo, "$(P)SWITCH") { field(DESC, "Ein Schalter für \"alles\"") info(escaped, "tab\tline\r\nend\\ \"q\"") }
record(waveform, "$(P)WF") { field(FTVL, "DOUBLE") field(NELM, "10") info(long, "''' + "0123456789" * 300 + r'''") }
record(lso, "$(P)LSO") { field(DESC, "$") }
''')
LINES = ['epicsEnvSet("ENGINEER", "K. Operator")', 'epicsEnvSet("LOCATION", "Hall 3, \\"west\\"")', 'epicsEnvSet("SECTOR", "7")']
MONITOR_ONLY = {"IOC_STARTED", "IOCNAME"}  # what RecSync's client does not send


@pytest.fixture
def server(tmp_path):
    made = []

    def new(settings=""):
        made.append(recceiver.RecCeiver(tmp_path, settings))
        return made[-1]

    yield new
    for r in made:
        r.stop()


def start_with_variables(made):
    """Starts it with an st.cmd that sets variables, as at a site."""
    script = made.tmp / f"{made.name}.cmd"
    script.write_text("\n".join([*LINES, f'dbLoadRecords "{made.files[0]}", "P={made.prefix}"', "iocInit", ""]))
    made.argv = lambda: [paths.BASE_BIN / "softIoc", script]
    return made.start()


@pytest.fixture
def ioc(new_ioc):
    return start_with_variables(new_ioc(DATABASE))


@pytest.fixture
def casting_ioc(tmp_path, new_ioc):
    """The same IOC, with RecSync's client inside."""
    made = new_ioc(DATABASE)
    program = paths.Path(recceiver.CASTER)
    script = tmp_path / f"{made.name}.cmd"
    script.write_text("\n".join([f'dbLoadDatabase "{program.parents[2]}/dbd/demo.dbd"', "demo_registerRecordDeviceDriver pdbbase",
                                 "var reccastMaxHoldoff 0.1", 'addReccasterEnvVars "SECTOR"', *LINES,
                                 f'dbLoadRecords "{made.files[0]}", "P={made.prefix}"', "iocInit", ""]))
    made.argv = lambda: [program, script]
    return made.start()


def on(variables=""):
    return f'ebpfMonRecSync on {recceiver.PORT} "{variables}"'


@pytest.mark.skipif(not recceiver.CASTER, reason="no IOC with RecSync's client: EBPFMON_RECCASTER names it")
def test_same_as_recsyncs_client(casting_ioc, new_ioc, new_monitor, server):
    """The server stores the same from an IOC with RecSync's client, and from the monitor for the same IOC without one: each
    record, alias, info tag and variable. While the IOC speaks for itself, the monitor does not speak for it."""
    real = server()
    monitor = new_monitor(before=[on("SECTOR")]).start()
    theirs, = until(lambda: [s for s in real.stored() if s.records], 60, real.output)
    monitor.wait_text("RECSYNC_MSG", lambda t: t.endswith("has 0 of 0 IOCs; 1 more with a RecSync client of its own"), 30)
    assert stays_false(lambda: len(real.stored()) != 1, 2)
    plain = new_ioc(DATABASE, name=casting_ioc.name, prefix=casting_ioc.prefix)
    loopback.give_port(plain.port)
    casting_ioc.stop()
    plain.port, casting_ioc.port = casting_ioc.port, None
    until(lambda: not real.stored(), 30, real.output)
    start_with_variables(plain)
    ours = until(lambda: real.of(plain.name), 60, real.output)
    assert ours.records == theirs.records and len(ours.records) == 6
    assert ours.records[plain.prefix + "CURRENT"].aliases == {plain.prefix + a for a in ("DCCT", "BEAM")}
    more = {name: ours.variables[name] for name in MONITOR_ONLY}
    # Base cuts the port to four digits, and the client sends what Base says
    assert ours.variables.pop("RSRV_SERVER_PORT")[:4] == theirs.variables.pop("RSRV_SERVER_PORT")
    assert ours.variables == {**theirs.variables, **more} and more["IOCNAME"] == plain.name
    monitor.wait_text("RECSYNC_MSG", lambda t: t.endswith("has 1 of 1 IOCs"), 30)


def test_adds_and_removes(ioc, new_ioc, new_monitor, server):
    """What the server stores follows the IOCs, while it pings each second. Nothing is left after the monitor has ended."""
    real = server("tcptimeout = 1")
    monitor = new_monitor(before=[on()]).start()
    first = until(lambda: real.of(ioc.name), 30, real.output)
    second = new_ioc(db.READY, kind="softIocPVA").start()
    stored = until(lambda: real.of(second.name), 30, real.output)
    assert stored.records == {second.prefix + "READY": recceiver.StoredRecord("calc", set(), {})}
    assert stored.variables["RSRV_SERVER_PORT"] == str(second.port)
    assert stored.variables["PVAS_SERVER_PORT"] == str(second.port + 1000)
    assert "PVAS_SERVER_PORT" not in first.variables
    second.kill()
    until(lambda: not real.of(second.name), 30, real.output)
    until(lambda: len([l for l in real.process.lines if "pong nonce match" in l]) > 8, 30, real.output)
    assert real.of(ioc.name) == first and not any("pong missed" in l for l in real.process.lines)
    second.start()
    again = until(lambda: real.of(second.name), 30, real.output)
    assert again.records == stored.records
    monitor.process.close()
    until(lambda: not real.stored(), 30, real.output)


def test_server_that_is_not_base(new_ioc, new_monitor, server):
    """A server made with caproto: its environment, its port, and the PV that a client has."""
    real = server()
    peer = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "caproto"], environ={"ENGINEER": "K. Operator"}).start()
    monitor = new_monitor(before=[f'ebpfMonRecSync on {recceiver.PORT} "" pvs']).start()
    for _ in range(2):  # the first connection tells the port
        assert peer.run("caput", peer.prefix + "LONG", 5).returncode == 0
    stored = until(lambda: (s := real.of(peer.name)) and s.records and s, 60, real.output)
    assert stored.records == {peer.prefix + "LONG": recceiver.StoredRecord("unknown", set(), {})}
    assert stored.variables["RSRV_SERVER_PORT"] == str(peer.port) and stored.variables["ENGINEER"] == "K. Operator"
    monitor.wait_text("RECSYNC_MSG", lambda t: t.endswith("has 0 of 0 IOCs; and 1 server without EPICS Base"), 30)
    peer.discard()
    until(lambda: not real.stored(), 90, real.output)


def test_server_is_killed(ioc, new_monitor, server):
    """Another server, at another port, gets everything again after the first one was killed."""
    real = server()
    monitor = new_monitor(before=[on()]).start()
    before = until(lambda: real.of(ioc.name), 30, real.output)
    real.kill()
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 0)
    real = server()
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 1, 40)
    assert until(lambda: real.of(ioc.name), 30, real.output) == before


def test_server_is_killed_in_the_middle_of_an_upload(new_ioc, new_monitor, server):
    """It has a part of the records when it dies. The next server, at another port, gets all of them, once."""
    count = 30000
    big = new_ioc("".join(f'record(ai, "$(P)R{i}") {{ field(DESC, "Nr {i}") info(archive, "monitor {i}") }}\n' for i in range(count)) +
                  db.READY).start()
    real = server("commitSizeLimit = 500")
    monitor = new_monitor(before=[on()]).start()
    stored = until(lambda: next((len(s.records) for s in real.stored() if s.records), 0), 60, real.output)
    real.kill()
    assert stored < count, "the upload was faster than this test"
    monitor.wait("RECSYNC_IOC_CNT", lambda n: n == 0, 30)
    real = server()
    monitor.wait("RECSYNC_RECORD_CNT", lambda n: n == count + 1, 60)
    again = until(lambda: (s := real.of(big.name)) and len(s.records) == count + 1 and s, 90, real.output)
    assert again.records[f"{big.prefix}R{count - 1}"].infos == {"archive": f"monitor {count - 1}", "recordDesc": f"Nr {count - 1}"}


def test_texts_that_are_not_utf8(tmp_path, new_ioc, new_monitor, server):
    """The server closes the connection of a client that sends a text which is not UTF-8. The monitor sends it escaped."""
    made = new_ioc()
    made.files.append(tmp_path / "latin.db")
    made.files[0].write_bytes(db.READY.encode() + b'record(ai, "$(P)A") { field(DESC, "K\xfchler") info(place, "H\xf6hle") }\n')
    made.start()
    real = server()
    new_monitor(before=[on()]).start()
    stored = until(lambda: real.of(made.name), 30, real.output)
    assert stored.records[made.prefix + "A"].infos == {"place": "H\\xf6hle", "recordDesc": "K\\xfchler"}


def test_many_records(tmp_path, new_ioc, new_monitor, server):
    """10,000 records with aliases and info tags, which the server commits in portions; another IOC waits meanwhile, since
    the server reads one connection at a time."""
    count = 10000
    records = "".join(f'record(ai, "$(P)R{i}") {{ field(DESC, "Nr {i}") info(archive, "monitor {i}") alias("$(P)A{i}") }}\n'
                      for i in range(count))
    big = new_ioc(records + db.READY).start()
    small = new_ioc(db.READY).start()
    real = server("maxActive = 1\ncommitSizeLimit = 700")
    monitor = new_monitor(before=[on()]).start()
    monitor.wait("RECSYNC_RECORD_CNT", lambda n: n == count + 2, 60)
    stored = until(lambda: (s := real.of(big.name)) and len(s.records) == count + 1 and s, 90, real.output)
    assert all(stored.records[f"{big.prefix}R{i}"] ==
               recceiver.StoredRecord("ai", {f"{big.prefix}A{i}"}, {"archive": f"monitor {i}", "recordDesc": f"Nr {i}"})
               for i in range(count))
    until(lambda: real.of(small.name), 30, real.output)
