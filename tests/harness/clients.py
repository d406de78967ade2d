# SPDX-License-Identifier: BSD-3-Clause
"""Client programs, each with its own user. They run on from one test to the next."""
import pwd
import sys

from . import loopback, paths
from .process import Process
from .wait import until

PROGRAM = paths.PROGRAMS / "client.py"


class Client:
    def __init__(self, kind, uid, ioc, record, address=None):
        self.kind, self.record = kind, record
        self.user = pwd.getpwuid(uid).pw_name
        # The packet of a PVA client has its address. On a busy host the packet may come late; then the writer has the
        # name of this host.
        self.names = tuple(f"{self.user}@{host} " for host in (paths.HOST, "127.0.0.1")[:2 if kind == "pva" else 1])
        environ = loopback.client(ioc.port)
        environ.update(USER=self.user, LOGNAME=self.user, HOME="/")
        self.process = Process([sys.executable, PROGRAM, kind, uid, ioc.prefix + record,
                                f"{address}:{ioc.port + 1000}" if address else ioc.port + 2000], environ)
        self._done = 0

    def ready(self):
        until(lambda: "ready" in self.process.lines or not self.process.running, 20,
              lambda: f"{self.kind} client ready\n{self.process.output()}")
        assert self.process.running, self.process.output()
        return self

    def begin(self, first, count, at_once=1):
        """Starts to put first … first+count-1. Does not wait for the end."""
        self._done += 1
        self.process.send(f"{first} {count} {at_once}")

    def finish(self, seconds=30):
        until(lambda: sum(1 for l in self.process.lines if l == "done") >= self._done or not self.process.running,
              seconds, lambda: f"{self.kind} client done\n{self.process.output()}")
        assert self.process.running, self.process.output()

    def discard(self):
        self.process.close()
