# SPDX-License-Identifier: BSD-3-Clause
"""Measures what it costs an IOC that the monitor watches a flood of puts, whether the monitor sees each put, and how
long a put takes to reach a PV.

Clients (storm.c) put to a softIoc as fast as they can, a fixed number each: first without a monitor, then at several
levels, which take turns. Then come single puts: the time until a client of the monitor gets the put. In the end puts come at a
steady rate, by Channel Access and by PV Access (pvaStorm.cpp): how many does the monitor lose? It needs root and pyepics (the
Python that tools/venv.sh prints). EPICS_BASE is the path of EPICS Base.

With --caputlog the same clients also put to an IOC that logs each put itself, to a log server that this program plays. PROGRAM is
an IOC with caPutLog built in, which takes a start-up script as its argument; NAME.dbd is its database definition.

    python -m tests.bench.storm [--rounds N] [--puts N] [--clients N] [--single N] [--steady S] [--caputlog PROGRAM NAME.dbd]
"""
import argparse
import os
import platform
import socket
import statistics
import tempfile
import threading
from pathlib import Path

from tests.harness import loopback, paths

loopback.use()  # before a client library is imported

from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.process import Process, alive  # noqa: E402
from tests.harness.wait import settled, until  # noqa: E402

from . import singlePuts  # noqa: E402

STORM = paths.BENCH_BIN / "storm"
PVA_STORM = paths.BENCH_BIN / "pvaStorm"
WAYS = ("put", "put-callback")
STEADY = (("CA", 100_000), ("PVA", 25_000))  # puts per second
# s. A put is counted at once; but a put-callback whose event was lost 10 s after its message (put/putJoin.c)
QUIET = 12
CHANNELS = 8  # of PVA: each has one put under way at a time


def database(records):
    text = 'record(calc, "$(P)READY") { field(CALC, "1") field(PINI, "YES") }\nrecord(ao, "$(P)ONE") { }\n'
    for i in range(records):
        text += (f'record(ao, "$(P)AO{i}") {{ field(FLNK, "$(P)CALC{i}") }}\n'
                 f'record(calc, "$(P)CALC{i}") {{ field(INPA, "$(P)AO{i}") field(CALC, "A*2") }}\n')
    return text


class LogServer(threading.Thread):
    """Takes the lines of caPutLog from one IOC."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = "%s:%d" % self.listening.getsockname()
        self.lines = 0
        self.start()

    def run(self):
        connection = self.listening.accept()[0]
        while data := connection.recv(1 << 16):
            self.lines += data.count(b"\n")


def start_logged(tmp, clients, program, dbd):
    """An IOC that logs each put by caPutLog, without filters."""
    (tmp / "logged.db").write_text(database(clients))
    (tmp / "logged.acf").write_text("ASG(DEFAULT) { RULE(1, READ) RULE(1, WRITE, TRAPWRITE) }\n")
    server, prefix = LogServer(), "LOGGED:"
    (tmp / "logged.cmd").write_text(f"""dbLoadDatabase "{dbd}"
{Path(dbd).stem}_registerRecordDeviceDriver pdbbase
dbLoadRecords "{tmp}/logged.db" "P={prefix}"
asSetFilename "{tmp}/logged.acf"
iocInit
caPutLogInit "{server.address}" 2
""")
    ioc = Ioc(tmp, kind="streamIoc", prefix=prefix, files=[tmp / "logged.cmd"], program=program).start()
    until(lambda: any("caPutLog: successfully" in line for line in ioc.process.lines) or server.lines, 10,
          lambda: f"caPutLog runs\n{ioc.process.output()}")
    return ioc, server


def storm(ioc, clients, puts, way):
    """Runs the clients. Returns the time from put to put, and the CPU time of the IOC for each put (both in µs). Checks
    that each record has the last value of its client."""
    more = ["notify"] if way == "put-callback" else []
    running = [Process([STORM, f"{ioc.prefix}AO{i}", puts, *more], loopback.client(ioc.port)) for i in range(clients)]
    for p in running:
        until(lambda: "ready" in p.lines or not p.running, 20, lambda: f"storm ready\n{p.output()}")
    cpu = ioc.process.cpu_seconds()
    for p in running:
        p.send("")
    longest = 0
    for p in running:
        until(lambda: not p.running, 120, lambda: f"storm done\n{p.output()}")
        p.wait()  # after this, all of its output has been read
        words = p.lines[-1].split()
        assert words[0] == "sent" and int(words[1]) == puts == int(words[3]), p.output()
        longest = max(longest, float(words[5]))
    cpu = ioc.process.cpu_seconds() - cpu
    # With a program that ends, because a client that stays would get an event of each put in the next rounds.
    last = ioc.run("caget", "-t", *(f"{ioc.prefix}AO{i}" for i in range(clients))).stdout.split()
    assert [int(v) for v in last] == [puts] * clients, last
    return longest / (clients * puts) * 1e6, cpu / (clients * puts) * 1e6


def counted(monitor):
    return int(monitor.get("PUT_CNT")), int(monitor.get("LOST_CNT"))


def level(monitor, ioc, name):
    monitor.put("FILTER_LEVEL", name)
    until(lambda: monitor.iocs().get(ioc.pid, ("", "", 0, ""))[3] == name, 20, f"level {name}")


def count_all(monitor, cpu, sent):
    """Returns what was counted in all, and the monitor's CPU time for each put (µs), without the long wait for late ones."""
    settled(lambda: counted(monitor), 60, quiet=1.3)
    own = (monitor.process.cpu_seconds() - cpu) / sent * 1e6
    return settled(lambda: counted(monitor), 60, quiet=QUIET), own


def observe(results, name, ioc, args, monitor=None):
    for way in WAYS:
        puts = args.puts if way == "put" else args.puts // 10
        row = {"sent": puts * args.clients}
        if monitor:
            before, cpu = counted(monitor), monitor.process.cpu_seconds()
        row["us"], row["cpu"] = storm(ioc, args.clients, puts, way)
        if monitor:
            after, row["own"] = count_all(monitor, cpu, row["sent"])
            row["count"], row["lost"] = (a - b for a, b in zip(after, before))
            unseen = 0 if name == "ebpfMon, off" else row["sent"] - row["count"]
            assert 0 <= unseen <= row["lost"], f"{name}: {row}: {unseen} puts are neither counted nor counted as lost"
        results.setdefault((name, way), []).append(row)


def observe_steady(tmp, monitor, seconds):
    """Puts at a steady rate, to an IOC that serves both protocols. Returns a row for each protocol and level."""
    ioc = Ioc(tmp, database(CHANNELS), kind="softIocPVA").start()
    names = [f"{ioc.prefix}AO{i}" for i in range(CHANNELS)]
    rows = []
    for protocol, rate in STEADY:
        sent = int(rate * seconds) // CHANNELS * CHANNELS
        command = [STORM, "-r", rate, names[0], sent, *names[1:]] if protocol == "CA" else \
                  [PVA_STORM, "-r", rate, sent // CHANNELS, *names]
        for name in ("puts", "chains"):
            level(monitor, ioc, name)
            client = Process(command, loopback.client(ioc.port))
            until(lambda: "ready" in client.lines or not client.running, 20, lambda: f"ready\n{client.output()}")
            before, cpu = counted(monitor), monitor.process.cpu_seconds()
            client.send("")
            until(lambda: not client.running, 120, lambda: f"all sent\n{client.output()}")
            client.wait()
            words = client.lines[-1].split()
            assert words[0] == "sent" and int(words[1]) == sent, client.output()
            after, own = count_all(monitor, cpu, sent)
            rows.append((protocol, name, sent / float(words[5]), sent, *(a - b for a, b in zip(after, before)), own))
    return rows


def table(results, args):
    print(f"{args.clients} clients, {args.puts} puts each ({args.puts // 10} put-callbacks), best of {args.rounds} "
          f"rounds; kernel {platform.release()}, {os.cpu_count()} CPUs\n")
    titles = ("×", "puts/s", "us each", "(median)", "IOC CPU us", "own CPU us", "sent", "counted", "lost")
    print(f"{'':18}" + "".join(f"{t:>11}" for t in titles))
    for way in WAYS:
        print(way)
        none = min(r["us"] for r in results["none", way])
        for (name, w), rows in results.items():
            if w != way:
                continue
            best = min(r["us"] for r in rows)
            line = f"  {name:16}{best / none:11.2f}{1e6 / best:11.0f}{best:11.2f}" \
                   f"{statistics.median(r['us'] for r in rows):11.2f}{min(r['cpu'] for r in rows):11.2f}"
            if "own" in rows[0]:
                line += f"{min(r['own'] for r in rows):11.2f}" + \
                        "".join(f"{sum(r[k] for r in rows):11}" for k in ("sent", "count", "lost"))
            print(line)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--puts", type=int, default=50000, help="number of puts of each client")
    arguments.add_argument("--clients", type=int, default=4)
    arguments.add_argument("--single", type=int, default=200)
    arguments.add_argument("--steady", type=float, default=4, metavar="SECONDS", help="of puts at a steady rate")
    arguments.add_argument("--caputlog", nargs=2, metavar=("PROGRAM", "NAME.dbd"), help="also an IOC with caPutLog")
    args = arguments.parse_args()
    results, times = {}, {}
    repeater = Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    try:
        with tempfile.TemporaryDirectory() as tmp:
            tmp = Path(tmp)
            ioc = Ioc(tmp, database(args.clients)).start()
            for _ in range(args.rounds):
                observe(results, "none", ioc, args)
            if args.caputlog:
                logged, server = start_logged(tmp, args.clients, *args.caputlog)
                for _ in range(args.rounds):
                    observe(results, "caPutLog", logged, args)
                logged.kill()
                print(f"caPutLog sent {server.lines} lines for {sum(r['sent'] for (n, _), rs in results.items() if n == 'caPutLog' for r in rs)} puts")
            times["the record itself"] = singlePuts.measure(ioc.prefix + "ONE", ioc.prefix + "ONE", args.single)
            monitor = Monitor(tmp).start()
            monitor.wait_ioc(ioc)
            for _ in range(args.rounds):
                for name in ("off", "puts", "chains"):
                    level(monitor, ioc, name)
                    observe(results, f"ebpfMon, {name}", ioc, args, monitor)
            level(monitor, ioc, "puts")
            for name in ("PUT_CNT", "PUT_LAST"):
                times[name] = singlePuts.measure(ioc.prefix + "ONE", monitor.prefix + name, args.single)
            steady = observe_steady(tmp, monitor, args.steady)
    finally:
        for left in list(alive - {repeater}):
            left.close()
        repeater.kill()
    table(results, args)
    print(f"\n{'from put to event':18}{'median ms':>10}{'99 % ms':>10}{'max ms':>10}")
    for name, took in times.items():
        print(f"{name:18}{statistics.median(took):10.2f}{singlePuts.quantile(took, 0.99):10.2f}{took[-1]:10.2f}")
    print(f"\n{'at a steady rate':18}{'level':>10}{'puts/s':>10}{'sent':>10}{'counted':>10}{'lost':>10}{'own CPU us':>12}")
    for protocol, name, rate, *numbers, own in steady:
        print(f"{protocol:18}{name:>10}{rate:10.0f}" + "".join(f"{n:10}" for n in numbers) + f"{own:12.2f}")


if __name__ == "__main__":
    main()
