# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts; one has no monitor, or gets it later, or loses it for a while. The exported traces are right all the
time."""
import pytest
from tests.harness.hosts import Hosts
from tests.harness.ioc import OURS
from tests.harness.wait import until

PUTS = 6


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("hosts")) as made:
        made.start_receiver("DIRECT", "TRANSLATED")
        yield made


@pytest.fixture(scope="module")
def direct(hosts):
    return hosts.start_sender("DIRECT", hosts.link.addrB)


@pytest.fixture(scope="module")
def translated(hosts):
    return hosts.start_sender("TRANSLATED", hosts.link.natB)


def test_monitor_of_sender_only(hosts, direct, new_monitor):
    hosts.start_monitor(new_monitor, "A")
    hosts.check_sender_alone(direct, hosts.send(direct, PUTS))


def test_ioc_at_level_off_on_the_other_host(hosts, direct, new_monitor):
    """The monitor reads the packets at A, not the sockets at B. Puts from A to the IOC at B are not shown while this IOC is at
    level off."""
    monitor = hosts.start_monitor(new_monitor, "A")
    pv = hosts.receiver.prefix + "DIRECT"
    hosts.put("DIRECT", range(1000, 1020), 47010)
    hosts.send(direct, PUTS)
    until(lambda: f" {direct.prefix}ROOT" in monitor.lines("PUT_LOG"), 20, lambda: monitor.lines("PUT_LOG"))
    assert pv not in monitor.lines("PUT_LOG")
    monitor.set_filter(IOC=OURS)
    monitor.wait_ioc(hosts.receiver, level="trace")
    hosts.put("DIRECT", [2000], 47011)
    until(lambda: [l for l in monitor.lines("PUT_LOG").splitlines() if f" {pv} " in l and "-> 2000 " in l], 20,
          lambda: monitor.lines("PUT_LOG"))
    assert " -> 10" not in monitor.lines("PUT_LOG")


def test_monitor_of_receiver_only(hosts, direct, translated, new_monitor):
    """If the client is a process of a host that B's monitor sees, this monitor exports the span of the message, too.
    If the client is a stranger, it cannot."""
    hosts.start_monitor(new_monitor, "B")
    hosts.check_receiver_alone(direct, hosts.send(direct, PUTS))
    hosts.check_receiver_of_a_stranger(translated, hosts.send(translated, PUTS), hosts.link.natA)


def test_monitor_of_receiver_starts_later(hosts, direct, new_monitor):
    """The connection is older than B's monitor. From the first put after its start the chains of A and B are one
    trace."""
    hosts.start_monitor(new_monitor, "A")
    before = hosts.send(direct, PUTS)
    hosts.start_monitor(new_monitor, "B")
    after = hosts.send(direct, PUTS)
    hosts.check_joined(direct, after)
    hosts.check_sender_alone(direct, before)


def test_monitor_of_sender_killed(hosts, direct, new_monitor):
    """A monitor that starts again gives other ids to chains, and the same ids to messages."""
    first = hosts.start_monitor(new_monitor, "A")
    hosts.start_monitor(new_monitor, "B")
    before = hosts.send(direct, PUTS)
    hosts.check_joined(direct, before)
    first.process.kill()
    without = hosts.send(direct, PUTS)
    hosts.check_receiver_alone(direct, without)
    hosts.start_monitor(new_monitor, "A")
    after = hosts.send(direct, PUTS)
    hosts.check_joined(direct, after)
    hosts.check_joined(direct, before)
