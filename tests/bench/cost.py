# SPDX-License-Identifier: BSD-3-Clause
"""What watching costs by number and length of chains, and if COST says so.

For each load two equal IOCs of its own have so many chains of calc records, which they process ten times a second. The monitor
watches one of them, and goes through off and the levels, several times. What a level costs is the CPU time of the scan
threads (/proc/PID/task/TID/schedstat), less that of the same threads of the other IOC in the same window: the median
of the windows at the level, less that of the windows at off. So a machine that changes its speed changes both alike. The windows of a
level begin when it has settled: in its first seconds more probes are attached, and each record is looked at. COST is read at the end
of each window. EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.cost [--rounds N] [--windows N] [--seconds S] [--settle S] [--loads CHAINSxLENGTH,…] [--levels LEVEL,…]
                               [--markdown]
"""
import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import db  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402

from .run import table  # noqa: E402

LOADS = "10x1,100x1,1000x1,10000x1,100x10,1000x10,10x100,100x100"  # 100 to 100,000 processings a second
LEVELS = {"counts": ("counts", 5), "default": ("chains", 5), "all timed": ("chains", 100), "trace": ("trace", 5)}
RATE = 10  # passes a second


def database(chains, length):
    text = db.READY
    for chain in range(chains):
        for i in range(length):
            scan = "" if i else ' field(SCAN, ".1 second")'
            flnk = f' field(FLNK, "C{chain}:{i + 1}")' if i + 1 < length else ""
            text += f'record(calc, "C{chain}:{i}") {{ field(INPA, "C{chain}:{i}") field(CALC, "A+1"){scan}{flnk} }}\n'
    return text


class Scan:
    """The threads of an IOC that process scan lists. All but one have no records, but their passes are watched, too."""

    def __init__(self, pid):
        self.paths = [t / "schedstat" for t in Path(f"/proc/{pid}/task").iterdir() if (t / "comm").read_text().startswith("scan-")]
        assert self.paths

    def cpu(self):
        return sum(int(path.read_text().split()[0]) for path in self.paths)


def measure_window(scans, seconds):
    """Percent of one core: of the watched thread, and of the other one."""
    before, begin = [s.cpu() for s in scans], time.monotonic()
    time.sleep(seconds)  # the length of the measurement
    took = time.monotonic() - begin
    return [(s.cpu() - b) / took / 1e7 for s, b in zip(scans, before)]


def measure(tmp, chains, length, levels, args):
    """The windows at off, and level → its windows, what COST said in them."""
    ioc, twin = (Ioc(tmp, database(chains, length)).start() for _ in range(2))
    monitor = Monitor(tmp, iocs=ioc.name).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(BUDGET=0)
    scans, off, found = [Scan(i.pid) for i in (ioc, twin)], [], {name: ([], []) for name in levels}
    for _ in range(args.rounds):
        monitor.set_filter(LEVEL="off")
        monitor.wait_ioc(ioc, "off")
        off += [measure_window(scans, args.seconds) for _ in range(args.windows)]
        for name, (on, said) in found.items():
            level, timed = LEVELS[name]
            monitor.set_filter(TIMED=timed, LEVEL=level)
            monitor.wait_ioc(ioc, level)
            time.sleep(args.settle)  # not a wait for a state: COST is a mean over some seconds
            for _ in range(args.windows):
                on.append(measure_window(scans, args.seconds))
                said.append(monitor.get("COST"))
    monitor.stop()
    for each in ioc, twin:
        each.kill()
    return off, found


def difference(windows):
    """Median of what the watched thread took more than the other one."""
    return statistics.median(watched - other for watched, other in windows)


def rows(results):
    yield ["chains", "records each", "processings a second", "level", "unobserved %", "more %", "µs a chain", "COST says %", "COST / truth"]
    for (chains, length), (off, found) in results.items():
        for name, (on, said) in found.items():
            bare, more, cost = statistics.median(w[0] for w in off), difference(on) - difference(off), statistics.median(said)
            yield [str(chains), str(length), f"{chains * length * RATE:,}", name, f"{bare:.3f}", f"{more:.3f}",
                   f"{more * 1e4 / chains / RATE:.2f}", f"{cost:.3f}", f"{cost / more:.2f}" if more > 0.1 * bare else "below the noise"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--windows", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=4)
    arguments.add_argument("--settle", type=float, default=10)
    arguments.add_argument("--loads", default=LOADS)
    arguments.add_argument("--levels", default=",".join(LEVELS))
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as tmp:
        for load in args.loads.split(","):
            chains, length = (int(n) for n in load.split("x"))
            folder = Path(tmp, load)
            folder.mkdir()
            results[chains, length] = measure(folder, chains, length, args.levels.split(","), args)
    print(f"Chains of calc records, ten times a second; medians of {args.rounds * args.windows} windows of {args.seconds:g} s,\n"
          f"{args.settle:g} s after the level changed; percent of one core; kernel {platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    table(list(rows(results)), args.markdown)


if __name__ == "__main__":
    main()
