# SPDX-License-Identifier: BSD-3-Clause
"""Five network namespaces: the tests' own with the monitor, three hosts, and one that any user can make. Known clients put to an IOC
and to a server that is no IOC. Meanwhile another host and that user write random, mutated, repeated and forged packets. Each real put
is shown once, with its own client; nothing else is shown. tools/hostilePackets.sh runs it for as long as one likes."""
import json
import os
import pwd
import random
import socket
import sys
import threading
import time

import pytest
from tests.harness import badlink, db, lan, loopback, paths
from tests.harness.far import FarIoc, there
from tests.harness.ioc import OURS
from tests.harness.process import Process
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import until
from tests.integration.test_forged_packets import mac

SECONDS = float(os.environ.get("HOSTILE_SECONDS") or size(5, 600))
CLIENT_PUTS = 40   # then its connection ends
LATE = 14          # s: a put that only packets show is published 10 s after its reply at the latest
USERS = [p for p in pwd.getpwall() if 0 < p.pw_uid < 50][:4]
HERE = "192.0.2.1"


class Real(threading.Thread):
    """A client that puts numbers that nobody else puts."""

    def __init__(self, number, start, place, pv):
        super().__init__(daemon=True)
        self.number, self.begin, self.place, self.pv = number, start, place, pv
        self.user, self.made, self.error, self.ends = USERS[number], {}, None, threading.Event()

    def run(self):
        try:
            value = 1000000 * (self.number + 1)
            while not self.ends.is_set():
                client = self.begin(["setpriv", "--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid), "--clear-groups",
                                     sys.executable, "-u", "-m", "tests.programs.put_lines", *self.place, self.pv])
                client.wait_line("ready")
                for _ in range(CLIENT_PUTS):
                    value += 1
                    self.made[value] = client.pid
                    client.send(str(value))
                    client.wait_line("made")
                    if self.ends.wait(0.01):
                        break
                client.close()
        except Exception as e:  # pylint: disable=broad-exception-caught
            self.error = e


class Sniffer(threading.Thread):
    """Gives the packets of real connections to those who write hostile ones, some of them."""

    def __init__(self, interfaces, rogues):
        super().__init__(daemon=True)
        self.rogues, self.ends, self.sockets = rogues, threading.Event(), []
        for name in interfaces:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
            s.bind((name, 0))
            s.settimeout(0.2)
            self.sockets.append(s)

    def run(self):
        while not self.ends.is_set():
            for s in self.sockets:
                try:
                    frame = s.recv(2000)
                except TimeoutError:
                    continue
                if frame[12:14] == b"\x08\x00" and frame[23] == 6 and frame[6:12] != b"\2\0\0\0\0\1" and len(frame) < 1400:
                    random.choice(self.rogues).send(frame[14:].hex())


@pytest.fixture
def net():
    with lan.Lan() as made:
        badlink.ip("addr", "add", f"{HERE}/24", "dev", made.bridge)
        yield made


def start_rogue(argv, addresses, tmp, environ):
    """A user in a namespace of his own, with an IOC of his own, so that packets are read there."""
    port = loopback.take_port()
    (tmp / "rogue.db").write_text('record(ao, "$(P)AO") {}\n')
    add = "; ".join(f"ip addr add {a}/32 dev lo" for a in addresses)
    ioc = f"{paths.BASE_BIN}/softIoc -S -m P=R{os.getpid()}: -d {tmp}/rogue.db"
    environ = {**loopback.server(port, IOC=OURS.replace("*", "rogue")), **environ}
    return Process(["unshare", "-Urnpf", "--kill-child", "sh", "-c", f"ip link set lo up; {add}; {ioc} <&- & exec {argv}"], environ)


@soak
def test_hostile_packets(tmp_path, net, module_monitor):
    log = PutLog(tmp_path / "puts.json")
    ioc = FarIoc(tmp_path, net, end=net.hosts[0], db=db.READY + "".join(db.record("ao", f"AO{i}") for i in range(3))).start()
    port = loopback.take_port()
    server = there(net.hosts[1], [sys.executable, "-u", "-m", "tests.programs.raw_server", net.address(net.hosts[1]), str(port)],
                   {**os.environ, "IOC": OURS.replace("*", "raw")})
    server.wait_line("listens")
    monitor = module_monitor(before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    pvs = [ioc.prefix + f"AO{i}" for i in range(3)] + [f"S{os.getpid()}:AO"]
    at = [(ioc.address, str(ioc.port)), (net.address(net.hosts[1]), str(port))]
    ways = [lambda argv: Process(argv, dict(os.environ)), *(lambda argv, end=end: there(end, argv) for end in net.hosts[1:]),
            lambda argv: there(net.hosts[2], argv)]
    clients = [Real(i, way, at[i == 3], pv) for i, (way, pv) in enumerate(zip(ways, pvs))]
    addresses = [HERE, *map(net.address, net.hosts)]
    targets = json.dumps([[[ioc.address, ioc.port, pvs[0]], [ioc.address, ioc.port, pvs[1]], [at[1][0], port, pvs[3]]],
                          [*addresses, "192.0.2.77"]])
    program = [sys.executable, "-u", "-m", "tests.programs.hostile_packets"]
    seed = os.environ.get("HOSTILE_SEED") or str(random.SystemRandom().randrange(1 << 32))
    hostile = [there(net.hosts[2], [*program, "eth0", mac(end), seed, "0", targets]) for end in net.hosts[:2]]
    words = " ".join([*program, "lo", "00:00:00:00:00:00", seed, "1", "'" + targets + "'"]).replace(sys.executable, f"'{sys.executable}'")
    hostile.append(start_rogue(words, addresses, tmp_path, {"PYTHONPATH": str(paths.TOP)}))
    sniffer = Sniffer([net.bridge + "a", net.bridge + "b"], hostile)
    try:
        for thread in [*clients, sniffer]:
            thread.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not [c.error for c in clients if c.error]:
            time.sleep(0.5)  # the time is what is asked for
        for thread in [*clients, sniffer]:
            thread.ends.set()
            thread.join(60)
        for process in hostile:
            process.end_input()
            process.wait_line("done")
        sent = [p.lines[-1] for p in hostile]
        time.sleep(LATE)  # nothing tells that nothing more comes
        assert not [c.error for c in clients if c.error]
        judge(log.all(), clients, pvs, f"HOSTILE_SEED={seed}, {sent}, {monitor.losses()}")
        assert monitor.get("STATE", as_string=True) in ("Running", "Degraded"), monitor.text("STATE_MSG")
        print(f"HOSTILE_SEED={seed}: {sum(len(c.made) for c in clients)} real puts, hostile packets: {sent}, {monitor.losses()}")
    finally:
        for process in [*hostile, server]:
            process.kill()
        ioc.discard()


def judge(lines, clients, pvs, what):
    """Of the IOC each put must be right. Of the server without Base only packets tell, and a flood of them may hide the name of a
    channel, a reply or a put, as the counts of losses say: in a long run one in a thousand at most."""
    made = {float(v): (c, pid) for c in clients for v, pid in c.made.items()}
    few = len(clients[3].made) // 1000 if SECONDS > 60 else 0
    seen, wrong = {}, []
    for o in lines:
        value, own = float(o["value"]) if o["pv"] in pvs else None, None
        if few and "raw" in o["ioc"] and (o["pv"].startswith("sid ") or o["result"] == "unknown"):
            hidden = float(o["value"])
            if hidden in made and hidden not in seen and o.get("real_user", clients[3].user.pw_name) == clients[3].user.pw_name:
                few, seen[hidden] = few - 1, o
                continue
        if value in made:
            own, pid = made[value]
        if not own or own.pv != o["pv"] or value in seen or o["result"] != "ok":
            wrong.append(("not made, or again", o))
        elif "who_sure" not in o and (o.get("real_user", own.user.pw_name), o.get("pid", str(pid))) != (own.user.pw_name, str(pid)):
            wrong.append((f"made by {own.user.pw_name} {pid}", o))
        seen[value] = o
    missing = sorted(set(made) - set(seen))
    if sum(made[v][0] is clients[3] for v in missing) <= few:
        missing = [v for v in missing if made[v][0] is not clients[3]]
    assert not wrong and not missing, \
        f"{what}: {len(wrong)} wrong, {len(missing)} missing of {len(made)}: {wrong[:8]}, {missing[:20]}"
    assert all(any("real_user" in o for v, o in seen.items() if made[v][0] is c) for c in clients)
