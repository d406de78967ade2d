# SPDX-License-Identifier: BSD-3-Clause
"""Situations that a shift has to see (LIGHTS of tests/harness/tables.py), made with real IOCs, one after the other: the alarm is in this
PV, the light of the host says why, after how many seconds, and how long after the end is it gone? If all were made, their seconds go
into the table of documentation/use/operator.md. Some four minutes; run make first, as root.

    tools/whyTrial.sh -l [WORD...]      only situations whose title has one of these words
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.harness import netns, loopback

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import ca, db, paths, process, rawca, tables  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.wait import until  # noqa: E402

SMALL, LARGE = "8m", "64m"
HANG = 25  # seconds
SEVERITY = ("NO_ALARM", "MINOR", "MAJOR", "INVALID")


class Shift:
    def __init__(self, tmp):
        self.tmp, self.disk, self.log = tmp, tmp / "disk", tmp / "log"
        for disk in (self.disk, self.log):
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=755", "tmpfs", disk], check=True)
        self.slow = Ioc(tmp, files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=1000", realtime=True).start()
        self.ioc = Ioc(tmp, db.READY + db.record("ao", "SET") + db.record("ao", "SHUT") + db.counter("TICK", SCAN="1 second"), realtime=True).start()
        rules = tmp / "rules.json"
        rules.write_text(json.dumps({"rules": [{"name": "closed", "pv": self.ioc.prefix + "SHUT", "allow": False}]}))
        self.monitor = Monitor(tmp, before=["ebpfMonConfigure 0 0 64 0 64", f'ebpfMonRules "{rules}"',
                                            f'ebpfMonHistoryKeep "{self.disk}/history.sqlite" 64 30',
                                            f'ebpfMonJsonLog "{self.log}/puts.json" 100']).start()
        for ioc in (self.ioc, self.slow):
            self.monitor.wait_ioc(ioc)
        self.slow.put("SLEEP.SCAN", ".1 second")
        self.ended = threading.Event()
        self.thread = None

    def severity(self, name):
        return SEVERITY[int(self.monitor.get(f"{name}.SEVR"))]

    # each begins, returns what ends it

    def unexpected(self):
        self.ioc.put("SHUT", 1)
        return lambda: self.monitor.put("PUT_BAD_ACK", 1)

    def late(self, us):
        self.slow.put("SLEEP:BUSY.A", us)
        return lambda: self.slow.put("SLEEP:BUSY.A", 1000)

    def hang(self):
        self.slow.put("HOLD:BUSY.SNAM", "sleepFor")
        self.slow.put("HOLD:BUSY.A", HANG * 1e6)
        self.slow.put("HOLD.SCAN", "1 second", wait=False)
        return lambda: self.slow.put("HOLD.SCAN", "Passive", wait=False)  # it comes when the record ends

    def frozen(self):
        os.kill(self.ioc.pid, signal.SIGSTOP)
        return lambda: os.kill(self.ioc.pid, signal.SIGCONT)

    def died(self):
        os.kill(self.ioc.pid, signal.SIGSEGV)

        def back():
            self.ioc.process.close()
            self.ioc.start(wait=False)
        return back

    def two(self):
        os.kill(self.slow.pid, signal.SIGSTOP)
        back = self.died()

        def end():
            os.kill(self.slow.pid, signal.SIGCONT)
            back()
        return end

    def storm(self):
        self.ended.clear()

        def flood():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.connect(("127.0.0.1", self.ioc.port))
                while not self.ended.wait(0.012):  # more than 10 ms, else they are copies of one search
                    s.send(rawca.search("NOT:THERE"))
        self.thread = threading.Thread(target=flood, daemon=True)
        self.thread.start()
        return self.ended.set

    def losses(self):
        put = ca.pv(self.ioc.prefix + "SET")
        self.monitor.process.halt()
        for i in range(3000):
            put.put(i)
        self.ioc.put("SET", 3000)
        self.monitor.process.go_on()
        return lambda: None

    def full(self, disk, name, wanted):
        """Somebody fills the disk; the history or the log grow until they do not fit."""
        put = ca.pv(self.ioc.prefix + "SET")
        with (disk / "somebody").open("wb", buffering=0) as other, contextlib.suppress(OSError):
            while True:
                other.write(bytes(4096))
        at = time.monotonic()
        for i in range(60000):
            put.put(i)
            if i % 500 == 0:
                put.get(use_monitor=False)
                if self.severity(name) == wanted or time.monotonic() - at > 30:
                    break

        def end():
            (disk / "somebody").unlink()
            subprocess.run(["mount", "-o", f"remount,size={LARGE}", disk], check=True)
            if disk == self.log:
                until(lambda: self.monitor.get("LOG_STATE") == 1, 20, "the log goes on")
                self.monitor.put("LOST_RESET", 1)
        return end

    def text(self):
        """What the light of the host says, without what differs from run to run."""
        text = self.monitor.text("HOST_STATUS_MSG")
        for made, told in ((self.ioc.name, "vac"), (self.slow.name, "ring"), (self.ioc.prefix, "VAC:"), (self.slow.prefix, "RING:"),
                           (f"{self.tmp}/", "/")):
            text = text.replace(made, told)
        return text

    def situation(self, title, begin):
        """Makes one. Returns after how many seconds it was seen and gone."""
        name, wanted, _, says = tables.LIGHTS[title]
        until(lambda: self.severity(name) == "NO_ALARM" and self.severity("HOST_STATUS") == "NO_ALARM", 120,
              lambda: f"quiet before {title}: {name} {self.severity(name)}, {self.text()}")
        at = time.monotonic()
        end = begin()
        until(lambda: self.severity(name) == wanted, 40, lambda: f"{title}: {name} {self.severity(name)}")
        until(lambda: without_numbers(says) in without_numbers(self.text()), 10, lambda: f"{title}: {self.text()}")
        seen, text = time.monotonic() - at, self.text()
        end()
        at = at + HANG if name == "HANG_CNT" else time.monotonic()
        until(lambda: self.severity(name) == "NO_ALARM", 120, lambda: f"after {title}: {name} {self.severity(name)}")
        gone = time.monotonic() - at
        print(f"{title}: {name} {wanted} after {seen:.0f} s, gone after {gone:.0f} s: {text}", flush=True)
        return {"seen": round(seen), "gone": round(gone), "date": tables.today()}

    def run(self, words):
        begins = [self.unexpected, lambda: self.late(120e3), lambda: self.late(300e3), self.hang, self.frozen, self.died, self.two, self.storm,
                  self.losses, lambda: self.full(self.disk, "HISTORY_STATE", "MAJOR"), lambda: self.full(self.log, "LOG_LOST_CNT", "MAJOR")]
        found = {title: self.situation(title, begin) for title, begin in zip(tables.LIGHTS, begins, strict=True)
                 if not words or any(word in title for word in words)}
        if not words:
            tables.record("lights", found)


def without_numbers(text):
    return re.sub(r"\d[\d.:]*", "N", text)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        try:
            shift = Shift(Path(tmp))
            shift.run(sys.argv[1:])
        finally:
            for p in list(process.alive):
                p.kill()
            for disk in ("disk", "log"):
                subprocess.run(["umount", "-l", Path(tmp) / disk], stderr=subprocess.DEVNULL)


main()
