# SPDX-License-Identifier: BSD-3-Clause
"""Messages that a server takes, and that no usual client sends: each put is shown with its own result, or what is not known is counted.
Most go to servers that are no IOCs, of which only packets tell. And another server comes to the port of one that has gone."""
import contextlib
import os
import socket
import struct
import sys
import threading

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog, same
from tests.harness.putters import Putter
from tests.harness.wait import until

DB = db.READY + db.record("ao", "DOUBLE") + db.record("ao", "RO", ASG="RO")
PEER = paths.PROGRAMS / "peer_ioc.py"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module", autouse=True)
def monitor(log, module_monitor):
    return module_monitor(before=[log.command()]).start()


@pytest.fixture
def caproto(new_ioc, log):
    """A server, and a client of which a put was shown already."""
    ioc = new_ioc(kind="pythonSoftIOC", files=[PEER, "caproto"]).start()
    client = rawca.RawCa(ioc.port)
    assert client.put(ioc.prefix + "DOUBLE", rawca.DOUBLE, [1.0], notify=True) == 1
    log.next(1, ioc.prefix, 0)
    return ioc, client


def lines(log, ioc, count):
    return until(lambda: len(log.of(ioc.prefix)) >= count and log.of(ioc.prefix), 20, lambda: log.of(ioc.prefix))


def test_size_that_is_no_multiple_of_eight(caproto, log, monitor):
    """EPICS Base refuses such a message, caproto takes it: where the next one begins is not known."""
    ioc, client = caproto
    before, sid = monitor.get("PACKET_GAP_CNT"), client.sid(ioc.prefix + "STRING")
    for text in b"odd", b"even":
        client.send(struct.pack(">HHHHII", rawca.WRITE_NOTIFY, 4 + len(text), rawca.STRING, 1, sid, 7) + text + bytes(4))
        client.until(rawca.WRITE_NOTIFY)
        assert ca.get(ioc.prefix + "STRING") == text.decode()
    assert [o["value"] for o in lines(log, ioc, 2)[1:]] == ["even"]
    monitor.wait("PACKET_GAP_CNT", lambda n: n > before, 10)


def test_number_of_two_requests(caproto, log):
    """Two put-callbacks under way have one number, and one is refused: nobody can tell which."""
    ioc, client = caproto
    bad, good = (client.sid(ioc.prefix + r) for r in ("BAD", "DOUBLE"))
    client.send(rawca.write(bad, rawca.DOUBLE, [2.0], notify=True, ioid=5) + rawca.write(good, rawca.DOUBLE, [3.0], notify=True, ioid=5))
    got = [m.command for _ in range(2) for m in client.until(rawca.WRITE_NOTIFY, rawca.ERROR)]
    found = {o["pv"].rsplit(":", 1)[1]: o["result"] for o in lines(log, ioc, 3)[1:]}
    assert found["BAD"] in ("failed", "unknown") and found["DOUBLE"] in ("ok", "unknown"), (got, found)


def test_one_of_a_burst_is_refused(caproto, log):
    """Plain writes with the same header: the error does not say which one it is about."""
    ioc, client = caproto
    sid, texts = client.sid(ioc.prefix + "DOUBLE"), ["11", "12", "no", "14", "15"]
    client.send(b"".join(rawca.write(sid, rawca.STRING, [t], ioid=9) for t in texts))
    client.until(rawca.ERROR)
    until(lambda: ca.get(ioc.prefix + "DOUBLE") == 15, 10, "the last one is made")
    found = {o["value"]: o["result"] for o in lines(log, ioc, 6)[1:]}
    assert found["no"] != "ok" and set(found) == set(texts) and {found[t] for t in texts if t != "no"} <= {"sent", "unknown"}, found


class Relay(threading.Thread):
    """Passes on what clients and a server of pvAccess say. "change" makes other bytes of each message of a client."""

    def __init__(self, port, change):
        super().__init__(daemon=True)
        self.listener, self.server, self.change = socket.create_server(("127.0.0.1", 0)), port, change
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.server))
            threading.Thread(target=self.carry, args=(server, client, self.answer), daemon=True).start()
            threading.Thread(target=self.carry, args=(client, server, self.change), daemon=True).start()

    def answer(self, message):
        """To searches by TCP it answers that it has the PV itself."""
        return message.replace(struct.pack("<H", self.server), struct.pack("<H", self.port)) if message[3] == 4 else message

    def carry(self, source, sink, change):
        data = b""
        with source, sink, contextlib.suppress(OSError):  # one of them has closed it
            while more := source.recv(65536):
                data += more
                while len(data) >= 8:
                    size = 8 + (0 if data[2] & 1 else struct.unpack(">I" if data[2] & 128 else "<I", data[4:8])[0])
                    if len(data) < size:
                        break
                    sink.sendall(change(bytearray(data[:size])))
                    data = data[size:]


def changed(how):
    def change(message):
        if how == "version":
            message[1] = 200
        elif how == "flags":
            message[2] |= 0xe
        return {"command": bytes([0xca, 2, message[2] & 128, 77, 0, 0, 0, 0]), "control": bytes([0xca, 2, 1, 77, 1, 2, 3, 4])}.get(how, b"") + message
    return change


@pytest.mark.parametrize("kind", ["p4p", "pvxs"])
def test_what_pvxs_does_not_look_at(new_ioc, monitor, log, kind, tmp_path):
    """Higher versions, bits and commands that do not exist. A refused put is seen in packets only, also of an IOC."""
    (tmp_path / "pvxs.acf").write_text("ASG(DEFAULT) { RULE(1, WRITE) }\nASG(RO) { RULE(1, READ) }\n")
    ioc = new_ioc(DB, kind="pvxs", acf=tmp_path / "pvxs.acf").start() if kind == "pvxs" else \
        new_ioc(kind="pythonSoftIOC", files=[PEER, "p4p"]).start(wait=False)
    if kind == "pvxs":
        monitor.wait_ioc(ioc)
    else:
        ioc.process.wait_line("ready")
    putter, made = Putter(), [("DOUBLE", 1.0, True)]
    assert putter.put("pvatcp", 0, "", ioc.port, ioc.prefix + "DOUBLE", 1.0) == "ok"
    lines(log, ioc, 1)
    for i, how in enumerate(("version", "flags", "command", "control")):
        relay = Relay(ioc.port + 1000, changed(how))
        relay.start()
        for record in "DOUBLE", "RO" if kind == "pvxs" else "BAD":
            said = putter.put("pvatcp", 0, "", relay.port - 1000, ioc.prefix + record, i + 2.0)
            made.append((record, i + 2.0, said == "ok"))
            assert said == "ok" if record == "DOUBLE" else said.startswith("refused"), said
    putter.discard()
    found = [(o["pv"].rsplit(":", 1)[1], float(o["value"]), o["result"] == "ok") for o in lines(log, ioc, len(made))]
    assert sorted(found) == sorted(made), found


@pytest.mark.parametrize("waits", [False, True], ids=["", "waits"])
def test_another_server_at_the_port(monitor, log, waits):
    """A server ends, and another one listens at its port: a put is to the one that has got it."""
    port, pv, servers = loopback.take_port(), f"S{os.getpid()}:TURN{waits}", []

    def start():
        servers.append(Process([sys.executable, "-u", "-m", "tests.programs.raw_server", "127.0.0.1", str(port)],
                               {**os.environ, "IOC": OURS.replace("*", f"turn{waits}{len(servers)}")}, cwd=paths.TOP))
        servers[-1].wait_line("listens")

    start()
    for turn in range(3):
        client = rawca.RawCa(port)
        assert client.put(pv, rawca.DOUBLE, [10.0 + turn], notify=True) == 1
        until(lambda: same(log.of(pv)[-1]["value"], 10.0 + turn) if log.of(pv) else 0, 20, lambda: f"{log.of(pv)}, {monitor.losses()}")
        if waits:
            servers[-1].halt()
            client.send(rawca.write(client.sid(pv), rawca.DOUBLE, [20.0 + turn], notify=True, ioid=1))
        servers[-1].kill()
        client.close()
        start()
    if waits:
        until(lambda: len(log.of(pv)) == 6, 30, lambda: f"{log.of(pv)}, {monitor.losses()}")
    found = [(float(o["value"]), o["ioc"]) for o in log.of(pv)]
    assert sorted(found)[:3] == [(10.0 + turn, OURS.replace("*", f"turn{waits}{turn}")) for turn in range(3)], found
    assert all(ioc in (OURS.replace("*", f"turn{waits}{v - 20:.0f}"), f"127.0.0.1:{port}") for v, ioc in found if v >= 20), found
    servers[-1].kill()
    loopback.give_port(port)
