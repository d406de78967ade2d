# SPDX-License-Identifier: BSD-3-Clause
"""IOCs to watch. They have no part of ebpfMon."""
import itertools
import os
import signal
import sys

from . import ca, loopback, paths, rawca
from .process import Process
from .wait import until

_serial = itertools.count(1)
OURS = f"ioc{os.getpid()}x*"  # pattern for the names of all IOCs of this process

# A command in front of an IOC, after which Base gives its threads no real-time priorities, as if an ordinary user had started
# it. As root, a thread of an IOC that has much to do would keep all other programs from a CPU: two such IOCs stop a host
# with two CPUs, for as long as they run. So IOCs with endless work get none (realtime=False).
NO_REALTIME = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]


class Ioc:
    """An IOC of one of several kinds. start() starts it and waits until it answers a search for its record READY."""

    def __init__(self, tmp, db=None, kind="softIoc", name=None, prefix=None, acf=None, macros="", files=(),
                 environ=None, program=None, wrap=(), realtime=True, may_lock=False):
        n = next(_serial)
        self.kind = kind
        self.name = name or f"ioc{os.getpid()}x{n}"
        self.prefix = prefix if prefix is not None else f"T{os.getpid()}:{n}:"
        self.port = loopback.take_port()
        self.tmp = tmp
        self.files = [str(f) for f in files]
        self.macros = ",".join(filter(None, [f"P={self.prefix}", macros]))
        self.acf = str(acf) if acf else None
        self.environ = environ or {}
        self.wrap = list(wrap)  # a command in front
        self.realtime = realtime  # Base gives its threads real-time priorities, if the user may do so
        self.may_lock = may_lock  # … and then it locks its memory, if the user may do that, too
        self.program = program  # another program of this kind: a softIoc of another Base
        if db is not None:
            path = tmp / f"{self.name}.db"
            path.write_text(db)
            self.files.append(str(path))
        self.process = None

    def argv(self):
        if self.kind == "latencyIoc":
            return [self.program or paths.LATENCY_IOC, paths.LATENCY_DBD, self.macros, *self.files]
        if self.kind == "streamIoc":  # its file is a start-up script
            return [self.program or paths.STREAM_IOC, *self.files]
        if self.kind == "roadsIoc":
            acf = self.acf or paths.TESTS / "ioc" / "roads.acf"
            return [paths.ROADS_IOC, paths.ROADS_DBD, acf, self.macros, *self.files]
        if self.kind == "pythonSoftIOC":
            return [sys.executable, "-u", *self.files, self.prefix]
        if self.kind == "pvxs":
            secured = ["-c", f"from epicscorelibs import ioc; ioc.dbCore.asSetFilename(b'{self.acf}'); import runpy; "
                       "runpy.run_module('pvxslibs.ioc', run_name='__main__')"]  # it has no option for it
            return [sys.executable, *(secured if self.acf else ["-m", "pvxslibs.ioc"]), "-m", self.macros, *(a for f in self.files for a in ("-d", f))]
        argv = [self.program or paths.BASE_BIN / self.kind, "-m", self.macros]
        if self.acf:
            argv += ["-a", self.acf]
        for f in self.files:
            argv += ["-d", f]
        return argv

    def start(self, ready="READY", seconds=30, wait=True):
        self.process = Process([*([] if self.realtime else NO_REALTIME), *self.wrap, *self.argv()],
                               loopback.server(self.port, IOC=self.name, **self.environ), cwd=self.tmp, may_lock=self.may_lock)
        if wait:
            self.wait_ready(ready, seconds)
        return self

    def wait_ready(self, ready="READY", seconds=30):
        until(lambda: rawca.answers(self.port, self.prefix + ready) or not self.process.running, seconds,
              lambda: f"{self.kind} {self.name} ready\n{self.process.output()}")
        assert self.process.running, f"{self.kind} {self.name} ended\n{self.process.output()}"

    @property
    def pid(self):
        return self.process.pid

    @property
    def running(self):
        return self.process is not None and self.process.running

    def command(self, line):
        return self.process.command(line)

    def get(self, record, **how):
        return ca.get(self.prefix + record, **how)

    def put(self, record, value, **how):
        ca.put(self.prefix + record, value, **how)

    def run(self, program, *args, **kw):
        return ca.run(program, *args, port=self.port, **kw)

    def stop(self):
        if self.process:
            self.process.close()

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def discard(self):
        """Kills the process: it need not end in order, and an IOC that hangs cannot. A wrapper must be able to end its
        child."""
        if self.running and not self.wrap:
            self.kill()
        self.stop()
        if self.port:
            loopback.give_port(self.port)
            self.port = None
            if self.prefix:
                ca.forget(self.prefix)
