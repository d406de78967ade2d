# SPDX-License-Identifier: BSD-3-Clause
"""The processes of the demo: started on free ports of the loopback interface, ended without exception."""
import collections
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import caClient

TOP = Path(__file__).resolve().parents[2]
BASE = Path(os.environ["EPICS_BASE"])
ARCH = os.environ.get("EPICS_HOST_ARCH") or subprocess.check_output(
    ["perl", str(BASE / "lib/perl/EpicsHostArch.pl")], text=True).strip()
BIN = BASE / "bin" / ARCH
_prctl = ctypes.CDLL(None).prctl


class Failed(Exception):
    """The demo cannot go on; the text says why."""


def _with_us():
    """In the child: it ends when we do, even by kill -9."""
    _prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


class Stage:
    def __init__(self):
        ports = (p for p in random.sample(range(20000, 30000), 500) if _free(p))
        self.machine_port, self.monitor_port, repeater, *pva = (next(ports) for _ in range(7))
        self._running = []
        self.tmp = Path(tempfile.mkdtemp(prefix="ebpfMonDemo"))
        self._env = {k: v for k, v in os.environ.items() if not k.startswith("EPICS_")}
        self._env.update(
            EPICS_IOCSH_HISTFILE="",  # a shell with history would leave a file of it in the tree
            EPICS_CA_ADDR_LIST=f"127.0.0.1:{self.machine_port} 127.0.0.1:{self.monitor_port}",
            EPICS_CA_AUTO_ADDR_LIST="NO", EPICS_CA_REPEATER_PORT=str(repeater),
            EPICS_CAS_INTF_ADDR_LIST="127.0.0.1", EPICS_CAS_BEACON_ADDR_LIST="127.0.0.1",
            EPICS_CAS_AUTO_BEACON_ADDR_LIST="NO", EPICS_CAS_BEACON_PORT=str(repeater),
            EPICS_PVA_ADDR_LIST="127.0.0.1", EPICS_PVA_AUTO_ADDR_LIST="NO",
            EPICS_PVAS_INTF_ADDR_LIST="127.0.0.1", EPICS_PVAS_BEACON_ADDR_LIST="127.0.0.1",
            EPICS_PVAS_AUTO_BEACON_ADDR_LIST="NO", EPICS_PVA_SERVER_PORT=str(pva[0]),
            EPICS_PVA_BROADCAST_PORT=str(pva[1]), EPICS_PVAS_SERVER_PORT=str(pva[0]),
            EPICS_PVAS_BROADCAST_PORT=str(pva[1]))
        # Clients and IOCs that find no CA repeater start one that outlives them: here is one.
        self.start([BIN / "caRepeater"])

    def start(self, argv, cwd=None, keep=200, line=None, **env):
        """Starts a process. Its last lines are kept; "line" is called with each of them."""
        process = subprocess.Popen([str(a) for a in argv], cwd=cwd, env={**self._env, **env}, text=True,
                                   errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_with_us)
        process.lines = collections.deque(maxlen=keep)
        self._running.append(process)

        def read():
            for text in process.stdout:
                process.lines.append(text.rstrip("\n"))
                if line:
                    line(text.rstrip("\n"))

        threading.Thread(target=read, daemon=True).start()
        return process

    def run(self, *argv):
        """A client program that ends by itself; what it printed."""
        done = subprocess.run([str(BIN / argv[0]), *map(str, argv[1:])], env=self._env, text=True, timeout=15,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True, check=False)
        return done.stdout.strip()

    def wait_for(self, process, port, name, what, seconds=20):
        end = time.monotonic() + seconds
        while not caClient.answers(port, name):
            if process.poll() is not None or time.monotonic() > end:
                raise Failed("\n".join([f"{what} did not start:", *list(process.lines)[-15:]]))
            time.sleep(0.02)

    def close(self):
        """IOCs end with their shell, in the order opposite to the start; what does not is ended."""
        for process in reversed(self._running):
            try:
                process.stdin.close()
            except OSError:
                pass
            if not (TOP / "bin" in Path(process.args[0]).parents or "softIoc" in process.args[0]):
                process.terminate()
            for end in (process.terminate, process.kill):
                try:
                    process.wait(5)
                    break
                except subprocess.TimeoutExpired:
                    end()
            process.wait()
        self._running.clear()
        shutil.rmtree(self.tmp)
