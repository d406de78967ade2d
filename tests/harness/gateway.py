# SPDX-License-Identifier: BSD-3-Clause
"""Gateways of pvAccess (pvagw of p4p) on the loopback interface, and programs that put through them as other users."""
import json
import os
import pwd
import sys
from pathlib import Path

from . import loopback, paths, rawca
from .process import Process
from .wait import until

# Loads the libraries as root, because the user may have no right to read them, and connects as the user. Each line of its stdin
# is a JSON list of puts [PV, VALUE] that are made at once (value null: a get, which makes the connection); it answers with a line
# when all are done.
CLIENT = """
import json, os, sys
from p4p.client.thread import Context
uid, port = int(sys.argv[1]), int(sys.argv[2])
os.setgid(uid)
os.setuid(uid)
context = Context("pva", conf={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{port + 2000}", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)
print("ready", flush=True)
for line in sys.stdin:
    puts = json.loads(line)
    if puts[0][1] is None:
        context.get([p for p, _ in puts], timeout=10)
        print("done", flush=True)
        continue
    errors = context.put([p for p, _ in puts], [v for _, v in puts], timeout=10, throw=False, get=False)
    print("done", *(e for e in errors if e is not None), flush=True)
"""


class Server:
    """A gateway that runs at "port". "more": as in loopback.server."""

    def __init__(self, argv, tmp, port, more=1000):
        self.port, self.tcp = port, port + more
        self.process = Process(argv, loopback.server(port, IOC=f"ioc{os.getpid()}xgate{port}"), cwd=tmp)

    @property
    def pid(self):
        return self.process.pid

    def unread(self):
        """The number of its clients whose bytes it has not read."""
        end = f":{self.tcp:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(r[1].endswith(end) and int(r[4].split(":")[1], 16) > 0 for r in rows)

    def discard(self):
        self.process.kill()
        loopback.give_port(self.port)


class Proxy(Server):
    """tests/programs/proxy.py."""

    def __init__(self, tmp, kind, upstream, *names):
        super().__init__([sys.executable, "-u", paths.PROGRAMS / "proxy.py", kind, upstream, *names], tmp, loopback.take_port(),
                         1000 if kind == "p4p" else 0)
        if kind == "p4p":
            self.process.wait_line("ready")
        else:
            until(lambda: rawca.answers(self.port, names[0]), 20, self.process.output)


class CaGateway(Server):
    """ca-gateway in front of the server at port "upstream", which has the PV "name"; "begin": clients write it before each name."""

    def __init__(self, tmp, upstream, name, begin=""):
        port = loopback.take_port()
        pvlist, access = tmp / f"gateway{port}.pvlist", tmp / f"gateway{port}.access"
        names = rf"{begin}\(.*\) ALIAS \1" if begin else ".* ALLOW"
        pvlist.write_text(f"EVALUATION ORDER ALLOW, DENY\n{names} DEFAULT 1\n")
        access.write_text("ASG(DEFAULT) { RULE(1,READ) RULE(1,WRITE) }\n")
        super().__init__([paths.CA_GATEWAY, "-sip", "127.0.0.1", "-sport", port, "-cip", f"127.0.0.1:{upstream}", "-cport", upstream,
                          "-home", tmp, "-pvlist", pvlist, "-access", access], tmp, port, 0)
        until(lambda: rawca.answers(port, begin + name), 20, self.process.output)


class Gateway(Server):
    """pvagw in front of the server at port "upstream". "pvlist", "access": texts of these files of its server."""

    def __init__(self, tmp, upstream, **files):
        port = loopback.take_port()
        conf = {"version": 2, "readOnly": False,
                "clients": [{"name": "inner", "provider": "pva", "addrlist": "127.0.0.1", "autoaddrlist": False,
                             "bcastport": upstream + 2000, "serverport": upstream + 1000}],
                "servers": [{"name": "outer", "clients": ["inner"], "interface": ["127.0.0.1"], "addrlist": "127.0.0.1",
                             "autoaddrlist": False, "serverport": port + 1000, "bcastport": port + 2000}]}
        for key, text in files.items():
            file = tmp / f"gateway{port}.{key}"
            file.write_text(text)
            conf["servers"][0][key] = str(file)
        path = tmp / f"gateway{port}.conf"
        path.write_text(json.dumps(conf))
        super().__init__([sys.executable, Path(sys.executable).parent / "pvagw", path], tmp, port)


class Person:
    """A client of this user, with one connection to the server at this port."""

    def __init__(self, user, port):
        self.user = user
        self.process = Process([sys.executable, "-u", "-c", CLIENT, pwd.getpwnam(user).pw_uid, port], loopback.environment())
        self.process.wait_line("ready")
        self.sent = 0

    def send(self, *puts):
        self.sent += 1
        self.process.send(json.dumps(puts))

    def connect(self, *names):
        self.send(*((name, None) for name in names))
        self.wait()

    def wait(self, seconds=15):
        """Waits until all is done. Returns the answers of the server that were no success."""
        done = lambda: [line for line in self.process.lines if line.startswith("done")]  # noqa: E731
        until(lambda: len(done()) >= self.sent, seconds, self.process.output)
        return [line[5:] for line in done() if len(line) > 4]

    def discard(self):
        self.process.kill()
