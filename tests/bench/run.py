# SPDX-License-Identifier: BSD-3-Clause
"""What watching costs an IOC, in one run and one table, ratios first.

benchIoc does one thing as fast as it can; observers are attached to it one after the other, several times
round, so that a slow minute of the machine falls on all of them. Shown is the best of all rounds, and as
spread how far the median lies above it. EPICS_BASE says where Base is. Started by tools/bench.sh.

    run.py [--rounds N] [--ms MILLISECONDS] [--length RECORDS] [--shape chain|tree]
"""
import argparse
import os
import platform
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BASE = Path(os.environ["EPICS_BASE"])
ARCH = os.environ.get("EPICS_HOST_ARCH") or subprocess.check_output(
    ["perl", str(BASE / "lib/perl/EpicsHostArch.pl")], text=True).strip()
BENCH = Path(__file__).resolve().parent
WORK = ("process", "put", "putproc", "read")
TITLES = ("record processing", "plain put", "put, processing", "read")
P = "BENCH:EBPF:"


def loopback(port):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("EPICS_CA", "EPICS_PVA"))}
    env.update(EPICS_IOCSH_HISTFILE="",  # a shell with history would leave a file of it in the tree
               EPICS_CA_ADDR_LIST=f"127.0.0.1:{port + 4}", EPICS_CA_AUTO_ADDR_LIST="NO",
               EPICS_CA_SERVER_PORT=str(port), EPICS_CA_REPEATER_PORT=str(port + 1),
               EPICS_CAS_INTF_ADDR_LIST="127.0.0.1", EPICS_CAS_BEACON_ADDR_LIST="127.0.0.1",
               EPICS_CAS_AUTO_BEACON_ADDR_LIST="NO", EPICS_CAS_BEACON_PORT=str(port + 1),
               EPICS_PVA_ADDR_LIST="127.0.0.1", EPICS_PVA_AUTO_ADDR_LIST="NO",
               EPICS_PVAS_INTF_ADDR_LIST="127.0.0.1", EPICS_PVAS_BEACON_ADDR_LIST="127.0.0.1",
               EPICS_PVAS_AUTO_BEACON_ADDR_LIST="NO", EPICS_PVA_SERVER_PORT=str(port + 2),
               EPICS_PVA_BROADCAST_PORT=str(port + 3), EPICS_PVAS_SERVER_PORT=str(port + 2),
               EPICS_PVAS_BROADCAST_PORT=str(port + 3))
    return env


def free_port():
    for port in random.sample(range(20000, 30000), 200):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u, socket.socket() as t:
            try:
                u.bind(("127.0.0.1", port))
                t.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    sys.exit("bench: no free port on 127.0.0.1")


def database(length, shape):
    text = f'record(longin, "BENCH:LEN") {{ field(VAL, "{length}") }}\nrecord(ao, "BENCH:PUT") {{ }}\n'
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


class Child:
    def __init__(self, argv, stdout=subprocess.PIPE, **popen):
        self.process = subprocess.Popen([str(a) for a in argv], text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=stdout, stderr=subprocess.STDOUT, **popen)

    def wait_line(self, pattern):
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if re.match(pattern, line):
                return line
        raise RuntimeError(f"{self.process.args[0]} ended:\n{''.join(seen[-15:])}")

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    def __init__(self, tmp, length, shape="chain"):
        (tmp / "bench.db").write_text(database(length, shape))
        self.port = free_port()
        self.env = loopback(self.port)
        self.repeater = Child([BASE / "bin" / ARCH / "caRepeater"], stdout=subprocess.DEVNULL, env=self.env)
        self.ioc = Child([BENCH / f"O.{ARCH}" / "benchIoc", BENCH / "O.Common/benchIoc.dbd", tmp / "bench.db"],
                         env={**self.env, "IOC": "bench"}, cwd=tmp)
        self.ioc.wait_line("ready")
        self.monitor = None
        self.lib = self.core_file()

    def core_file(self):
        """What bpftrace attaches to: the file with dbProcess in it."""
        for line in open(f"/proc/{self.ioc.process.pid}/maps"):
            path = line.split()[-1]
            if "libdbCore" in path:
                return path
        return os.readlink(f"/proc/{self.ioc.process.pid}/exe")

    def measure(self, ms):
        result = {}
        for what in WORK:
            self.ioc.process.stdin.write(f"{what} {ms}\n")
            result[what] = float(self.ioc.wait_line(f"{what} ").split()[1])
        return result

    # --- the monitor, at each level ------------------------------------------------------------------------
    def client(self, program, *args):
        return subprocess.run([str(BASE / "bin" / ARCH / program), *map(str, args)], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout

    def until(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end or self.monitor.process.poll() is not None:
                raise RuntimeError(f"{what}: {self.client('caget', '-St', P + 'STATE', P + 'STATE_MSG.VAL$')}")
            time.sleep(0.05)

    def start_monitor(self):
        self.monitor = Child([TOP / "bin" / ARCH / "ebpfMon", "st.cmd"], cwd=TOP / "iocBoot/iocEbpfMon",
                             stdout=subprocess.DEVNULL, env={**self.env, "EBPFMON_P": P, "EPICS_CA_SERVER_PORT": str(self.port + 4)})
        self.until(lambda: self.client("caget", "-t", P + "STATE").strip() == "Running", "the monitor does not run")
        self.client("caput", P + "FILTER_IOC", "bench")
        self.client("caput", P + "FILTER_BUDGET", 0)

    def level(self, name):
        self.client("caput", P + "FILTER_LEVEL", name)

        def there():
            names = self.client("caget", "-F", "\t", "-t", P + "IOC_NAMES").strip().split("\t")
            levels = self.client("caget", "-F", "\t", "-t", P + "IOC_LEVELS").strip().split("\t")
            return dict(zip(names, levels)).get("bench", "off") == name

        self.until(there, f"level {name} does not come")

    def end(self):
        for child in (self.monitor, self.ioc, self.repeater):
            if child:
                child.end(signal.SIGTERM if child is self.repeater else None)


class Level:
    def __init__(self, bench, name):
        self.bench, self.name = bench, name

    def __enter__(self):
        self.bench.level(self.name)

    def __exit__(self, *_):
        self.bench.level("off")


class Bpftrace:
    def __init__(self, bench, script):
        # The tick is printed by the loop that runs when all probes are attached.
        self.script = script.replace("LIB", bench.lib) + ' interval:ms:50 { printf("tick\\n"); }'
        self.child = None

    def __enter__(self):
        self.child = Child(["bpftrace", "-B", "line", "-e", self.script])
        self.child.wait_line("tick")

    def __exit__(self, *_):
        self.child.process.send_signal(signal.SIGINT)
        self.child.process.communicate(timeout=30)


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def observers(bench):
    yield "none", Nothing()
    for level in ("off", "puts", "counts", "chains", "trace"):
        yield f"ebpfMon, level {level}", Level(bench, level)
    both = "uprobe:LIB:dbProcess, uprobe:LIB:dbPut "
    yield "empty uprobe (dbProcess, dbPut)", Bpftrace(bench, both + "{ }")
    yield "bpftrace, count by record", Bpftrace(bench, both + "{ @[arg0] = count(); }")
    yield "bpftrace, entry and return, hist", Bpftrace(
        bench, both + "{ @t[tid] = nsecs; } uretprobe:LIB:dbProcess, uretprobe:LIB:dbPut "
        "/@t[tid]/ { @us = hist(nsecs - @t[tid]); delete(@t[tid]); }")


def table(results):
    best = {name: {w: min(r[w] for r in rounds) for w in WORK} for name, rounds in results.items()}
    spread = {name: {w: statistics.median(r[w] for r in rounds) / best[name][w] - 1 for w in WORK}
              for name, rounds in results.items()}
    print(f"{'':33}" + "".join(f"{t:^26}" for t in TITLES))
    print(f"{'observer':33}" + f"{'×':>8}{'ns':>10}{'spread':>8}" * len(WORK))
    for name in results:
        line = f"{name:33}"
        for w in WORK:
            line += f"{best[name][w] / best['none'][w]:8.2f}{best[name][w]:10.0f}{spread[name][w]:8.0%}"
        print(line)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--ms", type=int, default=200)
    arguments.add_argument("--length", type=int, default=100)
    arguments.add_argument("--shape", choices=("chain", "tree"), default="chain",
                           help="tree: each record but the last ones processes two others")
    args = arguments.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as tmp:
        bench = Bench(Path(tmp), args.length, args.shape)
        try:
            for name, observer in [("none", Nothing())] * args.rounds:  # before the monitor is there at all
                results.setdefault(name, []).append(bench.measure(args.ms))
            bench.start_monitor()
            bench.level("off")
            for _ in range(args.rounds):
                for name, observer in observers(bench):
                    with observer:
                        results.setdefault(name, []).append(bench.measure(args.ms))
        finally:
            bench.end()
    what = "A chain of {} calc records" if args.shape == "chain" else "A tree of {} fanout and calc records"
    print(f"{what.format(args.length)}, saturated; best of {args.rounds} rounds of {args.ms} ms; "
          f"kernel {platform.release()}, {os.cpu_count()} CPUs\n")
    table(results)


if __name__ == "__main__":
    main()
