# SPDX-License-Identifier: BSD-3-Clause
"""Measures the CPU time of the monitor while nothing happens, and how long a put takes to reach a PV.

The monitor watches an idle softIoc at level chains. Half a minute after the last program started, nobody does anything
for some seconds: the table has the CPU time of the monitor, and how often each of its threads woke. The names of our
threads begin with ebpfMon; all other threads are those of Base. Then a client puts to the IOC, one put after the other
at irregular times, and waits for the event of PUT_CNT. "The record itself" is the same with an event of the record: the
time that client and servers take. Programs that start on the host meanwhile wake the monitor, too.

With --other the monitor of another tree is measured in the same run; the two take turns. It needs root and pyepics (the
Python that tools/venv.sh prints). EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.quiet [--rounds N] [--seconds S] [--puts N] [--other TREE] [--level LEVEL]
"""
import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, paths

loopback.use()  # before a client library is imported

import epics  # noqa: E402

from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.process import Process, alive  # noqa: E402
from tests.harness.wait import settled, until  # noqa: E402

from . import singlePuts  # noqa: E402
from .site import cpu  # noqa: E402

DB = 'record(calc, "$(P)READY") { field(CALC, "1") field(PINI, "YES") }\nrecord(ao, "$(P)ONE") { }\n' + "".join(
    f'record(ao, "$(P)AO{i}") {{ }}\n' for i in range(100))
OLD = 35  # s after its start: until then the monitor looks every 2 s whether a program has become an IOC (iocFinder.c)
CALM, CALM_READER = 3, 12  # wake-ups per second of a thread that has no work (tests/integration/test_silence.py)


def wakes(pid):
    """Returns how often each thread has gone to sleep by itself, so was woken later: id → (name, number)."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            lines = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        except OSError:  # the thread has ended
            continue
        found[int(task.name)] = lines["Name"], int(lines["voluntary_ctxt_switches"])
    return found


def silence(pid, seconds):
    """Returns the CPU time in percent of one core, and the wake-ups per second by thread name."""
    first, used, begin = wakes(pid), cpu(pid), time.monotonic()
    time.sleep(seconds)  # the length of the measurement
    took, used = time.monotonic() - begin, cpu(pid) - used
    rates = {}
    for tid, (name, n) in wakes(pid).items():
        rates[name] = rates.get(name, 0) + (n - first.get(tid, (name, 0))[1]) / took
    return used / took / 1e7, rates


def wait_calm(pid):
    """Waits until the work that an IOC's start causes is done (probes, links, types that are tried): within a second no thread of the
    monitor wakes more often than to look whether there is work."""
    rates = {}

    def is_calm():
        rates.update(silence(pid, 1)[1])
        return all(n <= (CALM_READER if name == "ebpfMonReader" else CALM) for name, n in rates.items() if name.startswith("ebpfMon"))

    until(is_calm, 15, lambda: f"a second without work. Do programs start on this host? Wake-ups per second: {rates}")


def measure(tmp, program, ioc, args):
    """Measures one monitor. Returns CPU time, wake-ups and the times of puts."""
    paths.MONITOR, paths.MONITOR_BOOT, paths.DB = program
    started = time.monotonic()
    monitor = Monitor(tmp).start()
    try:
        monitor.wait_ioc(ioc)
        monitor.set_filter(LEVEL=args.level)
        monitor.wait_ioc(ioc, level=args.level)
        epics.ca.clear_cache()  # so no client is connected in the silence
        wait_calm(monitor.process.pid)
        time.sleep(max(0, started + OLD - time.monotonic()))  # an age, not an event
        load, rates = silence(monitor.process.pid, args.seconds)
        took = singlePuts.measure(ioc.prefix + "ONE", monitor.prefix + "PUT_CNT", args.puts)
        seen = settled(lambda: int(monitor.get("PUT_CNT")), 10)
        assert seen == args.puts, f"{seen} of {args.puts} puts were seen"
        return load, rates, took
    finally:
        monitor.discard()


def show(results, itself):
    print(f"{'':18}{'own CPU %':>10}{'ours /s':>10}{'all /s':>10}{'put → PV: p50 ms':>18}{'p99 ms':>8}{'max ms':>8}")
    for name, rounds in results.items():
        ours = [sum(n for thread, n in rates.items() if thread.startswith("ebpfMon")) for _, rates, _ in rounds]
        took = sorted(t for _, _, each in rounds for t in each)
        print(f"{name:18}{min(r[0] for r in rounds):10.3f}{min(ours):10.1f}"
              f"{min(sum(r[1].values()) for r in rounds):10.1f}{statistics.median(took):18.2f}"
              f"{singlePuts.quantile(took, 0.99):8.2f}{took[-1]:8.2f}")
    print(f"{'the record itself':48}{statistics.median(itself):18.2f}{singlePuts.quantile(itself, 0.99):8.2f}"
          f"{itself[-1]:8.2f}")
    for name, rounds in results.items():
        print(f"\n{name}, wake-ups per second of each thread (the lowest of all rounds):")
        threads = {t for _, rates, _ in rounds for t in rates}
        least = {t: min(rates.get(t, 0) for _, rates, _ in rounds) for t in threads}
        print("  " + ", ".join(f"{t} {n:.1f}" for t, n in sorted(least.items(), key=lambda x: -x[1]) if n >= 0.05))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument("--puts", type=int, default=300)
    arguments.add_argument("--level", default="chains")
    arguments.add_argument("--other", type=Path, metavar="TREE", help="a built tree of ebpfMon to compare with")
    args = arguments.parse_args()
    programs = {"this tree": (paths.MONITOR, paths.MONITOR_BOOT, paths.DB)}
    if args.other:
        programs["other tree"] = (args.other / "bin" / paths.ARCH / "ebpfMon", args.other / "iocBoot/iocEbpfMon",
                                  args.other / "db")
    results, itself = {}, []
    repeater = Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    try:
        with tempfile.TemporaryDirectory() as tmp:
            ioc = Ioc(Path(tmp), DB).start()
            for _ in range(args.rounds):
                for name, program in programs.items():
                    results.setdefault(name, []).append(measure(Path(tmp), program, ioc, args))
            itself = singlePuts.measure(ioc.prefix + "ONE", ioc.prefix + "ONE", args.puts)
    finally:
        for left in list(alive - {repeater}):
            left.close()
        repeater.kill()
    print(f"Silence for {args.seconds:g} s, then {args.puts} puts; {args.rounds} rounds; kernel {platform.release()}, "
          f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    show(results, itself)


if __name__ == "__main__":
    main()
