# SPDX-License-Identifier: BSD-3-Clause
"""What packets cost an IOC is in its cost. Two network namespaces stand for two hosts, each with an IOC; both have the same port."""
import os

import pytest
from tests.harness import badlink, db, paths
from tests.harness.far import FarIoc, there
from tests.harness.passes import cells
from tests.harness.wait import until

RECORDS = db.READY + db.counter("N", SCAN=".1 second")
CLIENTS = 6


@pytest.fixture
def link():
    with badlink.BadLink() as made:
        yield made


@pytest.fixture
def iocs(link, tmp_path):
    near = FarIoc(tmp_path, link, end=link.a, db=RECORDS)
    far = FarIoc(tmp_path, link, db=RECORDS)
    far.port = near.port
    near.address = "0.0.0.0"  # it serves at all addresses, as IOCs usually do
    near.start()
    near.address = link.addrA
    yield near, far.start()
    near.discard()
    far.discard()


@pytest.fixture
def monitor_from(link):
    """Starts clients at this end. They get ten updates a second each from the IOC at the other end."""
    made = []

    def start(end, ioc):
        environ = {**os.environ, "EPICS_CA_ADDR_LIST": f"{ioc.address}:{ioc.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}
        clients = [there(end, [paths.BASE_BIN / "camonitor", ioc.prefix + "N"], environ) for _ in range(CLIENTS)]
        made.extend(clients)
        until(lambda: all(any("N" in line for line in c.lines) for c in clients), 30, lambda: clients[0].output())
        return clients

    yield start
    for client in made:
        client.kill()


def test_who_sends_pays(link, iocs, new_monitor, monitor_from):
    near, far = iocs
    monitor = new_monitor(iocs=near.name).start()
    monitor.wait_ioc(near)
    monitor.set_filter(LEVEL="puts")
    monitor.wait_ioc(near, level="puts")

    def cost(ioc):
        return float(cells(monitor, ioc)[8])

    until(lambda: cost(near) == 0, 60, lambda: f"{cells(monitor, near)}")
    clients = monitor_from(link.a, far)
    counts = [len(c.lines) for c in clients]
    until(lambda: all(len(c.lines) > n + 60 for c, n in zip(clients, counts)), 60, "updates")  # one packet in 16 is timed
    monitor.wait("PACKET_RATE", lambda rate: rate > 2 * CLIENTS, 20)
    assert cost(near) == 0, "the other IOC sends"
    monitor_from(link.b, near)
    until(lambda: cost(near) > 0, 60, lambda: f"{cells(monitor, near)}")
