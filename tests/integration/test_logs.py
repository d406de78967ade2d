# SPDX-License-Identifier: BSD-3-Clause
"""Logs of puts have each put once, in each format: JSON lines, and the formats of caPutLog in a file, at Base's iocLogServer
and as a PV."""
import json
import os
import pwd
import re
import socket

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.caclients import caput
from tests.harness.clients import Client
from tests.harness.process import Process
from tests.harness.putlog import check_line
from tests.harness.wait import until

RECORDS = (
    db.READY + db.record("ao", "AO", VAL="1", DRVH="0") + db.record("longout", "LO") + db.record("longout", "OCT") + db.record("stringout", "STR") +
    db.record("lso", "LSO", SIZV="200") + db.record("bo", "BO", ZNAM="Closed", ONAM="Open") +
    db.record("waveform", "WF", FTVL="DOUBLE", NELM="100") + db.record("waveform", "WFS", FTVL="STRING", NELM="9") + db.record("ao", "DISABLED", DISP="1") +
    db.record("ao", "SECRET", ASG="NOBODY") + db.record("ao", "X") + db.record("ao", "Y") +
    db.record("ao", "B1") + db.record("ao", "B2")
)
ACF = """UAG(nobody) { nosuchuser }
ASG(DEFAULT) { RULE(1, WRITE) }
ASG(NOBODY) { RULE(1, READ) RULE(1, WRITE) { UAG(nobody) } }
"""
# caPutLog, docs/index.rst
TEXT = re.compile(r'(?P<date>\d\d-\w{3}-\d\d) (?P<time>\d\d:\d\d:\d\d) (?P<host>\S+) (?P<user>\S+) (?P<pv>\S+) '
                  r'new=(?P<new>"(?:[^"\\]|\\.)*"|\S+)(?: old=(?P<old>"(?:[^"\\]|\\.)*"|\S+))?'
                  r'(?: min=(?P<min>\S+) max=(?P<max>\S+))?(?: burst=(?P<burst>\d+) by (?P<by>[^=]*))?'
                  r'(?: result=(?P<result>\w+))?$')


class LogServer:
    """Base's iocLogServer."""

    def __init__(self, path):
        self.path = path
        self.port = loopback.take_port()
        self.process = None

    def start(self):
        self.process = Process([paths.BASE_BIN / "iocLogServer"], dict(
            os.environ, EPICS_IOC_LOG_PORT=str(self.port), EPICS_IOC_LOG_FILE_NAME=str(self.path),
            EPICS_IOC_LOG_FILE_LIMIT="100000000"))
        return self

    def lines(self):
        """The lines that clients sent. The server adds host:port and its date before each line."""
        out = []
        for line in read(self.path):
            m = re.match(r"\S+ \w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4} (.*)$", line)
            assert m, f"not a line of iocLogServer: {line}"
            out.append(m.group(1))
        return out

    def kill(self):
        self.process.kill()

    def discard(self):
        self.process.kill()
        loopback.give_port(self.port)


def read(path):
    """The complete lines of a file."""
    try:
        text = path.read_bytes().decode("utf-8")  # fails if a line is not valid UTF-8
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    acf = tmp_path_factory.mktemp("acf") / "test.acf"
    acf.write_text(ACF)
    return module_ioc(RECORDS, kind="softIocPVA", acf=acf).start()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def server(files):
    s = LogServer(files / "server.log").start()
    yield s
    s.discard()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, files, server):
    m = module_monitor(before=[
        f'ebpfMonJsonLog "{files}/puts.json" 100 24 5 all',
        f'ebpfMonCaPutLog "{files}/text.log" text changes',
        f'ebpfMonCaPutLog "{files}/burst.log" text burst "%i "',
        f'ebpfMonCaPutLog "127.0.0.1:{server.port}" json all',
        'ebpfMonCaPutLog PV json all',
        'ebpfMonLogMetadata "facility" "test 1"',
    ]).start()
    m.wait_ioc(ioc)
    return m


def objects(path):
    lines = [json.loads(line) for line in read(path)]
    for line in lines:
        check_line(line)
    return lines


def find(lines, pv, seconds=5):
    """The entries of this PV. Waits until there is one."""
    return until(lambda: [o for o in lines() if o.get("pv") == pv], seconds, lambda: f"{pv}: {lines()[-3:]}")


def test_octal_text(ioc, monitor, files):
    """The text 010 is 8 or 10 for an integer, by the IOC's dbConvertBase. So it is not shown as a number."""
    assert ioc.run("caput", "-c", ioc.prefix + "OCT", "010").returncode == 0
    assert find(lambda: objects(files / "puts.json"), ioc.prefix + "OCT")[-1]["value"] == "010"


@pytest.mark.parametrize("record, values, expected", [
    ("AO", [115, 1e-12, -2.5, 0.1], [115, 1e-12, -2.5, 0.1]),
    ("AO.PREC", [3], [3]),
    ("LO", [2147483647, -7], [2147483647, -7]),
    ("STR", ['a "quoted" one', "42", "caf\u00e9 \u2192 \u00b0C"], ['a "quoted" one', "42", "caf\u00e9 \u2192 \u00b0C"]),
    ("BO", [1], ["Open"]),
    ("X", [float("nan"), float("inf"), float("-inf")], ["Nan", "Infinity", "-Infinity"]),
])
def test_values_in_all_formats(ioc, monitor, files, server, record, values, expected):
    pv = ioc.prefix + record
    for v in values:
        done = ioc.run("caput", "-c", pv, v) if isinstance(v, str) else ioc.put(record, v)
        assert done is None or done.returncode == 0, done.stdout

    def json_lines():
        return [o for o in objects(files / "puts.json") if o.get("pv") == pv]

    def sent():
        return [json.loads(l) for l in server.lines()]

    lines = until(lambda: len(json_lines()) >= len(values) and json_lines(), 5, lambda: str(json_lines()))
    assert [o["value"] for o in lines] == expected
    for o in lines:
        assert o["ioc"] == ioc.name and o["through"] == "CA" and o["result"] == "ok" and o["host"] == paths.HOST
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", o["time"])
        assert isinstance(o["pid"], int) and o["uid"] == os.getuid()
    # the old value is the new value of the put before
    assert [o["old"] for o in lines[1:]] == expected[:-1]

    theirs = until(lambda: [o for o in sent() if o["pv"] == pv][-len(values):], 5, "the lines at the server")
    until(lambda: len([o for o in sent() if o["pv"] == pv]) == len(values), 5, lambda: str(sent()[-5:]))
    theirs = [o for o in sent() if o["pv"] == pv]
    assert [o["new"] for o in theirs] == expected and [o["old"] for o in theirs[1:]] == expected[:-1]
    for o in theirs:
        assert list(o)[:6] == ["date", "time", "host", "user", "facility", "pv"]
        assert o["facility"] == "test 1" and o["host"] == paths.HOST
    monitor.wait_text("PUT_LAST_CAPUTLOG", lambda t: t.startswith("{") and json.loads(t)["pv"] == pv and
                      json.loads(t)["new"] == expected[-1])
    until(lambda: sum(f" {pv} " in l for l in read(files / "text.log")) == len(values), 5,
          lambda: str(read(files / "text.log")))
    for line in read(files / "text.log"):
        assert TEXT.match(line), line


def test_arrays_and_long_strings(ioc, monitor, files, server):
    ca.put(ioc.prefix + "WF", [1.5, 2, -3])
    ca.put(ioc.prefix + "LSO.VAL$", "a long text, " * 8)
    o = find(lambda: objects(files / "puts.json"), ioc.prefix + "WF")[-1]
    assert o["value"] == "[3] 1.5 2 -3" and o["count"] == 3
    find(lambda: [json.loads(l) for l in server.lines()], ioc.prefix + "WF")
    o = [json.loads(l) for l in server.lines() if f'"{ioc.prefix}WF"' in l][-1]
    assert o["new"] == [1.5, 2, -3] and o["new-size"] == 3
    caput(ioc, "-a", ioc.prefix + "WF", 3, 4, 5.5, -6)  # as texts
    until(lambda: [json.loads(l) for l in server.lines() if f'"{ioc.prefix}WF"' in l][-1]["new"] == [4, 5.5, -6], 5, lambda: server.lines()[-1])
    ca.put(ioc.prefix + "WFS", ["3 mm", "x"])
    ca.put(ioc.prefix + "WFS", ["1", "2"])
    until(lambda: len([l for l in server.lines() if f'"{ioc.prefix}WFS"' in l]) == 2, 5, "the lines at the server")
    texts = [json.loads(l) for l in server.lines() if f'"{ioc.prefix}WFS"' in l]
    assert [(o["new"], o["old"]) for o in texts] == [(["3 mm x"], []), (["1 2"], ["3 mm x"])]
    find(lambda: [json.loads(l) for l in server.lines()], ioc.prefix + "LSO.VAL$")
    o = [json.loads(l) for l in server.lines() if f'"{ioc.prefix}LSO.VAL$"' in l][-1]
    assert o["new"] == ["a long text, " * 8] and o["new-size"] >= 8 * 13


def test_refused_puts_are_logged(ioc, monitor, files):
    ca.raw_put(ioc, ioc.prefix + "SECRET", 3, False)
    ioc.run("caput", ioc.prefix + "DISABLED", "3")
    assert find(lambda: objects(files / "puts.json"), ioc.prefix + "SECRET")[-1]["result"] == "denied"
    assert find(lambda: objects(files / "puts.json"), ioc.prefix + "DISABLED")[-1]["result"] == "failed"
    until(lambda: any(f"{ioc.prefix}SECRET new=3" in l and l.endswith("result=denied")
                      for l in read(files / "text.log")), 5, lambda: str(read(files / "text.log")))


def test_changes_only(ioc, monitor, files):
    for v in (5, 5, 5, 6):
        ioc.put("LO", v)
    pv = ioc.prefix + "LO"

    def tail():
        return [l for l in read(files / "text.log") if f" {pv} " in l][-2:]

    until(lambda: tail() and " new=6 old=5" in tail()[-1], 5, tail)
    assert " new=5 old=" in tail()[0]


def test_bursts_of_alternating_pvs(ioc, monitor, files):
    """Puts to two PVs, alternating: each PV has its own burst, and every writer is named."""
    other = Client("cacb", pwd.getpwnam("daemon").pw_uid, ioc, "B2").ready()
    for i in range(40):
        ioc.put("B1", i)
        ioc.put("B2", 100 - i)
    other.begin(0, 3)
    other.finish()
    other.discard()

    def summary(record):
        for line in read(files / "burst.log"):
            if f" {ioc.prefix}{record} " in line and "burst=" in line:
                m = TEXT.match(line[len(ioc.name) + 1:])
                assert m and line.startswith(ioc.name + " "), line
                if int(m["burst"]) >= 40:
                    return m
        return None

    m = until(lambda: summary("B1"), 20, lambda: str(read(files / "burst.log")[-5:]))
    assert (m["new"], m["max"]) == ("39", "39")
    m = until(lambda: summary("B2"), 20, lambda: str(read(files / "burst.log")[-5:]))
    assert (m["new"], m["min"], m["max"], m["burst"]) == ("2", "0", "100", "43")
    assert f"@{paths.HOST} (40)" in m["by"] and f"daemon@{paths.HOST} (3)" in m["by"]


def test_log_server_killed_and_restarted(ioc, monitor, files, server):
    server.kill()

    def down():
        ioc.put("AO", (ioc.get("AO") or 0) + 1)
        return monitor.get("LOG_STATE", as_string=True) == "Trouble"

    until(down, 20, lambda: monitor.text("LOG_MSG"))
    assert "server down" in monitor.text("LOG_MSG")
    assert monitor.get("LOG_STATE.SEVR") == 1 and monitor.text("LOG_MSG").startswith(monitor.get("LOG_STATE.AMSG")[:34] or "?")
    ioc.put("LO", 4711)
    server.start()
    monitor.wait("LOG_STATE", lambda s: s == 1, 40)
    assert (monitor.get("LOG_STATE.SEVR"), monitor.get("LOG_STATE.AMSG")) == (0, "")
    ioc.put("LO", 4712)
    until(lambda: objects(files / "puts.json")[-1]["value"] == 4712, 5, "the file")
    until(lambda: [json.loads(l)["new"] for l in server.lines() if "WF" not in l and "LSO" not in l][-1:] == [4712], 10,
          lambda: str(server.lines()[-3:]))
    theirs = [json.loads(l)["new"] for l in server.lines()]
    assert 4711 in theirs, "puts while the server was down"
    assert monitor.get("LOG_LOST_CNT") == 0


def test_rotation_by_pv_and_report(ioc, monitor, files):
    assert monitor.get("LOG_LINE_CNT") > 0 and monitor.get("LOG_QUEUE_LOAD") < 50
    shown = "\n".join(monitor.command("ebpfMonLogShow 1"))
    assert f"{files}/puts.json: JSON, mode all:" in shown and "caPutLog text, mode burst" in shown
    assert "caPutLog text, mode changes" in "\n".join(monitor.command("dbior drvEbpfMon 0"))
    before = len(read(files / "puts.json"))
    monitor.put("LOG_ROTATE", 1)
    until(lambda: (files / "puts.json.1").exists(), 5, "the rotated file")
    ioc.put("LO", 99)
    # the put to LOG_ROTATE is logged, too, in one of the two files
    until(lambda: any(f'"pv":"{ioc.prefix}LO"' in l for l in read(files / "puts.json")), 5,
          lambda: str(read(files / "puts.json")))
    assert len(read(files / "puts.json")) <= 2
    assert len(read(files / "puts.json.1")) >= before


def test_commands_refuse(monitor, files):
    for line, why in [("ebpfMonJsonLog", "give the name of a file"), (f'ebpfMonJsonLog "{files}"', "is a folder"),
                      (f'ebpfMonJsonLog "{files}/x" 1 1 1 most', 'mode "most" is not known'),
                      (f'ebpfMonJsonLog "{files}/x" many', "is not a number"),
                      (f'ebpfMonCaPutLog "{files}/puts.json" text', "in another format"),
                      ("ebpfMonCaPutLog no.such.host.invalid text", "no address is known"),
                      ("ebpfMonCaPutLog a:1 xml", "text or json"),
                      ("ebpfMonLogMetadata pv x", "caPutLog's own")]:
        said = monitor.command(line)
        until(lambda: any(why in l for l in [*said, *monitor.process.lines]), 5, lambda: f"{line}: {said}")


def test_end_writes_the_queue(ioc, monitor, files):
    for i in range(200):
        ca.put(ioc.prefix + "Y", 1000 + i, wait=False)
    ca.put(ioc.prefix + "Y", -1)
    monitor.wait_text("PUT_LAST", lambda t: "-1" in t, 5)
    monitor.stop()
    assert objects(files / "puts.json")[-1]["value"] == -1
    assert any("burst=" in l for l in read(files / "burst.log")[-5:])


def test_name_service_that_does_not_answer(new_monitor, tmp_path):
    """A log server has a name, and the server of names does not answer. The monitor starts, and says what it waited for."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.53\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.53", 53))
        monitor = new_monitor(before=['ebpfMonCaPutLog "logs.example.org:7011"'])
        monitor.launch(["unshare", "--mount", "sh", "-c", f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf; exec "$@"', "sh"])
        monitor.wait_state("Running")
    said = "\n".join(monitor.process.lines)  # all of them: what is written to stderr comes before the commands
    assert 'did not say within 5 s which address "logs.example.org:7011" has' in said, said
