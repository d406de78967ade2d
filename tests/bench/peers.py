# SPDX-License-Identifier: BSD-3-Clause
"""Queries beside the programs that people use for the same question, in the same run.

    calls     how often is a function called, by its argument: bpftrace
    waits     how long do threads wait for a CPU: runqlat, runqslower (of libbpf-tools), perf sched
    syscalls  which system calls, and how long: strace -c -f, perf trace -s, syscount, bpftrace

benchIoc does one thing as fast as it can, on one CPU. Each observer is started and ended in each of several rounds. The
tables have

    CPU         of the IOC for one event, the best round, and how far the median lies above it. More: than unobserved
    of all      elapsed time for one event, the best round: strace stops the IOC, which is not its CPU time
    own CPU     of the observer's processes for one event, the median; perf's work after the measurement is not in it
    counted     of all rounds: what the observer says, less the truth. The truth is the number of operations; of waits, what
                the kernel counts itself (/proc/PID/task/TID/schedstat: how often the two threads got a CPU). A uprobe of
                bpftrace counts in all processes that have this library
    start       seconds from the command to the moment when the observer sees events, the median

Then all that tell waits look at the same time at an IOC that shares its CPU with a busy process, and their counts are
printed.

A program that is not installed is left out. EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.peers [--rounds N] [--ms MILLISECONDS] [--part calls|waits|syscalls] [--only TEXT] [--markdown]
"""
import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness import paths
from tests.harness.process import Process
from tests.harness.wait import until

from .run import Bench, Level, Observer, table
from .site import cpu

NONE = "none: ebpfMon, level puts"
LENGTH = 100  # records of the chain of "calls"
OPERATION = {"calls": "process", "waits": "wake", "syscalls": "call"}
SHIPPED = paths.MONITOR_BOOT / "queries"
COUNT = {"name": "COUNT", "source": {"function": "dbProcess"}, "keys": [{"arg": 1, "as": "record"}]}
LONG = {"name": "LONG", "source": {"cpuWait": True}, "keys": ["thread"],
        "where": [{"field": "duration", "is": ">=", "value": 1000000}]}
CALLED = {"name": "CALLED", "source": {"syscalls": "entry"}, "keys": ["syscall"]}
TIMED = {"name": "TIMED", "source": {"syscalls": "duration"}, "keys": ["syscall"], "histogram": "log2"}
WAIT = r"^bench +bench(?:Ioc|Echo) +(\d+)"  # a row of CPU_WAIT
PREAD = {"x86_64": 17, "aarch64": 67}.get(platform.machine())  # number of the system call pread64
SHARED = "SYSCALLS_BY_ROOT", "CPU_WAIT", "CPU_WAIT_LONG"  # queries that come with ebpfMon
BUSY = """import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass"""


def queries():
    """All of them without a budget, because the IOC is busier than any budget allows."""
    asked = [COUNT, LONG, CALLED, TIMED]
    for path in SHIPPED.glob("*.json"):
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("//")]
        asked += [q for q in json.loads("\n".join(lines))["queries"] if q["name"] in SHARED]
    return [q | {"budget": 100} for q in asked]


class Truth:
    """What the kernel counts of the two threads of "wake": [how often they got a CPU, ns they waited for it]."""

    def __init__(self, pid):
        tasks = Path(f"/proc/{pid}/task")
        self.tids = [t.name for t in tasks.iterdir() if (t / "comm").read_text().strip() in ("benchIoc", "benchEcho")]
        self.files = [tasks / tid / "schedstat" for tid in self.tids]

    def read(self):
        waited, times = (sum(int(f.read_text().split()[i]) for f in self.files) for i in (1, 2))
        return times, waited


class Peers(Bench):
    def __init__(self, tmp):
        super().__init__(tmp, LENGTH, "chain", tuple(OPERATION.values()))
        self.truth = Truth(self.ioc.pid)
        self.cpu = max(os.sched_getaffinity(0))
        for task in os.listdir(f"/proc/{self.ioc.pid}/task"):
            os.sched_setaffinity(int(task), {self.cpu})
        self.ioc.send("cpu 1")

    def measure(self, part, observer, ms):
        """Returns a dict: ns of CPU and of all for one event, of the observer; events; the observer's count less the truth."""
        what = OPERATION[part]
        own_cpu = getattr(observer, "cpu", lambda: 0)
        before, own, begin = self.truth.read(), own_cpu(), time.monotonic_ns()
        self.ioc.send(f"{what} {ms}")
        _, ns, count = self.ioc.wait_line(f"{what} ", 120).split()
        took, own, after = time.monotonic_ns() - begin, own_cpu() - own, self.truth.read()
        operations = float(count) * {"calls": LENGTH, "waits": 2, "syscalls": 1}[part]
        truth = after[0] - before[0] if part == "waits" else operations
        return {"cpu": float(ns) * float(count) * (LENGTH if part == "calls" else 1) / operations, "all": took / operations,
                "own": own / operations, "truth": truth, "waited": after[1] - before[1]}


class Ours(Level):
    """A query, at the level at which it is usually asked."""

    def __init__(self, bench, name, level, row=None):
        """"row": an expression for the rows that are counted; its first group is their number of events."""
        super().__init__(bench, level)
        self.name, self.row, self.started = name, row and re.compile(row, re.M), 0

    def printed(self):
        return "\n".join(self.bench.monitor.command(f"ebpfMonQueryPrint {self.name}"))

    def __enter__(self):
        super().__enter__()
        begin = time.monotonic()
        self.bench.monitor.command(f"ebpfMonQueryStart {self.name}")
        self.bench.until(lambda: "looks at 1 IOC" in self.printed(), f"query {self.name} runs")
        self.started = time.monotonic() - begin

    def cpu(self):
        return cpu(self.bench.monitor.process.pid)

    def told(self, truth):
        """Waits until the last event is in the rows, or none comes any more."""
        if not self.row:
            return None
        seen = [None, -1]

        def still():
            seen[:] = seen[1], sum(float(m[1]) for m in self.row.finditer(self.printed()))
            return seen[1] >= truth or (seen[0] == seen[1] and time.monotonic() > end)

        end = time.monotonic() + 2  # twice the interval of the queries
        until(still, 10, lambda: self.printed())
        return seen[1]

    def __exit__(self, *_):
        self.bench.monitor.command(f"ebpfMonQueryStop {self.name}")
        super().__exit__()


class Peer(Observer):
    """Another program, which prints what it found when it is interrupted."""

    def __init__(self, argv, ready, count=None):
        self.argv, self.ready, self.count = [str(a) for a in argv], ready, count
        self.started, self.process = 0, None

    def __enter__(self):
        begin = time.monotonic()
        self.process = Process(["stdbuf", "-oL", *self.argv], os.environ)
        self.await_ready()
        self.started = time.monotonic() - begin

    def await_ready(self):
        self.process.wait_line(self.ready, 60)

    def cpu(self):
        return cpu(self.process.pid)

    def told(self, _):
        self.process.signal(signal.SIGINT)
        self.process.wait(60)
        return self.count("\n".join(self.process.lines)) if self.count else None

    def __exit__(self, *_):
        if self.process.running:
            self.process.kill()


class Perf(Peer):
    """perf does not say when it begins: then it has events, and sleeps. "after": a command that counts in what it recorded."""

    def __init__(self, argv, count, after=None):
        super().__init__(argv, None, count)
        self.after = after

    def await_ready(self):
        folder = Path(f"/proc/{self.process.pid}")

        def has_events():
            targets = [os.readlink(f) for f in (folder / "fd").iterdir() if f.is_symlink()]
            return any("perf_event" in t for t in targets) and (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] == "S"

        def ready():
            with contextlib.suppress(OSError):
                return has_events()
            return False

        until(lambda: ready() and ready(), 60, lambda: self.process.output())

    def told(self, truth):
        if not self.after:
            return super().told(truth)
        self.process.signal(signal.SIGINT)
        self.process.wait(60)
        done = subprocess.run(self.after, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=True, timeout=120)
        return self.count(done.stdout)


def sum_of(pattern):
    """Counts in a text: adds the first groups of all lines that match."""
    found = re.compile(pattern, re.M)
    return lambda text: sum(float(m[1]) for m in found.finditer(text))


def bars(text):
    """The events in the histograms of runqlat."""
    return sum_of(r"^ *\d+ -> \d+ +: (\d+)")(text)


def bpftrace(script, count=None):
    """It prints "tick" when all probes are attached."""
    return Peer(["bpftrace", "-B", "line", "-e", script + ' interval:ms:10 { printf("tick\\n"); }'], "tick", count)


def runqlat(bench):
    tids = "|".join(bench.truth.tids)
    return Peer(["runqlat", "-L", "-p", bench.ioc.pid], "Tracing", lambda text: sum(
        bars(part) for part in text.split("tid = ")[1:] if re.match(rf"({tids}) ", part)))


def calls(bench):
    yield "ebpfMon, COUNT", Ours(bench, "COUNT", "puts", r"^(\d+) events")
    yield "bpftrace, count", bpftrace(f"uprobe:{bench.lib}:dbProcess {{ @[arg0] = count(); }}", sum_of(r"^@\[\d+\]: (\d+)"))


def waits(bench):
    pid, record = bench.ioc.pid, bench.tmp / "perf.data"
    tids = "|".join(bench.truth.tids)
    yield "ebpfMon, CPU_WAIT: histograms by thread", Ours(bench, "CPU_WAIT", "chains", WAIT)
    yield "ebpfMon, CPU_WAIT_LONG: 1 ms and more", Ours(bench, "CPU_WAIT_LONG", "chains")
    yield "runqlat -p: one histogram", Peer(["runqlat", "-p", pid], "Tracing")
    yield "runqlat -L -p: by thread", runqlat(bench)
    yield "runqslower -p: 1 ms and more", Peer(["runqslower", "-p", pid, 1000], "TIME")
    yield "perf sched record", Perf(
        ["perf", "sched", "record", "-m", "16M", "-o", record],
        # perf sched latency of perf 6.1 leaves most of them out on kernel 6.18, so its events are counted
        lambda text: len(re.findall(rf"next_comm=\S+ next_pid=(?:{tids}) ", text)), ["perf", "script", "-i", str(record)])


def syscalls(bench):
    pid = bench.ioc.pid
    yield "ebpfMon, count by system call", Ours(bench, "CALLED", "puts", r"^pread64 +(\d+)")
    yield "ebpfMon, histograms by system call", Ours(bench, "TIMED", "puts", r"^pread64 +(\d+)")
    yield "ebpfMon, SYSCALLS_BY_ROOT: by record, too", Ours(bench, "SYSCALLS_BY_ROOT", "chains", r"^bench +- +pread64 +(\d+)")
    enter = f"tracepoint:raw_syscalls:sys_enter /pid == {pid}/"
    yield "bpftrace, count", bpftrace(f"{enter} {{ @[args->id] = count(); }}", sum_of(rf"^@\[{PREAD}\]: (\d+)"))
    yield "bpftrace, histogram", bpftrace(
        f"{enter} {{ @t[tid] = nsecs; }} tracepoint:raw_syscalls:sys_exit /@t[tid]/ "
        "{ @[args->id] = hist(nsecs - @t[tid]); delete(@t[tid]); }")
    yield "syscount -p", Peer(["syscount", "-i", 0, "-p", pid], "Tracing", sum_of(r"^pread64 +(\d+)"))
    yield "syscount -L -p: with times", Peer(["syscount", "-L", "-i", 0, "-p", pid], "Tracing", sum_of(r"^pread64 +(\d+)"))
    yield "perf trace -s", Perf(["perf", "trace", "-s", "-p", pid], sum_of(r"^ *pread64 +(\d+)"))
    yield "strace -c -f", Peer(["strace", "-c", "-f", "-p", pid], "strace: Process",
                               sum_of(r"^ *\S+ +\S+ +\S+ +(\d+) .*\bpread64$"))


def observers(bench, part):
    yield NONE, Level(bench, "puts")
    for name, observer in {"calls": calls, "waits": waits, "syscalls": syscalls}[part](bench):
        if not isinstance(observer, Peer) or shutil.which(observer.argv[0]):
            yield name, observer


def rows(results):
    yield ["observer", "CPU ns", "spread", "more ns", "×", "of all ns", "own CPU ns", "counted", "of", "start s"]
    bare = min(r["cpu"] for r in results[NONE])
    for name, rounds in results.items():
        best = min(r["cpu"] for r in rounds)
        known = [r for r in rounds if r.get("told") is not None]
        truth = sum(r["truth"] for r in known)
        yield [name, f"{best:.0f}", f"{statistics.median(r['cpu'] for r in rounds) / best - 1:.0%}", f"{best - bare:.0f}",
               f"{best / bare:.2f}", f"{min(r['all'] for r in rounds):.0f}",
               f"{statistics.median(r['own'] for r in rounds):.0f}" if "start" in rounds[0] else "",
               f"{sum(r['told'] for r in known) - truth:+.0f}" if known else "", f"{truth:.0f}" if known else "",
               f"{statistics.median(r['start'] for r in rounds):.2f}" if "start" in rounds[0] else ""]


def measure(bench, part, args):
    results = {}
    for _ in range(args.rounds):
        for name, observer in observers(bench, part):
            if args.only not in name and name != NONE:
                continue
            with observer:
                found = bench.measure(part, observer, args.ms)
                if hasattr(observer, "told"):
                    found["told"], found["start"] = observer.told(found["truth"]), observer.started
            results.setdefault(name, []).append(found)
    return results


def together(bench, seconds):
    """All at the same time. Another process wants the CPU of the IOC, so both wait for some ms each."""
    tids = "|".join(bench.truth.tids)
    count, long = Ours(bench, "CPU_WAIT", "puts", WAIT), Ours(bench, "LONG", "puts", r"^bench(?:Ioc|Echo) +(\d+)")
    histograms = runqlat(bench)
    slower = Peer(["runqslower", "-p", bench.ioc.pid, 1000], "TIME",
                  lambda text: len(re.findall(rf"(?m) (?:{tids}) +\d+$", text)))
    with count, long, histograms, slower, contextlib.ExitStack() as stack:
        hog = Process([sys.executable, "-c", BUSY, bench.cpu, 2 * seconds + 1], os.environ)
        stack.callback(hog.kill)
        before = bench.truth.read()[0]
        bench.ioc.send(f"process {1000 * seconds}")
        bench.ioc.wait_line("process ", 60)
        truth = bench.truth.read()[0] - before
        print(f"\nall at the same time, {seconds} s beside a busy process:\n"
              f"waits: the kernel {truth}, ebpfMon {count.told(truth):.0f}, runqlat {histograms.told(truth):.0f}\n"
              f"waits of 1 ms and more: ebpfMon {long.told(truth):.0f}, runqslower {slower.told(truth)}", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--ms", type=int, default=100)
    arguments.add_argument("--part", choices=OPERATION, action="append", help="only this part; may be given several times")
    arguments.add_argument("--only", default="", metavar="TEXT", help="only observers with TEXT in their name")
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        bench = Peers(Path(tmp))
        stack.callback(bench.end)
        bench.start_monitor(queries())
        for part in args.part or OPERATION:
            found = measure(bench, part, args)
            print(f"\n{part}: {args.rounds} rounds of {args.ms} ms; kernel {platform.release()}, {os.cpu_count()} CPUs, "
                  f"load {os.getloadavg()[0]:.1f}\n", flush=True)
            table(list(rows(found)), args.markdown)
            if part == "waits" and shutil.which("runqlat") and shutil.which("runqslower"):
                together(bench, 2)


if __name__ == "__main__":
    main()
