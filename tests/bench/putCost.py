# SPDX-License-Identifier: BSD-3-Clause
"""What a put costs the IOC if puts come one at a time, and if COST says so.

A put in a flood finds everything in the caches, and the monitor awake. A put after a pause finds neither. Two equal IOCs get puts at
the same rate, by turns, from one client. The monitor watches one of them, and goes through off and the levels, several times. What a
put costs is the CPU time of the watched IOC, less that of the other one, less the same at off; medians of the rounds. The other one has
copies of Base's libraries. Else the two would share all pages without a probe, and each would find in the caches what the other one
used. COST, a mean over some seconds, is read at the end of each window. EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.putCost [--rounds N] [--seconds S] [--settle S] [--rates N,…] [--levels LEVEL,…] [--markdown]
"""
import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, netns, paths

netns.enter_new()
loopback.use()  # before a client library is imported

import epics  # noqa: E402

from tests.harness import db  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402

from .run import table  # noqa: E402
from .site import cpu  # noqa: E402


def put(pvs, rate, seconds):
    """Puts to each of the PVs at this rate, by turns."""
    due = time.monotonic()
    for i in range(int(rate * seconds)):
        for pv in pvs:
            due += 1 / rate / len(pvs)
            time.sleep(max(0, due - time.monotonic()))  # the pace of the load
            pv.put(i)
            epics.ca.flush_io()


def copy_libraries(tmp):
    """The environment of an IOC that shares no page of Base's libraries with others."""
    copies = [Path(shutil.copy(lib.resolve(), tmp)) for lib in sorted((Path(os.environ["EPICS_BASE"]) / "lib" / paths.ARCH).glob("lib*.so"))
              if lib.stem in ("libCom", "libca", "libdbCore", "libdbRecStd")]
    return {"LD_PRELOAD": " ".join(map(str, copies))}


def measure_window(iocs, pvs, rate, seconds):
    """CPU time of each IOC, percent of one core."""
    before, begin = [cpu(i.pid) for i in iocs], time.monotonic()
    put(pvs, rate, seconds)
    took = time.monotonic() - begin
    return [(cpu(i.pid) - b) / took / 1e7 for i, b in zip(iocs, before)]


def measure(tmp, rates, levels, args):
    """(rate, level) → windows, what COST said in them."""
    text = db.READY + db.record("ao", "AO")
    iocs = [Ioc(tmp, text).start(), Ioc(tmp, text, environ=copy_libraries(tmp)).start()]
    pvs = [epics.PV(i.prefix + "AO", auto_monitor=False) for i in iocs]
    assert all(pv.wait_for_connection(10) for pv in pvs)
    monitor = Monitor(tmp, iocs=iocs[0].name).start()
    monitor.wait_ioc(iocs[0])
    monitor.set_filter(BUDGET=0)
    found = {}
    for _ in range(args.rounds):
        for level in ["off", *levels]:
            monitor.set_filter(LEVEL=level)
            monitor.wait_ioc(iocs[0], level)
            for rate in rates:
                put(pvs, rate, args.settle)  # COST is a mean over some seconds
                windows, said = found.setdefault((rate, level), ([], []))
                windows.append(measure_window(iocs, pvs, rate, args.seconds))
                said.append(monitor.get("COST"))
    monitor.stop()
    for ioc in iocs:
        ioc.kill()
    return found


def difference(windows):
    """Median of what the watched IOC took more than the other one."""
    return statistics.median(watched - other for watched, other in windows)


def rows(found):
    yield ["puts a second", "level", "unobserved %", "more %", "µs a put", "COST says %", "COST / truth"]
    for (rate, level), (windows, said) in found.items():
        if level == "off":
            continue
        more, cost = difference(windows) - difference(found[rate, "off"][0]), statistics.median(said)
        yield [str(rate), level, f"{statistics.median(other for _, other in windows):.3f}", f"{more:.3f}",
               f"{more * 1e4 / rate:.1f}", f"{cost:.3f}", f"{cost / more:.2f}"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--settle", type=float, default=10)
    arguments.add_argument("--rates", default="20,100,400")
    arguments.add_argument("--levels", default="puts,chains")
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        found = measure(Path(tmp), [int(r) for r in args.rates.split(",")], args.levels.split(","), args)
    print(f"Puts one at a time; medians of {args.rounds} windows of {args.seconds:g} s, {args.settle:g} s after the load or the level "
          f"changed;\npercent of one core; kernel {platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    table(list(rows(found)), args.markdown)


if __name__ == "__main__":
    main()
