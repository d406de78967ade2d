# SPDX-License-Identifier: BSD-3-Clause
"""Puts are right over a link that loses, repeats and reorders frames, and so are puts in packets that the test injects."""
import json
import os
import socket
import struct
import subprocess
import sys

import pytest
from tests.harness import badlink, db, paths, rawca
from tests.harness.far import FarIoc, there
from tests.harness.putlog import PutLog
from tests.harness.wait import settled, until

PROGRAM = paths.PROGRAMS / "peer_ioc.py"
PUTS = 300
FIN = 1


@pytest.fixture(scope="module")
def link():
    with badlink.BadLink(loss=0.02, reorder=0.1, dup=0.01, seed=1) as made:
        yield made


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module")
def servers(tmp_path_factory, link):
    tmp = tmp_path_factory.mktemp("far")
    made = [FarIoc(tmp, link, db=db.READY + db.record("longout", "LONG") +
                   db.record("waveform", "ADOUBLE", FTVL="DOUBLE", NELM=2000)).start(),
            FarIoc(tmp, link, kind="pythonSoftIOC", files=[PROGRAM, "caproto", link.addrB]).start()]
    yield dict(zip(("softIoc", "caproto"), made))
    for ioc in made:
        ioc.discard()


@pytest.fixture(scope="module")
def monitor(module_monitor, link, servers, log):
    m = module_monitor(before=[log.command()]).start()
    m.wait_ioc(servers["softIoc"])
    wait_packets(m, link, servers)
    return m


def wait_packets(monitor, link, servers):
    """Waits until the monitor reads the packets of the link."""
    ask = [sys.executable, "-m", "tests.programs.search", link.addrB, servers["softIoc"].port, "NOBODY:HAS:THIS"]
    until(lambda: subprocess.run(badlink.in_namespace(link.a, ask), check=True) and
          any(link.addrA in c for c in monitor.list("SEARCH_CLIENTS")), 20, lambda: str(monitor.iocs()))


@pytest.mark.parametrize("kind", ["softIoc", "caproto"])
def test_over_a_bad_link(link, servers, monitor, log, kind):
    """All puts are seen, each once, in order and joined. No gap is counted, because nothing is missing."""
    ioc = servers[kind]
    client = there(link.a, [sys.executable, "-m", "tests.programs.put_by_turns", link.addrB, ioc.port,
                            ioc.prefix + "LONG", ioc.prefix + "ADOUBLE"])
    until(lambda: "ready" in client.lines or not client.running, 30, client.output)
    client.send(f"0 {PUTS}")
    until(lambda: "done" in client.lines or not client.running, 60, client.output)
    assert client.running, client.output()
    arrays = list(range(0, PUTS, 50))

    def state():
        missing = set(range(PUTS)) - {int(o["value"]) for o in log.of(ioc.prefix + "LONG")}
        return f"{missing} are missing, {monitor.get('PACKET_LOST_CNT')} lost, {monitor.get('PACKET_GAP_CNT')} gaps, {monitor.losses()}"

    until(lambda: len(log.of(ioc.prefix)) > PUTS + len(arrays), 10, state)
    lines = log.next(PUTS + len(arrays) + 1, ioc.prefix, 0)
    longs = [o for o in lines if o["pv"] == ioc.prefix + "LONG"]
    assert [int(o["value"]) for o in longs] == list(range(PUTS)) + [-1]
    doubles = [o for o in lines if o["pv"] == ioc.prefix + "ADOUBLE"]
    assert [int(o["count"]) for o in doubles] == [2000] * len(arrays)
    for first, o in zip(arrays, doubles):
        values = [float(first + k) for k in range(2000)]
        assert o.get("hash", "inside") in ("inside", rawca.fnv(rawca.elements(rawca.DOUBLE, values))), o
    for o in lines:
        assert o["server"] == f"{link.addrB}:{ioc.port}" and o["peer"].startswith(link.addrA + ":"), o
        assert (o["user"], o["host"], o["ioc"]) == ("far", "farhost", ioc.name), o
    seen = [o["seen"] for o in lines]
    if kind == "caproto":
        assert set(seen) == {"wire"}
    else:  # a packet that was lost and sent again may come to the monitor after the put
        assert seen.count("both") >= 0.95 * len(seen) and set(seen) <= {"both", "inside"}, seen
    counts = link.counts()
    assert counts["dropped"] > 5 and counts["reordered"] > 20, counts
    assert monitor.get("PACKET_LOST_CNT") == monitor.get("PACKET_GAP_CNT") == 0
    assert settled(lambda: len(log.of(ioc.prefix)), 10, quiet=1.5) == len(lines)
    client.close()


def record_session(port, pv, values):
    """Records the TCP/IP packets of a CA session over lo."""
    capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    capture.setsockopt(socket.SOL_SOCKET, badlink.SO_RCVBUFFORCE, 8 << 20)  # other programs use lo, too
    capture.settimeout(5)
    capture.bind(("lo", 0x0800))
    client = rawca.RawCa(port, "replayed", "replayedhost")
    own = int(client.address.rsplit(":", 1)[1])
    for v in values:
        client.put(pv, rawca.LONG, [v], notify=True)
    client.socket.shutdown(socket.SHUT_WR)
    packets = []
    while not packets or struct.unpack(">H", packets[-1][20:22])[0] != own or not packets[-1][33] & FIN:
        packet, (_, _, kind, *_) = capture.recvfrom(70000)
        if kind != socket.PACKET_OUTGOING and packet[9] == socket.IPPROTO_TCP and \
                {own, port} == set(struct.unpack(">HH", packet[20:24])):
            packets.append(packet)
    client.close()
    capture.close()
    return packets


# Sends frames out of an interface. They come on stdin, in JSON as hexadecimal text.
INJECT = """
import json, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for frame in json.load(sys.stdin):
    s.send(bytes.fromhex(frame))
"""


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def summed(ends, segment):
    """The TCP segment with its checksum between these two addresses (RFC 9293, 3.1). A packet of lo has none that is
    whole, and one that is wrong counts as forged."""
    pseudo = ends + struct.pack(">HH", socket.IPPROTO_TCP, len(segment))
    return segment[:16] + struct.pack(">H", checksum(pseudo + segment[:16] + b"\0\0" + segment[18:])) + segment[18:]


def test_replayed_capture(link, new_ioc, new_monitor, servers, tmp_path):
    """A session is replayed at a place without a server: the monitor publishes the puts of the session, with their
    replies."""
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(before=[log.command()], iocs="198.51.100.8:*").start()
    monitor.command(f'ebpfMonLevel "{servers["softIoc"].name}" puts')  # so packets of its namespace are read
    wait_packets(monitor, link, servers)
    ioc = new_ioc(kind="pythonSoftIOC", files=[PROGRAM, "caproto"]).start()
    values = list(range(1000, 1020))
    packets = record_session(ioc.port, ioc.prefix + "LONG", values)
    client, server = socket.inet_aton("198.51.100.7"), socket.inet_aton("198.51.100.8")
    frames = []
    for packet in packets:
        own = struct.unpack(">H", packet[20:22])[0]
        ends = server + client if own == ioc.port else client + server
        head = packet[:10] + b"\0\0" + ends
        head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
        frames.append((b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + b"\x08\0" + head + summed(ends, packet[20:])).hex())
    # the packet of the last write is left out: this is a gap, and the put is not seen
    hole = next(f for f in frames if rawca.elements(rawca.LONG, values[-1:]).hex() in f)
    frames.remove(hole)
    # injected into the end of the link, so without the link's faults
    done = subprocess.run(badlink.in_namespace(link.middle, [sys.executable, "-c", INJECT, "linkB"]), text=True,
                          input=json.dumps(frames), check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = log.next(len(values) - 1, ioc.prefix, 0, 15)
    assert [int(o["value"]) for o in lines] == values[:-1]
    for o in lines:
        assert o["seen"] == "wire" and o["ioc"] == f"198.51.100.8:{ioc.port}", o
        assert o["user"] == "replayed" and o["peer"].startswith("198.51.100.7:") and "pid" not in o, o
        assert o["result"] == "ok" and o["hash"] == rawca.fnv(rawca.elements(rawca.LONG, [int(o["value"])])), o
    # on a busy host the monitor may lose packets, which make more gaps
    monitor.wait("PACKET_GAP_CNT", lambda n: n == 1 or n > 1 and monitor.get("PACKET_LOST_CNT") > 0, 5)
    assert settled(lambda: len(log.of(ioc.prefix)), 10, quiet=1.5) == len(lines)
