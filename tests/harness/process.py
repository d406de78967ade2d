# SPDX-License-Identifier: BSD-3-Clause
"""A child process. Its output is kept, commands can be typed into its shell, and it always ends with the tests."""
import collections
import concurrent.futures
import ctypes
import itertools
import os
import signal
import subprocess
import threading
import time
import warnings

from . import kernel
from .wait import Late, patient, until

alive = set()  # processes that run; conftest.py ends those that tests have left

PR_CAPBSET_DROP, CAP_IPC_LOCK = 24, 14  # linux/prctl.h, linux/capability.h

# A thread without the right to lock memory: the processes that it starts have none either, also as root. An IOC of Base that may
# do so locks all its memory, and the kernel clears 80 MB for it: half of the CPU time of its start.
_unlocked = concurrent.futures.ThreadPoolExecutor(1, "unlocked", ctypes.CDLL(None).prctl, (PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0))
_unlocked.submit(int).result()  # it begins now, in the network namespace of this process


class Process:
    def __init__(self, argv, env, cwd=None, on_line=None, may_lock=True, **popen):
        """"on_line" is called with each line of the output, in a thread of its own. "may_lock": it may lock its memory."""
        self.argv = [str(a) for a in argv]
        self._lines = collections.deque(maxlen=20000)
        self._count = 0  # of all lines so far
        self._ends = {}  # a line that has this text → an event, which it sets
        self._on_line = on_line
        self._last = time.monotonic()
        self._marks = 0
        self._new = collections.deque(maxlen=20000)  # lines that wait_line() has not read
        self._came = threading.Condition()
        how = {"env": env, "cwd": cwd, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT,
               "text": True, "errors": "replace", "bufsize": 1, **popen}
        self._popen = subprocess.Popen(self.argv, **how) if may_lock else _unlocked.submit(subprocess.Popen, self.argv, **how).result()
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        alive.add(self)

    def _read(self):
        for line in self._popen.stdout:
            line = line.rstrip("\n")
            self._last = time.monotonic()
            with self._came:
                self._lines.append(line)
                self._count += 1
                self._new.append(line)
                self._came.notify_all()
            for end, done in list(self._ends.items()):
                if end in line and "echo" not in line:
                    done.set()
            if self._on_line:
                self._on_line(line)
        with self._came:
            self._new.append(None)
            self._came.notify_all()
        for done in list(self._ends.values()):
            done.set()  # nothing more will come

    @property
    def lines(self):
        """The output so far, at most 20000 lines: a copy, because the reading thread goes on."""
        with self._came:
            return list(self._lines)

    @property
    def returncode(self):
        return self._popen.poll()

    @property
    def running(self):
        return self._popen.poll() is None

    def silent(self):
        """Seconds since its last line."""
        return time.monotonic() - self._last

    def output(self, last=40):
        return "\n".join(self.lines[-last:])

    def wait_line(self, begin, seconds=30):
        """Waits for the next line that begins with this text. Returns the line."""
        end = time.monotonic() + patient(seconds)
        while True:
            with self._came:
                if not self._came.wait_for(lambda: self._new, max(0, end - time.monotonic())):
                    raise Late(f"no line {begin!r} within {patient(seconds)} s\n{self.output()}")
                line = self._new.popleft()
            if line is None:
                raise Late(f"{self.argv[0]} ended before a line {begin!r}\n{self.output()}")
            if line.startswith(begin):
                return line

    def send(self, line):
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def end_input(self):
        self._popen.stdin.close()

    def command(self, line, seconds=20):
        """Types a command into the iocsh. Returns the lines that it printed."""
        self._marks += 1
        begin, end = f"<<{self.pid} {self._marks}>>", f"<<{self.pid} {self._marks} end>>"
        done = self._ends[end] = threading.Event()
        before = self._count
        self.send(f'echo "{begin}"')
        self.send(line)
        self.send(f'echo "{end}"')
        done.wait(patient(seconds))
        del self._ends[end]
        with self._came:
            lines = list(itertools.islice(reversed(self._lines), self._count - before))
        lines = [l for l in reversed(lines) if 'echo "<<' not in l]
        try:
            first = next(i for i, l in enumerate(lines) if begin in l)
            last = next(i for i, l in enumerate(lines) if end in l)
        except StopIteration:
            raise Late(f"no answer to {line!r} within {patient(seconds)} s\n{self.output()}") from None
        return lines[first + 1:last]

    def signal(self, number):
        self._popen.send_signal(number)

    def stands_still(self):
        return all(state == "T" for state in kernel.thread_states(self.pid).values())

    def halt(self):
        """SIGSTOP. Its threads stop one after the other, and serve what comes meanwhile: it returns when all have stopped."""
        self.signal(signal.SIGSTOP)
        until(self.stands_still, 10, f"all threads of {self.argv[0]} stopped")

    def go_on(self):
        self.signal(signal.SIGCONT)

    def wait(self, seconds=10):
        try:
            self._popen.wait(patient(seconds))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.argv[0]} (pid {self.pid}) did not end\n{self.output()}") from None
        self._gone()
        return self._popen.returncode

    def close(self, seconds=15):
        """Ends the process: closes its shell, and kills it if that is not enough."""
        if not self.running:
            self._gone()
            return self._popen.returncode
        try:
            self._popen.stdin.close()
        except OSError:
            pass
        try:
            self._popen.wait(patient(seconds))
        except subprocess.TimeoutExpired:
            warnings.warn(f"{self._popen.args} did not end by itself: a test waited in vain; kill() it", stacklevel=2)
            self.kill()
        self._gone()
        return self._popen.returncode

    def kill(self):
        if self.running:
            self.signal(signal.SIGKILL)
        self._popen.wait(patient(10))
        self._gone()

    def _gone(self):
        alive.discard(self)
        self._reader.join(5)

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
