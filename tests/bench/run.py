# SPDX-License-Identifier: BSD-3-Clause
"""Measures what watching costs an IOC, and prints a table.

benchIoc repeats one operation as fast as it can. Observers are attached to it one after the other, in several rounds,
so that a slow minute of the machine affects all of them. The table shows the best of all rounds, and the spread: how
far the median lies above the best. "switch" is two threads that do not belong to an IOC (benchSwitch). EPICS_BASE is
the path of EPICS Base. tools/bench.sh starts this program.

    python -m tests.bench.run [--rounds N] [--ms MILLISECONDS] [--length RECORDS] [--shape chain|tree] [--work WORK]
           [--only TEXT] [--cpu] [--markdown]
"""
import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import tempfile
import tty
from pathlib import Path

from tests.harness import loopback, paths
from tests.harness.monitor import Monitor
from tests.harness.process import Process
from tests.harness.wait import until

WORK = {"process": "record", "put": "put", "putproc": "put proc", "read": "read", "interrupt": "I/O Intr",
        "async": "async", "relay": "relay", "once": "scanOnce", "switch": "switch"}
CHAINS = ("process", "interrupt", "async", "relay", "once")  # work that processes records: for it TPRO prints
SLOW = 100, 400  # "slow" of benchIoc: each 100th chain takes 400 µs longer
NONE, NOBODY = "none: ebpfMon, off", "no ebpfMon at all"
P = "BENCH:EBPF:"


QUERIES = [{"name": "COUNT", "source": {"function": "dbProcess"}, "keys": [{"arg": 1, "as": "record"}], "budget": 100},
           {"name": "TIME", "source": {"function": "dbProcess", "when": "duration"}, "histogram": "log2", "budget": 100}]


def database(length, shape):
    text = f'record(longin, "BENCH:LEN") {{ field(VAL, "{length}") }}\nrecord(ao, "BENCH:PUT") {{ }}\n'
    text += ('record(ai, "BENCH:INTR") { field(DTYP, "bench") field(SCAN, "I/O Intr") }\n'
             'record(ai, "BENCH:ASYNC") { field(DTYP, "bench") }\n'
             'record(ai, "BENCH:RELAY0") { field(DTYP, "bench") field(FLNK, "BENCH:RELAY1") }\n'
             'record(ai, "BENCH:RELAY1") { field(DTYP, "bench") field(FLNK, "BENCH:RELAY0") }\n'
             'record(calc, "BENCH:ONCE") { field(INPA, "BENCH:ONCE") field(CALC, "A+1") }\n')
    for i in range(1, length + 1):
        if shape == "tree" and 2 * i <= length:
            links = "".join(f' field(LNK{k + 1}, "BENCH:{2 * i + k}")' for k in (0, 1) if 2 * i + k <= length)
            text += f'record(fanout, "BENCH:{i}") {{{links} }}\n'
            continue
        if shape == "tree":
            text += f'record(calc, "BENCH:{i}") {{ field(CALC, "A+1") field(INPA, "BENCH:{i}") }}\n'
            continue
        flnk = f' field(FLNK, "BENCH:{i + 1}")' if i < length else ""
        text += (f'record(calc, "BENCH:{i}") {{ field(INPA, "BENCH:{max(i - 1, 1)}") field(CALC, "A+1")'
                 f'{flnk} }}\n')
    return text


class Bench:
    def __init__(self, tmp, length, shape, works):
        self.tmp, self.works = tmp, works
        (tmp / "bench.db").write_text(database(length, shape))
        self.repeater = Process([paths.BASE_BIN / "caRepeater"], loopback.environment())
        dbd = paths.TESTS / "bench/O.Common/benchIoc.dbd"
        self.ioc = Process([paths.BENCH_BIN / "benchIoc", dbd, tmp / "bench.db"],
                           loopback.server(loopback.take_port(), IOC="bench"), cwd=tmp)
        self.threads = Process([paths.BENCH_BIN / "benchSwitch"], loopback.environment())
        for process in (self.ioc, self.threads):
            process.wait_line("ready")
        self.monitor = None
        self.chains = {}  # observer → numbers of chains in "process": all, kept, lost
        self.lib = self.core_file()

    def core_file(self):
        """Returns the file that contains dbProcess. bpftrace attaches to it."""
        for line in open(f"/proc/{self.ioc.pid}/maps"):
            path = line.split()[-1]
            if "libdbCore" in path:
                return path
        return os.readlink(f"/proc/{self.ioc.pid}/exe")

    def outputs(self, tmp, stack):
        """Makes the files to which the IOC prints. Another process reads pipe and terminal, as console servers do."""
        os.mkfifo(tmp / "pipe")
        master, slave = os.openpty()
        tty.setraw(slave)
        self.files = {"/dev/null": "/dev/null", "pipe": tmp / "pipe", "terminal": os.ttyname(slave)}
        # Opened for reading and writing, so that the pipe stays open from one round to the next.
        for fd in master, os.open(tmp / "pipe", os.O_RDWR):
            stack.callback(subprocess.Popen(["cat"], stdin=fd, stdout=subprocess.DEVNULL).kill)

    def measure(self, name, observer, ms):
        result = {}
        before = self.chain_counts() if observer.level else None
        for what in (w for w in observer.work if w in self.works):
            process = self.threads if what == "switch" else self.ioc
            process.send(f"{what} {ms}")
            _, ns, count = process.wait_line(f"{what} ", 60).split()
            result[what] = float(ns)
            if what == "process" and before:
                self.await_publication()
                sums = self.chains.setdefault(name, [0, 0, 0])
                for i, n in enumerate((int(count), *(b - a for a, b in zip(before, self.chain_counts())))):
                    sums[i] += n
        return result

    def await_publication(self):
        """Waits until LOST_CNT has been published twice. At the second time it contains all losses up to now. (Its
        group is published when one of its values changes. While an IOC is busy, the value CPU changes each second.)"""
        def stamp():
            return self.client("caget", "-a", P + "LOST_CNT").split()[1:3]

        for _ in range(2):
            last = stamp()
            self.until(lambda last=last: stamp() != last, "LOST_CNT is published", 5)

    def chain_counts(self):
        return [int(n) for n in self.client("caget", "-t", "-f0", P + "CHAIN_LOG_CNT", P + "LOST_CNT").split()]

    # --- the monitor, at each level ------------------------------------------------------------------------
    def client(self, program, *args):
        """Runs a client program that ends. A client that stays connected would be busy during the measurements."""
        return subprocess.run([paths.BASE_BIN / program, *map(str, args)], env=loopback.client(self.monitor.port),
                              text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout

    def until(self, condition, what, seconds=30):
        until(lambda: condition() or not self.monitor.process.running, seconds,
              lambda: f"{what}: {self.client('caget', '-St', P + 'STATE', P + 'STATE_MSG.VAL$')}")
        if not self.monitor.process.running:
            raise RuntimeError(f"the monitor ended:\n{self.monitor.process.output()}")

    def start_monitor(self, asked=QUERIES):
        queries = self.tmp / "queries.json"
        queries.write_text(json.dumps({"queries": asked}))
        self.monitor = Monitor(self.tmp, iocs="bench", prefix=P, before=[f'ebpfMonQueryLoad "{queries}"']).launch()
        self.until(lambda: self.client("caget", "-t", P + "STATE").strip() == "Running", "the monitor runs")

    def level(self, name, slow=0, sample=1, record="*", timed=10):
        for part, value in ("SLOW", slow), ("SAMPLE", sample), ("RECORD", record), ("TIMED", timed), ("LEVEL", name):
            self.client("caput", P + "FILTER_" + part, value)

        def there():
            names = self.client("caget", "-F", "\t", "-t", P + "IOC_NAMES").strip().split("\t")
            levels = self.client("caget", "-F", "\t", "-t", P + "IOC_LEVELS").strip().split("\t")
            return dict(zip(names, levels)).get("bench", "off") == name

        self.until(there, f"level {name}")

    def end_monitor(self):
        if self.monitor:
            self.monitor.stop()
        self.monitor = None

    def end(self):
        self.end_monitor()
        for process in (self.ioc, self.threads):
            process.close()
        self.repeater.kill()


class Observer:
    """The observer that observes nothing; the others derive from it."""
    work = tuple(WORK)
    level = None

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Level(Observer):
    def __init__(self, bench, level, **chosen):
        self.bench, self.level, self.chosen = bench, level, chosen

    def __enter__(self):
        self.bench.level(self.level, **self.chosen)

    def __exit__(self, *_):
        self.bench.level("off")


class Query(Level):
    """A query of QUERIES. The level is puts, which has no probe in the operation "process"."""
    work = CHAINS

    def __init__(self, bench, name):
        super().__init__(bench, "puts")
        self.name = name

    def __enter__(self):
        super().__enter__()
        self.bench.monitor.command(f"ebpfMonQueryStart {self.name}")
        self.bench.until(lambda: "looks at 1 IOC" in "\n".join(self.bench.monitor.command(f"ebpfMonQueryPrint {self.name}")),
                         f"query {self.name} runs")

    def __exit__(self, *_):
        self.bench.monitor.command(f"ebpfMonQueryStop {self.name}")
        super().__exit__()


class Slow(Level):
    def __enter__(self):
        super().__enter__()
        self.bench.ioc.send("slow {} {}".format(*SLOW))

    def __exit__(self, *_):
        self.bench.ioc.send("slow 0 0")
        super().__exit__()


class Tpro(Observer):
    """TPRO: Base prints each record of a chain to this file."""
    work = CHAINS

    def __init__(self, bench, file):
        self.bench, self.file = bench, file

    def __enter__(self):
        self.bench.ioc.send(f"stdout {self.file}")
        self.bench.ioc.send("tpro 1")

    def __exit__(self, *_):
        self.bench.ioc.send("tpro 0")
        self.bench.ioc.send("stdout /dev/null")


class Bpftrace(Observer):
    def __init__(self, bench, script):
        # bpftrace prints "tick" when all probes are attached.
        self.script = script.replace("LIB", bench.lib) + ' interval:ms:50 { printf("tick\\n"); }'
        self.process = None

    def __enter__(self):
        self.process = Process(["bpftrace", "-B", "line", "-e", self.script], os.environ)
        self.process.wait_line("tick", 60)

    def __exit__(self, *_):
        self.process.signal(signal.SIGINT)
        self.process.wait(30)


def observers(bench):
    yield NONE, Observer()
    for level in ("puts", "counts", "chains"):
        yield f"ebpfMon, {level}", Level(bench, level)
    yield "ebpfMon, chains, slow: none", Level(bench, "chains", slow=1000000)
    yield "ebpfMon, chains, slow: 1 in 100", Slow(bench, "chains", slow=SLOW[1] * 3 // 4)
    yield "ebpfMon, trace, every chain", Level(bench, "trace")
    yield "ebpfMon, trace, 1 in 100", Level(bench, "trace", sample=100)
    yield "ebpfMon, trace, no record matches", Level(bench, "trace", record="none:*")
    yield "ebpfMon, query, count by record", Query(bench, "COUNT")
    yield "ebpfMon, query, entry and return, hist", Query(bench, "TIME")
    for what, file in bench.files.items():
        yield f"TPRO, {what}", Tpro(bench, file)
    both = "uprobe:LIB:dbProcess, uprobe:LIB:dbPut "
    yield "empty uprobe (dbProcess, dbPut)", Bpftrace(bench, both + "{ }")
    yield "bpftrace, count by record", Bpftrace(bench, both + "{ @[arg0] = count(); }")
    yield "bpftrace, entry and return, hist", Bpftrace(
        bench, both + "{ @t[tid] = nsecs; } uretprobe:LIB:dbProcess, uretprobe:LIB:dbPut "
        "/@t[tid]/ { @us = hist(nsecs - @t[tid]); delete(@t[tid]); }")


def rows(results, works, chains):
    """Yields a row for each observer: ratios with their spread, the shares of chains kept and lost, and times in ns."""
    yield ["observer", *(f"{WORK[w]} ×" for w in works), "kept", "lost", *(f"{WORK[w]} ns" for w in works)]
    best = {name: {w: min(r[w] for r in rounds) for w in rounds[0]} for name, rounds in results.items()}
    for name, rounds in results.items():
        cells = []
        for w in works:
            ratio = best[name].get(w, 0) / best[NONE][w]
            median = statistics.median(r[w] for r in rounds) if ratio else 0
            digits = 2 if ratio < 10 else 1 if ratio < 100 else 0
            cells.append(f"{ratio:.{digits}f} +{median / best[name][w] - 1:.0%}" if ratio else "")
        number, kept, lost = chains.get(name, (0, 0, 0))
        cells += [f"{n / number:.1%}" if n else "" for n in (kept, lost)]
        yield [name, *cells, *(f"{best[name][w]:.0f}" if w in best[name] else "" for w in works)]


def table(cells, markdown):
    wide = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for n, line in enumerate(cells):
        if markdown:
            print("|" + "|".join(f" {c} " for c in line) + "|")
            if not n:
                print("|---|" + "---:|" * (len(line) - 1))
        else:
            print("  ".join(f"{c:{'>' if i else '<'}{wide[i]}}" for i, c in enumerate(line)).rstrip())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--ms", type=int, default=40)
    arguments.add_argument("--length", type=int, default=100)
    arguments.add_argument("--shape", choices=("chain", "tree"), default="chain",
                           help="tree: each record processes two others, except the records at the ends")
    arguments.add_argument("--work", choices=WORK, action="append", help="only this work; may be given several times")
    arguments.add_argument("--only", default="", metavar="TEXT", help="only observers with TEXT in their name")
    arguments.add_argument("--cpu", action="store_true",
                           help="measure CPU time of the IOC, not elapsed time; for a busy machine")
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        bench = Bench(Path(tmp), args.length, args.shape, args.work or tuple(WORK))
        stack.callback(bench.end)
        bench.outputs(Path(tmp), stack)
        bench.ioc.send(f"cpu {args.cpu:d}")
        for _ in range(args.rounds):  # before all others, because no monitor may run
            results.setdefault(NOBODY, []).append(bench.measure(NOBODY, Observer(), args.ms))
        bench.start_monitor()
        bench.level("off")
        for _ in range(args.rounds):
            for name, observer in observers(bench):
                if (args.only in name or name == NONE) and set(observer.work) & set(bench.works):
                    with observer:
                        results.setdefault(name, []).append(bench.measure(name, observer, args.ms))
    what = "A chain of {} calc records" if args.shape == "chain" else "A tree of {} fanout and calc records"
    print(f"{what.format(args.length)}, saturated; best of {args.rounds} rounds of {args.ms} ms, and how far the median "
          f'lies above it;\n×: ratio to "{NONE}"; kept, lost: shares of the chains; kernel {platform.release()}, '
          f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    table(list(rows(results, bench.works, bench.chains)), args.markdown)


if __name__ == "__main__":
    main()
