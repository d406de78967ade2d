# SPDX-License-Identifier: BSD-3-Clause
"""Measures what an OpenTelemetry Collector needs for many hosts: CPU time, memory, queue on disk, series.

One real monitor watches an IOC with 100 chains, which gets RATE puts per second for 5 s. Each put starts a chain. The
program keeps what the monitor sends, and then sends it for each of HOSTS hosts, under the name of that host: logs and
traces once a second, metrics every ten seconds. The collector has the configuration of documentation/use/site.
Receivers take all logs and traces, and the program fetches the metrics every 15 s, as Prometheus does. A second
measurement has the receivers down: it shows how large the queue on disk becomes.

It needs root and a collector (EBPFMON_OTELCOL). EPICS_BASE is the path of EPICS Base.

    python -m tests.bench.siteLoad [--hosts N] [--rate N] [--seconds S]
"""
import argparse
import http.client
import os
import platform
import re
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import collector, db, paths, stores  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.otlp import Sink  # noqa: E402
from tests.harness.process import Process, alive  # noqa: E402
from tests.harness.wait import settled, until  # noqa: E402

ROOTS = 100
MARK = "hostOfTheSample"
KINDS = {"logs": "resourceLogs", "traces": "resourceSpans", "metrics": "resourceMetrics"}
EVERY = {"logs": 1, "traces": 1, "metrics": 10}  # seconds
SCRAPE = 15


def sample(tmp, rate):
    """Runs a monitor for 5 s of puts. Returns what it sent (signal → bodies of requests), and the number of puts."""
    text = db.READY + "".join(db.chain(f"C{i}x", 3) for i in range(ROOTS))
    sink = Sink()
    ioc = Ioc(tmp, db=text).start()
    monitor = Monitor(tmp, iocs=ioc.name, before=[
        f'epicsEnvSet OTEL_RESOURCE_ATTRIBUTES "host.name={MARK}"', "epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000",
        f'ebpfMonOtlp "{sink.url}" "logs,metrics,traces"']).start().at_level("trace", ioc)
    for i in range(ROOTS):  # so that each root has a latency
        ioc.put(f"C{i}x0.PROC", 1)
    until(lambda: any(b"epics.root.latency" in b and b.count(b"x0") >= ROOTS for _, b in sink.bodies), 30, "latencies")
    metrics = [b for _, b in sink.bodies if b"resourceMetrics" in b][-1]
    sink.bodies.clear()
    begun = time.monotonic()
    for i in range(5 * rate):  # sleeps to make this rate, not to wait for something
        time.sleep(max(0, begun + i / rate - time.monotonic()))
        ioc.put(f"C{i % ROOTS}x0.PROC", 1)
    until(lambda: sum(b.count(b"epics.put.through") for _, b in sink.bodies) >= 5 * rate, 20, "all puts")
    monitor.wait("OTLP_QUEUE_LOAD", lambda load: load == 0, 20)
    # a batch of logs or traces waits at most for a second; metrics come each second
    settled(lambda: len([b for _, b in sink.bodies if b"resourceMetrics" not in b]), 20, quiet=1.5)
    bodies = [b for _, b in sink.bodies]
    for thing in monitor, ioc, sink:
        thing.discard()
    made = {"metrics": [metrics]}
    for signal in "logs", "traces":
        made[signal] = [b for b in bodies if KINDS[signal].encode() in b]
    return made, 5 * rate


class Host(threading.Thread):
    """Sends as a monitor does: one request after the other. In each second it sends a fifth of the logs and traces,
    since they were recorded in 5 s."""

    def __init__(self, number, port, bodies, seconds):
        super().__init__(daemon=True)
        self.bodies = {s: [b.replace(MARK.encode(), f"host{number:02}".encode()) for b in some] for s, some in bodies.items()}
        self.port, self.seconds, self.offset = port, seconds, number / 30
        self.requests = self.refused = 0

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        begun = time.monotonic() + self.offset
        for second in range(self.seconds):
            time.sleep(max(0, begun + second - time.monotonic()))
            for signal, bodies in self.bodies.items():
                if second % EVERY[signal]:
                    continue
                share = bodies if signal == "metrics" else bodies[second % 5::5]
                for body in share:
                    connection.request("POST", f"/v1/{signal}", body, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    answer.read()
                    self.requests += 1
                    self.refused += answer.status != 200


def size(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def memory(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1e3


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return [l for l in answer.read().decode().splitlines() if l and l[0] != "#"]


def load(site, bodies, hosts, seconds):
    """Returns the CPU time (percent of one core), the numbers of requests, of refused requests and of series, and the
    time of the slowest fetch (s)."""
    cpu, begun = site.process.cpu_seconds(), time.monotonic()
    threads = [Host(n, site.port, bodies, seconds) for n in range(hosts)]
    for t in threads:
        t.start()
    series, slowest, next_at = 0, 0.0, begun + SCRAPE
    while any(t.is_alive() for t in threads):
        threads[0].join(0.2)
        if time.monotonic() >= next_at:
            next_at += SCRAPE
            at = time.monotonic()
            series = len(scrape(site.metrics))
            slowest = max(slowest, time.monotonic() - at)
    took = time.monotonic() - begun
    return (100 * (site.process.cpu_seconds() - cpu) / took, sum(t.requests for t in threads),
            sum(t.refused for t in threads), series, slowest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    if why := collector.missing():
        raise SystemExit(why)
    Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        bodies, puts = sample(tmp, args.rate)
        per_put = {s: sum(map(len, bodies[s])) / puts for s in ("logs", "traces")}
        logs, traces = Sink(), Sink()
        site = collector.SiteCollector(tmp, stores.SITE / "collector.yaml", traces.url, logs.url + "/otlp").start()
        print(f"{platform.release()}, {os.cpu_count()} CPUs, which sender, collector and receivers share\n")
        print(f"{args.hosts} hosts, {args.rate} puts per second each: a put is {per_put['logs']:.0f} bytes of log and "
              f"{per_put['traces']:.0f} of trace; the metrics of a host are {len(bodies['metrics'][0]) / 1e3:.0f} kB\n")
        print("| receivers | requests | refused | CPU, % | memory, MB | queue on disk, MB | series | s to fetch them |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for name, accepts in ("take all", True), ("are down", False):
            logs.accepts = traces.accepts = accepts
            cpu, requests, refused, series, slowest = load(site, bodies, args.hosts, args.seconds)
            print(f"| {name} | {requests:,} | {refused:,} | {cpu:.0f} | {memory(site.process.pid):.0f} | "
                  f"{size(tmp / 'queue'):.0f} | {series:,} | {slowest:.2f} |", flush=True)
        arrived = sum(b.count(b"epics.put.through") for _, b in logs.bodies)
        logs.accepts = traces.accepts = True
        until(lambda: sum(b.count(b"epics.put.through") for _, b in logs.bodies) >= 2 * arrived * 0.99, 120,
              lambda: f"the queue is not empty; {arrived} puts had arrived before")
        print(f"\n{arrived:,} puts arrived while the receivers took all; the puts in the queue arrived afterwards")
        for thing in site, logs, traces:
            thing.discard()
    for left in list(alive):
        left.kill()


if __name__ == "__main__":
    main()
