# SPDX-License-Identifier: BSD-3-Clause
"""Situations that a shift has to see, made with real IOCs, one after the other: in which PV is the alarm, after how many seconds, with
which words in the light of the host, and how long after the end is it gone? Prints the table of documentation/use/operator.md. Some five
minutes; run make first, as root.

    tools/whyTrial.sh -l [WORD...]      only situations whose title has one of these words
"""
import contextlib
import json
import os
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

from tests.harness import ca, db, paths, process, rawca  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.wait import until  # noqa: E402

SMALL, LARGE = "8m", "64m"
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
        self.slow.put("HOLD:BUSY.A", 25e6)
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

    def run(self):
        situations = [
            ("an unexpected put", "PUT_BAD_LAST", "MAJOR", self.unexpected),
            ("a scan of 0.1 s takes 0.12 s", "SCAN_LATE_NOW", "MINOR", lambda: self.late(120e3)),
            ("… takes 0.3 s", "SCAN_LATE_NOW", "MAJOR", lambda: self.late(300e3)),
            ("a record hangs for 25 s", "HANG_CNT", "MAJOR", self.hang),
            ("an idle IOC is stopped (SIGSTOP)", "IOC_STILL_CNT", "MAJOR", self.frozen),
            ("an IOC dies (signal 11)", "IOC_GONE_CNT", "MAJOR", self.died),
            ("… while another one is stopped", "IOC_STILL_CNT", "MAJOR", self.two),
            ("80 searches a second for a dead PV", "UNFOUND_RATE", "MINOR", self.storm),
            ("events and packets are lost", "LOST_CNT", "MINOR", self.losses),
            ("the disk of the history is full", "HISTORY_STATE", "MAJOR", lambda: self.full(self.disk, "HISTORY_STATE", "MAJOR")),
            ("the disk of a put log is full", "LOG_LOST_CNT", "MAJOR", lambda: self.full(self.log, "LOG_LOST_CNT", "MAJOR")),
        ]
        print("| situation | PV | seen after | the light of the host says | gone after |\n|---|---|---:|---|---:|")
        for title, name, wanted, begin in situations:
            if sys.argv[1:] and not any(word in title for word in sys.argv[1:]):
                continue
            until(lambda: self.severity(name) == "NO_ALARM" and self.severity("HOST_STATUS") == "NO_ALARM", 120,
                  lambda: f"quiet before {title}: {name} {self.severity(name)}, {self.monitor.text('HOST_STATUS_MSG')}")
            at = time.monotonic()
            end = begin()
            until(lambda: self.severity(name) == wanted, 40, lambda: f"{title}: {name} {self.severity(name)}")
            seen = time.monotonic() - at
            time.sleep(2)  # the light of the host is made once a second
            text = self.monitor.text("HOST_STATUS_MSG") if self.severity("HOST_STATUS") != "NO_ALARM" else "–"
            if name == "HANG_CNT":
                at += 25
            end()
            at = max(at, time.monotonic()) if name != "HANG_CNT" else at
            until(lambda: self.severity(name) == "NO_ALARM", 120, lambda: f"after {title}: {name} {self.severity(name)}")
            gone = time.monotonic() - at
            for made, told in ((self.ioc.name, "vac"), (self.slow.name, "ring"), (self.ioc.prefix, "VAC:"), (self.slow.prefix, "RING:"),
                               (f"{self.tmp}/", "/")):
                text = text.replace(made, told)
            print(f"| {title} | `{name}` | {seen:.0f} s | {text} | {gone:.0f} s |", flush=True)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        shift = None
        try:
            shift = Shift(Path(tmp))
            shift.run()
        finally:
            for p in list(process.alive):
                p.kill()
            for disk in ("disk", "log"):
                subprocess.run(["umount", "-l", Path(tmp) / disk], stderr=subprocess.DEVNULL)


main()
