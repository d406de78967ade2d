# SPDX-License-Identifier: BSD-3-Clause
"""Measures what it costs to look at what an IOC sends: 100 CA clients with 100 subscriptions each, to 10,000 records, of which
1,000 change each second. Prints the monitor's own figure, and the CPU time of its threads as the kernel counts it.

    python -m tests.bench.subscriptions [--seconds S]
"""
import argparse
import collections
import os
import selectors
import struct
import tempfile
import threading
import time
from pathlib import Path

from tests.harness import loopback

loopback.use()  # before a client library is imported

from tests.harness import db, rawca  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.wait import until  # noqa: E402

CLIENTS, EACH = 100, 100


def spent(pid):
    """CPU time (s) by the name of the thread."""
    found = collections.Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[(task / "comm").read_text().strip()] += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:  # it has ended
            continue
    return found


def drain(clients, ended):
    chosen = selectors.DefaultSelector()
    for client in clients:
        chosen.register(client.socket, selectors.EVENT_READ)
    while not ended.is_set():
        for key, _ in chosen.select(0.5):
            key.fileobj.recv(1 << 20)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    seconds, ended = arguments.parse_args().seconds, threading.Event()
    with tempfile.TemporaryDirectory() as tmp:
        ioc = Ioc(Path(tmp), db.READY + "".join(db.counter(f"R{n}", SCAN="10 second") for n in range(CLIENTS * EACH))).start()
        monitor = Monitor(Path(tmp)).start()
        try:
            monitor.wait_ioc(ioc)
            clients = [rawca.RawCa(ioc.port, f"client{n}", "bench") for n in range(CLIENTS)]
            for n, client in enumerate(clients):
                for k in range(EACH):
                    sid = client.sid(f"{ioc.prefix}R{n * EACH + k}")
                    client.send(rawca.message(1, struct.pack(">fffHH", 0, 0, 0, 7, 0), rawca.DOUBLE, 1, sid, k + 1))
            threading.Thread(target=drain, args=(clients, ended), daemon=True).start()
            until(lambda: monitor.get("SUBSCRIPTION_CNT") == CLIENTS * EACH, 60, "all are known")
            time.sleep(15)  # what is new is over
            before, begin = spent(monitor.process.pid), time.monotonic()
            time.sleep(seconds)  # the length of the measurement
            after, took = spent(monitor.process.pid), time.monotonic() - begin
            for name, cost in ((n, 100 * (after[n] - before[n]) / took) for n in sorted(after)):
                if cost >= 0.02:
                    print(f"{name:16} {cost:.2f} % of a core")
            print(f"SUBSCRIPTION_COST {monitor.get('SUBSCRIPTION_COST'):.2f} %, {monitor.text('SUBSCRIPTION_MSG')}; load {os.getloadavg()[0]:.1f}")
        finally:
            ended.set()
            monitor.discard()
            ioc.discard()


if __name__ == "__main__":
    main()
