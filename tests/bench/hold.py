# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long each of our programs holds a thread of a real-time priority: the longest time, not the mean.

A SCHED_FIFO thread of a softIoc (holdThread.c) sleeps, then processes a chain, puts, or has a scan list scanned, again and
again. After each time the kernel's own statistics of each program (BPF_STATS_RUN_TIME) tell how often it ran, and how
long. The table has quantiles of single runs, by program and by what the thread did, at the default level; and how long
the thread was busy in all, traps included, with the monitor and without it. The longer a thread is busy, the more often the
host interrupts it. So there is a third row: not watched, but the thread spins until it took as long as the median of when it is
watched.

    python -m tests.bench.hold [--times N]
"""
import argparse
import ctypes
import mmap
import os
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.harness import db, loopback, paths
from tests.harness.ioc import Ioc
from tests.harness.monitor import Monitor

ORDER = struct.Struct("5Q")  # struct order of holdThread.c
LENGTHS = 1, 12, 100         # records of the chains 0, 1, 2
WHAT = [f"chain of {n}" for n in LENGTHS] + ["put, with a chain of 2", "scan list of 12 records"]
QUANTILES = 0.5, 0.99, 0.9999
SYS_BPF, GET_NEXT, FD_BY_ID, INFO_BY_FD, ENABLE_STATS = 321, 11, 13, 15, 32  # asm/unistd_64.h, enum bpf_cmd
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    buf = ctypes.create_string_buffer(attr, 128)
    got = LIBC.syscall(SYS_BPF, command, buf, 128)
    return got, buf.raw


class Programs:
    """The loaded programs of the monitor: how often each ran, and for how long."""
    INFO, NAME, RUNS = 232, 64, 192  # size of struct bpf_prog_info; places of name, and of run_time_ns and run_cnt

    def __init__(self):
        self.fds = {}
        at = 0
        while True:
            status, raw = bpf(GET_NEXT, struct.pack("II", at, 0))
            if status:
                break
            at, = struct.unpack_from("I", raw, 4)
            fd, _ = bpf(FD_BY_ID, struct.pack("I", at))
            name = self._info(fd)[self.NAME:self.NAME + 16].split(b"\0")[0].decode() if fd >= 0 else ""
            if name.startswith("ebpfmon_") and not name.startswith("ebpfmon_query"):
                self.fds[fd] = name
            elif fd >= 0:
                os.close(fd)

    def _info(self, fd):
        info = ctypes.create_string_buffer(self.INFO)
        bpf(INFO_BY_FD, struct.pack("IIQ", fd, self.INFO, ctypes.addressof(info)))
        return info.raw

    def read(self):
        return {name: struct.unpack_from("QQ", self._info(fd), self.RUNS) for fd, name in self.fds.items()}


def quantile(values, q):
    return values[min(int(len(values) * q), len(values) - 1)]


def database():
    text = db.READY + 'record(ao, "H:PUT") { field(FLNK, "H:P1") }\nrecord(calc, "H:P1") { field(CALC, "VAL+1") }\n'
    for i, n in enumerate(LENGTHS):
        names = [f"H:ROOT{i}"] + [f"H:C{i}:{k}" for k in range(1, n)]
        for k, name in enumerate(names):
            flnk = f' field(FLNK, "{names[k + 1]}")' if k + 1 < n else ""
            text += f'record(calc, "{name}") {{ field(CALC, "VAL+1"){flnk} }}\n'
    for k in range(12):
        text += f'record(calc, "H:E{k}") {{ field(SCAN, "Event") field(EVNT, "h") field(CALC, "VAL+1") }}\n'
    return text


def build(folder):
    base = paths.BASE / "include"
    to = Path(folder) / "holdThread.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-w", f"-I{base}", f"-I{base}/os/Linux", f"-I{base}/compiler/gcc",
                    "-o", to, paths.TESTS / "bench" / "holdThread.c"], check=True)
    return to


class Thread:
    """The thread of the IOC, and what it is told."""

    def __init__(self, path):
        self.map = mmap.mmap(os.open(path, os.O_RDWR), ORDER.size)
        self.number = 0

    def do(self, what, least):
        """Returns the ns that it took. If it takes less than "least", it spins until then."""
        self.number += 1
        struct.pack_into("Q", self.map, 16, what)
        struct.pack_into("Q", self.map, 32, least)
        struct.pack_into("Q", self.map, 0, self.number)
        deadline = time.monotonic() + 10
        while struct.unpack_from("Q", self.map, 8)[0] != self.number:
            assert time.monotonic() < deadline, "the thread does not answer"
        return struct.unpack_from("Q", self.map, 24)[0]


def measure(thread, times, programs=None, least=None):
    """what → (sorted ns of the thread, program → sorted ns of its runs). "least": what → ns."""
    found = {}
    for what, text in enumerate(WHAT):
        took, runs = [], defaultdict(list)
        before = programs.read() if programs else {}
        for _ in range(times):
            took.append(thread.do(what, least[text] if least else 0))
            if not programs:
                continue
            after = programs.read()
            for name, (ns, n) in after.items():
                more = n - before[name][1]
                if more:
                    runs[name] += [(ns - before[name][0]) / more] * more
            before = after
        found[text] = sorted(took), {name: sorted(ns) for name, ns in runs.items()}
    return found


def row(cells):
    print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=20000)
    args = parser.parse_args()
    loopback.use()
    with tempfile.TemporaryDirectory() as folder:
        order = Path(folder) / "order"
        order.write_bytes(bytes(ORDER.size))
        ioc = Ioc(Path(folder), database(), prefix="", environ={"LD_PRELOAD": str(build(folder)), "HOLD_FILE": str(order)}).start()
        thread = Thread(order)
        alone = measure(thread, args.times)
        monitor = Monitor(Path(folder)).start().at_level("chains", ioc)
        stats, _ = bpf(ENABLE_STATS, struct.pack("I", 0))
        assert stats >= 0, "the kernel does not measure programs (bpf_stats)"
        watched = measure(thread, args.times, Programs())
        os.close(stats)
        plain = measure(thread, args.times)
        monitor.stop()
        spun = measure(thread, args.times, least={what: quantile(took, 0.5) for what, (took, _) in plain.items()})
        ioc.stop()
    row(["the thread does", "", *(f"{100 * q:g} %" for q in QUANTILES), "longest"])
    row(["---"] * 2 + ["---:"] * (len(QUANTILES) + 1))
    for what in WHAT:
        for name, took in (("not watched", alone[what][0]), ("not watched, as long", spun[what][0]), ("watched", plain[what][0])):
            row([what, name, *(f"{quantile(took, q) / 1e3:.1f}" for q in QUANTILES), f"{took[-1] / 1e3:.1f}"])
    print()
    row(["the thread does", "program", "runs", *(f"{100 * q:g} %" for q in QUANTILES), "longest"])
    row(["---"] * 2 + ["---:"] * (len(QUANTILES) + 2))
    for what in WHAT:
        for name, ns in sorted(watched[what][1].items(), key=lambda item: -quantile(item[1], QUANTILES[-1])):
            if len(ns) >= args.times / 2:
                row([what, f"`{name}`", str(len(ns)), *(f"{quantile(ns, q) / 1e3:.1f}" for q in QUANTILES), f"{ns[-1] / 1e3:.1f}"])
    print("\nAll times in µs. The kernel writes 16 letters of a program's name.")


if __name__ == "__main__":
    main()
