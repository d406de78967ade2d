# SPDX-License-Identifier: BSD-3-Clause
"""A trace says that it is incomplete if something that belongs to it may not have been seen: a message, or an event that was
lost."""
import signal
import time

import pytest
from tests.harness import db, otlp
from tests.harness.wait import until

CHAINS, LENGTH, TRACES = 30, 5, 50  # TRACES of the chain that sends


@pytest.fixture
def sink():
    """A collector for each test."""
    s = otlp.Sink()
    yield s
    s.discard()


@pytest.fixture(scope="module")
def receiver(module_ioc):
    return module_ioc(db.READY + db.record("ao", "IN")).start()


@pytest.fixture(scope="module")
def sender(module_ioc, receiver):
    """Chains of LENGTH records. The last record of ROOT0 writes by the only CA link: the channel is older than the monitors, so
    no name tells links apart."""
    text = db.READY + db.record("ao", "SINGLE")
    for i in range(CHAINS):
        text += db.record("calc", f"ROOT{i}", CALC="VAL+1", SCAN=".1 second", FLNK=f"$(P)N{i}:2")
        for n in range(2, LENGTH):
            text += db.record("calc", f"N{i}:{n}", CALC="VAL+1", FLNK=f"$(P)N{i}:{n + 1}")
        text += db.record("calcout", f"N{i}:{LENGTH}", CALC="VAL+1", OUT="" if i else f"{receiver.prefix}IN CA")
    made = module_ioc(text, kind="softIocPVA", environ={"EPICS_CA_ADDR_LIST": f"127.0.0.1:{receiver.port}",
                                                     "EPICS_CA_AUTO_ADDR_LIST": "NO"}).start()
    until(lambda: receiver.get("IN") > 0, 30, "the link is connected")
    return made


def start(new_monitor, sender, sink, *before):
    """Starts a monitor that traces the chains of the sender only, as soon as it watches."""
    monitor = new_monitor(before=[*before, f'ebpfMonOtlp "{sink.url}" "traces"'])
    monitor.filter = f'ebpfMonFilter "{sender.name}" "" "" "" "" "trace" "" "" 0'
    monitor.start().wait_ioc(sender, level="trace")
    return monitor


def of_scans(sink, sender):
    """For each trace of a scan: whether ROOT0 began it, whether it says that it is incomplete, its records, its messages."""
    found = []
    for spans in sink.traces().values():
        chains = [s for s in spans if "epics.chain.cause" in s["attributes"]]
        if len(chains) == 1 and chains[0]["name"].startswith(sender.prefix + "ROOT"):
            found.append((chains[0]["name"].endswith("ROOT0"), chains[0]["attributes"]["epics.chain.incomplete"],
                          sum("epics.record.type" in s["attributes"] for s in spans),
                          sum("epics.put.link" in s["attributes"] for s in spans)))
    return found


def check(sink, sender):
    """Each trace that says that it is complete is so. Returns how many that send are complete, and how many not."""
    found = of_scans(sink, sender)
    wrong = [t for t in found if not t[1] and t[2:] != (LENGTH, t[0])]
    assert not wrong, (len(wrong), len(found), wrong[:10])
    return sum(t[0] and not t[1] for t in found), sum(t[0] and t[1] for t in found)


def await_traces(sink, sender, count):
    """Waits until so many traces with messages have come."""
    until(lambda: sum(t[0] for t in of_scans(sink, sender)) >= count, 60, lambda: len(of_scans(sink, sender)))


def test_no_packets_are_read(sender, new_monitor, sink):
    monitor = start(new_monitor, sender, sink, "ebpfMonConfigure 0 0 0 0 -1")
    await_traces(sink, sender, TRACES)
    monitor.stop()
    complete, incomplete = check(sink, sender)
    assert not complete and incomplete >= TRACES


def test_client_that_only_packets_show(sender, new_monitor, sink):
    """The put of a PVA client: without packets its message is not known."""
    start(new_monitor, sender, sink, "ebpfMonConfigure 0 0 0 0 -1")
    assert sender.run("pvput", "-w", "10", sender.prefix + "SINGLE", 3).returncode == 0
    chain = until(lambda: [s for spans in sink.traces().values() for s in spans if "epics.chain.cause" in s["attributes"] and
                           s["name"] == sender.prefix + "SINGLE"], 20, "the chain of the put")
    assert [c["attributes"]["epics.chain.incomplete"] for c in chain] == [True], chain


def test_events_are_lost(sender, new_monitor, sink):
    """The event ring is full: the monitor stands still."""
    monitor = start(new_monitor, sender, sink, "ebpfMonConfigure 0 0 256")
    monitor.wait("PACKET_STATE", lambda state: state == 1, 20)
    for _ in range(5):
        before = sum(t[0] for t in of_scans(sink, sender))
        monitor.process.signal(signal.SIGSTOP)
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > 2, 10, "two seconds")
        monitor.process.signal(signal.SIGCONT)
        await_traces(sink, sender, before + TRACES / 2)
    assert monitor.losses()
    monitor.stop()
    complete, incomplete = check(sink, sender)
    assert complete > TRACES and incomplete, (complete, incomplete)
