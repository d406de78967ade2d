# SPDX-License-Identifier: BSD-3-Clause
"""The processes of the demo: they start on free ports of the loopback interface, and all of them end with the demo."""
import ctypes
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, rawca
from tests.harness.paths import BASE_BIN, MONITOR
from tests.harness.process import Process

PR_SET_PDEATHSIG = 1
IOCS = BASE_BIN / "softIoc", MONITOR
_prctl = ctypes.CDLL(None).prctl


class Failed(Exception):
    """The demo must end. The text says why."""


def _end_with_parent():
    """Runs in the child: it ends when the demo ends, also by kill -9."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Stage:
    def __init__(self):
        self.machine_port, self.orbit_port, self.monitor_port = (loopback.take_port() for _ in range(3))
        self.clients = loopback.client(self.machine_port, self.orbit_port, self.monitor_port)
        self._running = []
        self.tmp = Path(tempfile.mkdtemp(prefix="ebpfMonDemo"))
        # Without a CA repeater, clients and IOCs would start one that does not end with the demo.
        self.start([BASE_BIN / "caRepeater"])

    def start(self, argv, port=None, cwd=None, on_line=None, **more):
        """Starts a process: a server at this port, or a client. "on_line" is called with each line that it prints."""
        environ = {**(loopback.server(port) if port else {}), **self.clients, **more}
        process = Process(argv, environ, cwd, on_line, start_new_session=True, preexec_fn=_end_with_parent)
        self._running.append(process)
        return process

    def run(self, program, *args):
        """Runs a client program that ends by itself. Returns what it printed."""
        done = subprocess.run([BASE_BIN / program, *map(str, args)], env=self.clients, text=True, timeout=15,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True, check=False)
        return done.stdout.strip()

    def wait_for(self, process, port, name, what, seconds=20):
        end = time.monotonic() + seconds
        while not rawca.answers(port, name):
            if not process.running or time.monotonic() > end:
                raise Failed(f"{what} did not start:\n{process.output(15)}")
            time.sleep(0.02)

    def close(self):
        """Ends all processes, the last one first: IOCs by closing their shell, others by a signal."""
        for process in reversed(self._running):
            if process.running and process.argv[0] not in map(str, IOCS):
                process.signal(signal.SIGTERM)
            process.close(10)
        self._running.clear()
        shutil.rmtree(self.tmp)
