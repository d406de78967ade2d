# SPDX-License-Identifier: BSD-3-Clause
"""Runs the monitor as a service manager does: with its unit file, its user and capabilities, and a socket for its
messages to the manager (sd_notify(3)). The machine of the tests need not have systemd."""
import configparser
import ctypes
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from . import loopback, paths, rawca
from .monitor import Monitor
from .process import Process
from .wait import until


class Unit:
    """A unit file. A key that it has twice has a list of both values."""

    class _Values(dict):
        def __setitem__(self, key, value):
            if key in self and isinstance(value, list):
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    def __init__(self, path):
        parser = configparser.RawConfigParser(dict_type=Unit._Values, strict=False, interpolation=None)
        parser.optionxform = str
        parser.read(path)
        self._service = parser["Service"]
        self.path = path

    def get(self, key):
        return self._service.get(key, "")

    @property
    def capabilities(self):
        return self.get("AmbientCapabilities").split()


class ServiceManager:
    """Receives the messages of a service."""

    def __init__(self, folder):
        self.path = str(Path(folder) / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self._messages = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                self._messages.append(self._socket.recv(4096).decode())
            except OSError:
                return

    @property
    def messages(self):
        return list(self._messages)

    def count(self, text):
        return sum(text in m.split("\n") for m in self.messages)

    def wait(self, text, number=1, seconds=30):
        until(lambda: self.count(text) >= number, seconds, lambda: f"{number} times {text}: {self.messages}")

    def close(self):
        self._socket.close()


class HeldThread:
    """Stops a thread of another process in a system call in which it does not wait for work."""
    SEIZE, INTERRUPT, PEEKUSER, SYSCALL, DETACH = 0x4206, 0x4207, 3, 24, 17
    ORIG_RAX = 15 * 8  # struct user_regs_struct of x86-64
    # futex, restart_syscall, ppoll, clock_nanosleep, poll, epoll_wait; and read, which ends a wait for an eventfd (common/worker.c)
    WAITS = (202, 219, 271, 230, 7, 232, 0)
    WALL = 0x40000000

    def __init__(self, pid, name):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.restype = ctypes.c_long
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.tid = next(int(t) for t in os.listdir(f"/proc/{pid}/task")
                        if Path(f"/proc/{pid}/task/{t}/comm").read_text().strip() == name[:15])
        self._ptrace(self.SEIZE)
        self._ptrace(self.INTERRUPT)
        os.waitpid(self.tid, self.WALL)
        while True:  # from one system call to the next
            self._ptrace(self.SYSCALL)
            os.waitpid(self.tid, self.WALL)
            if self._ptrace(self.PEEKUSER, self.ORIG_RAX) not in self.WAITS:
                return

    def _ptrace(self, request, address=0):
        ctypes.set_errno(0)
        value = self._libc.ptrace(request, self.tid, address, 0)
        if ctypes.get_errno():
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")
        return value

    def release(self):
        self._ptrace(self.DETACH)


class Installed:
    """A host installation in a folder that everybody may read."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ebpfmon"))
        self.folder.chmod(0o755)
        self.prefix = self.folder / "usr"
        self.etc = self.folder / "etc" / "ebpfmon"
        self.said = ""

    def install(self, **environ):
        # who makes a package is not root: nothing may be written into files that are read-only
        plain = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
        run = subprocess.run([*plain, paths.TOP / "tools" / "installHost.sh"], check=True, capture_output=True, text=True,
                             env={**os.environ, "prefix": str(self.prefix), "sysconfdir": str(self.folder / "etc"), "DESTDIR": "",
                                  **{name: str(value) for name, value in environ.items()}})
        self.said = run.stdout
        return self

    @property
    def program(self):
        return self.prefix / "bin" / "ebpfMon"

    @property
    def unit(self):
        return Unit(self.prefix / "lib" / "systemd" / "system" / "ebpfmon.service")

    def remove(self):
        shutil.rmtree(self.folder)


def as_user(uid, capabilities):
    """A command that runs another one as this user, with these capabilities only."""
    names = ",".join(["-all", *("+" + c.removeprefix("CAP_").lower() for c in capabilities)])
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs", "--inh-caps", names,
            "--ambient-caps", names, "--bounding-set", names]


class Service(Monitor):
    """Runs the installed monitor as its unit says. "without": capabilities that it does not get."""

    def __init__(self, tmp, installed, without=(), watchdog=None, **more):
        super().__init__(tmp, **more)
        self.installed = installed
        self.folder = Path(tempfile.mkdtemp(prefix="ebpfmonrun"))
        self.folder.chmod(0o755)
        self.manager = ServiceManager(self.folder)
        self.uid = 600000 + os.getpid()
        self.logs = self.folder / "log"
        self.logs.mkdir(mode=0o2750)
        os.chown(self.logs, self.uid, self.uid)
        self.run = self.folder / "run"  # as the unit has it
        self.run.mkdir(mode=0o750)
        os.chown(self.run, self.uid, self.uid)
        self.site = self.folder / "test.cmd"  # what this test has in site.cmd
        self.site.write_text("\n".join([*self.before, self.filter, ""]))
        self.without = without
        self.watchdog = watchdog

    @property
    def command_line(self):
        unit = self.installed.unit
        return [*as_user(self.uid, [c for c in unit.capabilities if c not in self.without]), *unit.get("ExecStart").split()]

    def launch(self, wrap=()):
        env = loopback.server(self.port, EBPFMON_P=self.prefix, IOC=self.name, NOTIFY_SOCKET=self.manager.path,
                              LOGS_DIRECTORY=self.logs, RUNTIME_DIRECTORY=self.run, TEST_SITE=self.site, **self.environ)
        if self.watchdog:
            env["WATCHDOG_USEC"] = str(int(self.watchdog * 1e6))
        self.process = Process([*wrap, *self.command_line], env=env, cwd="/")
        self.process._popen.stdin.close()  # as /dev/null: at its end at once
        until(lambda: rawca.answers(self.port, self.prefix + "STATE") or not self.process.running, 30,
              lambda: f"the service started\n{self.process.output()}")
        assert self.process.running, f"the service ended\n{self.process.output()}"
        return self

    def reload(self):
        """Reloads the service as "systemctl reload" does."""
        command = self.installed.unit.get("ExecReload").replace("$MAINPID", str(self.process.pid))
        subprocess.run(command.split(), check=True)

    def stop(self):
        """Stops the service as "systemctl stop" does. Returns the exit status."""
        if self.process and self.process.running:
            self.process.signal(15)
            return self.process.wait(30)
        return self.process and self.process.returncode

    def discard(self):
        super().discard()
        self.manager.close()
        shutil.rmtree(self.folder)


def capability_set(pid, which="CapEff"):
    number = int(re.search(rf"(?m)^{which}:\s*(\w+)", Path(f"/proc/{pid}/status").read_text()).group(1), 16)
    return {bit for bit in range(64) if number >> bit & 1}
