# SPDX-License-Identifier: BSD-3-Clause
"""Measures what watching costs an IOC as a site has it: many short chains, ten times a second.

The IOC has 1,120 calc records in 625 chains: 400 of one record, 150 of two, 60 of four, 15 of twelve. With --clients,
it also has clients: 200 CA monitors, 50 puts and 100 gets per second. In each round the IOC runs without a monitor first, then
observers are attached one after the other. So what the machine does beside that changes all alike. The table shows CPU times in
percent of one core, of all threads of the IOC and of the observer itself: the best of the rounds, and how far the median lies
above it. "more" is the median of what the IOC took more than without an observer in the same round. EPICS_BASE is the path of
EPICS Base.

    python -m tests.bench.site [--rounds N] [--seconds S] [--clients] [--only TEXT] [--markdown]
"""
import argparse
import contextlib
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, paths
from tests.harness.process import Process

from .run import Bench, Bpftrace, Level, NOBODY, NONE, Observer, P, table

CHAINS = {1: 400, 2: 150, 4: 60, 12: 15}  # length → number


def database():
    text = ""
    for length, count in CHAINS.items():
        for chain in range(count):
            for i in range(length):
                name = f"BENCH:{length}:{chain}:{i}"
                scan = "" if i else ' field(SCAN, ".1 second")'
                flnk = f' field(FLNK, "BENCH:{length}:{chain}:{i + 1}")' if i + 1 < length else ""
                text += f'record(calc, "{name}") {{ field(INPA, "{name}") field(CALC, "A+1"){scan}{flnk} }}\n'
    return text + "".join(f'record(ao, "BENCH:PUT{i}") {{ }}\n' for i in range(10))


def cpu(pid):
    """Returns the CPU time (ns) of a process, also of threads that have ended (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def memory(pid):
    """Returns the resident memory of a process (MiB)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


class Site(Bench):
    def __init__(self, tmp, clients, settle):
        self.tmp, self.settle = tmp, settle
        (tmp / "site.db").write_text(database())
        self.repeater = Process([paths.BASE_BIN / "caRepeater"], loopback.environment())
        port = loopback.take_port()
        self.ioc = Process([paths.BASE_BIN / "softIoc", "-d", tmp / "site.db"], loopback.server(port, IOC="bench"),
                           cwd=tmp)
        self.ioc.command("dbgf BENCH:PUT0")
        self.monitor, self.lib = None, self.core_file()
        self.threads = Process([sys.executable, "-m", "tests.bench.siteClients"] if clients else ["cat"],
                               loopback.client(port), cwd=paths.TESTS.parent)
        if clients:
            self.threads.wait_line("ready", 60)

    def measure(self, observer, seconds):
        """Returns the CPU times of IOC and observer (percent of one core), the observer's memory, and COST."""
        own = observer.pid()
        before, begin = (cpu(self.ioc.pid), cpu(own) if own else 0), time.monotonic()
        time.sleep(seconds)  # the length of the measurement
        took = (time.monotonic() - begin) * 1e7
        said = float(self.client("caget", "-t", P + "COST")) if observer.level else 0
        return ((cpu(self.ioc.pid) - before[0]) / took, (cpu(own) - before[1]) / took if own else 0,
                memory(own) if own else 0, said)


class Nobody(Observer):
    def pid(self):
        return None


class SiteLevel(Level):
    """A level that has settled: in its first seconds more probes are attached, and each record is looked at."""
    def __enter__(self):
        super().__enter__()
        time.sleep(self.bench.settle)  # not a wait for a state: what is taken in the first seconds depends on when they are

    def pid(self):
        return self.bench.monitor.process.pid


class SiteBpftrace(Bpftrace):
    def pid(self):
        return self.process.pid


def observers(site):
    for level in ("off", "puts", "counts", "chains", "trace"):
        yield (NONE if level == "off" else f"ebpfMon, {level}"), SiteLevel(site, level, timed=5)  # 5: the default
        if level == "chains":
            yield "ebpfMon, chains, all timed", SiteLevel(site, level, timed=100)
    probe = "uprobe:LIB:dbProcess "
    yield "bpftrace, count by record", SiteBpftrace(site, probe + "{ @[arg0] = count(); }")
    yield "bpftrace, entry and return, hist", SiteBpftrace(
        site, probe + "{ @t[tid] = nsecs; } uretprobe:LIB:dbProcess /@t[tid]/ "
        "{ @us = hist(nsecs - @t[tid]); delete(@t[tid]); }")


def rows(results):
    yield ["observer", "IOC %", "more %", "× none", "µs a chain", "spread", "own CPU %", "own MiB", "COST says %"]
    best = {name: [*(min(r[i] for r in rounds) for i in range(3)), statistics.median(r[3] for r in rounds)]
            for name, rounds in results.items()}
    for name, rounds in results.items():
        ioc, own, mib, said = best[name]
        more = statistics.median(r[0] - bare[0] for r, bare in zip(rounds, results[NOBODY]))
        yield [name, f"{ioc:.2f}", f"{more:.2f}" if name != NOBODY else "", f"{ioc / best[NOBODY][0]:.2f}",
               f"{more * 1e4 / sum(CHAINS.values()) / 10:.2f}" if name != NOBODY else "",
               f"+{statistics.median(r[0] for r in rounds) / ioc - 1:.0%}", f"{own:.2f}" if mib else "",
               f"{mib:.0f}" if mib else "", f"{said:.2f}" if said > 0 else ""]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--settle", type=float, default=10, help="s from a change of level to its measurement")
    arguments.add_argument("--clients", action="store_true", help="with clients, beside the scans")
    arguments.add_argument("--only", default="", metavar="TEXT", help="only observers with TEXT in their name")
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        site = Site(Path(tmp), args.clients, args.settle)
        stack.callback(site.end)
        for _ in range(args.rounds):
            results.setdefault(NOBODY, []).append(site.measure(Nobody(), args.seconds))
            site.start_monitor()
            for name, observer in observers(site):
                if args.only in name:
                    with observer:
                        results.setdefault(name, []).append(site.measure(observer, args.seconds))
            site.end_monitor()
    print(f"A site-like IOC: {sum(n * c for n, c in CHAINS.items())} records in {sum(CHAINS.values())} chains at 10 Hz; "
          f"best of {args.rounds} rounds of {args.seconds:g} s,\n{args.settle:g} s after the level changed; "
          f"percent of one core; kernel {platform.release()}, "
          f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    table(list(rows(results)), args.markdown)


if __name__ == "__main__":
    main()
